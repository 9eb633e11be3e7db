import { background } from '../../core/base/background.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { layer, performWrite } from '../../core/streams/layer/layer.ts';

/** Time between two looks at the writes that wait: the reference looks once a second. */
const LOOK_MS = 250;

/**
 * The store as clients write to it where CommitTimeoutMs is given: a client learns after this time that the outcome of
 * its write is not known, with `commit_outcome_unknown`. The write itself goes on, since it can't be taken back.
 */
export function withCommitTimeout(store: EventStore, timeoutMs: number, clock: Clock): EventStore {
  const waits = new CommitWaits(timeoutMs, clock);
  return layer(store, { write: (write) => waits.inTime(performWrite(store, write)) });
}

class CommitWaits {
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  /** In the order of their begin, and so of their ends. */
  readonly #waiting = new Set<Waiting>();
  #isLooking = false;

  constructor(timeoutMs: number, clock: Clock) {
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  inTime<T>(write: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { untilMs: this.#clock.monotonicMs() + this.#timeoutMs, reject };
      this.#waiting.add(waiting);
      write.then(resolve, reject).finally(() => {
        this.#waiting.delete(waiting);
      });
      if (!this.#isLooking) background(this.#look());
    });
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    while (this.#waiting.size > 0) {
      await this.#clock.sleep(LOOK_MS);
      const nowMs = this.#clock.monotonicMs();
      for (const waiting of this.#waiting) {
        if (waiting.untilMs > nowMs) break;
        this.#waiting.delete(waiting);
        waiting.reject(
          new SkuaError(
            'commit_outcome_unknown',
            `Operation timed out: the write was not committed within ${this.#timeoutMs} ms (CommitTimeoutMs). It may yet be: look, or send it again with the same ids.`,
          ),
        );
      }
    }
    this.#isLooking = false;
  }
}

interface Waiting {
  readonly untilMs: number;
  readonly reject: (error: unknown) => void;
}
