import type { EventStore } from './streams/api.ts';
import type { StreamHasher } from './index/stream-hash.ts';
import type { Clock } from './ports/clock.ts';
import type { Digests } from './ports/digests.ts';
import type { Ids } from './ports/ids.ts';
import type { Jobs } from './ports/jobs.ts';
import type { Log } from './ports/log.ts';
import type { Meter } from './ports/meter.ts';
import type { Storage } from './ports/storage.ts';
import type { SkuaError } from './errors.ts';

export interface OpenStoreOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly jobs: Jobs;
  readonly log: Log;
  readonly meter: Meter;
  /** Bytes of a chunk's data; for a new directory only, an existing one keeps its own. Default 256 MiB. */
  readonly chunkSizeBytes?: number;
  /** Block cache, default 64 MiB. */
  readonly cacheBytes?: number;
  readonly memTableEntriesMax?: number;
  /** Stream existence filter, default 32 MiB; 0 switches it off. */
  readonly existenceFilterBytes?: number;
  /** Largest truncation that `truncate.chk` may order, in bytes; -1 for any. Default 256 MiB. */
  readonly truncationBytesMax?: number;
  /** Write the epoch records of a starting leader. Default true; off for tools that must not change the log. */
  readonly writeEpoch?: boolean;
  /** Tests inject a hash with collisions. */
  readonly hasher?: StreamHasher;
  readonly onProgress?: (progress: StartProgress) => void;
}

export interface StartProgress {
  readonly phase: 'recovering-log' | 'rebuilding-index' | 'existence-filter' | 'verifying-index';
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

export interface OpenStore {
  readonly store: EventStore;
  readonly chunkSizeBytes: number;
  /** Settles only when the store can't go on (the writer stopped, a chunk proved damaged): the process should end. */
  readonly failed: Promise<SkuaError>;
  /** Finishes what was accepted, flushes index and checkpoints, releases the lock. */
  close(): Promise<void>;
}
