import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { Ids } from '../ports/ids.ts';
import type { Log } from '../ports/log.ts';
import type { Meter } from '../ports/meter.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { EventStore } from '../streams/api.ts';
import type { EventStoreOptions } from '../streams/deps.ts';
import type { EventStoreInternals } from '../streams/event-store.ts';

/** What an instance or a tick needs of the world. */
export interface ObjectWorld {
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly log: Log;
  readonly meter: Meter;
}

export interface ObjectLogOptions {
  /** Bytes of a chunk's data, for a new prefix only. Default 16 MiB. */
  readonly chunkSizeBytes?: number;
  /** A reply counts only for this long after the request that proved its number free (rule 4). Default 5 minutes. */
  readonly freshMs?: number;
  /** A dropped object goes only after this long (rule 5); at least twice `freshMs`. Default 1 hour. */
  readonly removeAfterMs?: number;
  /** Attempts of one commit before its writes are refused with `commit_contended` (rule 9). Default 30. */
  readonly commitAttemptsMax?: number;
  /** A commit whose outcome is still not known after this long ends with `commit_outcome_unknown` (rule 2). Default 20 seconds. */
  readonly commitDeadlineMs?: number;
  /** Block cache. Default 16 MiB. */
  readonly cacheBytes?: number;
  /** Midpoints of an index table kept in memory, as a power of two. Default 14. */
  readonly indexCacheDepth?: number;
  /** Commits that no manifest has taken in yet which an instance holds in memory, and the bytes of their records: beyond either `too_busy`. Default 262 144 and 256 MiB. */
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
  readonly chunks: number;
  readonly cache: { readonly hits: number; readonly misses: number; readonly usedBytes: number; readonly capacityBytes: number };
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
  /** Takes in all commits there are, and a newer manifest where this one is old. */
  refresh(): Promise<void>;
  readonly figures: () => ObjectFigures;
  close(): Promise<void>;
}
