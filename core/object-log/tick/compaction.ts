import type { BlockCache } from '../../cache/block-cache.ts';
import { HIT } from '../../cache/step.ts';
import { SkuaError } from '../../errors.ts';
import { INDEX_FOLDER, loadIndexMap, newGuid, saveIndexMap } from '../../index/index-map.ts';
import { replayLog } from '../../index/replay.ts';
import { StreamIndex } from '../../index/stream-index.ts';
import { bloomPathOf } from '../../index/table-format.ts';
import { MERGE_TABLES_JOB, type MergeTablesArgs } from '../../index/table-merge.ts';
import { removeTable } from '../../index/table-write.ts';
import { TOMBSTONE } from '../../log/records.ts';
import type { Digests } from '../../ports/digests.ts';
import type { JobOptions, Jobs } from '../../ports/jobs.ts';
import { listKind, pageOfKind } from '../../ports/object-kinds.ts';
import type { ObjectInfo, ObjectStore } from '../../ports/object-store.ts';
import type { StreamHasher } from '../../stream-hash.ts';
import { FloorSearch, Lookup, runSearch, StreamKey } from '../../streams/lookup.ts';
import { POINTS_STREAM } from '../../streams/names.ts';
import { CARRY_SPAN_COMMITS, INDEX_CACHE_DEPTH_DEFAULT, type ObjectWorld } from '../api.ts';
import { type Commit, decodeCommitObject } from '../commit-object.ts';
import { commitKey, commitNumberOf, COMMITS } from '../keys.ts';
import type { ObjectStorage } from './storage.ts';
import type { TickLog } from './tick-log.ts';

/** Bytes of commit objects that are in memory at once while the tail is read, unless a single one is larger. */
const BATCH_BYTES_MAX = 33_554_432;

/** The commits that are stored from one number on. */
export interface Tail {
  readonly from: number;
  /** Sizes of their objects, in the order of their numbers. */
  readonly sizes: readonly number[];
  readonly bytes: number;
}

/**
 * What there is of the tail, by listing it. Null when the first commit is gone: then a newer manifest has taken it in. Throws
 * `log_corrupt` where numbers are missing.
 */
export async function listTail(objects: ObjectStore, from: number, commitsMax: number): Promise<Tail | null> {
  const infos: ObjectInfo[] = [];
  for await (const info of listKind(objects, COMMITS, { after: commitKey(from - 1) })) {
    infos.push(info);
    if (infos.length === commitsMax) break;
  }
  return tailOf(objects, from, infos);
}

/** What there is under `log/`, as one tick finds it. */
export interface LogList {
  /** Null as `listTail` has it. */
  readonly tail: Tail | null;
  /** The first commit of the tail and the first one below the boundary, which is there until it is removed; null where there is none. */
  readonly first: ObjectInfo | null;
  readonly old: ObjectInfo | null;
}

/** As `listTail`, with what waits below the tail for its removal: one request where both fit a page. */
export async function listLog({ objects, onStrangers }: Pick<ObjectWorld, 'objects' | 'onStrangers'>, boundary: number, commitsMax: number): Promise<LogList> {
  const page = await pageOfKind(objects, COMMITS);
  if (page.strangers.length > 0) onStrangers?.({ place: objects.place, count: page.strangers.length, first: page.strangers[0]! });
  const infos = page.objects.filter((info) => numberIn(info) >= boundary);
  const old = infos.length === page.objects.length ? null : page.objects[0]!;
  if (page.isMore) {
    for await (const info of listKind(objects, COMMITS, { after: infos.at(-1)?.key ?? commitKey(boundary - 1) })) {
      if (infos.length >= commitsMax) break;
      infos.push(info);
    }
  }
  return { tail: tailOf(objects, boundary, infos.slice(0, commitsMax)), first: infos[0] ?? null, old };
}

function tailOf({ place }: ObjectStore, from: number, infos: readonly ObjectInfo[]): Tail | null {
  if (infos.length > 0 && numberIn(infos[0]!) !== from) return null;
  let bytes = 0;
  infos.forEach((info, i) => {
    if (numberIn(info) !== from + i) throw new SkuaError('log_corrupt', `Commit ${from + i} is missing under ${place}, though there are later ones: restore it from a version or a backup of the bucket.`, { number: from + i });
    bytes += info.sizeBytes;
  });
  return { from, sizes: infos.map(({ sizeBytes }) => sizeBytes), bytes };
}

