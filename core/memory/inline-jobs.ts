import { SkuaError } from '../base/errors.ts';
import { streamHasher } from '../base/stream-hash.ts';
import type { StreamHasher } from '../base/stream-hash.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { Ids } from '../ports/ids.ts';
import type { Job, JobBackupPorts, JobContext, JobOptions, JobProgress, Jobs } from '../ports/jobs.ts';
import { MemoryScavengeStates } from './memory-scavenge-state.ts';
import type { ScavengeStates } from '../ports/scavenge-state.ts';
import type { Storage } from '../ports/storage.ts';

/** Longest time in milliseconds that jobs keep the thread before other work runs. */
const SLICE_MS_MAX = 4;
/** Longest time in milliseconds that a sleeping job does not notice that it is to end. */
const SLEEP_SLICE_MS_MAX = 100;

export interface InlineJobsParts {
  readonly jobs: Readonly<Record<string, Job>>;
  readonly storage: Storage;
  readonly digests: Digests;
  readonly ids: Ids;
  readonly clock: Clock;
  /** Default: that of the index. */
  readonly hasher?: StreamHasher;
  /** Default: the one in memory that belongs to the storage, which the store then takes too. */
  readonly scavengeStates?: ScavengeStates;
  /** What jobs of backups need; those reject where it is left out. */
  readonly backup?: JobBackupPorts;
}

/**
 * Runs jobs on the caller's own thread, in slices: for storage in memory, which no worker thread could reach, and for
 * tests.
 */
export class InlineJobs implements Jobs {
  readonly #parts: InlineJobsParts;
  readonly #running = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(parts: InlineJobsParts) {
    this.#parts = parts;
  }

  async run(name: string, args: unknown, options: JobOptions = {}): Promise<unknown> {
    if (this.#isClosed) throw jobsClosed();
    if (options.signal?.aborted === true) throw jobAborted(name);
    const job = this.#parts.jobs[name];
    if (job === undefined) throw jobUnknown(name);
    const running = job(args as never, this.#context(name, options));
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  #context(name: string, options: JobOptions): JobContext {
    const { storage, digests, ids, clock } = this.#parts;
    let sliceStart = clock.monotonicMs();
    const endWhenAborted = () => {
      if (this.#isClosed || options.signal?.aborted === true) throw jobAborted(name);
    };
    return {
      storage,
      digests,
      ids,
      hasher: this.#parts.hasher ?? streamHasher,
      scavengeStates: this.#parts.scavengeStates ?? MemoryScavengeStates.of(storage),
      ...(this.#parts.backup !== undefined && { backup: this.#parts.backup }),
      monotonicMs: () => clock.monotonicMs(),
      sleep: async (ms, signal) => {
        const endMs = clock.monotonicMs() + ms;
        for (let leftMs = ms; leftMs > 0 && signal?.aborted !== true; leftMs = endMs - clock.monotonicMs()) {
          endWhenAborted();
          await clock.sleep(Math.min(leftMs, SLEEP_SLICE_MS_MAX), signal ?? options.signal);
        }
        endWhenAborted();
      },
      progress: (progress: JobProgress) => options.onProgress?.(progress),
      checkpoint: async () => {
        if (clock.monotonicMs() - sliceStart >= SLICE_MS_MAX) {
          await clock.yield();
          sliceStart = clock.monotonicMs();
        }
        endWhenAborted();
      },
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
  }
}

export function jobAborted(name: string): SkuaError {
  return new SkuaError('aborted', `The job ${name} was interrupted.`, { job: name });
}

export function jobUnknown(name: string): SkuaError {
  return new SkuaError('io_error', `There is no job named ${name}: this is a defect.`, { job: name });
}

export function jobsClosed(): SkuaError {
  return new SkuaError('store_closed', 'The store is closed: no further work is accepted.');
}
