/// <reference lib="esnext.disposable" preserve="true" />

/**
 * What a program does with events, wherever these are kept: in its own process (`skua/embedded`), or with a node, a
 * cluster or functions that it calls (`skua/client`). These types name nothing of the insides, and stay what they are
 * within a major version.
 */

/** An event to be written. */
export interface NewEvent {
  /** 1 to 1 024 characters. Names that begin with `$` are the system's own. */
  readonly type: string;
  /**
   * A JSON value, or bytes as a Uint8Array, which are kept as they are. Left out for none. Together with the metadata 4
   * MiB at most.
   */
  readonly data?: unknown;
  /** As `data`. */
  readonly metadata?: unknown;
  /** A UUID. An append that is repeated with the same ids writes nothing twice. Default: a random one. */
  readonly id?: string;
}

/** An event that says what it belongs to, and maybe where it lies. */
export interface TaggedEvent extends NewEvent {
  /** At most 64, of 1 to 256 bytes of UTF-8. Kept in the metadata, which are an object then, as `$tags`. */
  readonly tags?: readonly string[];
  /** Default: `dcb`. */
  readonly stream?: string;
}

/** An event matches where it matches one of the items, 32 at most: any of its types, and all of its tags. */
export interface ConditionQuery {
  /** None: all events match. */
  readonly items: readonly { readonly types?: readonly string[]; readonly tags?: readonly string[] }[];
}

/**
 * That no event which matches has come since the caller looked. Events that the metadata of their streams hide don't
 * count.
 */
export interface AppendCondition {
  readonly failIfEventsMatch: ConditionQuery;
  /** Of the last event that was looked at. Default: from the beginning. */
  readonly after?: Position;
}

/** An event that was written. `Data` and `Metadata` are what the reader says they are: nothing checks them. */
export interface RecordedEvent<Data = unknown, Metadata = unknown> {
  /** The stream that holds it; for a resolved link that of its target. */
  readonly stream: string;
  /** Number in its stream, from 0 on. */
  readonly version: number;
  readonly type: string;
  /** UUID in lower case. */
  readonly id: string;
  /**
   * The JSON value, or a Uint8Array of its own where the event holds other bytes; undefined where it has none, or they
   * were redacted.
   */
  readonly data: Data;
  /** As `data`; of a redacted event what was kept: members whose names begin with `$`. */
  readonly metadata: Metadata;
  /** `data` is a JSON value. */
  readonly isJson: boolean;
  /** Its content was taken away (`redact`), and the event left. */
  readonly isRedacted: boolean;
  /** Its place among all events: where to go on after it. */
  readonly position: Position;
  /** When it was written, by the clock of the process that did. */
  readonly createdAt: Date;
  /** With `resolveLinks`: the link by which it was reached, and what of it there is without its own data; else null. */
  readonly link: { readonly stream: string; readonly version: number; readonly position: Position } | null;
}

/**
 * A place among all events; plain JSON, to be stored as it is. Both are bytes of the log, and differ only for events of
 * old explicit transactions.
 */
export interface Position {
  readonly commit: number;
  readonly prepare: number;
}

/**
 * Where a reader is, in a form that knows its log; plain JSON of less than 400 bytes, to be stored as it is. A position
 * alone would lead somewhere in another log, too, or in this one after it was restored to an earlier moment.
 */
export interface Checkpoint {
  readonly position: Position;
  /** Of the event there; null where it was gone by then, or a server was not told it: servers tell of no event. */
  readonly id: string | null;
  /** What an opening of a directory, or a leader of a cluster, adds to the log: the newest before the position. */
  readonly epoch: { readonly number: number; readonly position: number; readonly id: string } | null;
  /** Of a log in a bucket: its id. */
  readonly log: string | null;
}

/** What `checkpoint` takes. */
export interface CheckpointOptions {
  /** Of the last event that the reader has seen. Default: that of `after`, else of the last one there is. */
  readonly position?: Position;
  /** Id of the event there, where the reader has seen one. */
  readonly id?: string;
  /** The checkpoint from which the reader went on. */
  readonly after?: Checkpoint;
}

/**
 * What a stream has to be for a write: `none` (no events; a deleted stream that can be written again has none),
 * `exists`, the version of its last event, or `any`. An append that is repeated with the same ids is known as one for
 * certain where a version or `none` is expected, else as long as the ids are among those of the last events.
 */
