import type { Clock } from '../../core/ports/clock.ts';
import type {
  ActivityHistoryView,
  GroupHistoryView,
  HistoryView,
  WebhookHistoryView,
} from '../../handlers/documents/node.ts';
import type { NodeHistory } from '../../handlers/http/node-control.ts';
import { DayLines, LineRoom, STEPS_MAX } from './day-lines.ts';
import {
  ACTIVITY_LINES,
  activityMeasure,
  CONNECTOR_LINES,
  connectorMeasure,
  GROUP_LINES,
  groupKey,
  groupMeasure,
  metricMeasures,
} from './day-measures.ts';
import type { Measure, MeasuredParts } from './day-measures.ts';

const STEP_MS = 60_000;
const DAY_MS = STEP_MS * STEPS_MAX;
/** A step that is so much longer or shorter by either clock is none: the node slept, or its clock was set. */
const OFF_MS_MAX = 30_000;
/** What is told of a value: more digits than a chart can show. */
const DIGITS = 4;

interface Kept {
  readonly lines: DayLines;
  readonly measure: Measure;
}

interface Parts extends MeasuredParts {
  readonly clock: Clock;
}

/**
 * What the node did in the last 24 hours, a minute a step, in memory: charts begin with it. Looked at once a minute and
 * never by a request. What can't be measured, since the node slept or its clock was set, is a gap.
 */
export class DayHistory implements NodeHistory {
  readonly #clock: Clock;
  readonly #sinceMs: number;
  readonly #room = new LineRoom();
  /** Ends of the steps, rising from the oldest one on. */
  readonly #times = this.#room.times();
  readonly #activity: Kept;
  readonly #metrics: ReadonlyMap<string, Kept>;
  readonly #connectors: Kept;
  readonly #groups: Kept;
  /** Where the next step goes, and how many there are. */
  #next = 0;
  #size = 0;
  #last: { readonly wallMs: number; readonly monotonicMs: number };

  constructor({ clock, ...parts }: Parts) {
    this.#clock = clock;
    const keep = (measure: Measure): Kept => ({ lines: new DayLines(this.#room, measure), measure });
    this.#activity = keep(activityMeasure(parts));
    this.#metrics = new Map([...metricMeasures(parts)].map(([name, measure]) => [name, keep(measure)]));
    this.#connectors = keep(connectorMeasure(parts));
    this.#groups = keep(groupMeasure(parts));
    this.#last = this.#look();
    this.#sinceMs = this.#last.wallMs;
  }

  /** Takes a step every minute, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#clock.sleep(STEP_MS, signal);
      if (signal.aborted) return;
      this.#step();
    }
  }

  /** What the lines take. */
  get bytes(): number {
    return this.#room.usedBytes;
  }

  activity(): ActivityHistoryView {
    return this.#ofSeries(this.#activity, '', ACTIVITY_LINES);
  }

  metrics(): HistoryView {
    const found: [string, Float32Array][] = [];
    for (const [name, { lines }] of this.#metrics)
      for (const labels of lines.keys()) found.push([`${name}{${labels}}`, lines.of(labels)![0]!]);
    return this.#view(found);
  }

  connector(id: string): WebhookHistoryView {
    return this.#ofSeries(this.#connectors, id, CONNECTOR_LINES);
  }

  group(stream: string, group: string): GroupHistoryView {
    return this.#ofSeries(this.#groups, groupKey(stream, group), GROUP_LINES);
  }

  #ofSeries<Line extends string>({ lines }: Kept, key: string, names: readonly Line[]): HistoryView<Line> {
    const found = lines.of(key);
    return this.#view(names.map((name, i) => [name, found?.[i] ?? null]));
  }

  /** Nothing is known of a line that is null. */
  #view<Line extends string>(lines: readonly (readonly [Line, Float32Array | null])[]): HistoryView<Line> {
    const oldestMs = this.#clock.nowMs() - DAY_MS;
    const slots: number[] = [];
    for (let i = this.#size; i > 0; i--) {
      const slot = (this.#next - i + STEPS_MAX) % STEPS_MAX;
      if (this.#times[slot]! >= oldestMs) slots.push(slot);
    }
    const values = {} as Record<Line, (number | null)[]>;
    for (const [name, line] of lines) values[name] = slots.map((slot) => (line === null ? null : rounded(line[slot]!)));
    return {
      since: new Date(Math.max(this.#sinceMs, oldestMs)).toISOString(),
      stepSeconds: STEP_MS / 1_000,
      times: slots.map((slot) => this.#times[slot]!),
      values,
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
    for (const { lines, measure } of [this.#activity, ...this.#metrics.values(), this.#connectors, this.#groups]) {
      const measured = measure.next(ms / 1_000);
      lines.put(slot, isStep ? measured : null);
    }
  }

  #look(): { readonly wallMs: number; readonly monotonicMs: number } {
    return { wallMs: this.#clock.nowMs(), monotonicMs: this.#clock.monotonicMs() };
  }
}

function isNear(ms: number): boolean {
  return Math.abs(ms - STEP_MS) <= OFF_MS_MAX;
}

function rounded(value: number): number | null {
  return Number.isNaN(value) ? null : Number(value.toPrecision(DIGITS));
}
