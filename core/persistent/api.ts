import { SkuaError } from '../base/errors.ts';
import type { AllPosition, StoredEvent } from '../streams/api.ts';

/**
 * Persistent subscriptions: groups whose consumers share out the events of a stream, or of `$all`, among themselves.
 * They run where the node leads: everywhere else, and before `start` is through, calls are refused with `not_leader` or
 * `not_ready`.
 */

/** The source of a group that takes the whole log. No stream can have this name. */
export const ALL_STREAM = '$all';

export const STRATEGIES = ['RoundRobin', 'DispatchToSingle', 'Pinned', 'PinnedByCorrelation'] as const;

/** Numbers are kept and shown as they were given; the engine bounds what it makes of them. */
export interface GroupSettings {
  readonly resolveLinks: boolean;
  readonly extraStatistics: boolean;
  /** Milliseconds that a consumer has for a message; 0 for ever, but 30 seconds without a connection. */
  readonly messageTimeoutMs: number;
  /** A message that would be sent more than this often again is parked. */
  readonly maxRetryCount: number;
  /**
   * Milliseconds after which a checkpoint is written if at least `minCheckpointCount` messages are done since the last
   * one.
   */
  readonly checkpointAfterMs: number;
  readonly minCheckpointCount: number;
  /** Messages done since the last checkpoint at which one is written at once. */
  readonly maxCheckpointCount: number;
  /** 0: any number. */
  readonly maxSubscriberCount: number;
  readonly liveBufferSize: number;
  readonly readBatchSize: number;
  /** Messages read and not yet sent. */
  readonly historyBufferSize: number;
  /** One of STRATEGIES; another name is refused. */
  readonly strategy: string;
}

/** What the official clients and HTTP send where the user sets nothing. */
export const DEFAULT_SETTINGS: GroupSettings = {
  resolveLinks: false,
  extraStatistics: false,
  messageTimeoutMs: 30_000,
  maxRetryCount: 10,
  checkpointAfterMs: 2_000,
  minCheckpointCount: 10,
  maxCheckpointCount: 1_000,
  maxSubscriberCount: 0,
  liveBufferSize: 500,
  readBatchSize: 20,
  historyBufferSize: 500,
  strategy: 'RoundRobin',
};

/**
 * The first event wanted: a number for a stream, a position (its event counts) for `$all`, or what is written from now
 * on.
 */
export type StartFrom = 'start' | 'end' | number | AllPosition;

/** Which events of the log a group of `$all` takes. Kept with the group; an update does not change it. */
export type GroupFilter =
  | { readonly on: 'stream' | 'type'; readonly prefixes: readonly string[] }
  | { readonly on: 'stream' | 'type'; readonly expression: string };

export interface NewGroup {
  readonly settings: GroupSettings;
  readonly from: StartFrom;
  /** Only of groups of `$all`; absent takes all. */
  readonly filter?: GroupFilter | undefined;
}

/** One message for a consumer: an event, or the link by which it was reached in `event.link`. */
export interface Delivery {
  readonly event: StoredEvent;
  /** 0 the first time. */
  readonly retryCount: number;
}

/** Id by which a delivery is answered: that of the link if one was resolved. */
export function answerId(event: StoredEvent): string {
  return (event.link ?? event).id;
}

/** Unknown acts as Retry, Stop as Skip. */
export type NackAction = 'Unknown' | 'Park' | 'Retry' | 'Skip' | 'Stop';

export interface ConnectOptions {
  /** Deliveries under way at most; 0: none, ever. */
  readonly bufferSize: number;
  readonly username: string;
  readonly connectionName: string;
  /** Address of the client, for statistics; may be empty. */
  readonly from: string;
  /** Ends the consumer, as `close` does. */
  readonly signal?: AbortSignal | undefined;
}

/** One reader of a group. What it has not answered when it ends goes to the others. */
export interface GroupConsumer {
  /** `<stream>::<group>`. */
  readonly subscriptionId: string;
  /**
   * The next deliveries, at least one and at most a page; resolves with none once the consumer was closed or its signal
   * aborted. One call at a time. Errors: `persistent_subscription_dropped` (data: stream, group) when the group was
   * updated, deleted or restarted, or the node leads or runs no more.
   */
  next(): Promise<readonly Delivery[]>;
  /** Ids as in `answerId`, any case; unknown ones are ignored. */
  ack(ids: readonly string[]): void;
  nack(ids: readonly string[], action: NackAction, reason: string): void;
  close(): void;
}

