import type {
  DefaultEventStoreOptions,
  Event,
  EventStore,
  ReadEvent,
  ReadEventMetadataWithGlobalPosition,
} from 'emmett-current';

/**
 * What `skua/emmett` promises: the event store of Emmett (`@event-driven-io/emmett`) over a store of this process, a
 * node, or functions. These types name nothing of the insides, and stay what they are within a major version.
 */

/**
 * Where the events are: exactly one of a store of `skua/embedded`, an official client, and the address of a node or of
 * functions. The program that made it closes it.
 */
export type EventSource = EmbeddedStore | OfficialClient | HttpSource;

/** What is used of a store of `skua/embedded`. */
export interface EmbeddedStore {
  append(
    stream: string,
    events: readonly {
      readonly id: string;
      readonly type: string;
      readonly data?: unknown;
      readonly metadata?: unknown;
    }[],
    options: { readonly expected: 'any' | 'none' | 'exists' | number },
  ): Promise<{ readonly version: number; readonly position: { readonly commit: number } }>;
  read(
    stream: string,
    options: { readonly from: number; readonly limit?: number },
  ): AsyncIterable<{
    readonly id: string;
    readonly type: string;
    readonly version: number;
    readonly position: { readonly commit: number };
    readonly data: unknown;
    readonly metadata: unknown;
  }>;
  info(
    stream: string,
  ): Promise<{ readonly state: 'none' | 'live' | 'deleted' | 'tombstoned'; readonly version: number | null }>;
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

/** A node, or functions, by HTTP. */
export interface HttpSource {
  /**
   * Address, for instance `https://events.example.com:2113`; a path is kept in front of all others. It may carry
   * credentials.
   */
  readonly url: string | URL;
  /** The user who writes and reads. These credentials win over those of the address. */
  readonly credentials?: { readonly username: string; readonly password: string };
  /** Milliseconds that one request may take, its reply included. Default 30 000. */
  readonly timeoutMs?: number;
  /**
   * Sends a request; for instance one that knows your authority, or signs for a platform. Default: the global `fetch`.
   */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

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
 * `SkuaEventStoreError` as its codes say, and else with the errors of what is below: a `SkuaError` of the embedded
 * store, or an error of the client.
 */
export interface SkuaEventStore extends EventStore<SkuaReadEventMetadata> {}
