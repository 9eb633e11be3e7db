import type { HistoryView } from '../../../../handlers/documents/node.ts';
import { CUT_MS } from './history.ts';
import type { History } from './history.ts';

const HOUR_MS = 3_600_000;
/** Between the two: longer than a step of the node. */
const APART_MS = 120_000;
/** Values further apart than so many steps have something missing between. */
const STEPS_APART = 2;

/** A line of the node's history by its name, and by how much its values are multiplied. */
export type LineNames = Readonly<Record<string, string | readonly [name: string, factor: number]>>;

/**
 * The history of the node as charts take it, lines by the names that the page has for them: where steps are missing,
 * the line is cut.
 */
export function dayOf({ times, values, stepSeconds }: HistoryView, names: LineNames): History {
  const gapMs = stepSeconds * 1_000 * STEPS_APART;
  // Where each value comes from; null for the cut between two.
  const from: (number | null)[] = [];
  for (let i = 0; i < times.length; i++) {
    if (i > 0 && times[i]! - times[i - 1]! > gapMs) from.push(null);
    from.push(i);
  }
  const of = (line: readonly (number | null)[] | undefined, factor: number) =>
    from.map((i) => (i === null || line?.[i] == null ? null : line[i] * factor));
  return {
    times: from.map((i, at) => (i === null ? times[from[at - 1]!]! + CUT_MS : times[i]!)),
    values: Object.fromEntries(
      Object.entries(names).map(([own, name]) =>
        typeof name === 'string' ? [own, of(values[name], 1)] : [own, of(values[name[0]], name[1])],
      ),
    ),
  };
}

/**
 * What the page saw in the last hour, behind what the node kept of the time before, back to as long ago as is told.
 * The first look tells no rates, which would be a gap between the two: there they are those of the second.
 */
export function joined(day: History, seen: History, spanMs = HOUR_MS): History {
  const live = day.times.length === 0 ? seen : withFirst(seen);
  const lastMs = live.times.at(-1) ?? day.times.at(-1) ?? 0;
  const firstMs = live.times[0] ?? Infinity;
  const start = day.times.findIndex((ms) => ms >= lastMs - spanMs);
  const end = day.times.findIndex((ms) => ms >= firstMs);
  const begin = start < 0 ? day.times.length : start;
  const stop = end < 0 ? day.times.length : end;
  if (begin >= stop) return live;
  const isCut = live.times.length > 0 && firstMs - day.times[stop - 1]! > APART_MS;
  const cut = isCut ? [null] : [];
  const names = new Set([...Object.keys(day.values), ...Object.keys(live.values)]);
  const before = (name: string) =>
    day.values[name]?.slice(begin, stop) ?? Array.from({ length: stop - begin }, () => null);
  const after = (name: string) => live.values[name] ?? Array.from({ length: live.times.length }, () => null);
  return {
    times: [...day.times.slice(begin, stop), ...cut.map(() => day.times[stop - 1]! + CUT_MS), ...live.times],
    values: Object.fromEntries([...names].map((name) => [name, [...before(name), ...cut, ...after(name)]])),
  };
}

function withFirst({ times, values }: History): History {
  return {
    times,
    values: Object.fromEntries(
      Object.entries(values).map(([name, line]) => [
        name,
        line[0] == null && line[1] != null ? [line[1], ...line.slice(1)] : line,
      ]),
    ),
  };
}

/** Lines of what did not happen at all: what the node has not kept of them is zero. */
export function withZeros(kept: HistoryView, names: readonly string[]): HistoryView {
  const values = names.map((name) => [name, kept.times.map((_, i) => kept.values[name]?.[i] ?? 0)] as const);
  return { ...kept, values: Object.fromEntries(values) };
}
