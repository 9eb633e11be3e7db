import { ALL_STREAM } from '../../core/persistent/api.ts';
import type { GroupInfo } from '../../core/persistent/api.ts';
import type { MeterLabels } from '../../core/ports/meter.ts';
import type { ActivityHistoryView, GroupHistoryView, WebhookHistoryView } from '../../handlers/documents/node.ts';
import { between, callsIn, seenNow } from './activity-metrics.ts';
import type { LineSet, Measured } from './day-lines.ts';
import type { Metrics } from './metrics.ts';
import { bucketsOf, quantile } from './recent.ts';
import { cacheLookups } from './store-metrics.ts';
import type { LookupCounts } from './store-metrics.ts';
import { numberOf } from './subscription-metrics.ts';
import { METRICS } from './table.ts';

/** Series of each kind that have a history. All together fit into the limit of bytes. */
const CONNECTORS_MAX = 10;
const GROUPS_MAX = 10;
const REQUESTS_MAX = 12;
/** Written and read. */
const EVENTS_MAX = 2;
/** Found and not, in two caches. */
const LOOKUPS_MAX = 4;
const QUANTILES = [0.5, 0.99];

/** Outcomes of calls that came to what the sender wanted, and that the script left out; all others were refused. */
const TAKEN = ['accepted', 'written', 'duplicate', 'challenge'];
const SKIPPED = ['skipped'];

/** What is measured of one kind of series. */
export interface Measure extends LineSet {
  /** What changed since it was last asked, so many seconds ago. */
  next(seconds: number): Measured;
}

export interface MeasuredParts {
  readonly metrics: Metrics;
  /** Processor time of the process since its start. */
  readonly cpuSeconds: () => number;
  /** Of the open store; null while there is none. */
  readonly lookups: () => LookupCounts | null;
  /** Groups that run here; null while none can. */
  readonly groups: () => readonly GroupInfo[] | null;
}

type Line = keyof ActivityHistoryView['values'];

