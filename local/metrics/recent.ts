import type { Clock } from '../../core/ports/clock.ts';
import type { Metrics } from './metrics.ts';
import type { SeriesFigures } from './series.ts';

/** What is shown as of now is the mean of so long. */
const WINDOW_MS = 10_000;
/** Two looks that lie closer are no window. */
const WINDOW_MS_MIN = 1_000;
/** What lies further back is not of now. */
const WINDOW_MS_MAX = 30_000;

/**
 * What was seen at the last looks, so that callers that look again and again see what changed in about the last 10
 * seconds. Nothing is done while no caller looks.
 */
export class Looks<T> {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #see: () => T;
  #looks: { readonly atMs: number; readonly seen: T }[] = [];

  constructor(clock: Pick<Clock, 'monotonicMs'>, see: () => T) {
    this.#clock = clock;
    this.#see = see;
  }

  /** What there is now, and what there was at the beginning of the window; null before there is one. */
  look(): { readonly now: T; readonly before: { readonly seen: T; readonly seconds: number } | null } {
    const atMs = this.#clock.monotonicMs();
    const now = this.#see();
    const fitting = this.#looks.filter((each) => atMs - each.atMs <= WINDOW_MS_MAX);
    // The last one that is a whole window away begins it; until there is one, the oldest.
    const begin =
      fitting.findLast((each) => atMs - each.atMs >= WINDOW_MS) ??
      fitting.find((each) => atMs - each.atMs >= WINDOW_MS_MIN) ??
      null;
    this.#looks = begin === null ? fitting : fitting.slice(fitting.indexOf(begin));
    if (this.#looks.length === 0 || atMs - this.#looks.at(-1)!.atMs >= WINDOW_MS_MIN)
      this.#looks.push({ atMs, seen: now });
    return { now, before: begin === null ? null : { seen: begin.seen, seconds: (atMs - begin.atMs) / 1_000 } };
  }
}

/** Values of a histogram, or of several with the same bounds, by bucket. */
export type Buckets = Float64Array;

export function bucketsOf(figures: readonly SeriesFigures[], bounds: readonly number[]): Buckets {
  const sum = new Float64Array(bounds.length + 1);
  for (const { counts } of figures)
    counts?.forEach((count, i) => {
      sum[i]! += count;
    });
  return sum;
}

/**
 * Below which the given share of what came since lies: that is taken to lie evenly within its bucket, the first of
 * which begins at 0, as Prometheus' `histogram_quantile` does. Null where nothing came, or it lies beyond all bounds.
 */
export function quantile(now: Buckets, before: Buckets, bounds: readonly number[], share: number): number | null {
  let total = 0;
  for (let i = 0; i < now.length; i++) total += now[i]! - (before[i] ?? 0);
  if (total <= 0) return null;
  const wanted = total * share;
  let seen = 0;
  for (let i = 0; i < bounds.length; i++) {
    const count = now[i]! - (before[i] ?? 0);
    if (count > 0 && seen + count >= wanted) {
      const from = bounds[i - 1] ?? 0;
      return from + ((bounds[i]! - from) * (wanted - seen)) / count;
    }
    seen += count;
  }
  return null;
}

/** Of a counter, all label values together, or those that are wanted. */
export function totalOf(metrics: Metrics, name: string, label: string | null = null, value = ''): number {
  let total = 0;
  for (const each of metrics.figuresOf(name)) if (label === null || each.labels[label] === value) total += each.value;
  return total;
}
