import { signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';

/** What was measured in the last hour while the page was open, for charts. */

const SPAN_MS = 3_600_000;
/** Where the page was not looked at for longer than this, the line is cut. */
const GAP_MS = 45_000;

export interface History {
  /** Unix milliseconds, rising. */
  readonly times: readonly number[];
  /** By name; as many as there are times. */
  readonly values: Readonly<Record<string, readonly (number | null)[]>>;
}

const EMPTY: History = { times: [], values: {} };
const histories = new Map<string, ReturnType<typeof signal<History>>>();

function held(name: string) {
  const found = histories.get(name);
  if (found !== undefined) return found;
  const made = signal<History>(EMPTY);
  histories.set(name, made);
  return made;
}

/** The history of one place, such as `overview`; it changes with each `record`. */
export function historyOf(name: string): ReadonlySignal<History> {
  return held(name) as ReadonlySignal<History>;
}

/** Adds what was measured together. Names that are missing this time are not known then. */
export function record(name: string, atMs: number, sample: Readonly<Record<string, number | null>>): void {
  const history = held(name);
  const { times, values } = history.peek() ?? EMPTY;
  const last = times.at(-1);
  if (last !== undefined && atMs <= last) return;
  const isGap = last !== undefined && atMs - last > GAP_MS;
  const start = times.findIndex((time) => time >= atMs - SPAN_MS);
  const from = start < 0 ? times.length : start;
  const before = times.length - from;
  const between = isGap && before > 0 ? [null] : [];
  const names = new Set([...Object.keys(values), ...Object.keys(sample)]);
  const next: Record<string, readonly (number | null)[]> = {};
  for (const one of names)
    next[one] = [
      ...(values[one]?.slice(from) ?? Array.from({ length: before }, () => null)),
      ...between,
      sample[one] ?? null,
    ];
  history.value = { times: [...times.slice(from), ...between.map(() => last! + 1), atMs], values: next };
}

const SPANS_MS = [60_000, 300_000, 900_000, SPAN_MS];

/**
 * The span that charts show: the whole hour only once there is much of it, since a line that has just begun would be a
 * dot at its edge.
 */
export function shownSpanMs({ times }: History): number {
  const known = times.length < 2 ? 0 : times.at(-1)! - times[0]!;
  return SPANS_MS.find((span) => known <= span) ?? SPAN_MS;
}

/**
 * How fast a number rises that only grows, a second, at each time; null where it fell (the node began anew) or is not
 * known.
 */
export function rateOf({ times }: History, values: readonly (number | null)[] | undefined): (number | null)[] {
  return times.map((time, i) => {
    const now = values?.[i] ?? null;
    const then = i === 0 ? null : (values?.[i - 1] ?? null);
    return now === null || then === null || now < then ? null : ((now - then) * 1_000) / (time - times[i - 1]!);
  });
}
