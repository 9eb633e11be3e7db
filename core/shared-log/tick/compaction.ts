import type { BlockCache } from '../../cache/cache.ts';
import { HIT } from '../../base/step.ts';
import { INDEX_FOLDER, loadIndexMap, newGuid, saveIndexMap } from '../../index/format/index-map.ts';
import { replayLog } from '../../index/intake/intake.ts';
import { StreamIndex } from '../../index/index.ts';
import type { IndexHome } from '../../index/api.ts';
import { bloomPathOf, TABLE_VERSION } from '../../index/format/table-format.ts';
import { MERGE_TABLES_JOB, type MergeTablesArgs } from '../../index/jobs/jobs.ts';
import { removeTable } from '../../index/format/table-writer.ts';
import { TOMBSTONE } from '../../log/format/records.ts';
import type { JobOptions, Jobs } from '../../ports/jobs.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import { FloorSearch, Lookup, runSearch, StreamKey } from '../../streams/lookup/lookup.ts';
import { POINTS_STREAM } from '../../streams/format/names.ts';
import { INDEX_CACHE_DEPTH_DEFAULT, type ObjectWorld } from '../api.ts';
import type { ObjectStorage } from './tick-storage.ts';
import type { TickLog } from './tick-log.ts';

/**
 * The tables but the largest are merged into one, and into the largest one when they have more than this part of its
 * bytes.
 */
const SMALL_SHARE = 1 / 8;
/** Levels of the tables that a tick writes are none: it merges by size. */
export const TABLES_PER_LEVEL_MAX = 100;

export interface TickIndexParts {
  readonly world: ObjectWorld;
  readonly storage: ObjectStorage;
  readonly cache: BlockCache;
  readonly jobs: Jobs;
  readonly cacheDepth?: number;
  readonly hasher?: StreamHasher;
}

/** Opens the index tables. Entries of the log that are in none are added by `indexLog`. */
export function openIndex(
  { world, storage, cache, jobs, cacheDepth, hasher }: TickIndexParts,
  logEnd: number,
): Promise<StreamIndex> {
  const { digests, ids, log, clock } = world;
  return StreamIndex.open({
    ports: { storage, cache, digests, ids, jobs, log, clock },
    logEnd,
    settings: {
      verify: false,
      existenceFilterBytes: 0,
      tablesPerLevelMax: TABLES_PER_LEVEL_MAX,
      cacheDepth: cacheDepth ?? INDEX_CACHE_DEPTH_DEFAULT,
    },
    ...(hasher !== undefined && { hasher }),
  });
}

/** Brings the tables up to the end of what the log has taken over. */
export async function indexLog(index: StreamIndex, log: TickLog, world: ObjectWorld): Promise<void> {
  await replayLog(index, log.table, world.clock);
  await index.flush();
}

/** Number of the last scavenge point in what the log has taken over; -1 for none. */
export async function lastPoint(index: StreamIndex, { table }: TickLog): Promise<number> {
  const search = new FloorSearch(new StreamKey(POINTS_STREAM, index.hasher), TOMBSTONE - 1);
  return (await runSearch(search, new Lookup(table, index))) === HIT ? search.entry.version : -1;
}

/** Tables that are merged together. */
interface SettledTables {
  readonly home: IndexHome;
  /** Bytes of the largest table that a merge may make. */
  readonly tableBytesMax: number;
}

const STREAM_TABLES: SettledTables = {
  home: { folder: INDEX_FOLDER, tableVersion: TABLE_VERSION },
  tableBytesMax: Infinity,
};

/**
 * Leaves at most two tables: the rest of the index, and a small new one; besides older ones that would become larger
 * than a table may, were newer ones added to them. A reader asks every table, and on object storage that is a request
 * each. No index may be open. When the signal ends it the tables are as they were.
 */
export async function settleTables(
  { world, storage, jobs, cacheDepth }: Pick<TickIndexParts, 'world' | 'storage' | 'jobs' | 'cacheDepth'>,
  jobOptions: JobOptions,
  { home: { folder, tableVersion }, tableBytesMax }: SettledTables = STREAM_TABLES,
): Promise<void> {
  const { digests, ids } = world;
  const map = await loadIndexMap(storage, digests, folder);
  const newestFirst = map?.levels.flatMap((names) => names.toReversed()) ?? [];
  if (map === null || newestFirst.length < 2) return;
  const sizes = await Promise.all(newestFirst.map(async (name) => (await storage.size(`${folder}/${name}`)) ?? 0));
  const count = tablesToMerge(sizes, tableBytesMax);
  if (count < 2) return;
  const merged = newestFirst.slice(0, count);
  const rest = newestFirst.slice(count).toReversed();
  const name = newGuid(ids);
  const path = `${folder}/${name}`;
  const args: MergeTablesArgs = {
    sources: merged.map((source) => `${folder}/${source}`),
    path,
    bloomPath: bloomPathOf(path),
    cacheDepth: cacheDepth ?? INDEX_CACHE_DEPTH_DEFAULT,
    version: tableVersion,
  };
  await jobs.run(MERGE_TABLES_JOB, args, jobOptions);
  const levels = rest.length === 0 ? [[], [name]] : [[name], rest];
  await saveIndexMap({ ...map, levels }, storage, digests, ids, folder);
  for (const source of merged) await removeTable(storage, `${folder}/${source}`);
}

/** How many of the tables, given by their sizes from the newest on, become one. */
function tablesToMerge(sizes: readonly number[], tableBytesMax: number): number {
  let small = sizes.reduce((sum, size) => sum + size, 0);
  for (let count = sizes.length; count > 1; count--) {
    const rest = sizes[count - 1]!;
    small -= rest;
    // A table that would become too large stays as it is.
    if (rest + small <= tableBytesMax) return small > rest * SMALL_SHARE ? count : count - 1;
  }
  return 0;
}
