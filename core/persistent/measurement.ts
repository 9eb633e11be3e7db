import type { Clock } from '../ports/clock.ts';

/** Answers whose times are kept for the figures of a consumer. */
const TIMES_MAX = 512;

/**
 * How many messages were sent, and how fast since this was last asked for; with `withTimes` how long answers took, too.
 */
export class Measurement {
  readonly #clock: Clock;
  readonly #times: Float64Array | null;
  #answers = 0;
  #total = 0;
  #measured = 0;
  #measuredAtMs: number;

  constructor(clock: Clock, withTimes: boolean) {
    this.#clock = clock;
    this.#times = withTimes ? new Float64Array(TIMES_MAX) : null;
    this.#measuredAtMs = clock.monotonicMs();
  }

  sent(): void {
    this.#total++;
  }

  /** An answer has come after so many milliseconds. */
  answered(ms: number): void {
    if (this.#times !== null) this.#times[this.#answers++ % TIMES_MAX] = ms;
  }

  /** Without `isAsked` the next one still counts from where the last one did. */
  figures(isAsked: boolean): { readonly total: number; readonly sinceLast: number; readonly perSecond: number } {
    const nowMs = this.#clock.monotonicMs();
    const sinceLast = this.#total - this.#measured;
    const seconds = (nowMs - this.#measuredAtMs) / 1_000;
    const perSecond = seconds > 0 ? Math.floor(sinceLast / seconds) : 0;
    if (isAsked) {
      this.#measured = this.#total;
      this.#measuredAtMs = nowMs;
    }
    return { total: this.#total, sinceLast, perSecond };
  }

  observed(): { readonly key: string; readonly value: number }[] {
    const count = Math.min(this.#answers, TIMES_MAX);
    if (this.#times === null || count === 0) return [];
    const times = this.#times.slice(0, count).toSorted();
    const at = (part: number) => Math.round(times[Math.min(count - 1, Math.floor(part * count))]!);
    const mean = Math.round(times.reduce((sum, ms) => sum + ms, 0) / count);
    return [
      { key: 'Highest', value: Math.round(times.at(-1)!) },
      { key: 'Mean', value: mean },
      { key: 'Median', value: at(0.5) },
      { key: 'Fastest', value: Math.round(times[0]!) },
      ...[1, 2, 3, 4, 5].map((fifth) => ({ key: `Quintile ${fifth}`, value: at(fifth / 5) })),
      ...[90, 95, 99, 99.5, 99.9].map((percent) => ({ key: `${percent}%`, value: at(percent / 100) })),
    ];
  }
}
