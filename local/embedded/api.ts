/// <reference lib="esnext.disposable" preserve="true" />

import type { EventStore, Position } from '../event-store/api.ts';

export type * from '../event-store/api.ts';

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

/** A store that is open in this process: what every `EventStore` does, and the care for its data. */
export interface Store extends EventStore {
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
}
