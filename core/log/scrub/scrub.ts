import { SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Digests } from '../../ports/digests.ts';
import { type Job, type Jobs, paced } from '../../ports/jobs.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage } from '../../ports/storage.ts';
import { blockDamaged, compareBlocks } from '../block-sums/block-sums.ts';
import type { Chunk } from '../chunk/chunk.ts';
import type { ChunkTable } from '../chunk-table/chunk-table.ts';
import { ChunkProof } from '../format/chunk-proof.ts';
import {
  readScrubbed,
  type Scrubbed,
  SCRUBBED_CHUNKS_FILE,
  SCRUBBED_CHUNKS_FORMAT,
  writeScrubbed,
} from '../format/scrubbed-file.ts';
import { SCRUB_AGAIN_AFTER_MS, SCRUB_AGAIN_BYTES_PER_SECOND, Scrubber } from '../scrubber/scrubber.ts';

/** What was compared is written down at least so often while there is more to compare. */
const SAVE_EVERY_MS = 60_000;

export interface ChunkScrubParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly digests: Digests;
  readonly jobs: Jobs;
  readonly log: Log;
  readonly table: ChunkTable;
  /** Called once, for a chunk whose content does not fit its MD5; nothing is compared after that. */
  readonly onDamage: (error: SkuaError) => void;
}

/** How far the completed chunks are known to be as they were written. */
export interface ScrubFigures {
  /**
   * Bytes of completed chunk files that were not compared with their MD5 since they were written, or since they
   * changed.
   */
  readonly bytesUnproven: number;
  /** Time since the chunk was compared that was longest ago, in milliseconds; null where none was. */
  readonly oldestProofAgeMs: number | null;
}

/** What the completed chunks of a log amount to; each knows when it was compared. */
export function scrubFigures(table: ChunkTable, nowMs: number): ScrubFigures {
  let bytesUnproven = 0;
  let oldestMs = Infinity;
  for (const chunk of table.all()) {
    if (!chunk.isCompleted) continue;
    if (chunk.scrubbed === null) bytesUnproven += chunk.file.file.size;
    else oldestMs = Math.min(oldestMs, chunk.scrubbed.scrubbedMs);
  }
  return { bytesUnproven, oldestProofAgeMs: oldestMs === Infinity ? null : Math.max(0, nowMs - oldestMs) };
}

/**
 * Compares completed chunks with their MD5 in the background, in a worker: reads do not wait for it. What fits is
 * remembered across starts for as long as name, length and modification time of the file are the same. Ends with the
 * signal, or with the first damage. Never rejects.
 */
export async function scrubChunks(parts: ChunkScrubParts, signal: AbortSignal): Promise<void> {
  const { table, jobs } = parts;
  const list = new ScrubbedChunks(parts);
  const blocks = new OngoingBlocks(parts);
  const scrubber = new Scrubber<Chunk>({
    ...parts,
    files: () => [...table.all()].filter(({ isCompleted }) => isCompleted).reverse(),
    pathOf: ({ name }) => name,
    unreadable: { message: 'a chunk could not be verified', member: 'file' },
    async check({ name }, bytesPerSecond) {
      const args: VerifyChunkArgs = { name, bytesPerSecond };
      if (await jobs.run(VERIFY_CHUNK_JOB, args, { signal })) return null;
      return new SkuaError(
        'log_corrupt',
        `The checksum of chunk file ${name} does not match its content. Stop the node, run \`skua verify\`, and restore the file from a backup.`,
        { file: name, offset: null },
      );
    },
    afterFile: () => list.saveIfDue(),
    async afterRound() {
      if (!(await blocks.scrub(signal))) return false;
      await list.save();
      return true;
    },
  });
  await list.load(signal);
  // A stop while the list is read leaves it as it is.
  if (signal.aborted) return;
  try {
    await scrubber.run(signal);
  } finally {
    await list.save();
  }
}

/** The chunk that is being written, compared with the checksums of its blocks as often as a completed one. */
class OngoingBlocks {
  readonly #parts: ChunkScrubParts;
  /** When it was last compared: the start does it. */
  #scrubbedMs: number;

  constructor(parts: ChunkScrubParts) {
    this.#parts = parts;
    this.#scrubbedMs = parts.clock.nowMs();
  }

