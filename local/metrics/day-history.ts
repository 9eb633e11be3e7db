import type { Clock } from '../../core/ports/clock.ts';
import type { ActivityHistoryView } from '../../handlers/documents/node.ts';
import { between } from './activity-metrics.ts';
import type { Seen } from './activity-metrics.ts';

const STEP_MS = 60_000;
/** A day of steps: with 9 lines of 4 bytes each and a time of 8 about 63 kB. */
const STEPS_MAX = 1_440;
const DAY_MS = STEP_MS * STEPS_MAX;
/** A step that is so much longer or shorter by either clock is none: the node slept, or its clock was set. */
const OFF_MS_MAX = 30_000;
/** What is told of a value: more digits than a chart can show. */
const DIGITS = 4;

type Line = keyof ActivityHistoryView['values'];

const LINES: readonly Line[] = [
  'appendsPerSecond',
  'eventsWrittenPerSecond',
  'eventsReadPerSecond',
  'bytesWrittenPerSecond',
  'bytesReadPerSecond',
  'requestsPerSecond',
  'appendP99Seconds',
  'requestP99Seconds',
  'cpuShare',
];

interface Look {
  readonly wallMs: number;
  readonly monotonicMs: number;
  readonly seen: Seen;
  readonly cpuSeconds: number;
}

interface Parts {
  readonly clock: Clock;
  /** The figures of now, as `/metrics` has them. */
  readonly see: () => Seen;
  /** Processor time of the process since its start. */
  readonly cpuSeconds: () => number;
}

/**
 * What the node did in the last 24 hours, a minute a step, in memory: charts begin with it. Looked at once a minute and
 * never by a request. What can't be measured, since the node slept or its clock was set, is a gap.
 */
export class DayHistory {
  readonly #parts: Parts;
  readonly #sinceMs: number;
  /** Ends of the steps, rising from the oldest one on. */
  readonly #times = new Float64Array(STEPS_MAX);
  /** NaN for what is not known. */
  readonly #lines = LINES.map(() => new Float32Array(STEPS_MAX));
  /** Where the next step goes, and how many there are. */
  #next = 0;
  #size = 0;
  #last: Look;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#last = this.#look();
    this.#sinceMs = this.#last.wallMs;
  }

  /** Takes a step every minute, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    for (;;) {
      await clock.sleep(STEP_MS, signal);
      if (signal.aborted) return;
      this.#step();
    }
  }

  view(): ActivityHistoryView {
    const oldestMs = this.#parts.clock.nowMs() - DAY_MS;
    const slots: number[] = [];
    for (let i = this.#size; i > 0; i--) {
      const slot = (this.#next - i + STEPS_MAX) % STEPS_MAX;
      if (this.#times[slot]! >= oldestMs) slots.push(slot);
    }
    const values = (line: Float32Array) => slots.map((slot) => rounded(line[slot]!));
    return {
      since: new Date(Math.max(this.#sinceMs, oldestMs)).toISOString(),
      stepSeconds: STEP_MS / 1_000,
      times: slots.map((slot) => this.#times[slot]!),
      values: Object.fromEntries(LINES.map((name, i) => [name, values(this.#lines[i]!)])) as Record<
        Line,
        (number | null)[]
      >,
    };
  }

  #step(): void {
    const before = this.#last;
    const now = (this.#last = this.#look());
    // The clock was set back: what lies ahead of it now has no place any more.
    while (this.#size > 0 && this.#times[(this.#next + STEPS_MAX - 1) % STEPS_MAX]! >= now.wallMs) {
      this.#next = (this.#next + STEPS_MAX - 1) % STEPS_MAX;
      this.#size--;
    }
    const slot = this.#next;
    this.#next = (slot + 1) % STEPS_MAX;
    this.#size = Math.min(this.#size + 1, STEPS_MAX);
    this.#times[slot] = Math.floor(now.wallMs);
    const ms = now.monotonicMs - before.monotonicMs;
    const isStep = isNear(ms) && isNear(now.wallMs - before.wallMs);
    const rates = isStep ? between(now.seen, before.seen, ms / 1_000) : null;
    const cpuShare = isStep ? (now.cpuSeconds - before.cpuSeconds) / (ms / 1_000) : null;
    for (const [i, name] of LINES.entries()) {
      const value = name === 'cpuShare' ? cpuShare : (rates?.[name] ?? null);
      // What only grows and yet fell began anew.
      this.#lines[i]![slot] = value === null || value < 0 ? NaN : value;
    }
  }

  #look(): Look {
    const { clock, see, cpuSeconds } = this.#parts;
    return { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs(), seen: see(), cpuSeconds: cpuSeconds() };
  }
}

function isNear(ms: number): boolean {
  return Math.abs(ms - STEP_MS) <= OFF_MS_MAX;
}

function rounded(value: number): number | null {
  return Number.isNaN(value) ? null : Number(value.toPrecision(DIGITS));
}
