import type { AttributeIndexStatus } from '../attributes/api.ts';
import type { ChunkMap } from '../log/api.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { Ids } from '../ports/ids.ts';
import type { Log } from '../ports/log.ts';
import type { Meter } from '../ports/meter.ts';
import type { OnStrangers } from '../ports/object-kinds.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { EventStore } from '../streams/api.ts';
import type { EventStoreOptions, EventStoreInternals } from '../streams/streams.ts';

/** What an instance or a tick needs of the world. */
export interface ObjectWorld {
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly log: Log;
  readonly meter: Meter;
  /** Told of objects below the prefix that have no name of ours. */
  readonly onStrangers?: OnStrangers | undefined;
}

export interface ObjectLogOptions {
  /** Bytes of a chunk's data, for a new prefix only. Default 16 MiB. */
  readonly chunkSizeBytes?: number;
  /**
   * The log is a cluster's, and says so from now on (`cluster` of the manifest). Default false, which leaves it as it
   * is.
   */
  readonly isCluster?: boolean;
  /** The log has begun already: where there is none it is not begun, which is `storage_unreachable`. Default false. */
  readonly mustExist?: boolean;
  /** A reply counts only for this long after the request that proved its number free (rule 4). Default 5 minutes. */
  readonly freshMs?: number;
  /** A dropped object goes only after this long (rule 5); at least twice `freshMs`. Default 1 hour. */
  readonly removeAfterMs?: number;
  /** Attempts of one commit before its writes are refused with `commit_contended` (rule 9). Default 30. */
  readonly commitAttemptsMax?: number;
  /**
   * A commit whose outcome is still not known after this long ends with `commit_outcome_unknown` (rule 2). Default 20
   * seconds.
   */
  readonly commitDeadlineMs?: number;
  /** Block cache. Default 16 MiB. */
  readonly cacheBytes?: number;
  /** Midpoints of an index table kept in memory, as a power of two. Default 14. */
  readonly indexCacheDepth?: number;
  /**
   * Commits that no manifest has taken in yet which an instance holds in memory, and the bytes of their records: beyond
   * either `too_busy`. Default 262 144 and 256 MiB.
   */
  readonly tailCommitsMax?: number;
  readonly tailBytesMax?: number;
  /** Limits of the streams, where they are not to be the defaults. */
  readonly streams?: Partial<EventStoreOptions>;
}

/** What an instance holds and knows at the moment. Positions in the log, sizes in bytes. */
export interface ObjectFigures {
  /** Up to here the index tables of the manifest know the log; -1 when there are none. */
  readonly indexCheckpoint: number;
  /** Of the last event; the end of what is in files where no commit behind that is known. -1 when the log is empty. */
  readonly lastCommitPosition: number;
  readonly indexTables: number;
  /** Entries in them; of those that have not been opened, as many as fit. */
  readonly indexTableEntries: number;
  readonly indexEntriesInMemory: number;
  readonly attributes: readonly AttributeIndexStatus[];
  readonly chunks: number;
  readonly cache: {
    readonly hits: number;
    readonly misses: number;
    readonly usedBytes: number;
    readonly capacityBytes: number;
  };
}

/** The store of one process over a bucket. Any number of instances may be open at once, each may append. */
export interface ObjectInstance {
  /**
   * Reads see everything that any instance acknowledged before they were asked: each of them first asks for the next
   * commit, which is one request while there is none.
   */
  readonly store: EventStore;
  /** The same store without that question, for work that has just asked. */
  readonly internals: EventStoreInternals;
  readonly chunkSizeBytes: number;
  /** The manifest on which this instance stands says that the log is a cluster's. */
  readonly isCluster: boolean;
  /** Takes in all commits there are, and a newer manifest where this one is old. */
  refresh(): Promise<void>;
  readonly figures: () => ObjectFigures;
  /** The chunk files that it reads now, all of which are objects. */
  readonly chunkMap: ChunkMap;
  close(): Promise<void>;
}

/** Limits and defaults of the log on object storage. */

export const CHUNK_SIZE_DEFAULT_BYTES = 16_777_216;
export const FRESH_DEFAULT_MS = 300_000;
export const REMOVE_AFTER_DEFAULT_MS = 3_600_000;
export const COMMIT_ATTEMPTS_DEFAULT_MAX = 30;
export const COMMIT_DEADLINE_DEFAULT_MS = 20_000;
export const CACHE_DEFAULT_BYTES = 16_777_216;
export const INDEX_CACHE_DEPTH_DEFAULT = 14;

/** A commit carries those before it back to the last multiple of this number, ... */
export const CARRY_SPAN_COMMITS = 128;
/** ... as far as they fit into this many bytes. */
export const CARRY_BYTES_MAX = 65_536;

/**
 * Commits that an instance keeps in memory because no manifest has taken them in yet, and the bytes of their records.
 */
export const TAIL_COMMITS_MAX = 262_144;
export const TAIL_BYTES_MAX = 268_435_456;
/** A newer manifest is looked for when the tail has grown by this much since the last look. */
export const LOOK_TAIL_BYTES = 16_777_216;

/** Requests for commits under way at once while the tail is read. */
export const TAIL_READS_MAX = 8;
/** A load begins anew when what it reads goes away meanwhile, this often. */
export const LOADS_MAX = 5;
/** Commits that may lie between the one that is known and the one that is asked for next. */
export const GALLOP_MAX = 128;

/** Waits between attempts whose outcome is not known. */
export const UNDECIDED_WAIT_FIRST_MS = 50;
export const UNDECIDED_WAIT_MAX_MS = 2_000;
/** Waits of a writer that lost: a random part of this, doubled with every further loss up to the second. */
export const LOST_WAIT_FIRST_MS = 10;
export const LOST_WAIT_MAX_MS = 640;
/** While a reader waits for events, other writers' commits are asked for this often. */
export const POLL_MS = 1_000;

/** Event ids that an instance remembers, and how far back in its stream an id is looked for that is not among them. */
export const RECENT_IDS = 32_768;
export const ID_LOOKBACK_EVENTS = 1_000;
