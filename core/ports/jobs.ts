import type { Digests } from './digests.ts';
import type { StreamHasher } from '../base/stream-hash.ts';
import type { Compression } from './compression.ts';
import type { Ids } from './ids.ts';
import type { Keys } from './keys.ts';
import type { ObjectLocation, ObjectStore } from './object-store.ts';
import type { ScavengeStates } from './scavenge-state.ts';
import type { Storage } from './storage.ts';

/**
 * Runs long core work off the request loop. A job is named in `core/jobs/jobs.ts`; it reads immutable files and its
 * arguments only, and writes new files. Arguments, progress and result are structured-cloneable values; typed arrays
 * over a SharedArrayBuffer are shared and not copied.
 */
export interface Jobs {
  /**
   * Runs the job to its end. Rejects with what the job threw (SkuaErrors keep their code and data), or with code
   * `aborted` when the signal ended it, which it does between two slices of work.
   */
  run(name: string, args: unknown, options?: JobOptions): Promise<unknown>;
  /**
   * A job of that name, or of the index, will come soon: what it runs on may be made ready, so that it need not wait
   * for that.
   */
  prepare?(name?: string): void;
  /** Hardly any entries have come to an index for a while, and memory that it kept for more has been let go. */
  rest?(): void;
  /** Ends the workers. Running jobs are aborted and awaited. */
  close(): Promise<void>;
}

export interface JobOptions {
  onProgress?: (progress: JobProgress) => void;
  signal?: AbortSignal;
}

/** How far a job has come; `unit` names what is counted. */
export interface JobProgress {
  readonly done: number;
  readonly total: number;
  readonly unit: 'bytes' | 'entries' | 'chunks';
}

/** What a job gets of the world. */
export interface JobContext {
  readonly storage: Storage;
  readonly digests: Digests;
  readonly ids: Ids;
  progress(progress: JobProgress): void;
  /** Monotonic time. */
  monotonicMs(): number;
  /**
   * Resolves after `ms` milliseconds, or at once when the signal aborts; rejects with `aborted` within a tenth of a
   * second of the job's being ended.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  readonly hasher: StreamHasher;
  readonly scavengeStates: ScavengeStates;
  /** What jobs of backups need besides; absent where none can be run. */
  readonly backup?: JobBackupPorts;
  /** Awaited between slices of at most a few milliseconds; throws `aborted` when the job is to end. */
  checkpoint(): Promise<void>;
}

export interface JobBackupPorts {
  readonly keys: Keys;
  readonly compression: Compression;
  /** Opens an object store; the job that opened it closes it. */
  openObjects(place: ObjectLocation): Promise<ObjectStore>;
}

export type Job = (args: never, context: JobContext) => Promise<unknown>;

/** Reports how far a reading is, lets it be ended, and keeps it from being faster than is allowed. */
export function paced(
  context: Pick<JobContext, 'progress' | 'checkpoint' | 'monotonicMs' | 'sleep'>,
  total: number,
  bytesPerSecond: number,
): (bytes: number) => Promise<void> {
  const begunMs = context.monotonicMs();
  let done = 0;
  return async (bytes) => {
    done += bytes;
    context.progress({ done, total, unit: 'bytes' });
    await context.checkpoint();
    const aheadMs = bytesPerSecond === 0 ? 0 : (done / bytesPerSecond) * 1_000 - (context.monotonicMs() - begunMs);
    if (aheadMs > 0) await context.sleep(aheadMs);
  };
}
