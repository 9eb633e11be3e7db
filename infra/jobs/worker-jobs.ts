import { availableParallelism } from 'node:os';
import type { Digests } from '../../core/ports/digests.ts';
import type { JobOptions, Jobs } from '../../core/ports/jobs.ts';
import { MERGE_TABLES_JOB, PROVE_TABLE_JOB } from '../../core/index/jobs/jobs.ts';
import { VERIFY_CHUNK_JOB } from '../../core/log/scrub/scrub.ts';
import { LEAVES_JOB, TAIL_JOB } from '../../core/integrity/jobs/jobs.ts';
import type { IdleCollector } from '../garbage.ts';
import { nodeDigests } from '../node-digests.ts';
import { DigestLane } from './digest-lane.ts';
import { WORKER_URL, WorkerPool } from './worker-pool.ts';
export { JOBS_QUEUED_MAX } from './worker-pool.ts';

/** Jobs whose names begin so have workers of their own. */
const SCAVENGE_PREFIX = 'scavenge.';
const BACKUP_PREFIX = 'backup.';
/**
 * Other long jobs that no request waits for: appends, which wait for a table to be written, must not wait for these.
 */
const UPKEEP_JOBS: ReadonlySet<string> = new Set([
  MERGE_TABLES_JOB,
  VERIFY_CHUNK_JOB,
  PROVE_TABLE_JOB,
  LEAVES_JOB,
  TAIL_JOB,
]);
/** Tables are written one at a time. */
const INDEX_THREADS = 1;
/**
 * A small merge, a large one, the check of a chunk, that of an index table, and hashes for the proof that nothing was
 * changed.
 */
const UPKEEP_THREADS = 5;
/**
 * In milliseconds, how long a thread waits for the next merge, which comes within seconds while much is appended: the
 * start of a thread costs as much as to merge some millions of entries.
 */
const UPKEEP_IDLE_MS = 20_000;
/** Four chunks at a time, and one request for an explanation meanwhile. */
const SCAVENGE_THREADS = 5;
/**
 * One backup at a time is made by one thread; where its files are stored side by side, some wait for the disk while
 * others are digested.
 */
const BACKUP_THREADS = 4;

interface WorkerJobsOptions {
  /** Folders of the FilesystemStorage that every worker builds for itself. */
  root: string;
  indexRoot: string;
  /** Most workers at a time for writing and checking index tables. Default 1. */
  threads?: number;
  /** Most workers at a time for scavenging. Default 5. */
  scavengeThreads?: number;
  idleMs?: number;
  /**
   * Nothing is served beside the jobs, so that their threads need not give way when the processor is busy. Default
   * false.
   */
  isOffline?: boolean;
  /** Entry point of a worker, where a bundle has moved it. */
  workerUrl?: URL;
  /** Module whose `JOBS` replace those of the core, for tests. */
  jobsUrl?: URL;
  /** Collects the garbage of the process when it has come to rest. Default: that is left to V8. */
  collector?: Pick<IdleCollector, 'begin' | 'cancel'> | null;
}

/**
 * Runs jobs in worker threads of four pools: scavenging, backups and merges take hours and appends wait for a full
 * memtable to be written, so that none must ever wait for a thread of another. A pool without work has no threads. Only
 * the threads that write index tables have the priority of the request loop.
 */
export class WorkerJobs implements Jobs {
  readonly #index: WorkerPool;
  readonly #upkeep: WorkerPool;
  readonly #scavenge: WorkerPool;
  readonly #backup: WorkerPool;
  readonly #lane: DigestLane;
  readonly #collector: Pick<IdleCollector, 'begin' | 'cancel'> | null;
  /**
   * Digests of the thread that serves requests, which leaves long ones to another where there is a processor for that.
   */
  readonly digests: Digests;

  constructor(options: WorkerJobsOptions) {
    const { threads = INDEX_THREADS, scavengeThreads = SCAVENGE_THREADS, collector = null, ...common } = options;
    this.#collector = collector;
    this.#index = new WorkerPool({ ...common, threads });
    this.#upkeep = new WorkerPool({
      ...common,
      threads: UPKEEP_THREADS,
      idleMs: Math.min(common.idleMs ?? UPKEEP_IDLE_MS, UPKEEP_IDLE_MS),
      isBackground: true,
    });
    this.#scavenge = new WorkerPool({ ...common, threads: scavengeThreads, isBackground: true });
    this.#backup = new WorkerPool({ ...common, threads: BACKUP_THREADS, isBackground: true });
    // The lane must keep up, so it gives way to no other work.
    this.#lane = new DigestLane(common.workerUrl ?? WORKER_URL, false);
    this.digests = availableParallelism() > 1 ? { ...nodeDigests, md5Behind: () => this.#lane.behind() } : nodeDigests;
  }

  /** Worker threads that exist now. */
  get workers(): number {
    return this.#pools().reduce((sum, pool) => sum + pool.workers, 0);
  }

  #pools(): WorkerPool[] {
    return [this.#index, this.#upkeep, this.#scavenge, this.#backup];
  }

  run(name: string, args: unknown, options: JobOptions = {}): Promise<unknown> {
    return this.#poolOf(name).run(name, args, options);
  }

  #poolOf(name: string): WorkerPool {
    if (name.startsWith(SCAVENGE_PREFIX)) return this.#scavenge;
    if (name.startsWith(BACKUP_PREFIX)) return this.#backup;
    return UPKEEP_JOBS.has(name) ? this.#upkeep : this.#index;
  }

  prepare(name?: string): void {
    (name === undefined ? this.#index : this.#poolOf(name)).prepare(name);
  }

  rest(): void {
    this.#collector?.begin();
  }

  async close(): Promise<void> {
    this.#collector?.cancel();
    await Promise.all([this.#lane.close(), ...this.#pools().map((pool) => pool.close())]);
  }
}
