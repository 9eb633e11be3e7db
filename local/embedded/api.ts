/// <reference lib="esnext.disposable" preserve="true" />

/**
 * The store without a server: what `skua/embedded` promises. These types name nothing of the insides, and stay what
 * they are within a major version.
 */

/** Where the events are kept; exactly one of them. */
export type StorePlace =
  | {
      /**
       * A data directory of this process alone, in the format that `skua start --db` reads: it is created where it is
       * absent, and locked while it is open. What is appended is on disk when `append` resolves.
       */
      readonly directory: string;
    }
  | {
      /** Nothing outlives the process. For tests: no files, no threads. */
      readonly memory: true;
    }
  | {
      /**
       * Object storage that any number of processes share, as `skua start --storage` does: `s3://bucket/prefix`, or the
       * path of a directory of objects. Credentials and region are those of the environment, as the AWS SDK finds them.
       */
      readonly bucket: string;
      /** URL of an S3 service other than that of AWS. Default: the environment's. */
      readonly endpoint?: string;
      /** Region of the bucket. Default: the environment's. */
      readonly region?: string;
      /**
       * Carry the store on from this process: put commits together to chunks, scavenge, remove what is dropped. Default
       * true. False where functions or a node do so on the same bucket; then `scavenge` waits for them.
       */
      readonly upkeep?: boolean;
    };

/** What `openStore` takes. */
export type OpenStoreOptions = StorePlace & {
  /**
   * Bytes of a chunk file's data, 1 MiB or more; only of a new store, an existing one keeps its own. Default 256 MiB,
   * in memory and on a bucket 16 MiB.
   */
  readonly chunkBytes?: number;
  /** Bytes of the cache for reads. Default 64 MiB, on a bucket 16 MiB. */
  readonly cacheBytes?: number;
  /**
   * Told what a server would write into its log, for instance that an index was built anew. Nothing is written anywhere
   * by default. It must not throw.
   */
  readonly onLog?: (entry: LogEntry) => void;
};

/** A line of the log. */
export interface LogEntry {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

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

/** Which events of all streams are read. */
export interface ReadAllOptions {
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
   * Also the system's own events, whose types begin with `$`: metadata, links, the history of scavenges. Default false.
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

/** A subscription to all streams, or those of a filter. */
export interface SubscribeToAllOptions {
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

/** What `scavenge` takes. */
export interface ScavengeOptions {
  /** Chunks at a time, 1 to 4. Default 1. */
  readonly threads?: number;
  /** Only chunks with at least this weight of what is to go are rewritten; 0: all with any. Default 0. */
  readonly threshold?: number;
  /** Share of the time that it works, 1 to 100 percent; below 100 only with one thread. Default 100. */
  readonly throttlePercent?: number;
  /** Stops it between two steps. What was removed stays so, and the next one goes on. */
  readonly signal?: AbortSignal;
  /** Told now and then how far it is. */
  readonly onProgress?: (progress: ScavengeProgress) => void;
}

/** How far a scavenge is. */
export interface ScavengeProgress {
  readonly phase: string;
  readonly chunksDone: number;
  readonly chunksTotal: number;
  /** Bytes freed so far; negative where files grew. */
  readonly bytesFreed: number;
}

/** What a scavenge has done. */
export interface ScavengeResult {
  /** A UUID; `$scavenges-<id>` is the stream of its history. */
  readonly id: string;
  /** Bytes that files have lost; negative where they grew. Null where its history could not be written. */
  readonly bytesFreed: number | null;
  readonly elapsedMs: number;
  /**
   * On a bucket what was removed lies in objects that are not read until then, at the latest; null elsewhere, where it
   * is gone.
   */
  readonly goneBy: Date | null;
}

/** What `redact` takes. */
export interface RedactOptions {
  /** Versions of the events, or else `ids`; 1 000 at most. */
  readonly events?: readonly number[];
  /** Ids of the events. The last million events of the stream are looked through for them. */
  readonly ids?: readonly string[];
  /** Why, in 1 to 1 000 characters. It is kept in the log: leave out what is to go. */
  readonly reason: string;
  /** Metadata of the events whose names begin with `$` stay, but for these; 8 at most. */
  readonly metadata?: readonly string[];
  /** Only tell which events it would take. Default false. */
  readonly preview?: boolean;
}

/** What a redaction has taken, or would take. */
export interface RedactResult {
  readonly stream: string;
  readonly events: readonly {
    readonly version: number;
    readonly id: string;
    readonly type: string;
    readonly dataBytes: number;
    readonly metadataBytes: number;
    /** It had been redacted before, and nothing was written for it. */
    readonly wasRedacted: boolean;
  }[];
  /** Of the last mark in the stream `$redactions`; null where none was written. */
  readonly position: Position | null;
}

/** What a scavenge that began now would do to a stream, and by which rule. */
export interface Explanation {
  readonly stream: string;
  /** Version of its last event; null for one that has none. */
  readonly version: number | null;
  /** Ranges of versions that would go; ascending. */
  readonly removed: readonly {
    readonly from: number;
    readonly to: number;
    readonly count: number;
    readonly bytes: number;
    readonly rule: string;
  }[];
  /** Ranges of versions that would stay, and why. */
  readonly kept: readonly {
    readonly from: number;
    readonly to: number;
    readonly count: number;
    readonly why: string;
  }[];
}

/** What is looked for in all files of the store: a stream, events, or both. */
export interface ProveErasedOptions {
  /** A stream all of whose events should be gone. */
  readonly stream?: string;
  /** Ids of events that should be gone. */
  readonly events?: readonly string[];
  /** Ends the search with its reason. */
  readonly signal?: AbortSignal;
}

/** What a search of all files has found. */
export interface ErasureProof {
  /**
   * No trace of an event was found. Of a stream it proves something only where `isKnown`: a name that is misspelt
   * leaves no trace either.
   */
  readonly isErased: boolean;
  /** Something tells that the stream was here: at least residue. True where no stream was asked for. */
  readonly isKnown: boolean;
  /** Files, or objects, that were searched, and their bytes. */
  readonly files: number;
  readonly bytes: number;
  /** Places where events, or their ids, remain. */
  readonly traces: number;
  /**
   * Places that tell that there was a stream, and nothing of what its events held: a tombstone, an entry of the index.
   */
  readonly residues: number;
  /** The first 1 000 of both. */
  readonly findings: readonly ErasureFinding[];
}

/** A place where something remains. */
export interface ErasureFinding {
  readonly kind: 'trace' | 'residue';
  /** Path below the directory, or key of the object. */
  readonly file: string;
  /** In bytes. */
  readonly offset: number;
  /** In words. */
  readonly what: string;
}

/** What `backup` takes. */
export interface BackupOptions {
  /**
   * The repository: a directory, or `s3://bucket/prefix`. It is made where there is none. `skua restore --from` takes
   * the same.
   */
  readonly to: string;
  /** 32 bytes, as `skua backup key` makes them, for a repository that is encrypted. */
  readonly key?: Uint8Array;
  /** Bytes read a second; default: no limit. */
  readonly throttleBytesPerSecond?: number;
  /** URL and region of an S3 service other than the environment's. */
  readonly endpoint?: string;
  readonly region?: string;
  /** Ends it; what was stored by then is not stored again by the next one. */
  readonly signal?: AbortSignal;
}

/** A backup that was made. */
export interface BackupResult {
  /** A UUID, by which `skua restore --backup` knows it. */
  readonly id: string;
  /** Files that it restores, and their bytes. */
  readonly files: number;
  readonly bytes: number;
  /** Bytes of them that the repository did not have. */
  readonly bytesNew: number;
}

/**
 * A store that is open. All its methods may be called at once, any number of times. What they reject with is a
 * `SkuaError` whose `code` is told with each, or the reason of a signal; besides, all reject with `store_closed` once
 * it is closed, and with `io_error` or `log_corrupt` where the storage fails.
 */
export interface Store {
  /**
   * Appends events to a stream, all or nothing, and resolves when they are durable: on disk, or in the bucket.
   *
   * @throws `wrong_expected_version` (data: stream, expected, actual: a version or null) where the stream is another
   * than expected; `stream_deleted` for a tombstoned stream; `batch_empty` without events; `invalid_stream_name`,
   * `invalid_event`, `invalid_expected_version`, `event_too_large`, `batch_too_large` for what can't be written;
   * `too_busy` where too much waits already; `disk_full`; `writer_stopped` after a failure of the disk: the store has
   * to be opened again.
   */
  append(
    stream: string,
    events: NewEvent | readonly NewEvent[],
    options?: { readonly expected?: Expected },
  ): Promise<AppendResult>;

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
   * Deletes a stream: its events can't be read from now on. They are gone from the files after a `scavenge`; the last
   * one goes only with `hard`.
   *
   * @throws as `append`.
   */
  delete(stream: string, options?: DeleteOptions): Promise<{ readonly position: Position }>;

