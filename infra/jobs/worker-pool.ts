import { SkuaError } from '../../core/base/errors.ts';
import { jobAborted, jobsClosed } from '../../core/memory/inline-jobs.ts';
import type { JobOptions } from '../../core/ports/jobs.ts';
import { PooledWorker } from './pooled-worker.ts';
import type { Task } from './pooled-worker.ts';
import { background } from '../../core/base/background.ts';

/** Entry point of a worker, but for a bundle. */
export const WORKER_URL = new URL('./worker.ts', import.meta.url);
/** Jobs that may wait for a worker; one more is refused with `too_busy`. */
export const JOBS_QUEUED_MAX = 64;
/** Time in milliseconds after which a worker without work is ended. */
const IDLE_MS_MAX = 30_000;

interface WorkerPoolOptions {
  /** Folders of the FilesystemStorage that every worker builds for itself. */
  readonly root: string;
  readonly indexRoot: string;
  /** Most workers at a time. */
  readonly threads: number;
  /** Their threads make their file calls themselves, and give way to others when the processor is busy. Default false. */
  readonly isBackground?: boolean;
  /** Nothing is served beside them: they give way to nobody. Default false. */
  readonly isOffline?: boolean | undefined;
  readonly idleMs?: number | undefined;
  /** Entry point of a worker, where a bundle has moved it. */
  readonly workerUrl?: URL | undefined;
  /** Module whose `JOBS` replace those of the core, for tests. */
  readonly jobsUrl?: URL | undefined;
}

/** Worker threads, which are started when there is work and ended when there has been none for a while, and the jobs that wait for them. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #workers = new Set<PooledWorker>();
  readonly #queue: Task[] = [];
  readonly #running = new Set<Promise<unknown>>();
  #idleTimers = new Map<PooledWorker, NodeJS.Timeout>();
  #isClosed = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  /** Worker threads that exist now. */
  get workers(): number { return this.#workers.size; }

  async run(name: string, args: unknown, options: JobOptions): Promise<unknown> {
    const { signal, onProgress } = options;
    if (this.#isClosed) throw jobsClosed();
    if (signal?.aborted === true) throw jobAborted(name);
    if (this.#queue.length >= JOBS_QUEUED_MAX) {
      throw new SkuaError('too_busy', `${JOBS_QUEUED_MAX} jobs are already waiting for a worker thread: try again later.`, { limit: JOBS_QUEUED_MAX });
    }
    const { promise: ended, resolve, reject } = Promise.withResolvers<unknown>();
    const task: Task = { name, args, onProgress, resolve, reject };
    const onAbort = () => this.#abort(task);
    signal?.addEventListener('abort', onAbort);
    this.#running.add(ended);
    this.#queue.push(task);
    this.#dispatch();
    try {
      return await ended;
    } finally {
      this.#running.delete(ended);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Starts a worker if there is none. It goes again when no work comes. */
  prepare(): void {
    if (this.#isClosed || this.#workers.size > 0) return;
    const worker = this.#idleWorker()!;
    worker.rest();
    this.#rest(worker);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const task of this.#queue.splice(0)) task.reject(jobAborted(task.name));
    for (const worker of this.#workers) worker.abort();
    await Promise.allSettled(this.#running);
    for (const timer of this.#idleTimers.values()) clearTimeout(timer);
    this.#idleTimers.clear();
    await Promise.all([...this.#workers].map((worker) => worker.terminate()));
  }

  #abort(task: Task): void {
    const at = this.#queue.indexOf(task);
    if (at >= 0) {
      this.#queue.splice(at, 1);
      task.reject(jobAborted(task.name));
      return;
    }
    for (const worker of this.#workers) if (worker.task === task) worker.abort();
  }

  /** Gives waiting jobs to idle workers, and to new ones while there may be more. */
  #dispatch(): void {
    while (this.#queue.length > 0) {
      const worker = this.#idleWorker();
      if (worker === null) return;
      clearTimeout(this.#idleTimers.get(worker));
      this.#idleTimers.delete(worker);
      worker.run(this.#queue.shift()!);
    }
  }

  #idleWorker(): PooledWorker | null {
    for (const worker of this.#workers) if (worker.task === null) return worker;
    if (this.#workers.size >= this.#options.threads) return null;
    const { root, indexRoot, jobsUrl, isBackground = false, isOffline = false } = this.#options;
    const url = this.#options.workerUrl ?? WORKER_URL;
    const worker = new PooledWorker(url, { root, indexRoot, isBackground, givesWay: isBackground && !isOffline, jobsUrl: jobsUrl?.href }, (idle) => this.#rest(idle), (gone) => this.#forget(gone));
    this.#workers.add(worker);
    return worker;
  }

  /** Called when a worker's job has ended. */
  #rest(worker: PooledWorker): void {
    const timer = setTimeout(() => {
      this.#forget(worker);
      background(worker.terminate());
    }, this.#options.idleMs ?? IDLE_MS_MAX);
    timer.unref();
    this.#idleTimers.set(worker, timer);
    this.#dispatch();
  }

  #forget(worker: PooledWorker): void {
    clearTimeout(this.#idleTimers.get(worker));
    this.#idleTimers.delete(worker);
    this.#workers.delete(worker);
    if (!this.#isClosed) this.#dispatch();
  }
}
