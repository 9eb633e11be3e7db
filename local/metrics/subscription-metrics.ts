import { ALL_STREAM } from '../../core/persistent/api.ts';
import type { GroupInfo } from '../../core/persistent/api.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Collector } from './metrics.ts';

/** Groups whose metrics are shown: each is a series of its own in every scrape. */
export const GROUPS_TOLD_MAX = 1_000;

const NAMES = [
  'eventstore_persistent_sub_connections',
  'eventstore_persistent_sub_parked_messages',
  'eventstore_persistent_sub_oldest_parked_message_seconds',
  'eventstore_persistent_sub_in_flight_messages',
  'eventstore_persistent_sub_last_known_event_number',
  'eventstore_persistent_sub_last_known_event_commit_position',
  'eventstore_persistent_sub_checkpointed_event_number',
  'eventstore_persistent_sub_checkpointed_event_commit_position',
  'eventstore_persistent_sub_items_processed_total',
  'eventstore_persistent_sub_parked_message_replays_total',
  'eventstore_persistent_sub_parked_message_truncations_total',
  'eventstore_persistent_sub_park_message_requests_total',
] as const;

/**
 * Metrics of persistent subscriptions, by the names of the reference. Numbers of events are those of groups of streams,
 * positions those of groups of `$all`.
 */
export function subscriptionMetrics(figures: () => Promise<readonly GroupInfo[]>, clock: Clock): Collector {
  return async (metrics) => {
    const infos = await figures();
    // Groups come and go, and run elsewhere when another member leads.
    for (const name of NAMES) metrics.clear(name);
    for (const info of infos.slice(0, GROUPS_TOLD_MAX)) {
      const { stream, lastKnownPosition: known, lastCheckpointedPosition: checkpointed } = info;
      const labels = { event_stream_id: stream, group_name: info.group };
      const isAll = stream === ALL_STREAM;
      metrics.gauge('eventstore_persistent_sub_connections', info.connections.length, labels);
      metrics.gauge('eventstore_persistent_sub_parked_messages', info.parkedMessageCount, labels);
      // Left out where it is not known.
      if (info.parkedMessageCount === 0 || info.oldestParkedMs !== null)
        metrics.gauge('eventstore_persistent_sub_oldest_parked_message_seconds', ageSeconds(info, clock), labels);
      metrics.gauge('eventstore_persistent_sub_in_flight_messages', info.totalInFlightMessages, labels);
      if (known !== null)
        metrics.gauge(
          isAll
            ? 'eventstore_persistent_sub_last_known_event_commit_position'
            : 'eventstore_persistent_sub_last_known_event_number',
          numberOf(known),
          labels,
        );
      if (checkpointed !== null)
        metrics.gauge(
          isAll
            ? 'eventstore_persistent_sub_checkpointed_event_commit_position'
            : 'eventstore_persistent_sub_checkpointed_event_number',
          numberOf(checkpointed),
          labels,
        );
      metrics.total('eventstore_persistent_sub_items_processed_total', info.totalItems, labels);
      metrics.total('eventstore_persistent_sub_parked_message_replays_total', info.parkedReplays, labels);
      metrics.total('eventstore_persistent_sub_parked_message_truncations_total', info.parkedTruncations, labels);
      metrics.total('eventstore_persistent_sub_park_message_requests_total', info.parkedByClient, {
        ...labels,
        reason: 'client-nak',
      });
      metrics.total('eventstore_persistent_sub_park_message_requests_total', info.parkedByRetries, {
        ...labels,
        reason: 'max-retries',
      });
    }
  };
}

function ageSeconds({ oldestParkedMs }: GroupInfo, clock: Clock): number {
  return oldestParkedMs === null ? 0 : Math.max(0, clock.nowMs() - oldestParkedMs) / 1_000;
}

/** The number, or the commit position of `C:1024/P:1024`. */
export function numberOf(position: string): number {
  return Number(/^C:(-?\d+)\//.exec(position)?.[1] ?? position);
}
