import type {
  AnyEvent,
  DefaultEventStoreOptions,
  DefaultRecord,
  Event,
  EventStore,
  MessageConsumer,
  MessageProcessor,
  ProjectorOptions,
  ReactorOptions,
  ReadEvent,
  ReadEventMetadataWithGlobalPosition,
} from 'emmett-current';
import type { ConnectOptions } from '../client/api.ts';
import type {
  AppendResult,
  EventStore as SkuaStore,
  Expected,
  NewEvent,
  ReadOptions,
  RecordedEvent,
  SubscribeToAllOptions,
} from '../event-store/api.ts';
import type { Model, EventSource as ProjectionSource } from '../project/api.ts';

/**
 * What `skua/emmett` promises: the event store of Emmett (`@event-driven-io/emmett`) over a store of this process, a
 * node, or functions. These types name nothing of the insides, and stay what they are within a major version.
 */

/**
 * Where the events are: exactly one of an event store, an official client, and the address of a node or of functions.
 * The program that made it closes it.
 */
export type EventSource = UsedEventStore | OfficialClient | HttpSource;

/** What is used of a store of `skua/embedded` or `skua/client`, or of one with types of `skua/events`. */
export interface UsedEventStore extends Pick<SkuaStore, 'info'> {
  append(
    stream: string,
    events: NewEvent | readonly NewEvent[],
    options: { readonly expected: Expected },
  ): Promise<Pick<AppendResult, 'version' | 'position'>>;
  read(stream: string, options: ReadOptions): AsyncIterable<RecordedEvent>;
}

/**
 * What is used of a client of `@kurrent/kurrentdb-client` or `@eventstore/db-client`, by which the events come over
 * gRPC. Neither package is loaded here: a process may load one of them only, and the caller knows which.
 */
export interface OfficialClient {
  // Methods of the client take types of their own for what is a text or a number here.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readStream(stream: string, options?: any): AsyncIterable<{ readonly event?: ClientEvent | undefined }>;
  appendToStream(
    stream: string,
    events: any,
    options?: any,
  ): Promise<{ readonly nextExpectedRevision: bigint; readonly position?: { readonly commit: bigint } | undefined }>;
}

/** An event as the clients give it. */
export interface ClientEvent {
  readonly id: string;
  readonly type: string;
  readonly revision: bigint;
  readonly data: unknown;
  readonly metadata: unknown;
  readonly position?: { readonly commit: bigint } | undefined;
}

/** A node, or functions, by HTTP: what `connect` of `skua/client` takes. */
export type HttpSource = ConnectOptions | (Omit<ConnectOptions, 'url' | 'urls'> & { readonly url: URL });

/** What every event that was read has in its metadata, beside what its writer put there. */
export type SkuaReadEventMetadata = ReadEventMetadataWithGlobalPosition;

/**
 * An event that was read. `messageId` is its id, `streamPosition` its version in its stream, from `0n` on, and
 * `globalPosition` its commit position.
 */
export type SkuaReadEvent<EventType extends Event = Event> = ReadEvent<EventType, SkuaReadEventMetadata>;

/** What `getSkuaEventStore` takes. */
export type SkuaEventStoreOptions = DefaultEventStoreOptions<SkuaEventStore>;

/**
 * Emmett's event store.
 *
 * Versions are numbers of events: the first event of a stream has `0n`, and a stream without events the version `-1n`
 * (`SkuaEventStoreDefaultStreamVersion`), which may be expected as `STREAM_DOES_NOT_EXIST` may. A deleted stream that
 * can be written again does not exist, and goes on behind its last number.
 *
 * `from` is the first version that is read, `to` the first that is not, `maxCount` (1 or more) the most events.
 * `currentStreamVersion` is the version as of the end of the reading: that of the stream's last event, or of the last
 * one before `to` or within `maxCount`, so that what is decided on a part of a stream meets a conflict where there is
 * more. `expectedStreamVersion` is compared with the stream as it is.
 *
 * Data and metadata are written as JSON, and are what JSON makes of them when they are read; data that are no JSON are
 * read as a `Uint8Array`. A `messageId` in the metadata of a new event, a UUID, is its id: an append that is repeated
 * with the same ids writes nothing twice. Without one, or in metadata that were read with an event, the id is a random
 * one.
 *
 * Methods reject with `ExpectedVersionConflictError` where a stream is another than expected, with
 * `SkuaEventStoreError` as its codes say, which of an event store are those of its `SkuaError`, and else with the
 * errors of an official client.
 */
export interface SkuaEventStore extends EventStore<SkuaReadEventMetadata> {}

/** What is used of a store of `skua/embedded` or `skua/client`, or of one with types, by a consumer. */
export type ProjectedEventStore = ProjectionSource;

/** What `getSkuaConsumer` takes: which events its processors get, all of which have to apply. */
export interface SkuaConsumerOptions extends Pick<
  SubscribeToAllOptions,
  'category' | 'correlation' | 'tags' | 'filter'
> {
  /** Default: a random one. */
  readonly consumerId?: string;
  /** Made by Emmett's `reactor`, `projector`, or those of its packages for databases. */
  readonly processors?: SkuaConsumer['processors'];
  /**
   * Where checkpoints of processors are kept, as those of `skua/project` are: with what handlers write by `context.tx`,
   * in one transaction, so exactly once, and in a form that is refused in a log that was restored. Where a handler
   * throws, the events before it in the batch are handled again. Processors must not have `checkpoints` of their own
   * then, by which they would pass over what was rolled back; one begins where it says, and goes on from what is kept.
   * Default: each keeps its own, if it has some.
   */
  readonly store?: Model<unknown>;
  /** Told of events whose content was taken away, which reach no processor. What it returns is awaited. */
  readonly onErased?: (event: SkuaReadEvent) => unknown;
}

/**
 * A consumer of Emmett: gives the events of all streams to processors, each from its own checkpoint on, or from where
 * it says, one event at a time.
 *
 * `start` resolves when all processors have enough (`stopAfter`, a result `STOP`), or it is stopped, and rejects with
 * what a handler throws, the error of a `STOP`, or what the store rejects with; all processors stop then. A checkpoint
 * that is beyond the end of the log is `checkpoint_unknown` (409). Events of an explicit transaction, which only old
 * logs have, are `not_consumable` (500).
 *
 * `stop` waits until the events that are being handled are, and `start` goes on from there. `close` is the same, and
 * ends the connection that was made for an address.
 */
export interface SkuaConsumer extends MessageConsumer {
  /** Adds a reactor. */
  reactor<M extends AnyEvent>(
    options: ReactorOptions<M, SkuaReadEventMetadata>,
  ): MessageProcessor<M, SkuaReadEventMetadata, DefaultRecord>;
  /** Adds a projector. */
  projector<E extends Event>(
    options: ProjectorOptions<E, SkuaReadEventMetadata>,
  ): MessageProcessor<E, SkuaReadEventMetadata, DefaultRecord>;
}