  /** False after damage. */
  async scrub(signal: AbortSignal): Promise<boolean> {
    const { table, jobs, clock, log, onDamage } = this.#parts;
    const chunk = [...table.all()].findLast(({ isCompleted }) => !isCompleted);
    if (chunk === undefined || clock.nowMs() - this.#scrubbedMs < SCRUB_AGAIN_AFTER_MS) return true;
    this.#scrubbedMs = clock.nowMs();
    try {
      const args: VerifyChunkArgs = { name: chunk.name, bytesPerSecond: SCRUB_AGAIN_BYTES_PER_SECOND };
      const wrong = (await jobs.run(VERIFY_BLOCKS_JOB, args, { signal })) as readonly number[];
      const [first] = wrong;
      if (first === undefined || table.chunkAt(chunk.startPosition) !== chunk) return true;
      onDamage(blockDamaged(chunk.name, first, wrong.length));
      return false;
    } catch (error) {
      if (!signal.aborted && table.chunkAt(chunk.startPosition) === chunk)
        log.warn('the chunk being written could not be verified', { file: chunk.name, error: String(error) });
      return true;
    }
  }
}

/** The file that lists which chunks were compared. */
class ScrubbedChunks {
  readonly #parts: ChunkScrubParts;
  /** What the file holds, as far as it can be relied on. */
  #saved: ReadonlyMap<string, Scrubbed> = new Map();
  #savedMs = 0;

  constructor(parts: ChunkScrubParts) {
    this.#parts = parts;
  }

  /**
   * Takes over what earlier starts found of the files as they are now. A list that can't be read, or is not whole, is
   * as good as none.
   */
  async load(signal: AbortSignal): Promise<void> {
    const { storage, digests, table, clock, log } = this.#parts;
    try {
      const saved = await readScrubbed(storage, digests, SCRUBBED_CHUNKS_FILE, SCRUBBED_CHUNKS_FORMAT);
      const nowMs = clock.nowMs();
      for (const chunk of table.all()) {
        if (signal.aborted) return;
        const scrubbed = saved.get(chunk.name);
        // A time in the future comes of a clock that was wrong: it would never become old.
        if (scrubbed === undefined || !chunk.isCompleted || scrubbed.scrubbedMs > nowMs) continue;
        const isSame =
          scrubbed.sizeBytes === chunk.file.file.size && scrubbed.modifiedMs === (await storage.modifiedMs(chunk.name));
        if (isSame) chunk.scrubbed = scrubbed;
      }
      this.#saved = saved;
    } catch (error) {
      if (!signal.aborted)
        log.warn(`${SCRUBBED_CHUNKS_FILE} can't be used: all chunks are verified again`, {
          file: SCRUBBED_CHUNKS_FILE,
          error: String(error),
        });
    }
  }

  async saveIfDue(): Promise<void> {
    if (this.#parts.clock.monotonicMs() - this.#savedMs >= SAVE_EVERY_MS) await this.save();
  }

  /**
   * Writes down what is known now, all at once, unless the file holds it. What can't be written is compared again after
   * the next start.
   */
  async save(): Promise<void> {
    const { storage, table, digests, clock, log } = this.#parts;
    const found = new Map<string, Scrubbed>();
    for (const { name, scrubbed } of table.all()) if (scrubbed !== null) found.set(name, scrubbed);
    if (found.size === this.#saved.size && [...found].every(([name, scrubbed]) => this.#saved.get(name) === scrubbed))
      return;
    this.#savedMs = clock.monotonicMs();
    try {
      await writeScrubbed(storage, digests, SCRUBBED_CHUNKS_FILE, SCRUBBED_CHUNKS_FORMAT, found);
      this.#saved = found;
    } catch (error) {
      log.warn(
        `${SCRUBBED_CHUNKS_FILE} could not be written: the chunks it lacks are verified again after the next start`,
        { file: SCRUBBED_CHUNKS_FILE, error: String(error) },
      );
    }
  }
}

/** A completed chunk file, and the one that is being written. */
export const VERIFY_CHUNK_JOB = 'log.verify-chunk';
export const VERIFY_BLOCKS_JOB = 'log.verify-blocks';

export interface VerifyChunkArgs {
  readonly name: string;
  /** Read no faster; 0, the default, for no limit. */
  readonly bytesPerSecond?: number;
}

/** Compares the MD5 at the end of a completed chunk file with its content; true when they agree. */
const verifyChunk = (async ({ name, bytesPerSecond = 0 }: VerifyChunkArgs, context) => {
  const file = await context.storage.open(name, 'read');
  try {
    const total = file.size;
    const proof = new ChunkProof(context.digests, name, total);
    await proof.addRange(file, total, paced(context, total, bytesPerSecond));
    return proof.isSound;
  } finally {
    await file.close();
  }
}) satisfies Job;

/**
 * Compares the blocks of the chunk that is being written with the checksums beside it, as far as these vouch for it;
 * gives the numbers of those that differ.
 */
const verifyBlocks = (async ({ name, bytesPerSecond = 0 }: VerifyChunkArgs, context) => {
  const total = (await context.storage.size(name)) ?? 0;
  const changed = await compareBlocks(context.storage, name, context.digests, paced(context, total, bytesPerSecond));
  return changed.map(({ block }) => block);
}) satisfies Job;

/** What workers do for the log. */
export const LOG_JOBS: Readonly<Record<string, Job>> = {
  [VERIFY_CHUNK_JOB]: verifyChunk,
  [VERIFY_BLOCKS_JOB]: verifyBlocks,
};
