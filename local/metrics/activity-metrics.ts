import type { Clock } from '../../core/ports/clock.ts';
import type { ActivityView, WebhooksView } from '../../handlers/documents/node.ts';
import type { Metrics } from './metrics.ts';
import { type Buckets, bucketsOf, Looks, quantile, totalOf } from './recent.ts';
import { METRICS } from './table.ts';

const APPENDS = 'eventstore_append_duration_seconds';
const REQUESTS = 'eventstore_http_request_duration_seconds';
const CALLS = 'eventstore_webhook_calls_total';
const CALL_TIMES = 'eventstore_webhook_call_duration_seconds';
const P99 = 0.99;

/** What the node has done since its start. */
export interface Seen {
  readonly totals: ActivityView['totals'];
  readonly appendTimes: Buckets;
  readonly requestTimes: Buckets;
}

/** What changed between two looks. */
type Rates = Omit<ActivityView, 'windowSeconds' | 'totals'>;

const UNKNOWN: Rates = {
  appendsPerSecond: null,
  eventsWrittenPerSecond: null,
  eventsReadPerSecond: null,
  bytesWrittenPerSecond: null,
  bytesReadPerSecond: null,
  requestsPerSecond: null,
  appendP99Seconds: null,
  requestP99Seconds: null,
};

export function seenNow(metrics: Metrics): Seen {
  return {
    totals: {
      // The sum of a histogram of the requests in groups.
      appends: totalOf(metrics, 'eventstore_append_group_requests'),
      eventsWritten: totalOf(metrics, 'eventstore_io_events_total', 'activity', 'written'),
      eventsRead: totalOf(metrics, 'eventstore_io_events_total', 'activity', 'read'),
      bytesWritten: totalOf(metrics, 'eventstore_io_bytes_total', 'activity', 'written'),
      bytesRead: totalOf(metrics, 'eventstore_io_bytes_total', 'activity', 'read'),
      // Calls of gRPC are counted only when the metrics are rendered: they would come in leaps.
      requests: totalOf(metrics, 'eventstore_http_requests_total'),
    },
    appendTimes: bucketsOf(metrics.figuresOf(APPENDS), boundsOf(APPENDS)),
    requestTimes: bucketsOf(metrics.figuresOf(REQUESTS), boundsOf(REQUESTS)),
  };
}

export function between(now: Seen, before: Seen, seconds: number): Rates {
  const rate = (key: keyof Seen['totals']) => (now.totals[key] - before.totals[key]) / seconds;
  return {
    appendsPerSecond: rate('appends'),
    eventsWrittenPerSecond: rate('eventsWritten'),
    eventsReadPerSecond: rate('eventsRead'),
    bytesWrittenPerSecond: rate('bytesWritten'),
    bytesReadPerSecond: rate('bytesRead'),
    requestsPerSecond: rate('requests'),
    appendP99Seconds: quantile(now.appendTimes, before.appendTimes, boundsOf(APPENDS), P99),
    requestP99Seconds: quantile(now.requestTimes, before.requestTimes, boundsOf(REQUESTS), P99),
  };
}

/** What the node has done since its start, and lately, from its metrics. */
export class Activity {
  readonly #looks: Looks<Seen>;

  constructor(metrics: Metrics, clock: Pick<Clock, 'monotonicMs'>) {
    this.#looks = new Looks(clock, () => seenNow(metrics));
  }

  view(): ActivityView {
    const { now, before } = this.#looks.look();
    return {
      windowSeconds: before?.seconds ?? null,
      ...(before === null ? UNKNOWN : between(now, before.seen, before.seconds)),
      totals: now.totals,
    };
  }
}

function boundsOf(name: string): readonly number[] {
  return METRICS[name]!.buckets!;
}

interface SeenConnector {
  readonly outcomes: Map<string, number>;
  times: Buckets;
}

/** What became of the calls of senders, by connector. */
export class WebhookActivity {
  readonly #looks: Looks<ReadonlyMap<string, SeenConnector>>;

  constructor(metrics: Metrics, clock: Pick<Clock, 'monotonicMs'>) {
    this.#looks = new Looks(clock, () => callsIn(metrics));
  }

  view(): WebhooksView {
    const { now, before } = this.#looks.look();
    const connectors = [...now].map(([connectorId, { outcomes, times }]) => {
      const then = before?.seen.get(connectorId);
      const rates =
        before === null
          ? null
          : [...outcomes].map(
              ([outcome, count]) => [outcome, (count - (then?.outcomes.get(outcome) ?? 0)) / before.seconds] as const,
            );
      return {
        connectorId,
        calls: sumOf(outcomes.values()),
        outcomes: Object.fromEntries(outcomes),
        callsPerSecond: rates === null ? null : sumOf(rates.map(([, rate]) => rate)),
        outcomesPerSecond: rates === null ? null : Object.fromEntries(rates),
        p99Seconds:
          before === null ? null : quantile(times, then?.times ?? new Float64Array(0), boundsOf(CALL_TIMES), P99),
      };
    });
    return { windowSeconds: before?.seconds ?? null, connectors };
  }
}

/** Calls for connectors that do not run have none, and are those of ''. */
export function callsIn(metrics: Metrics): ReadonlyMap<string, SeenConnector> {
  const seen = new Map<string, SeenConnector>();
  for (const { labels, value } of metrics.figuresOf(CALLS)) {
    const connectorId = labels['connector'] ?? '';
    const entry = seen.get(connectorId) ?? { outcomes: new Map<string, number>(), times: new Float64Array(0) };
    entry.outcomes.set(labels['outcome'] ?? '', value);
    seen.set(connectorId, entry);
  }
  for (const figures of metrics.figuresOf(CALL_TIMES)) {
    const entry = seen.get(figures.labels['connector'] ?? '');
    if (entry !== undefined) entry.times = bucketsOf([figures], boundsOf(CALL_TIMES));
  }
  return seen;
}

function sumOf(values: Iterable<number>): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}