export type Expected = 'any' | 'none' | 'exists' | number;

/** How an append ended. */
export interface AppendResult {
  /** Version of the last event written: what the next append expects. */
  readonly version: number;
  /** Version of the first event written. */
  readonly firstVersion: number;
  /** Of the last event. */
  readonly position: Position;
  /** The same events had been written before; nothing was written now. */
  readonly isRepeat: boolean;
}

/** Events for one stream of several. */
export interface StreamAppend {
  readonly stream: string;
  /** One or more. */
  readonly events: readonly NewEvent[];
  /** Default `any`. */
  readonly expected?: Expected;
}

/** What one stream of an append to several has become. */
export interface StreamAppended {
  readonly stream: string;
  /** Version of its last event. */
  readonly version: number;
  /** Of its last event. */
  readonly position: Position;
}

/** Which events of a stream are read. */
export interface ReadOptions {
  /** Default `forward`. */
  readonly direction?: 'forward' | 'backward';
  /** Version of the first event; `start` or `end` of the stream. Default: where the direction begins. */
  readonly from?: number | 'start' | 'end';
  /** Most events, 1 or more. Default: all. */
  readonly limit?: number;
  /** Give the targets of links instead of the links. Default false. */
  readonly resolveLinks?: boolean;
  /** Ends the reading with its reason. */
  readonly signal?: AbortSignal;
}

/**
 * Events by what they are: of the category AND of any of the types AND with the correlation AND with all of the tags.
 * What is left out is not asked for. With any of them, events that retention hides are left out.
 */
export interface EventQuery {
  /** What stands before the first `-` in the name of the stream; a name without one is a category of its own. */
  readonly category?: string;
  /** 1 to 64. */
  readonly types?: readonly string[];
  /** `$correlationId` in the metadata. */
  readonly correlation?: string;
  /** 1 to 64, all of which must be among `$tags` in the metadata. */
  readonly tags?: readonly string[];
  /**
   * Just what a condition with these items counts, in the place of the other four: events of any stream whose name does
   * not begin with `$`, whatever their types. A read forward may begin at any number then.
   */
  readonly items?: ConditionQuery['items'];
}

/** Which events of all streams are read. */
export interface ReadAllOptions extends EventQuery {
  /** Default `forward`. */
  readonly direction?: 'forward' | 'backward';
  /**
   * Forward the first event is the one at this position or behind it, backward the one before it. Default: where the
   * direction begins.
   */
  readonly from?: Position | 'start' | 'end';
  /** Most events, 1 or more. Default: all. */
  readonly limit?: number;
  readonly filter?: Filter;
  /**
   * Also the system's own events, whose types begin with `$`: metadata, links, the history of scavenges. Default false;
   * types that are named are read in any case.
   */
  readonly system?: boolean;
  /** Give the targets of links instead of the links. Default false. */
  readonly resolveLinks?: boolean;
  /** Ends the reading with its reason. */
  readonly signal?: AbortSignal;
}

/** Which events are wanted, by the name of their stream or their type; prefixes or an expression. */
export interface Filter {
  readonly on: 'stream' | 'type';
  /** One of them has to begin the name. */
  readonly prefixes?: readonly string[];
  /** A regular expression of RE2, which has no look-around and no back references. 1 000 characters at most. */
  readonly pattern?: string;
}

/** A subscription to one stream. */
export interface SubscribeToStreamOptions {
  /** It need not exist yet. */
  readonly stream: string;
  /**
   * Version of the last event that was seen: what follows is delivered. `start`: all; `end`: new ones only. Default
   * `start`.
   */
  readonly after?: number | 'start' | 'end';
  /** Give the targets of links instead of the links. Default false. */
  readonly resolveLinks?: boolean;
  /** Ends the subscription: the loop over it ends, without an error. */
  readonly signal?: AbortSignal;
  /** Called whenever all that there is has been delivered, between two events. */
  readonly onCaughtUp?: () => void;
}

