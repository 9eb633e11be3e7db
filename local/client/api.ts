/// <reference lib="esnext.disposable" preserve="true" />

import type {
  AppendCondition,
  AppendResult,
  Checkpoint,
  CheckpointOptions,
  DeleteOptions,
  EventStore,
  Expected,
  NewEvent,
  Position,
  RecordedMetadata,
  SetMetadataOptions,
  StreamAppend,
  StreamAppended,
  StreamInfo,
  StreamMetadata,
  TaggedEvent,
} from '../event-store/api.ts';

export type * from '../event-store/api.ts';

/**
 * The store of a node, a cluster or functions, over HTTP: what `skua/client` promises. It wants nothing but `fetch`.
 * These types name nothing of the insides, and stay what they are within a major version.
 */

/** Where a server is: exactly one of `url` and `urls`. */
export type ServerAddress =
  | {
      /** Of a node, or of functions, with what stands before their paths: `https://events.example.com`. */
      readonly url: string;
    }
  | {
      /** Of the members of one cluster, 1 to 16: the next is asked where one does not answer, or is not ready. */
      readonly urls: readonly string[];
    };

/** What `connect` takes. */
export type ConnectOptions = ServerAddress & {
  /** Default: what an address has before its `@`, or none. Sent to these addresses alone. */
  readonly credentials?: { readonly username: string; readonly password: string };
  /** Sent along with each request, and to these addresses alone; `authorization` in the place of `credentials`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Longest time in milliseconds until a server begins to answer, and between two parts of it. Default 30 000. */
  readonly timeoutMs?: number;
  /** Sends the requests. Default: that of the platform. */
  readonly fetch?: typeof fetch;
};

/** What every call takes. */
export interface CallOptions {
  /**
   * Ends the call with its reason. Of a write it is not known then whether it takes effect: repeated with the same ids
   * it is written once.
   */
  readonly signal?: AbortSignal;
}

/**
 * A store that is called. `connect` sends nothing; a method whose server is not there says so. What failed in passing
 * is tried again, an append with the same ids; besides what an `EventStore` rejects with there are `unreachable` where
 * no address answers in time, or its answers break off; `not_ready` and `no_leader` where a server starts, or its
 * cluster has none that leads; `not_authenticated`, `access_denied`, and `too_many_failures` after wrong passwords;
 * `reply_too_large` where a function can't answer with as much; `unexpected_reply` where something else listens at the
 * address.
 */
export interface Client extends EventStore {
  /** As of an `EventStore`. */
  append(
    stream: string,
    events: NewEvent | readonly NewEvent[],
    options?: CallOptions & { readonly expected?: Expected },
  ): Promise<AppendResult>;

  /** As of an `EventStore`. A condition asks for the right to read `$all`. */
  append(
    events: TaggedEvent | readonly TaggedEvent[],
    options?: CallOptions & { readonly condition?: AppendCondition },
  ): Promise<{ readonly position: Position; readonly isRepeat: boolean }>;

  /**
   * As of an `EventStore`. Streams that say who may do what, such as those of metadata, are written alone.
   *
   * @throws `bad_option` where one of the streams is such.
   */
  appendToStreams(
    appends: readonly StreamAppend[],
    options?: CallOptions,
  ): Promise<{ readonly streams: readonly StreamAppended[]; readonly position: Position; readonly isRepeat: boolean }>;

  /** As of an `EventStore`. */
  checkpoint(
    options?: CallOptions & CheckpointOptions,
  ): Promise<{ readonly checkpoint: Checkpoint | null; readonly end: number }>;

  /**
   * As of an `EventStore`. It is tried again where no answer has come: then what a first try has deleted may be told
   * as `stream_deleted` or `wrong_expected_version`.
   */
  delete(stream: string, options?: CallOptions & DeleteOptions): Promise<{ readonly position: Position }>;

  /** As of an `EventStore`. */
  info(stream: string, options?: CallOptions): Promise<StreamInfo>;

  /** As of an `EventStore`. */
  metadata(stream: string, options?: CallOptions): Promise<RecordedMetadata>;

  /** As of an `EventStore`. */
  setMetadata(
    stream: string,
    metadata: StreamMetadata,
    options?: CallOptions & SetMetadataOptions,
  ): Promise<AppendResult>;

  /** Ends what runs, which rejects with `store_closed`. Calling it again changes nothing. */
  close(): Promise<void>;
}
