import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { GALLOP_MAX, LOADS_MAX, POLL_MS } from '../api.ts';
import type { Commit } from '../format/commit-object.ts';
import { sinceMs, stampOf } from '../../ports/stamp.ts';
import type { Head } from '../head/head.ts';
import { keysOf } from '../format/manifest.ts';
import { commitsBetween, listBehind, readCommits } from '../tail/tail.ts';

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
   * Resolves when everything that was committed before the call is known: one request while nothing was. Calls of the
   * same time share one, which has to begin after each of them.
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
      const tail = await commitsBetween(head.world, known + 1, number, commits);
      if (tail !== null) await head.take(tail);
      else await this.catchUp();
      step = Math.min(2 * step, GALLOP_MAX);
    }
    throw new SkuaError(
      'too_busy',
      'Other writers are faster than this instance can read: try again, or spread the writes over more logs.',
      {},
    );
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
   * Does work that reads files, and when one of them is not there looks for the newest manifest and does it again (rule
   * 6). The work may then stand still until that manifest is an old one too, so it may need more than two tries.
   * Rejects with `log_corrupt` when the newest manifest names the file: then it was damage. Only for work that wrote
   * nothing when it rejects with `file_not_found`.
   */
  async again<T, Given>(work: (given: Given) => Promise<T>, given: Given): Promise<T> {
    for (let tries = 0; tries < LOADS_MAX; tries++) {
      try {
        return await work(given);
      } catch (error) {
        if (!isSkuaError(error, 'file_not_found')) throw error;
        await this.replaced(error);
      }
    }
    throw new SkuaError(
      'too_busy',
      'The files of the log are replaced and removed faster than this request reads them: try again.',
      { tries: LOADS_MAX },
    );
  }

  /**
   * Brings the newest manifest in force, because a file was not found. Rejects with `log_corrupt` when that names the
   * file too.
   */
  async replaced(notFound: SkuaError): Promise<void> {
    await this.freshen();
    const { key } = notFound.data;
    // A manifest's files are there before it, and a key that was dropped never comes back: it was named all the time.
    if (typeof key === 'string' && keysOf(this.#head.manifest).has(key))
      throw new SkuaError(
        'log_corrupt',
        `The object ${key} is gone, but the newest manifest under ${this.#head.world.objects.place} names it. Restore it from a version or a backup of the bucket.`,
        { key },
        notFound,
      );
  }

  /** Takes in all commits there are, by a list: at a start, and when what is known is far behind. */
  async catchUp(): Promise<void> {
    const head = this.#head;
    for (let tries = 0; tries < LOADS_MAX; tries++) {
      const known = head.known;
      const manifest = head.manifest.number;
      const list = await listBehind(head.world, known);
      head.noteSeen(list.last);
      // Commits that are taken in bit by bit are not all in memory at once.
      const last = Math.min(list.last, known + SLICE_COMMITS);
      const tail = list.hasGap ? null : await commitsBetween(head.world, known + 1, last);
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
      if (tail === null && head.manifest.number === manifest)
        throw new SkuaError(
          'log_corrupt',
          `Commits behind ${known} are missing under ${head.world.objects.place}, but no manifest includes them. Restore them from versions or a backup of the bucket.`,
          { known, listed: list.last },
        );
    }
    throw new SkuaError('too_busy', 'The log is compacted faster than this instance can read it: try again.', {});
  }
}

function ignore(): void {}

/** Asks for other writers' commits while a reader waits for events. One line of requests serves all that wait. */
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

  /**
   * The messages of a subscription, which hears of other writers' commits meanwhile. Files that were replaced are found
   * again by a new subscription.
   */
  async *follow<T>(subscribe: () => AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
    this.#enter();
    try {
      await this.#refresher.refresh();
      yield* subscribe();
    } catch (error) {
      if (!isSkuaError(error, 'file_not_found')) throw error;
      await this.#refresher.replaced(error);
      throw new SkuaError(
        'too_busy',
        'The subscription read files that were being replaced: subscribe again after the last event.',
        {},
        error,
      );
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
        if (!wasFailing)
          this.#log.warn('Could not check for events of other writers; their subscribers keep waiting.', { error });
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
