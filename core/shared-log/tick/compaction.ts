import type { BlockCache } from '../../cache/cache.ts';
import { HIT } from '../../base/step.ts';
import { INDEX_FOLDER, loadIndexMap, newGuid, saveIndexMap } from '../../index/format/index-map.ts';
import { replayLog } from '../../index/intake/intake.ts';
import { StreamIndex } from '../../index/index.ts';
import { bloomPathOf } from '../../index/format/table-format.ts';
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
const TABLES_PER_LEVEL_MAX = 100;

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

/**
 * Leaves at most two tables: the rest of the index, and a small new one. A reader asks every table, and on object
 * storage that is a request each. No index may be open. When the signal ends it the tables are as they were.
 */
export async function settleTables(
  { world, storage, jobs, cacheDepth }: TickIndexParts,
  jobOptions: JobOptions,
): Promise<void> {
  const { digests, ids } = world;
  const map = await loadIndexMap(storage, digests);
  const newestFirst = map?.levels.flatMap((names) => names.toReversed()) ?? [];
  if (map === null || newestFirst.length < 2) return;
  const sizes = await Promise.all(
    newestFirst.map(async (name) => (await storage.size(`${INDEX_FOLDER}/${name}`)) ?? 0),
  );
  const rest = newestFirst.at(-1)!;
  const smallBytes = sizes.slice(0, -1).reduce((sum, size) => sum + size, 0);
  const isAll = smallBytes > sizes.at(-1)! * SMALL_SHARE;
  const merged = isAll ? newestFirst : newestFirst.slice(0, -1);
  if (merged.length < 2) return;
  const name = newGuid(ids);
  const path = `${INDEX_FOLDER}/${name}`;
  const args: MergeTablesArgs = {
    sources: merged.map((source) => `${INDEX_FOLDER}/${source}`),
    path,
    bloomPath: bloomPathOf(path),
    cacheDepth: cacheDepth ?? INDEX_CACHE_DEPTH_DEFAULT,
  };
  await jobs.run(MERGE_TABLES_JOB, args, jobOptions);
  await saveIndexMap({ ...map, levels: isAll ? [[], [name]] : [[name], [rest]] }, storage, digests, ids);
  for (const source of merged) await removeTable(storage, `${INDEX_FOLDER}/${source}`);
}
