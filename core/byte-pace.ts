import type { Clock } from './ports/clock.ts';

/** Sleeps shorter than this many milliseconds are saved up: a timer is not more exact. */
const SLEEP_MS_MIN = 20;
/** Time in milliseconds that was not used and may be caught up with: a pause must not be followed by a burst. */
const CREDIT_MS_MAX = 1_000;

/** Holds several readers together to so many bytes a second. */
export class BytePace {
  readonly #clock: Clock;
  readonly #bytesPerMs: number;
  readonly #signal: AbortSignal | undefined;
  /** When everything taken so far should have taken its time, by the monotonic clock. */
  #dueMs: number;

  /** 0 stands for no limit. */
  constructor(clock: Clock, bytesPerSecond: number, signal?: AbortSignal) {
    this.#clock = clock;
    this.#bytesPerMs = bytesPerSecond / 1_000;
    this.#signal = signal;
    this.#dueMs = clock.monotonicMs();
  }

  async take(bytes: number): Promise<void> {
    if (this.#bytesPerMs === 0) return;
    const nowMs = this.#clock.monotonicMs();
    this.#dueMs = Math.max(this.#dueMs, nowMs - CREDIT_MS_MAX) + bytes / this.#bytesPerMs;
    const waitMs = this.#dueMs - nowMs;
    if (waitMs >= SLEEP_MS_MIN) await this.#clock.sleep(waitMs, this.#signal);
  }
}
