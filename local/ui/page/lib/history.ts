import { signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';

/** What was measured in the last hour while the page was open, for charts. */

const SPAN_MS = 3_600_000;
/** Where the page was not looked at for longer than this, the line is cut. */
const GAP_MS = 45_000;
/** So far behind the value before it lies the null by which a line is cut. */
export const CUT_MS = 1;

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
  history.value = { times: [...times.slice(from), ...between.map(() => last! + CUT_MS), atMs], values: next };
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

/** Whether a line is cut at this time: up to the next one nothing is known. */
export function isCutAt(times: readonly number[], i: number): boolean {
  return i > 0 && times[i]! - times[i - 1]! <= CUT_MS;
}

/** As many points as a small line can show. */
const EVEN_POINTS = 60;

/**
 * A line of a history at even distances of time, however far apart its values lie: each is that of the time since the
 * one before it, and the most of several counts, so that no peak is lost. Behind a cut nothing is known.
 */
export function evenly({ times, values }: History, name: string): readonly (number | null)[] {
  const line = values[name];
  const first = times[0];
  if (line === undefined || first === undefined || times.length < 2) return [];
  const stepMs = (times.at(-1)! - first) / EVEN_POINTS;
  // The first one is of a time before.
  let at = 1;
  return Array.from({ length: EVEN_POINTS }, (_, step) => {
    const endMs = first + (step + 1) * stepMs;
    const found: number[] = [];
    for (; at < times.length && times[at]! <= endMs; at += 1) if (line[at] != null) found.push(line[at]!);
    // It ends where its figure does.
    if (found.length > 0) return step === EVEN_POINTS - 1 ? found.at(-1)! : Math.max(...found);
    return at === times.length || isCutAt(times, at - 1) ? null : (line[at] ?? null);
  });
}