/** A subscription to all streams, or those of a filter or a query. */
export interface SubscribeToAllOptions extends EventQuery {
  readonly stream?: undefined;
  /**
   * Position of the last event that was seen: what follows is delivered. `start`: all; `end`: new ones only. Default
   * `start`.
   */
  readonly after?: Position | 'start' | 'end';
  readonly filter?: Filter;
  /** Also the system's own events, whose types begin with `$`. Default false. */
  readonly system?: boolean;
  /** Give the targets of links instead of the links. Default false. */
  readonly resolveLinks?: boolean;
  /** Ends the subscription: the loop over it ends, without an error. */
  readonly signal?: AbortSignal;
  /** Called whenever all that there is has been delivered, between two events. */
  readonly onCaughtUp?: () => void;
  /**
   * Called now and then with a position behind which nothing was left out, though no event lies there: to be stored as
   * the one of an event is.
   */
  readonly onCheckpoint?: (position: Position) => void;
}

/** What `delete` takes. */
export interface DeleteOptions {
  /** Default `any`. */
  readonly expected?: Expected;
  /**
   * For ever: the name can't be written again. Default false: the stream has no events, and the next append goes on
   * behind its last version.
   */
  readonly hard?: boolean;
}

/** What a stream is now. */
export interface StreamInfo {
  readonly stream: string;
  /** `deleted` streams can be written again, `tombstoned` ones can't. */
  readonly state: 'none' | 'live' | 'deleted' | 'tombstoned';
  /** Version of its last event, whether or not that is still there; null for one that has none, or is tombstoned. */
  readonly version: number | null;
}

/** How long events are kept, which users may see them over a server, and keys of one's own. */
export interface StreamMetadata {
  /** Events that are kept, 1 or more: the newest. */
  readonly maxCount?: number;
  /** Seconds for which events are kept, 1 or more. */
  readonly maxAgeSeconds?: number;
  /** Events before this version are gone. */
  readonly truncateBefore?: number;
  /** Seconds for which a server's replies may be cached. */
  readonly cacheControlSeconds?: number;
  /** Which users and groups may do what, where the store is served. */
  readonly access?: StreamAccess;
  /** Keys of one's own, which don't begin with `$`, with JSON values. */
  readonly custom?: Readonly<Record<string, unknown>>;
}

/** Names of users and groups, by what they may do. */
export interface StreamAccess {
  readonly read?: readonly string[];
  readonly write?: readonly string[];
  readonly delete?: readonly string[];
  readonly metadataRead?: readonly string[];
  readonly metadataWrite?: readonly string[];
}

/** The metadata of a stream, and their own version. */
export interface RecordedMetadata extends StreamMetadata {
  /** What `setMetadata` expects; null where none were written. */
  readonly version: number | null;
}

/** What `setMetadata` takes. */
export interface SetMetadataOptions {
  /** As of an append, of the metadata's own version. Default `any`. */
  readonly expected?: Expected;
}

/**
 * A store that is open. All its methods may be called at once, any number of times. What they reject with is a
 * `SkuaError` whose `code` is told with each, or the reason of a signal; besides, all reject with `store_closed` once
 * it is closed, and with `io_error` or `log_corrupt` where the storage fails.
 */
export interface EventStore {
  /**
   * Appends events to a stream, all or nothing, and resolves when they are durable: on disk, or in the bucket.
   *
   * @throws `wrong_expected_version` (data: stream, expected, actual: a version or null) where the stream is another
   * than expected; `stream_deleted` for a tombstoned stream; `batch_empty` without events; `invalid_stream_name`,
   * `invalid_event`, `invalid_expected_version`, `event_too_large`, `bad_tags`, `batch_too_large`,
   * `stream_is_view` (a name that begins with `$ce-`, `$et-` or `$bc-`) for what can't be written;
   * `too_busy` where too much waits already; `disk_full`; `writer_stopped` after a failure of the disk: the store has
   * to be opened again.
   */
  append(
    stream: string,
    events: NewEvent | readonly NewEvent[],
    options?: { readonly expected?: Expected },
  ): Promise<AppendResult>;

