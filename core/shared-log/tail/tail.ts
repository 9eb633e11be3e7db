import { SkuaError } from '../../base/errors.ts';
import type { Digests } from '../../ports/digests.ts';
import { listKind, pageOfKind } from '../../ports/object-kinds.ts';
import type { ObjectInfo, ObjectStore } from '../../ports/object-store.ts';
import { CARRY_SPAN_COMMITS, type ObjectWorld, TAIL_COMMITS_MAX, TAIL_READS_MAX } from '../api.ts';
import { type Commit, decodeCommitObject } from '../format/commit-object.ts';
import { type Stamp, stampOf } from '../../ports/stamp.ts';
import { commitKey, commitNumberOf, COMMITS } from '../format/object-keys.ts';

/** The tail of a log: the commits that no manifest has taken in yet, as they are listed and read. */

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
 * What there is of the tail, by listing it. Null when the first commit is gone: then a newer manifest has taken it in.
 * Throws `log_corrupt` where numbers are missing.
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
  /**
   * The first commit of the tail and the first one below the boundary, which is there until it is removed; null where
   * there is none.
   */
  readonly first: ObjectInfo | null;
  readonly old: ObjectInfo | null;
}

/** As `listTail`, with what waits below the tail for its removal: one request where both fit a page. */
export async function listLog(
  { objects, onStrangers }: Pick<ObjectWorld, 'objects' | 'onStrangers'>,
  boundary: number,
  commitsMax: number,
): Promise<LogList> {
  const page = await pageOfKind(objects, COMMITS);
  if (page.strangers.length > 0)
    onStrangers?.({ place: objects.place, count: page.strangers.length, first: page.strangers[0]! });
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
    if (numberIn(info) !== from + i)
      throw new SkuaError(
        'log_corrupt',
        `Commit ${from + i} is missing under ${place}, although there are later ones: restore it from a version or a backup of the bucket.`,
        { number: from + i },
      );
    bytes += info.sizeBytes;
  });
  return { from, sizes: infos.map(({ sizeBytes }) => sizeBytes), bytes };
}

function numberIn({ key }: ObjectInfo): number {
  return commitNumberOf(key)!;
}

/** The commits behind a number as they were listed. */
interface TailList {
  /** Number of the last commit listed; the one before the first where there are none. */
  readonly last: number;
  /** When `last` + 1 was proved free. */
  readonly at: Stamp;
  /** A number below `last` was not listed. */
  readonly hasGap: boolean;
}

/** Lists the commits behind `known`: one LIST a thousand. Throws `too_busy` beyond TAIL_COMMITS_MAX. */
export async function listBehind(world: Pick<ObjectWorld, 'objects' | 'clock'>, known: number): Promise<TailList> {
  let last = known;
  let after = commitKey(known);
  for (;;) {
    const at = stampOf(world.clock);
    const page = await pageOfKind(world.objects, COMMITS, { after });
    for (const { key } of page.objects) {
      if (commitNumberOf(key) !== last + 1) return { last, at, hasGap: true };
      last++;
    }
    if (!page.isMore) return { last, at, hasGap: false };
    after = page.last;
    if (last - known >= TAIL_COMMITS_MAX)
      throw new SkuaError(
        'too_busy',
        `More than ${TAIL_COMMITS_MAX} commits have not been compacted into files yet: the tick, which does that, is not running. Check its log and alarms.`,
        { commits: last - known, commitsMax: TAIL_COMMITS_MAX },
      );
  }
}

type CommitsWorld = Pick<ObjectWorld, 'objects' | 'digests'>;

/** The commit with this number and those that it carries, by number; null when there is no such object. */
export async function readCommits(
  world: CommitsWorld,
  number: number,
  into: Map<number, Commit>,
): Promise<Commit | null> {
  const key = commitKey(number);
  const bytes = await world.objects.get(key);
  if (bytes === null) return null;
  const { commit, carried } = decodeCommitObject(key, number, bytes, world.digests);
  into.set(number, commit);
  for (const one of carried) into.set(one.number, one);
  return commit;
}

/**
 * The commits from `from` to `to`, ascending; null when an object among them is not there. Every commit that carries a
 * whole span is asked for at once; what these do not carry, because it was too much, is asked for after that.
 */
export async function commitsBetween(
  world: CommitsWorld,
  from: number,
  to: number,
  into = new Map<number, Commit>(),
): Promise<Commit[] | null> {
  const anchors: number[] = to >= from ? [to] : [];
  for (
    let number = Math.floor((to - 1) / CARRY_SPAN_COMMITS) * CARRY_SPAN_COMMITS - 1;
    number >= from;
    number -= CARRY_SPAN_COMMITS
  )
    anchors.push(number);
  let isWhole = true;
  const read = async (): Promise<void> => {
    for (let number = anchors.shift(); number !== undefined && isWhole; number = anchors.shift()) {
      if (!into.has(number) && (await readCommits(world, number, into)) === null) isWhole = false;
    }
  };
  await Promise.all(Array.from({ length: Math.min(TAIL_READS_MAX, anchors.length) }, read));
  for (let number = to; isWhole && number >= from; number--) {
    if (!into.has(number) && (await readCommits(world, number, into)) === null) isWhole = false;
  }
  if (!isWhole) return null;
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => into.get(from + i)!);
}

/**
 * The commits of the tail in order. Each object carries the commits before it, back to the beginning of its span and as
 * far as they fit, so the last one of a span is read first, and small commits cost a request for every span.
 */
export async function* readTail(
  objects: ObjectStore,
  digests: Digests,
  tail: Tail,
): AsyncGenerator<Commit, void, undefined> {
  const end = tail.from + tail.sizes.length;
  for (let next = tail.from; next < end;) {
    const span = Math.min(end, (Math.floor(next / CARRY_SPAN_COMMITS) + 1) * CARRY_SPAN_COMMITS);
    const last = lastWithin(tail, next, span);
    const batch = await commitsBetween({ objects, digests }, next, last);
    if (batch === null)
      throw new SkuaError(
        'commit_lost',
        `A commit from ${next} to ${last} was removed while being read: a newer manifest includes it. Start again with that.`,
        { from: next, to: last },
      );
    yield* batch;
    next += batch.length;
  }
}

/** The last number before `span` such that the objects from `next` to it fit the batch together. */
function lastWithin(tail: Tail, next: number, span: number): number {
  let bytes = tail.sizes[next - tail.from]!;
  let last = next;
  while (last + 1 < span && bytes + tail.sizes[last + 1 - tail.from]! <= BATCH_BYTES_MAX)
    bytes += tail.sizes[++last - tail.from]!;
  return last;
}
