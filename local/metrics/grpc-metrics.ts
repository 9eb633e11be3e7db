import type { Clock } from '../../core/ports/clock.ts';
import type { Meter, MeterLabels } from '../../core/ports/meter.ts';
import { STATUS } from '../../handlers/grpc/call.ts';
import type { Ending } from '../../handlers/grpc/call.ts';
import { GossipService } from '../../handlers/grpc/messages/gossip.ts';
import { MonitoringService } from '../../handlers/grpc/messages/monitoring.ts';
import { OperationsService } from '../../handlers/grpc/messages/operations.ts';
import { PersistentSubscriptionsService } from '../../handlers/grpc/messages/persistent-subscriptions.ts';
import { ServerFeaturesService } from '../../handlers/grpc/messages/server-features.ts';
import { StreamsServiceService } from '../../handlers/grpc/messages/streams-v2.ts';
import { StreamsService } from '../../handlers/grpc/messages/streams.ts';
import { UsersService } from '../../handlers/grpc/messages/users.ts';
import { statusOf } from '../grpc/watch.ts';
import type { CallWatch, WatchedCall } from '../grpc/watch.ts';
import type { Collector } from './metrics.ts';

/** One method, or all unknown ones. */
interface Activity {
  readonly name: string;
  /** Lasts as long as both want, which says nothing of the node. */
  readonly isEndless: boolean;
  readonly open: Set<WatchedCall>;
  readonly successful: MeterLabels;
  readonly failed: MeterLabels;
  /** Messages of calls that have ended. */
  received: number;
  sent: number;
  /** Calls that have ended, by status. */
  readonly ended: Map<number, number>;
}

const SERVICES = [
  StreamsService,
  StreamsServiceService,
  PersistentSubscriptionsService,
  OperationsService,
  UsersService,
  GossipService,
  ServerFeaturesService,
  MonitoringService,
];

/** Names of the statuses, as others know them: `DEADLINE_EXCEEDED`. */
const STATUS_NAMES: readonly string[] = Object.keys(STATUS).map((name) =>
  name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase(),
);

/**
 * Counts calls by method, their messages, and how long they take. Most of it is added up here and looked at when
 * the metrics are asked for: calls are many, questions are few.
 */
export function meterCalls({ meter, clock }: { readonly meter: Meter; readonly clock: Clock }): {
  readonly watch: CallWatch;
  readonly collector: Collector;
} {
  const activities = activitiesByPath();
  const others = activityOf('other', true);
  const kinds = { total: 0, failed: 0, unimplemented: 0, 'deadline-exceeded': 0 };
  const watch: CallWatch = (call) => {
    const activity = activities.get(call.path) ?? others;
    const startMs = clock.monotonicMs();
    activity.open.add(call);
    kinds.total++;
    return (ending) => {
      const status = statusOf(ending);
      activity.open.delete(call);
      activity.received += call.received;
      activity.sent += call.sent;
      activity.ended.set(status, (activity.ended.get(status) ?? 0) + 1);
      if (status !== STATUS.ok) kinds.failed++;
      if (status === STATUS.unimplemented) kinds.unimplemented++;
      if (status === STATUS.deadlineExceeded) kinds['deadline-exceeded']++;
      if (!activity.isEndless && tellsTime(ending))
        meter.observe(
          'eventstore_grpc_method_duration_seconds',
          (clock.monotonicMs() - startMs) / 1_000,
          status === STATUS.ok ? activity.successful : activity.failed,
        );
    };
  };
  const collector: Collector = (sink) => {
    let open = 0;
    for (const [kind, count] of Object.entries(kinds))
      sink.total('eventstore_incoming_grpc_calls_total', count, { kind });
    for (const { name, open: calls, received, sent, ended } of [...activities.values(), others]) {
      open += calls.size;
      // What was never called is left out, but for what it may be asked about.
      if (calls.size === 0 && ended.size === 0) continue;
      const activity = { activity: name };
      let [now, then] = [received, sent];
      for (const call of calls) {
        now += call.received;
        then += call.sent;
      }
      sink.gauge('eventstore_grpc_open_calls', calls.size, activity);
      sink.total('eventstore_grpc_messages_total', now, { ...activity, kind: 'received' });
      sink.total('eventstore_grpc_messages_total', then, { ...activity, kind: 'sent' });
      for (const [status, count] of ended)
        sink.total('eventstore_grpc_calls_total', count, { ...activity, status: STATUS_NAMES[status] ?? 'OTHER' });
    }
    sink.gauge('eventstore_current_incoming_grpc_calls', open);
  };
  return { watch, collector };
}

/** Subscriptions end when the client has had enough, or the node stops. */
function tellsTime(ending: Ending | null): boolean {
  return ending !== null && statusOf(ending) !== STATUS.unavailable;
}

/** `append`, `batch-append` and the like for streams, with the service before it for all others: `users-create`. */
function activitiesByPath(): ReadonlyMap<string, Activity> {
  return new Map(
    SERVICES.flatMap(({ name, methods }) =>
      Object.entries(methods).map(([method, { path, hasManyRequests, hasManyResponses }]) => {
        const service = name.slice(name.lastIndexOf('.') + 1);
        const words = `${service.startsWith('Streams') ? '' : service}${method}`;
        return [
          path,
          activityOf(
            words.replace(/(?!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase(),
            hasManyRequests && hasManyResponses,
          ),
        ] as const;
      }),
    ),
  );
}

function activityOf(name: string, isEndless: boolean): Activity {
  return {
    name,
    isEndless,
    open: new Set(),
    successful: { activity: name, status: 'successful' },
    failed: { activity: name, status: 'failed' },
    received: 0,
    sent: 0,
    ended: new Map(),
  };
}
