import type { AttributeFollower, AttributeIndexes } from '../attributes/api.ts';
import type { LogReader } from '../log/api.ts';
import type { EpochRecord } from '../log/format/records.ts';
import type { Clock } from '../ports/clock.ts';
import type { CommitLog } from '../ports/commit-log.ts';
import type { Ids } from '../ports/ids.ts';
import type { Log } from '../ports/log.ts';
import type { Meter } from '../ports/meter.ts';
import type { PageOptions, StoredEvent } from './api.ts';
import type { EventIndex, Lookup } from './lookup/lookup.ts';
import { deletedError, isMetastream, notFoundError, originalOf } from './format/names.ts';
import type { PageLimits } from '../base/page-bytes.ts';
import { type StreamState, StreamView } from './stream-state.ts';
import type { StreamStates } from './stream-states.ts';

export interface EventStoreDeps {
  readonly reader: LogReader;
  readonly commitLog: CommitLog;
  /** Id of the log, where it has one apart from its epochs. */
  readonly logId?: string | undefined;
  readonly index: EventIndex;
  /** Default: none, so that queries read all of the log. */
  readonly attributes?: AttributeFollower;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
  readonly options?: Partial<EventStoreOptions>;
  /**
   * Called with every epoch record that enters the log, from whichever writer, before readers see it; must not throw.
   */
  readonly onEpoch?: ((epoch: EpochRecord) => void) | undefined;
}

/** Limits; the defaults are what a node uses. */
export interface EventStoreOptions {
  /** Stream states kept in memory. */
  readonly streamStatesMax: number;
  /** Appends that may wait, and the bytes of their records. Beyond either: `too_busy`. */
  readonly appendsQueuedMax: number;
  readonly appendQueueBytesMax: number;
  /** A group takes no further request once it holds this much. A single larger request is a group of its own. */
  readonly groupBytesMax: number;
  readonly groupRequestsMax: number;
  /** Data of one append together; metadata don't count, as in the reference. */
  readonly appendBytesMax: number;
  /** Recently committed event ids remembered to recognise repeats. */
  readonly recentIds: number;
  /**
   * How many events back in its stream an id is looked for that is not among the recent ones, when the write expects no
   * particular version. 0: not at all, which is right where all writes to the log go through this process.
   */
  readonly idLookbackEvents: number;
  /** Subscriptions and waits open at once. */
  readonly subscriptionsMax: number;
  readonly subscriptionPageEvents: number;
  readonly subscriptionPageBytes: number;
  /** Bytes with which a page ends whose reader does not say (api.ts, PageOptions). */
  readonly readPageBytes: number;
  /** Bytes of the log that one page passes over at most, where it keeps less of them. */
  readonly readScanBytesMax: number;
  /** Events (or log records) read between two chances for other work: at most a few milliseconds. */
  readonly readSliceEvents: number;
  /** Log records that one page of `$all` examines at most. */
  readonly allScanRecordsMax: number;
  /** Log records that a filtered subscription to `$all` looks at before it reports how far it is. */
  readonly checkpointRecords: number;
  /** Expired events of a stream that one page passes over at most to find where the next one starts. */
  readonly expiredScanEventsMax: number;
  /** Bytes before the end of the log that a query reads through, rather than ask an index for what is in them. */
  readonly readThroughBytes: number;
}

export const DEFAULT_OPTIONS: EventStoreOptions = {
  streamStatesMax: 50_000,
  appendsQueuedMax: 10_000,
  appendQueueBytesMax: 268_435_456,
  groupBytesMax: 4_194_304,
  groupRequestsMax: 4_096,
  appendBytesMax: Number.MAX_SAFE_INTEGER,
  recentIds: 131_072,
  idLookbackEvents: 0,
  subscriptionsMax: 10_000,
  subscriptionPageEvents: 256,
  subscriptionPageBytes: 1_048_576,
  readPageBytes: 8_388_608,
  readScanBytesMax: 268_435_456,
  readSliceEvents: 1_024,
  allScanRecordsMax: 65_536,
  checkpointRecords: 16_384,
  expiredScanEventsMax: 16_384,
  readThroughBytes: 65_536,
};

/** What all reading needs. */
export interface StoreContext {
  readonly lookup: Lookup;
  readonly states: StreamStates;
  readonly attributes: AttributeIndexes;
  readonly clock: Clock;
  readonly meter: Meter;
  readonly options: EventStoreOptions;
}

export function pageLimits(
  { options }: StoreContext,
  { bytesMax, payloads, addressBytes, share }: PageOptions,
): PageLimits {
  return {
    bytesMax: bytesMax ?? options.readPageBytes,
    scanBytesMax: options.readScanBytesMax,
    hasPayloads: payloads !== false,
    addressBytes,
    share: share ?? null,
  };
}

/** The state that covers the stream: its own, or for a metastream that of its original. */
export function stateOf(context: StoreContext, stream: string): StreamState | Promise<StreamState> {
  return context.states.load(isMetastream(stream) ? originalOf(stream) : stream);
}

/** The stream as committed by now. */
export async function viewOf(context: StoreContext, stream: string): Promise<StreamView> {
  const state = stateOf(context, stream);
  return new StreamView(state instanceof Promise ? await state : state, isMetastream(stream));
}

/** Throws unless the stream can be read. */
export function assertReadable(view: StreamView): void {
  if (view.isTombstoned) throw deletedError(view.key.name);
  if (view.isMissing) throw notFoundError(view.key.name);
}

const READ = { activity: 'read' };

/** Metrics of what a client's read brought. Bytes are those of data and metadata. */
export function countRead(meter: Meter, events: readonly StoredEvent[], bytes: number): void {
  meter.count('eventstore_io_events_total', events.length, READ);
  meter.count('eventstore_io_bytes_total', bytes, READ);
}
