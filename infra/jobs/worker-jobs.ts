import type { JobOptions, Jobs } from '../../core/ports/jobs.ts';
import { WorkerPool } from './worker-pool.ts';
export { JOBS_QUEUED_MAX } from './worker-pool.ts';

/** Jobs whose names begin so have workers of their own. */
const SCAVENGE_PREFIX = 'scavenge.';
const BACKUP_PREFIX = 'backup.';
/** Tables are written and merged one at a time. */
const INDEX_THREADS = 1;
/** Four chunks at a time, and one who asks for an explanation meanwhile. */
const SCAVENGE_THREADS = 5;
/** One backup at a time is made by one thread; where its files are stored side by side, some wait for the disk while others are digested. */
const BACKUP_THREADS = 4;

export interface WorkerJobsOptions {
  /** Folders of the FilesystemStorage that every worker builds for itself. */
  root: string;
  indexRoot: string;
  /** Most workers at a time for the index. Default 1. */
  threads?: number;
  /** Most workers at a time for scavenging. Default 5. */
  scavengeThreads?: number;
  idleMs?: number;
  /** Nothing is served beside the jobs, so that their threads need not give way when the processor is busy. Default false. */
  isOffline?: boolean;
  /** Entry point of a worker, where a bundle has moved it. */
  workerUrl?: URL;
  /** Module whose `JOBS` replace those of the core, for tests. */
  jobsUrl?: URL;
}

/**
 * Runs jobs in worker threads of three pools: scavenging and backups take hours and appends wait for a full memtable to be
 * written, so that none must ever wait for a thread of another. A pool without work has no threads.
 */
export class WorkerJobs implements Jobs {
  readonly #index: WorkerPool;
  readonly #scavenge: WorkerPool;
  readonly #backup: WorkerPool;

  constructor(options: WorkerJobsOptions) {
    const { threads = INDEX_THREADS, scavengeThreads = SCAVENGE_THREADS, ...common } = options;
    this.#index = new WorkerPool({ ...common, threads });
    this.#scavenge = new WorkerPool({ ...common, threads: scavengeThreads, isBackground: true });
    this.#backup = new WorkerPool({ ...common, threads: BACKUP_THREADS, isBackground: true });
  }

  /** Worker threads that exist now. */
  get workers(): number { return this.#index.workers + this.#scavenge.workers + this.#backup.workers; }

  run(name: string, args: unknown, options: JobOptions = {}): Promise<unknown> {
    return this.#poolOf(name).run(name, args, options);
  }

  #poolOf(name: string): WorkerPool {
    if (name.startsWith(SCAVENGE_PREFIX)) return this.#scavenge;
    return name.startsWith(BACKUP_PREFIX) ? this.#backup : this.#index;
  }

  prepare(): void {
    this.#index.prepare();
  }

  async close(): Promise<void> {
    await Promise.all([this.#index.close(), this.#scavenge.close(), this.#backup.close()]);
  }
}
