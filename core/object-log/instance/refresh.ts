import { isSkuaError, SkuaError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { pageOfKind } from '../../ports/object-kinds.ts';
import { CARRY_SPAN_COMMITS, GALLOP_MAX, LOADS_MAX, type ObjectWorld, POLL_MS, TAIL_COMMITS_MAX, TAIL_READS_MAX } from '../api.ts';
import { type Commit, decodeCommitObject } from '../commit-object.ts';
import { sinceMs, type Stamp, stampOf } from './commit-attempt.ts';
import type { Head } from './head.ts';
import { commitKey, commitNumberOf, COMMITS } from '../keys.ts';
import { keysOf } from '../manifest.ts';

/** Commits of a tail that are read before the first of them is taken in. */
const SLICE_COMMITS = 16_384;
/** Commits that come one by one before larger steps are taken. */
const STEPS_MAX = 1_000_000;

/** Brings the head of the log up to what others have committed. */
export class Refresher {
  readonly #head: Head;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(head: Head) {
    this.#head = head;
  }

  /**
   * Resolves when everything that was committed before the call is known: one request while nothing was. Calls of the same
   * time share one, which has to begin after each of them.
   */
  refresh(): Promise<void> {
    if (this.#running === null) return this.#start();
    this.#next ??= this.#running.catch(ignore).then(() => {
      this.#next = null;
      return this.#start();
    });
    return this.#next;
  }

  #start(): Promise<void> {
    const running = this.#run().finally(() => {
      if (this.#running === running) this.#running = null;
    });
    this.#running = running;
    return running;
  }

  async #run(): Promise<void> {
    const head = this.#head;
    if (head.mustLook) await this.freshen();
    let step = 1;
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const known = head.known;
      const number = known + step;
      const { clock } = head.world;
      const startedAt = stampOf(clock);
      const proof = head.since;
      const commits = new Map<number, Commit>();
      const found = await readCommits(head.world, number, commits);
      // Objects can have been removed since the number was last proved free: then only the newest manifest tells.
      if (sinceMs(proof, clock) > head.freshMs || head.isOutdated) {
        await this.freshen();
        if (head.known !== known) {
          step = 1;
          continue;
        }
      }
      if (found === null) {
        if (step === 1) {
          if (head.known === known) head.since = head.provedAt = startedAt;
          return;
        }
        step = 1;
        continue;
      }
      head.noteSeen(number);
      const tail = await readTail(head.world, known + 1, number, commits);
      if (tail !== null) await head.take(tail);
      else await this.catchUp();
      step = Math.min(2 * step, GALLOP_MAX);
    }
    throw new SkuaError('too_busy', 'Others write faster than this instance can read: ask again, or spread the writes over more logs.', {});
  }

  /** Brings the newest manifest in force, and what is known to the end of the log if it was beyond that. */
  async freshen(): Promise<void> {
    const head = this.#head;
    const before = head.known;
    await head.freshen();
    // The log has gone on without us: how far is not known, and a list tells it at once.
    if (head.known > before) await this.catchUp();
  }

  /**
   * Does work that reads files, and when one of them is not there looks for the newest manifest and does it again (rule 6). The work may
   * then stand still until that manifest is an old one too, so it may need more than two tries. Rejects with `log_corrupt` when the newest
   * manifest names the file: then it was damage. Only for work that wrote nothing when it rejects with `file_not_found`.
   */
  async again<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 0; tries < LOADS_MAX; tries++) {
      try {
        return await work();
      } catch (error) {
        if (!isSkuaError(error, 'file_not_found')) throw error;
        await this.replaced(error);
      }
    }
    throw new SkuaError('too_busy', 'The files of the log are replaced and removed faster than this request reads them: try again.', { tries: LOADS_MAX });
  }

  /** Brings the newest manifest in force, because a file was not found. Rejects with `log_corrupt` when that names the file too. */
  async replaced(notFound: SkuaError): Promise<void> {
    await this.freshen();
    const { key } = notFound.data;
    // A manifest's files are there before it, and a key that was dropped never comes back: it was named all the time.
    if (typeof key === 'string' && keysOf(this.#head.manifest).has(key)) throw new SkuaError('log_corrupt', `The object ${key} is gone, though the newest manifest under ${this.#head.world.objects.place} names it. Restore it from a version or a backup of the bucket.`, { key }, notFound);
  }

  /** Takes in all commits there are, by a list: at a start, and when what is known is far behind. */
  async catchUp(): Promise<void> {
    const head = this.#head;
    for (let tries = 0; tries < LOADS_MAX; tries++) {
      const known = head.known;
      const manifest = head.manifest.number;
      const list = await listTail(head.world, known);
      head.noteSeen(list.last);
      // Commits that are taken in bit by bit are not all in memory at once.
      const last = Math.min(list.last, known + SLICE_COMMITS);
      const tail = list.hasGap ? null : await readTail(head.world, known + 1, last);
      let isTaken = false;
      if (tail !== null && head.isFresh) {
        await head.take(tail);
        isTaken = true;
        if (head.known === list.last) head.since = list.at;
      } else {
        await head.freshen();
        if (tail !== null && head.known === known) {
          await head.take(tail);
          isTaken = true;
        }
      }
      if (isTaken && last === list.last) return;
      // Progress is no try.
      if (head.known > known) tries = -1;
      if (isTaken) continue;
      if (tail === null && head.manifest.number === manifest) throw new SkuaError('log_corrupt', `Commits behind ${known} are missing under ${head.world.objects.place}, though no manifest has taken them in. Restore them from versions or a backup of the bucket.`, { known, listed: list.last });
    }
    throw new SkuaError('too_busy', 'The log is taken into files faster than this instance can read it: try again.', {});
  }
}

function ignore(): void {}

/** The commits of a tail as they were listed. */
interface TailList {
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
    if (last - known >= TAIL_COMMITS_MAX) throw new SkuaError('too_busy', `More than ${TAIL_COMMITS_MAX} commits have not been taken into files yet: the tick, which does that, does not run. Look at its log, and at its alarms.`, { commits: last - known, commitsMax: TAIL_COMMITS_MAX });
  }
}

