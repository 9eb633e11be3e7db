import type { ActivityHistoryView } from '../../../../handlers/documents/node.ts';
import type { History } from './history.ts';

const HOUR_MS = 3_600_000;
/** Between the two: longer than a step of the node. */
const CUT_MS = 120_000;
/** Values further apart than so many steps have something missing between. */
const STEPS_APART = 2;

/** The history of the node as charts take it: where steps are missing, the line is cut. */
export function dayOf({ times, values, stepSeconds }: ActivityHistoryView): History {
  const gapMs = stepSeconds * 1_000 * STEPS_APART;
  // Where each value comes from; null for the cut between two.
  const from: (number | null)[] = [];
  for (let i = 0; i < times.length; i++) {
    if (i > 0 && times[i]! - times[i - 1]! > gapMs) from.push(null);
    from.push(i);
  }
  const of = (line: readonly (number | null)[], factor = 1) =>
    from.map((i) => (i === null || line[i] == null ? null : line[i] * factor));
  return {
    times: from.map((i, at) => (i === null ? times[from[at - 1]!]! + 1 : times[i]!)),
    values: {
      appends: of(values.appendsPerSecond),
      written: of(values.eventsWrittenPerSecond),
      read: of(values.eventsReadPerSecond),
      bytesWritten: of(values.bytesWrittenPerSecond),
      bytesRead: of(values.bytesReadPerSecond),
      requests: of(values.requestsPerSecond),
      appendP99: of(values.appendP99Seconds, 1_000),
      requestP99: of(values.requestP99Seconds, 1_000),
      cpu: of(values.cpuShare),
    },
  };
}

/** What the page saw in the last hour, behind what the node kept of the time before. */
export function joined(day: History, live: History): History {
  const lastMs = live.times.at(-1) ?? day.times.at(-1) ?? 0;
  const firstMs = live.times[0] ?? Infinity;
  const start = day.times.findIndex((ms) => ms >= lastMs - HOUR_MS);
  const end = day.times.findIndex((ms) => ms >= firstMs);
  const begin = start < 0 ? day.times.length : start;
  const stop = end < 0 ? day.times.length : end;
  if (begin >= stop) return live;
  const isCut = live.times.length > 0 && firstMs - day.times[stop - 1]! > CUT_MS;
  const cut = isCut ? [null] : [];
  const names = new Set([...Object.keys(day.values), ...Object.keys(live.values)]);
  const before = (name: string) =>
    day.values[name]?.slice(begin, stop) ?? Array.from({ length: stop - begin }, () => null);
  const after = (name: string) => live.values[name] ?? Array.from({ length: live.times.length }, () => null);
  return {
    times: [...day.times.slice(begin, stop), ...cut.map(() => day.times[stop - 1]! + 1), ...live.times],
    values: Object.fromEntries([...names].map((name) => [name, [...before(name), ...cut, ...after(name)]])),
  };
}