  /**
   * Appends events to one stream or several, all or nothing, and with a condition only if no event that matches a query
   * has come since. Where a condition names tags, the log needs the index of tags: `skua indexes set --tags on`, or an
   * event of type `$attribute-indexes-set` in `$attribute-indexes` with the data `{ names: true, correlations: false,
   * tags: true }`.
   *
   * @throws as the other `append`; `condition_failed` (data: stream, number, position) with the oldest event that
   * matches; `position_unknown`, `index_off`, `index_building`, `condition_too_broad`, where it can't be told.
   */
  append(
    events: TaggedEvent | readonly TaggedEvent[],
    options?: { readonly condition?: AppendCondition },
  ): Promise<{ readonly position: Position; readonly isRepeat: boolean }>;

  /**
   * Appends to several streams at once, all or nothing; 1 000 streams at most. What is expected is compared with what
   * was there before all of it.
   *
   * @throws as `append`, but `consistency_violation` (data: violations, with stream, expected and actual of each) where
   * streams are others than expected.
   */
  appendToStreams(
    appends: readonly StreamAppend[],
  ): Promise<{ readonly streams: readonly StreamAppended[]; readonly position: Position; readonly isRepeat: boolean }>;

  /**
   * Reads a stream, page by page as the loop goes on. Events that its metadata hide are left out.
   *
   * @throws `stream_not_found` for a stream without events, or a deleted one; `stream_deleted` for a tombstoned one;
   * `invalid_stream_name`, `invalid_event_number`, `invalid_count`; the signal's reason.
   */
  read<Data = unknown, Metadata = unknown>(
    stream: string,
    options?: ReadOptions,
  ): AsyncIterable<RecordedEvent<Data, Metadata>>;

  /**
   * Reads all streams in the order in which they were written.
   *
   * @throws `invalid_position` for a position that no event has; `invalid_count`; `bad_option`, `invalid_expression`,
   * `unsupported_expression`, `expression_too_large` for a filter; the signal's reason.
   */
  readAll<Data = unknown, Metadata = unknown>(options?: ReadAllOptions): AsyncIterable<RecordedEvent<Data, Metadata>>;

  /**
   * Delivers what there is, and then what is appended, in order, without gap or duplicate, until its signal aborts or
   * the loop is left. The reader sets the pace: nothing is buffered beyond a page of 1 MiB.
   *
   * @throws `stream_deleted` behind the last event of a stream that is tombstoned; `store_closed` when the store is
   * closed meanwhile; what `read` and `readAll` reject with.
   */
  subscribe<Data = unknown, Metadata = unknown>(
    options?: SubscribeToStreamOptions | SubscribeToAllOptions,
  ): AsyncIterable<RecordedEvent<Data, Metadata>>;

  /**
   * The checkpoint of a reader that has come to a position; with `after` alone it tells whether the log still is the
   * one in which that was made. One that was only scavenged, redacted, copied, or backed up and restored to at least
   * there is. `end` is where the log ends now, in bytes, as positions are.
   *
   * @throws `checkpoint_unknown` (data: position, why) where `after`, or the event at the position, is not of this log:
   * what was made of the events has to be built anew; `bad_option`.
   */
  checkpoint(options?: CheckpointOptions): Promise<{ readonly checkpoint: Checkpoint | null; readonly end: number }>;

  /**
   * Deletes a stream: its events can't be read from now on. They are gone from the files after a `scavenge`; the last
   * one goes only with `hard`.
   *
   * @throws as `append`.
   */
  delete(stream: string, options?: DeleteOptions): Promise<{ readonly position: Position }>;

  /**
   * What a stream is, without reading its events.
   *
   * @throws `invalid_stream_name`.
   */
  info(stream: string): Promise<StreamInfo>;

  /**
   * The metadata of a stream.
   *
   * @throws `stream_deleted` for a tombstoned one; `invalid_stream_name`.
   */
  metadata(stream: string): Promise<RecordedMetadata>;

  /**
   * Replaces the metadata of a stream, which need not exist yet. One that was deleted comes back by it, without the
   * events that were deleted unless `truncateBefore` says otherwise.
   *
   * @throws as `append`; `invalid_metadata` (data: key) for a value that means nothing.
   */
  setMetadata(stream: string, metadata: StreamMetadata, options?: SetMetadataOptions): Promise<AppendResult>;

  /**
   * Finishes what was accepted, ends subscriptions, and lets go of what the store holds, as a directory; a scavenge of
   * an embedded store stops. Calling it again changes nothing.
   */
  close(): Promise<void>;

  /** `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