function numberIn({ key }: ObjectInfo): number {
  return commitNumberOf(key)!;
}

/**
 * The commits of the tail in order. Each object carries the commits before it, back to the beginning of its span and as far as they fit, so
 * the last one of a span is read first, and small commits cost a request for every span.
 */
export async function* readTail(objects: ObjectStore, digests: Digests, tail: Tail): AsyncGenerator<Commit, void, undefined> {
  const end = tail.from + tail.sizes.length;
  for (let next = tail.from; next < end;) {
    const span = Math.min(end, (Math.floor(next / CARRY_SPAN_COMMITS) + 1) * CARRY_SPAN_COMMITS);
    const batch = await readBack(objects, digests, next, lastWithin(tail, next, span));
    yield* batch;
    next += batch.length;
  }
}

/** The last number before `span` such that the objects from `next` to it fit the batch together. */
function lastWithin(tail: Tail, next: number, span: number): number {
  let bytes = tail.sizes[next - tail.from]!;
  let last = next;
  while (last + 1 < span && bytes + tail.sizes[last + 1 - tail.from]! <= BATCH_BYTES_MAX) bytes += tail.sizes[++last - tail.from]!;
  return last;
}

/** Commits `from` to `to`, ascending. */
async function readBack(objects: ObjectStore, digests: Digests, from: number, to: number): Promise<Commit[]> {
  const found: Commit[] = [];
  for (let at = to; at >= from;) {
    const key = commitKey(at);
    const bytes = await objects.get(key);
    if (bytes === null) throw new SkuaError('commit_lost', `The commit ${key} has been removed while it was read: a newer manifest has taken it in. Begin again with that.`, { key });
    const { commit, carried } = decodeCommitObject(key, at, bytes, digests);
    for (const one of [commit, ...carried]) if (one.number >= from) found.push(one);
    at -= 1 + carried.length;
  }
  return found.reverse();
}

/** The tables but the largest are merged into one, and into the largest one when they have more than this part of its bytes. */
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
export function openIndex({ world, storage, cache, jobs, cacheDepth, hasher }: TickIndexParts, logEnd: number): Promise<StreamIndex> {
  const { digests, ids, log, clock } = world;
  return StreamIndex.open({
    ports: { storage, cache, digests, ids, jobs, log, clock }, logEnd,
    settings: { verify: false, existenceFilterBytes: 0, tablesPerLevelMax: TABLES_PER_LEVEL_MAX, cacheDepth: cacheDepth ?? INDEX_CACHE_DEPTH_DEFAULT }, ...(hasher !== undefined && { hasher }),
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
  return await runSearch(search, new Lookup(table, index)) === HIT ? search.entry.version : -1;
}

/**
 * Leaves at most two tables: the rest of the index, and a small new one. A reader asks every table, and on object storage that is a
 * request each. No index may be open. When the signal ends it the tables are as they were.
 */
export async function settleTables({ world, storage, jobs, cacheDepth }: TickIndexParts, jobOptions: JobOptions): Promise<void> {
  const { digests, ids } = world;
  const map = await loadIndexMap(storage, digests);
  const newestFirst = map?.levels.flatMap((names) => names.toReversed()) ?? [];
  if (map === null || newestFirst.length < 2) return;
  const sizes = await Promise.all(newestFirst.map(async (name) => (await storage.size(`${INDEX_FOLDER}/${name}`)) ?? 0));
  const rest = newestFirst.at(-1)!;
  const smallBytes = sizes.slice(0, -1).reduce((sum, size) => sum + size, 0);
  const isAll = smallBytes > sizes.at(-1)! * SMALL_SHARE;
  const merged = isAll ? newestFirst : newestFirst.slice(0, -1);
  if (merged.length < 2) return;
  const name = newGuid(ids);
  const path = `${INDEX_FOLDER}/${name}`;
  const args: MergeTablesArgs = { sources: merged.map((source) => `${INDEX_FOLDER}/${source}`), path, bloomPath: bloomPathOf(path), cacheDepth: cacheDepth ?? INDEX_CACHE_DEPTH_DEFAULT };
  await jobs.run(MERGE_TABLES_JOB, args, jobOptions);
  await saveIndexMap({ ...map, levels: isAll ? [[], [name]] : [[name], [rest]] }, storage, digests, ids);
  for (const source of merged) await removeTable(storage, `${INDEX_FOLDER}/${source}`);
}