export const ACTIVITY_LINES: readonly Line[] = [
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
export const CONNECTOR_LINES: readonly (keyof WebhookHistoryView['values'])[] = [
  'takenPerSecond',
  'skippedPerSecond',
  'refusedPerSecond',
];
export const GROUP_LINES: readonly (keyof GroupHistoryView['values'])[] = ['sentPerSecond', 'lag', 'inFlight'];

/** Of the node as a whole: one series, without a name. */
export function activityMeasure({ metrics, cpuSeconds }: MeasuredParts): Measure {
  return {
    names: ACTIVITY_LINES,
    seriesMax: 1,
    busyBy: 1,
    next: changes(
      () => ({ seen: seenNow(metrics), cpu: cpuSeconds() }),
      (now, before, seconds) => {
        const values = {
          ...between(now.seen, before.seen, seconds),
          cpuShare: (now.cpu - before.cpu) / seconds,
        };
        return new Map([['', ACTIVITY_LINES.map((name) => values[name])]]);
      },
    ),
  };
}

/** The metrics that the page shows at first, by name; their series by labels, as `/metrics` writes them. */
export function metricMeasures({ metrics, lookups }: MeasuredParts): ReadonlyMap<string, Measure> {
  const counter = (name: string, seriesMax: number) =>
    counters(seriesMax, () => new Map(metrics.figuresOf(name).map(({ labels, value }) => [labelsText(labels), value])));
  const events = 'eventstore_io_events_total';
  const appends = 'eventstore_append_duration_seconds';
  const requests = 'eventstore_http_requests_total';
  return new Map([
    [events, counter(events, EVENTS_MAX)],
    [appends, quantiles(metrics, appends)],
    [requests, counter(requests, REQUESTS_MAX)],
    [
      'eventstore_cache_hits_misses_total',
      counters(LOOKUPS_MAX, () => {
        const counts = lookups();
        return counts && new Map(cacheLookups(counts).map(([labels, value]) => [labelsText(labels), value]));
      }),
    ],
  ]);
}

/** Of senders' calls, by connector. */
export function connectorMeasure({ metrics }: MeasuredParts): Measure {
  return {
    names: CONNECTOR_LINES,
    seriesMax: CONNECTORS_MAX,
    busyBy: CONNECTOR_LINES.length,
    next: changes(
      () => new Map([...callsIn(metrics)].map(([id, { outcomes }]) => [id, sortsOf(outcomes)])),
      (now, before, seconds) =>
        new Map(
          [...now].map(([id, sorts]) => [id, sorts.map((count, i) => (count - (before.get(id)?.[i] ?? 0)) / seconds)]),
        ),
    ),
  };
}

/** How many calls were taken, skipped and refused. */
export function sortsOf(outcomes: ReadonlyMap<string, number>): readonly [number, number, number] {
  const of = (names: readonly string[]) => names.reduce((sum, name) => sum + (outcomes.get(name) ?? 0), 0);
  const [taken, skipped] = [of(TAKEN), of(SKIPPED)];
  return [taken, skipped, of([...outcomes.keys()]) - taken - skipped];
}

/** Of persistent subscriptions, by `groupKey`. */
export function groupMeasure({ groups }: MeasuredParts): Measure {
  return {
    names: GROUP_LINES,
    seriesMax: GROUPS_MAX,
    busyBy: 1,
    next: changes(
      () => {
        const infos = groups();
        return infos && new Map(infos.map((info) => [groupKey(info.stream, info.group), info]));
      },
      (now, before, seconds) =>
        new Map(
          [...now].map(([key, info]) => {
            const then = before.get(key);
            return [
              key,
              [
                then === undefined ? null : (info.totalItems - then.totalItems) / seconds,
                lagOf(info),
                info.totalInFlightMessages,
              ],
            ];
          }),
        ),
    ),
  };
}

export function groupKey(stream: string, group: string): string {
  return JSON.stringify([stream, group]);
}

/**
 * How far the checkpoint lies behind the last event that is known: in events, or for `$all` in bytes of the log. Before
 * the first checkpoint all counts from the start of the group; null while a number is unknown, and from the end on.
 */
export function lagOf({
  stream,
  startFrom,
  lastCheckpointedPosition: done,
  lastKnownPosition: known,
}: Pick<GroupInfo, 'stream' | 'startFrom' | 'lastCheckpointedPosition' | 'lastKnownPosition'>): number | null {
  const from = numberOf(done ?? startFrom);
  if (known === null || from < 0) return null;
  return Math.max(0, numberOf(known) - from + (done === null && stream !== ALL_STREAM ? 1 : 0));
}

/** As in `/metrics`, but for the space behind each comma. */
function labelsText(labels: MeterLabels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(', ');
}

/** Rates of what only grows. What was not there yet began at 0. */
function counters(seriesMax: number, see: () => ReadonlyMap<string, number> | null): Measure {
  return {
    names: ['value'],
    seriesMax,
    busyBy: 1,
    next: changes(
      see,
      (now, before, seconds) =>
        new Map([...now].map(([key, count]) => [key, [(count - (before.get(key) ?? 0)) / seconds]])),
    ),
  };
}

/** Of a histogram, over all labels. */
function quantiles(metrics: Metrics, name: string): Measure {
  const bounds = METRICS[name]!.buckets!;
  return {
    names: ['value'],
    seriesMax: QUANTILES.length,
    busyBy: 1,
    next: changes(
      () => bucketsOf(metrics.figuresOf(name), bounds),
      (now, before) =>
        new Map(QUANTILES.map((share) => [`quantile="${share}"`, [quantile(now, before, bounds, share)]])),
    ),
  };
}

/** What changed between one look and the next; null where either saw nothing. */
function changes<T>(see: () => T | null, between: (now: T, before: T, seconds: number) => Measured): Measure['next'] {
  let last = see();
  return (seconds) => {
    const before = last;
    const now = (last = see());
    return now === null || before === null ? null : between(now, before, seconds);
  };
}
