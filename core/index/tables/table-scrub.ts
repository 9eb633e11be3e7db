import { SkuaError } from '../../base/errors.ts';
import { readScrubbed, type Scrubbed, writeScrubbed } from '../../log/format/scrubbed-file.ts';
import { Scrubber } from '../../log/scrubber/scrubber.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Jobs } from '../../ports/jobs.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage } from '../../ports/storage.ts';
import type { TableReader } from './tables.ts';
import { PROVE_TABLE_JOB, type VerifyTableArgs, type VerifyTableResult } from '../jobs/jobs.ts';

/**
 * In the folder of the index: the tables that fit their checksums, as a clean stop has left them. It is there between a
 * clean stop and the next start only, which removes it as it removes all that the index map does not name: what a crash
 * leaves behind is always verified.
 */
export const SCRUBBED_TABLES_NAME = 'proven-tables';
export const SCRUBBED_TABLES_FORMAT = 'skua proven tables 1';

interface ScrubWorld {
  readonly storage: Storage;
  readonly digests: Digests;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * What the last clean stop knew of tables, by their names. A list that can't be read is as good as none: the tables are
 * verified.
 */
export async function loadScrubbedTables(
  { storage, digests, clock, log }: ScrubWorld,
  folder: string,
): Promise<ReadonlyMap<string, Scrubbed>> {
  const path = `${folder}/${SCRUBBED_TABLES_NAME}`;
  const found = new Map<string, Scrubbed>();
  try {
    const nowMs = clock.nowMs();
    // A time in the future comes of a clock that was wrong: it would never become old.
    for (const [name, scrubbed] of await readScrubbed(storage, digests, path, SCRUBBED_TABLES_FORMAT))
      if (scrubbed.scrubbedMs <= nowMs) found.set(name, scrubbed);
  } catch (error) {
    log.warn(`${SCRUBBED_TABLES_NAME} can't be used: all index tables are verified before the start continues`, {
      path,
      error: String(error),
    });
  }
  return found;
}

export interface TableScrubParts extends ScrubWorld {
  readonly jobs: Jobs;
  /** The tables in force, newest first. */
  readonly tables: () => readonly TableReader[];
  /** Called once, for a table whose content does not fit its checksum; nothing is compared after that. */
  readonly onDamage: (error: SkuaError) => void;
}

/**
 * Compares index tables with their checksums in the background of a running store. Ends with the signal, or with the
 * first damage. Never rejects.
 */
export function scrubTables(
  { storage, clock, log, jobs, tables, onDamage }: TableScrubParts,
  signal: AbortSignal,
): Promise<void> {
  const scrubber = new Scrubber<TableReader>({
    storage,
    clock,
    log,
    onDamage,
    files: tables,
    pathOf: ({ path }) => path,
    unreadable: { message: 'an index table could not be verified', member: 'path' },
    async check({ path }, bytesPerSecond) {
      const args: VerifyTableArgs = { path, bytesPerSecond };
      const wrong = (await jobs.run(PROVE_TABLE_JOB, args, { signal })) as VerifyTableResult;
      return wrong === null ? null : new SkuaError('index_corrupt', wrong, { path });
    },
  });
  return scrubber.run(signal);
}

/**
 * Writes down, at a clean stop, which tables fit their checksums. What can't be written is verified by the next start.
 */
export async function saveScrubbedTables(
  { storage, digests, log }: ScrubWorld,
  folder: string,
  tables: readonly TableReader[],
): Promise<void> {
  const path = `${folder}/${SCRUBBED_TABLES_NAME}`;
  const files = new Map<string, Scrubbed>();
  for (const { name, scrubbed } of tables) if (scrubbed !== null) files.set(name, scrubbed);
  if (files.size === 0) return;
  try {
    await writeScrubbed(storage, digests, path, SCRUBBED_TABLES_FORMAT, files);
  } catch (error) {
    log.warn(`${SCRUBBED_TABLES_NAME} could not be written: the next start verifies all index tables`, {
      path,
      error: String(error),
    });
  }
}