export interface GroupInfo {
  /** `$all` or the stream. */
  readonly stream: string;
  readonly group: string;
  /** `Live`, `Behind`, either with `, OutstandingPageRequest`, or `NotReady`. */
  readonly status: string;
  readonly connections: readonly ConnectionInfo[];
  /** Messages sent a second since this was last asked for. */
  readonly averagePerSecond: number;
  /** Messages sent since the group was loaded. */
  readonly totalItems: number;
  readonly countSinceLastMeasurement: number;
  /** As text: a number, or `C:<commit>/P:<prepare>`. Null while unknown. */
  readonly lastCheckpointedPosition: string | null;
  readonly lastKnownPosition: string | null;
  /** As kept: `0`, `-1` for the end; `C:0/P:0`, `C:-1/P:-1`. */
  readonly startFrom: string;
  readonly settings: GroupSettings;
  readonly filter: GroupFilter | null;
  readonly readBufferCount: number;
  readonly liveBufferCount: number;
  readonly retryBufferCount: number;
  readonly totalInFlightMessages: number;
  readonly outstandingMessagesCount: number;
  readonly parkedMessageCount: number;
  /**
   * When the oldest message that is parked was parked, in milliseconds since 1970; null for none, and in `figures`
   * where that can't be read just now.
   */
  readonly oldestParkedMs: number | null;
  /**
   * Messages put up for replay, times that parked ones were forgotten, messages parked for a consumer's answer, and for
   * their retries, since the group was loaded.
   */
  readonly parkedReplays: number;
  readonly parkedTruncations: number;
  readonly parkedByClient: number;
  readonly parkedByRetries: number;
}

export interface ConnectionInfo {
  readonly from: string;
  readonly username: string;
  readonly connectionName: string;
  readonly averageItemsPerSecond: number;
  readonly totalItems: number;
  readonly countSinceLastMeasurement: number;
  readonly availableSlots: number;
  readonly inFlightMessages: number;
  /** Milliseconds from a delivery to its answer, by name of the figure; empty without `extraStatistics`. */
  readonly observedMeasurements: readonly { readonly key: string; readonly value: number }[];
}

/**
 * Errors that every call of a group may have: `persistent_subscription_not_found` (data: stream, group; its message is
 * the reference's), `not_ready` while groups are being loaded, `not_leader` where the node does not lead, and what
 * appends are refused with.
 */
export interface PersistentSubscriptions {
  /**
   * Makes a group. Errors: `persistent_subscription_exists`; `persistent_subscription_failed` (data: stream, group,
   * reason) for settings, a strategy or a position that can't be, a name whose streams another group has, or too many
   * groups. `by` is named in the configuration.
   */
  create(stream: string, group: string, options: NewGroup, by: string): Promise<void>;
  /**
   * Gives a group other settings and another start, which counts until its first checkpoint; without `strategy` or
   * `from` it keeps those. Its consumers are dropped. Errors as `create`.
   */
  update(stream: string, group: string, options: GroupChange, by: string): Promise<void>;
  /**
   * Lets a group begin anew: its checkpoint is forgotten, what it has parked stays. Its consumers are dropped. Errors
   * as `update`.
   */
  reset(stream: string, group: string, from: StartFrom, by: string): Promise<void>;
  /** Removes the group with its checkpoint and parked messages. Its consumers are dropped. */
  delete(stream: string, group: string, by: string): Promise<void>;
  info(stream: string, group: string): Promise<GroupInfo>;
  /**
   * Name of the stream with the parked messages of a group that there is: the name alone does not show which group of
   * which stream it belongs to.
   */
  parkedStream(stream: string, group: string): Promise<string>;
  /**
   * All groups, by stream and then in the order in which they were made, or those of a stream (none: an empty list).
   */
  list(stream?: string): Promise<GroupInfo[]>;
  /**
   * Sends parked messages again: those with numbers below `stopAt`, or all. Errors: `persistent_subscription_failed`
   * for a negative number.
   */
  replayParked(stream: string, group: string, stopAt: number | null): Promise<void>;
  /** Forgets parked messages with numbers below `stopAt`, or all. Errors as `replayParked`. */
  truncateParked(stream: string, group: string, stopAt: number | null): Promise<void>;
  /** Stops all groups, which drops every consumer, and starts them from what is stored. */
  restart(): Promise<void>;

