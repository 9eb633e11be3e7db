import { SkuaError } from '../errors.ts';
import type { ObjectPage } from '../ports/object-store.ts';
import type { ObjectWorld } from './api.ts';
import { type Commit, decodeCommitObject } from './commit-object.ts';
import { commitKey, commitNumberOf, LOG_PREFIX } from './keys.ts';
import { CARRY_SPAN_COMMITS, TAIL_COMMITS_MAX, TAIL_READS_MAX } from './limits.ts';
import { type Stamp, stampOf } from './stamp.ts';

/** The commits of a tail as they were listed. */
export interface TailList {
  /** Number of the last commit listed; the one before the first where there are none. */
  readonly last: number;
  /** When `last` + 1 was proved free. */
  readonly at: Stamp;
  /** A number below `last` was not listed. */
  readonly hasGap: boolean;
}

/** Lists the commits behind `known`: one LIST a thousand. Throws `too_busy` beyond TAIL_COMMITS_MAX. */
export async function listTail(world: ObjectWorld, known: number): Promise<TailList> {
  let last = known;
  for (;;) {
    const at = stampOf(world.clock);
    const page: ObjectPage = await world.objects.list(LOG_PREFIX, { after: commitKey(last) });
    for (const { key } of page.objects) {
      if (commitNumberOf(key) !== last + 1) return { last, at, hasGap: true };
      last++;
    }
    if (!page.isMore) return { last, at, hasGap: false };
    if (last - known >= TAIL_COMMITS_MAX) throw new SkuaError('too_busy', `More than ${TAIL_COMMITS_MAX} commits have not been taken into files yet: the tick, which does that, does not run. Look at its log, and at its alarms.`, { commits: last - known, commitsMax: TAIL_COMMITS_MAX });
  }
}

/** The commit with this number and those that it carries, by number; null when there is no such object. */
export async function readCommits(world: ObjectWorld, number: number, into: Map<number, Commit>): Promise<Commit | null> {
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
export async function readTail(world: ObjectWorld, from: number, to: number, into = new Map<number, Commit>()): Promise<Commit[] | null> {
  const anchors: number[] = to >= from ? [to] : [];
  for (let number = Math.floor((to - 1) / CARRY_SPAN_COMMITS) * CARRY_SPAN_COMMITS - 1; number >= from; number -= CARRY_SPAN_COMMITS) anchors.push(number);
  let isWhole = true;
  const read = async (): Promise<void> => {
    for (let number = anchors.shift(); number !== undefined && isWhole; number = anchors.shift()) {
      if (!into.has(number) && await readCommits(world, number, into) === null) isWhole = false;
    }
  };
  await Promise.all(Array.from({ length: Math.min(TAIL_READS_MAX, anchors.length) }, read));
  for (let number = to; isWhole && number >= from; number--) {
    if (!into.has(number) && await readCommits(world, number, into) === null) isWhole = false;
  }
  if (!isWhole) return null;
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => into.get(from + i)!);
}