/** The commit with this number and those that it carries, by number; null when there is no such object. */
async function readCommits(world: ObjectWorld, number: number, into: Map<number, Commit>): Promise<Commit | null> {
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

/** Asks for other writers' commits while somebody waits for events. One line of requests serves all who wait. */
export class Poller {
  readonly #refresher: Refresher;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #closing = new AbortController();
  #waiting = 0;
  #running: Promise<void> | null = null;
  #idle: AbortController | null = null;

  constructor(refresher: Refresher, clock: Clock, log: Log) {
    this.#refresher = refresher;
    this.#clock = clock;
    this.#log = log;
  }

  /** The messages of a subscription, which hears of other writers' commits meanwhile. Files that were replaced are found again by whoever subscribes anew. */
  async *follow<T>(subscribe: () => AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
    this.#enter();
    try {
      await this.#refresher.refresh();
      yield* subscribe();
    } catch (error) {
      if (!isSkuaError(error, 'file_not_found')) throw error;
      await this.#refresher.replaced(error);
      throw new SkuaError('too_busy', 'The subscription read files that were being replaced: subscribe again behind the last event.', {}, error);
    } finally {
      this.#leave();
    }
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#enter();
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  #enter(): void {
    if (this.#waiting++ === 0) this.#idle = new AbortController();
    this.#running ??= this.#run();
  }

  #leave(): void {
    if (--this.#waiting === 0) this.#idle?.abort();
  }

  async #run(): Promise<void> {
    let wasFailing = false;
    while (this.#waiting > 0 && !this.#closing.signal.aborted) {
      await this.#clock.sleep(POLL_MS, AbortSignal.any([this.#closing.signal, this.#idle!.signal]));
      if (this.#waiting === 0 || this.#closing.signal.aborted) break;
      try {
        await this.#refresher.refresh();
        wasFailing = false;
      } catch (error) {
        if (!wasFailing) this.#log.warn('Other writers\' events could not be asked for; whoever waits for them waits on.', { error });
        wasFailing = true;
      }
    }
    this.#running = null;
    if (this.#waiting > 0 && !this.#closing.signal.aborted) this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }
}