  /**
   * Takes the content of single events away: they read as empty from now on (`isRedacted`), and keep version, id, type
   * and metadata that begin with `$`. Their content is gone from the files after a `scavenge`; backups that were made
   * before keep it. It can't be undone. The stream `$redactions` tells of each.
   *
   * @throws `bad_option` where nothing is named, or not as it has to be; `stream_not_found`, `event_not_found` (data:
   * stream, number or id), `stream_deleted`; `not_redactable` (data: stream, number) for tombstones, parts of explicit
   * transactions, and events of streams that begin with `$`; `redactions_full`; what `append` rejects with.
   */
  redact(stream: string, options: RedactOptions): Promise<RedactResult>;

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
   * Removes from the files what is deleted, expired or limited when it is called, and resolves when that is done. Reads
   * and appends go on meanwhile.
   *
   * @throws `scavenge_in_progress` while another one runs; `backup_running` beside a backup or a proof; `bad_option`;
   * `scavenge_failed`; the signal's reason.
   */
  scavenge(options?: ScavengeOptions): Promise<ScavengeResult>;

  /**
   * What a scavenge that began now would do to a stream.
   *
   * @throws `stream_not_found`, `invalid_stream_name`, `too_busy`.
   */
  explain(stream: string): Promise<Explanation>;

  /**
   * Looks for what remains of a stream or of events in every file of the store, byte by byte.
   *
   * @throws `bad_option` where nothing is asked for, or an id is none; `scavenge_in_progress` while one runs; the
   * signal's reason.
   */
  proveErased(options: ProveErasedOptions): Promise<ErasureProof>;

  /**
   * Adds a backup of everything that was acknowledged before the call to a repository. Only what is new is stored.
   *
   * @throws `scavenge_in_progress` while one runs; `repository_key`, `repository_damaged`, `repository_unreachable`,
   * `storage_denied`, `bucket_not_found`, `bad_option`, `backup_failed`; the signal's reason.
   */
  backup(options: BackupOptions): Promise<BackupResult>;

  /**
   * Settles only when the store can't go on, as after a disk that fails: it has to be closed, and opened again. It
   * never rejects.
   */
  readonly failed: Promise<Error>;

  /**
   * Finishes what was accepted, stops a scavenge, ends subscriptions, and lets go of the directory. Calling it again
   * changes nothing.
   */
  close(): Promise<void>;

  /** `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