  /** Errors: `maximum_subscribers_reached` (data: stream, group), `too_busy`. */
  connect(stream: string, group: string, options: ConnectOptions): Promise<GroupConsumer>;

  /**
   * For readers without a connection (HTTP): up to `count` messages now, which must be answered within the message
   * timeout.
   */
  take(stream: string, group: string, count: number): Promise<readonly Delivery[]>;
  /** Answers deliveries of `take`. */
  ack(stream: string, group: string, ids: readonly string[]): Promise<void>;
  nack(stream: string, group: string, ids: readonly string[], action: NackAction, reason: string): Promise<void>;
}

export interface GroupChange {
  readonly settings: Omit<GroupSettings, 'strategy'> & { readonly strategy?: string | undefined };
  readonly from?: StartFrom | undefined;
}

/** The engine as the node runs it. */
export interface PersistentSubscriptionsEngine extends PersistentSubscriptions {
  /**
   * The node leads: loads the groups and begins to read for them. Returns at once; calls wait for it. Calling it again
   * does nothing.
   */
  start(): void;
  /**
   * The node leads no more, or ends: consumers are dropped, what may be is checkpointed, and nothing is written
   * afterwards.
   */
  stop(): Promise<void>;
  /** What all groups are at; it does not count as a measurement. For metrics. */
  figures(): Promise<readonly GroupInfo[]>;
  /** The same as far as it is in memory, without the age of what is parked; null while no groups are loaded. */
  figuresNow(): readonly GroupInfo[] | null;
}

/** Stream with the checkpoints of a group. */
export function checkpointStreamOf(stream: string, group: string): string {
  return `$persistentsubscription-${stream}::${group}-checkpoint`;
}

/** Stream with the parked messages of a group, links to events: to be read with links resolved. */
export function parkedStreamOf(stream: string, group: string): string {
  return `$persistentsubscription-${stream}::${group}-parked`;
}

/** What groups are refused with. The texts are those that clients of the reference know. */

export function notFoundError(stream: string, group: string): SkuaError {
  return new SkuaError(
    'persistent_subscription_not_found',
    `Subscription group ${group} on stream ${stream} does not exist.`,
    { stream, group },
  );
}

/** Of a stream as a whole; over gRPC, where the reference names a group without a name, this is the answer. */
export function noneError(stream: string): SkuaError {
  return new SkuaError('persistent_subscription_not_found', `Stream ${stream} has no persistent subscription.`, {
    stream,
  });
}

export function existsError(stream: string, group: string): SkuaError {
  return new SkuaError('persistent_subscription_exists', `Subscription group ${group} on stream ${stream} exists.`, {
    stream,
    group,
  });
}

export function failedError(stream: string, group: string, reason: string): SkuaError {
  return new SkuaError(
    'persistent_subscription_failed',
    `Subscription group ${group} on stream ${stream} failed: '${reason}'`,
    { stream, group, reason },
  );
}

export function droppedError(stream: string, group: string): SkuaError {
  return new SkuaError(
    'persistent_subscription_dropped',
    `Subscription group ${group} on stream ${stream} was dropped.`,
    { stream, group },
  );
}

export function maximumError(stream: string, group: string): SkuaError {
  return new SkuaError(
    'maximum_subscribers_reached',
    `Maximum subscriptions reached for subscription group ${group} on stream ${stream}.`,
    { stream, group },
  );
}

export function tooManyConsumers(stream: string, group: string, limit: number): SkuaError {
  return new SkuaError(
    'too_busy',
    `Subscription group ${group} on stream ${stream} already has ${limit} consumers: disconnect some.`,
    { stream, group, limit },
  );
}
