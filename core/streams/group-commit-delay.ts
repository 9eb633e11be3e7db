import type { Clock } from '../ports/clock.ts';

/** Longest that a group is waited for in milliseconds, and the shortest that is worth a timer. */
const WAIT_MS_MAX = 20;
const WAIT_MS_MIN = 1;
/** Groups that are not waited for behind waits in vain: one behind the first, then two, and at most so many. */
const SKIPPED_MAX = 64;

/**
 * Lets writers that wait for their answers share one commit, where a commit is slow: a log to which others write too.
 * Without it they would soon be in two halves, of which one waits while the other is committed. Writers that have just
 * been answered are waited for, at most as long as their commit took. When these writers don't come, others are
 * writing, and a growing number of groups is not waited for.
 */
export class GroupCommitDelay {
  readonly #clock: Clock;
  /** Requests of the last group, and those that waited behind it. */
  #expected = 0;
  #answeredMs = 0;
  #tookMs = 0;
  #skipped = 1;
  #toSkip = 0;
  #waiting: AbortController | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * A group of so many requests has its answers, while others wait; its commit had begun then, by the monotonic clock.
   */
  answered(requests: number, waiting: number, startMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    this.#expected = requests + waiting;
    this.#answeredMs = nowMs;
    this.#tookMs = nowMs - startMs;
  }

  /** Null where the next group is to begin now, with those that wait; else what to wait for. */
  begin(waiting: number): Promise<void> | null {
    if (waiting >= this.#expected) {
      // Several came back at once by themselves.
      if (waiting > 1) this.#skipped = 1;
      return null;
    }
    const waitMs = Math.min(WAIT_MS_MAX, this.#tookMs);
    // A writer that comes later than a commit takes does not wait for its answers.
    if (waitMs < WAIT_MS_MIN || this.#clock.monotonicMs() - this.#answeredMs > this.#tookMs) return null;
    if (this.#toSkip > 0) {
      this.#toSkip--;
      return null;
    }
    return this.#wait(waitMs);
  }

  /** So many wait now. */
  arrived(waiting: number): void {
    // With a reason of its own, none has to be made up with its stack.
    if (this.#waiting !== null && waiting >= this.#expected) this.#waiting.abort(null);
  }

  /** The next group begins without those that are missing. */
  end(): void {
    this.#waiting?.abort(null);
  }

  async #wait(ms: number): Promise<void> {
    const waiting = new AbortController();
    this.#waiting = waiting;
    await this.#clock.sleep(ms, waiting.signal);
    this.#waiting = null;
    if (waiting.signal.aborted) this.#skipped = 1;
    else {
      this.#toSkip = this.#skipped;
      this.#skipped = Math.min(2 * this.#skipped, SKIPPED_MAX);
    }
  }
}
