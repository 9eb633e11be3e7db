import { SkuaError } from '../errors.ts';
import type { Digests } from '../ports/digests.ts';
import { listAll, type ObjectInfo, type ObjectStore } from '../ports/object-store.ts';
import { type Commit, decodeCommitObject } from './commit-object.ts';
import { commitKey, commitNumberOf, LOG_PREFIX } from './keys.ts';
import { CARRY_SPAN_COMMITS } from './limits.ts';

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
  const sizes: number[] = [];
  let bytes = 0;
  for await (const info of listAll(objects, LOG_PREFIX, { after: commitKey(from - 1) })) {
    if (sizes.length === 0 && numberIn(info) !== from) return null;
    if (numberIn(info) !== from + sizes.length) throw new SkuaError('log_corrupt', `Commit ${from + sizes.length} is missing under ${objects.place}, though there are later ones: restore it from a version or a backup of the bucket.`, { number: from + sizes.length });
    sizes.push(info.sizeBytes);
    bytes += info.sizeBytes;
    if (sizes.length === commitsMax) break;
  }
  return { from, sizes, bytes };
}

function numberIn({ key }: ObjectInfo): number {
  const number = commitNumberOf(key);
  if (number === null) throw new SkuaError('log_corrupt', `The object ${key} has no name of a commit and lies among them: remove it.`, { key });
  return number;
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
