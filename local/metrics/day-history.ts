import type { Clock } from '../../core/ports/clock.ts';
import type { HistoryView } from '../../handlers/documents/node.ts';
import { activityOf, ratesBetween } from './activity-metrics.ts';
import type { ActivityFigures } from './activity-metrics.ts';
import type { Metrics } from './metrics.ts';

const STEP_MS = 60_000;
/** A day of steps: with nine lines about 100 kB. */
export const STEPS = 1_440;
/** What a timer was so late for is no step: the process stood still. */
const STEP_MS_MAX = 2 * STEP_MS;
/** Where the wall clock went on by so much more or less than the time that passed, it was set, or the machine slept. */
const CLOCK_SET_MS = 5_000;
/** Of each value: more can't be seen in a chart, and would only be sent. */
const DIGITS = 4;

type Line = keyof HistoryView['lines'];

interface Look {
  readonly nowMs: number;
  readonly monotonicMs: number;
  readonly figures: ActivityFigures;
  readonly cpuSeconds: number;
}

/**
 * What the node did in each minute of the last day, for charts: in memory, from its start on. What is not known is a
 * gap: minutes in which the machine slept, the process stood still, or the clock was set, and figures that fell. Where
 * the clock is set back, the minutes before are told by the clock of now.
 */
export class DayHistory {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #cpuSeconds: () => number;
  /** Rings; NaN for what is not known. */
  readonly #lines = new Map<Line, Float64Array>();
  /** Where the next value goes, and how many there are. */
  #next = 0;
  #count = 0;
  /** The end of the newest step, in minutes since 1970. */
  #newest = 0;
  #before: Look | null = null;

  /** `cpuSeconds` is what the process has used since its start. */
  constructor(metrics: Metrics, clock: Clock, cpuSeconds: () => number) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#cpuSeconds = cpuSeconds;
    for (const line of LINES) this.#lines.set(line, new Float64Array(STEPS));
  }

  /** Looks at each whole minute, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#before = this.#look();
    while (!signal.aborted) {
      const nowMs = this.#clock.nowMs();
      // A timer may be early by a trifle: the minute that is meant is the nearest one.
      await this.#clock.sleep((Math.round(nowMs / STEP_MS) + 1) * STEP_MS - nowMs, signal);
      if (!signal.aborted) this.#endStep();
    }
  }

  view(): HistoryView {
    const count = this.#count;
    const first = (this.#next - count + STEPS) % STEPS;
    const valuesOf = (line: Line) => {
      const ring = this.#lines.get(line)!;
      return Array.from({ length: count }, (_, i) => {
        const value = ring[(first + i) % STEPS]!;
        return Number.isNaN(value) ? null : value;
      });
    };
    return {
      stepSeconds: STEP_MS / 1_000,
      from: count === 0 ? null : new Date((this.#newest - count + 1) * STEP_MS).toISOString(),
      lines: Object.fromEntries(LINES.map((line) => [line, valuesOf(line)])) as Record<Line, (number | null)[]>,
    };
  }

  #look(): Look {
    const { nowMs, monotonicMs } = { nowMs: this.#clock.nowMs(), monotonicMs: this.#clock.monotonicMs() };
    return { nowMs, monotonicMs, figures: activityOf(this.#metrics), cpuSeconds: this.#cpuSeconds() };
  }

  #endStep(): void {
    const before = this.#before!;
    const now = (this.#before = this.#look());
    const minute = Math.round(now.nowMs / STEP_MS);
    if (minute <= this.#newest || this.#count === 0) this.#newest = minute - 1;
    const skipped = Math.min(minute - this.#newest - 1, STEPS);
    for (let i = 0; i < skipped; i++) this.#push(null);
    this.#newest = minute;
    this.#push(valuesBetween(before, now));
  }

  #push(values: Readonly<Record<Line, number | null>> | null): void {
    for (const [line, ring] of this.#lines) ring[this.#next] = values === null ? NaN : rounded(values[line]);
    this.#next = (this.#next + 1) % STEPS;
    this.#count = Math.min(this.#count + 1, STEPS);
  }
}

const LINES: readonly Line[] = [
  'appendsPerSecond',
  'eventsWrittenPerSecond',
  'eventsReadPerSecond',
  'bytesWrittenPerSecond',
  'bytesReadPerSecond',
  'requestsPerSecond',
  'appendP99Seconds',
  'requestP99Seconds',
  'cpuPercent',
];

/** Null where it can't be said how long the step was. */
function valuesBetween(before: Look, now: Look): Readonly<Record<Line, number | null>> | null {
  const passedMs = now.monotonicMs - before.monotonicMs;
  if (passedMs <= 0 || passedMs > STEP_MS_MAX) return null;
  if (Math.abs(now.nowMs - before.nowMs - passedMs) > CLOCK_SET_MS) return null;
  const seconds = passedMs / 1_000;
  return {
    ...ratesBetween(before.figures, now.figures, seconds),
    cpuPercent: (Math.max(0, now.cpuSeconds - before.cpuSeconds) / seconds) * 100,
  };
}

function rounded(value: number | null): number {
  return value === null ? NaN : Number(value.toPrecision(DIGITS));
}
