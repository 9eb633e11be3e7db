import type { MeterLabels } from '../../core/ports/meter.ts';
import type { MetricDefinition } from './table.ts';

/**
 * Combinations of label values that a metric has at most. What comes beyond, as with thousands of connectors, is
 * counted together.
 */
export const SERIES_MAX = 4_096;
/** Value of every label of what is counted together. */
const OTHERS = 'others';
/** A recent maximum covers the running slice of time and the ones before it. */
const SLICE_MS = 4_000;
const SLICES = 5;
/** What the window of 4 whole slices and a begun one covers. */
const RANGE_LABEL = '16-20 seconds';

interface Entry {
  readonly labels: MeterLabels;
  value: number;
  /** Of a histogram: counts by bucket, the last beyond all bounds. `value` is the sum then. */
  readonly counts: Float64Array | null;
  /** Of a recent maximum: by slice, and the number of the slice that was written last. */
  readonly slices: Float64Array | null;
  lastSlice: number;
  /** Of a recent maximum, since the start. */
  last: number;
  sum: number;
  count: number;
  max: number;
}

/** What was observed since the start. */
export interface Summary {
  readonly last: number;
  readonly mean: number;
  readonly max: number;
}

/**
 * The values of now of one combination of labels: of a histogram the sum, and by bucket. Views of what goes on
 * changing.
 */
export interface SeriesFigures {
  readonly labels: MeterLabels;
  readonly value: number;
  readonly counts: Float64Array | null;
}

/** One line of the exposition: `name{labels} value`. */
export interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** The values of one metric. Writing is a lookup and an addition; the text is made when it is asked for. */
export class Series {
  readonly name: string;
  readonly definition: MetricDefinition;
  readonly #labelNames: readonly string[];
  readonly #entries = new Map<string, Entry>();
  /**
   * The labels that were given last, and theirs. Most writers give the same object each time, for which no key has to
   * be put together.
   */
  #lastLabels: MeterLabels | undefined;
  #last: Entry | null = null;

  constructor(name: string, definition: MetricDefinition) {
    this.name = name;
    this.definition = definition;
    this.#labelNames = (definition.labels ?? []).filter((label) => label !== 'range');
    if (this.#labelNames.length === 0) this.#entryOf(undefined);
  }

  add(by: number, labels?: MeterLabels): void {
    const entry = this.#entryOf(labels);
    if (by >= 0) entry.value += by;
  }

  set(value: number, labels?: MeterLabels): void {
    const entry = this.#entryOf(labels);
    if (!Number.isNaN(value)) entry.value = value;
  }

  observe(value: number, nowMs: number, labels?: MeterLabels): void {
    const entry = this.#entryOf(labels);
    if (Number.isNaN(value)) return;
    if (entry.slices !== null) noteMaximum(entry, entry.slices, value, nowMs);
    else if (entry.counts !== null) {
      const bounds = this.definition.buckets!;
      let bucket = 0;
      while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
      entry.counts[bucket]!++;
      entry.value += value;
    }
  }

  /** Forgets all combinations of labels. */
  clear(): void {
    this.#entries.clear();
    this.#last = null;
  }

  #entryOf(given: MeterLabels | undefined): Entry {
    if (this.#last !== null && given === this.#lastLabels) return this.#last;
    this.#last = this.#find(given);
    this.#lastLabels = given;
    return this.#last;
  }

  #find(given: MeterLabels | undefined): Entry {
    let labels = given;
    let key = this.#keyOf(labels);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const names = this.#labelNames;
    if (this.#entries.size >= SERIES_MAX) {
      labels = Object.fromEntries(names.map((name) => [name, OTHERS]));
      key = this.#keyOf(labels);
      const others = this.#entries.get(key);
      if (others !== undefined) return others;
    }
    const { kind, buckets } = this.definition;
    const entry: Entry = {
      labels: Object.fromEntries(
        names.filter((name) => labels?.[name] !== undefined).map((name) => [name, labels![name]!]),
      ),
      value: 0,
      counts: kind === 'histogram' ? new Float64Array(buckets!.length + 1) : null,
      slices: kind === 'recent-max' ? new Float64Array(SLICES) : null,
      lastSlice: 0,
      last: 0,
      sum: 0,
      count: 0,
      max: 0,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #keyOf(labels: MeterLabels | undefined): string {
    const names = this.#labelNames;
    if (names.length === 1) return labels?.[names[0]!] ?? '';
    let key = '';
    for (let i = 0; i < names.length; i++) key += `${labels?.[names[i]!] ?? ''}\n`;
    return key;
  }

  /** Of a recent maximum with these labels; null before the first value. */
  summary(labels?: MeterLabels): Summary | null {
    const entry = this.#entryOf(labels);
    return entry === null || entry.count === 0
      ? null
      : { last: entry.last, mean: entry.sum / entry.count, max: entry.max };
  }

  figures(): Iterable<SeriesFigures> {
    return this.#entries.values();
  }

  samples(nowMs: number): Sample[] {
    const samples: Sample[] = [];
    for (const entry of this.#entries.values()) {
      if (entry.counts !== null) this.#histogram(entry, entry.counts, samples);
      else if (entry.slices !== null)
        samples.push({ labels: { ...entry.labels, range: RANGE_LABEL }, value: maximum(entry, entry.slices, nowMs) });
      else samples.push({ labels: entry.labels, value: entry.value });
    }
    return samples;
  }

  #histogram(entry: Entry, counts: Float64Array, out: Sample[]): void {
    let total = 0;
    const bounds = this.definition.buckets!;
    for (let i = 0; i < counts.length; i++) {
      total += counts[i]!;
      out.push({
        metricName: `${this.name}_bucket`,
        labels: { ...entry.labels, le: bounds[i] ?? '+Inf' },
        value: total,
      });
    }
    out.push(
      { metricName: `${this.name}_sum`, labels: entry.labels, value: entry.value },
      { metricName: `${this.name}_count`, labels: entry.labels, value: total },
    );
  }
}

/** Empties the slices that have passed since the last write. */
function turn(entry: Entry, slices: Float64Array, nowMs: number): number {
  const slice = Math.floor(nowMs / SLICE_MS);
  if (slice - entry.lastSlice >= SLICES) slices.fill(0);
  else for (let passed = entry.lastSlice + 1; passed <= slice; passed++) slices[passed % SLICES] = 0;
  entry.lastSlice = Math.max(slice, entry.lastSlice);
  return entry.lastSlice % SLICES;
}

function noteMaximum(entry: Entry, slices: Float64Array, value: number, nowMs: number): void {
  const at = turn(entry, slices, nowMs);
  if (value > slices[at]!) slices[at] = value;
  entry.last = value;
  entry.sum += value;
  entry.count++;
  if (value > entry.max) entry.max = value;
}

function maximum(entry: Entry, slices: Float64Array, nowMs: number): number {
  turn(entry, slices, nowMs);
  return Math.max(...slices);
}
