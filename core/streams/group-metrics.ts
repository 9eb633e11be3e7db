import type { Meter } from '../ports/meter.ts';
import type { StoredEvent } from './api.ts';
import type { AppendGroup } from './append-group.ts';

const READ = { activity: 'read' };
const WRITTEN = { activity: 'written' };
const WRITER = { name: 'Writer' };

/** Monotonic times of a group: since when its first request waited, when it went to the log, when it was durable and visible. */
export interface GroupTimes {
  readonly sinceMs: number;
  readonly startMs: number;
  readonly endMs: number;
}

/** Metrics of one group commit. Its latency is that of the request that waited longest. */
export function measureGroup(meter: Meter, group: AppendGroup, { sinceMs, startMs, endMs }: GroupTimes): void {
  meter.observe('eventstore_append_duration_seconds', (endMs - sinceMs) / 1_000);
  meter.observe('eventstore_append_group_requests', group.requests.length);
  meter.observe('eventstore_writer_flush_size_max', group.length);
  meter.observe('eventstore_writer_flush_duration_max_seconds', (endMs - startMs) / 1_000);
  meter.observe('eventstore_queue_queueing_duration_max_seconds', (startMs - sinceMs) / 1_000, WRITER);
  meter.count('eventstore_io_events_total', group.events.count, WRITTEN);
  meter.count('eventstore_io_bytes_total', group.length, WRITTEN);
}

/** Metrics of what a client's read brought. Bytes are those of data and metadata. */
export function countRead(meter: Meter, events: readonly StoredEvent[]): void {
  let bytes = 0;
  for (const { data, metadata } of events) bytes += data.length + metadata.length;
  meter.count('eventstore_io_events_total', events.length, READ);
  meter.count('eventstore_io_bytes_total', bytes, READ);
}
