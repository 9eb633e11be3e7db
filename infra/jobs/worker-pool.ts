import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { SkuaError } from '../../core/base/errors.ts';
import { jobAborted, jobsClosed } from '../../core/memory/inline-jobs.ts';
import type { JobOptions, JobProgress } from '../../core/ports/jobs.ts';
import { background } from '../../core/base/background.ts';
import { syncTurns } from '../fs/sync-turns.ts';
import { ABORT, GO_ON, errorOfImage } from './job-messages.ts';
import type { WorkerMessage, WorkerSetup } from './job-messages.ts';
import { environmentOf } from './worker-environment.ts';

/** Entry point of a worker, but for a bundle. */
export const WORKER_URL = new URL('./job-worker.ts', import.meta.url);
/** Jobs that may wait for a worker; one more is refused with `too_busy`. */
export const JOBS_QUEUED_MAX = 64;
/** Time in milliseconds after which a worker without work is ended. */
const IDLE_MS_MAX = 30_000;
/**
 * Heap of one worker in MiB, and what of it is for young objects. Large data lives in typed arrays, which do not count.
 */
const HEAP_MIB_MAX = 128;
const YOUNG_MIB_MAX = 6;
// What the command line sets for the main thread, whose heap has it already, would count for workers too, and overrule
// this or let each of them keep as much garbage.
setFlagsFromString('--max-semi-space-size=0');
setFlagsFromString('--initial-old-space-size=0');

interface WorkerPoolOptions {
  /** Folders of the FilesystemStorage that every worker builds for itself. */
  readonly root: string;
  readonly indexRoot: string;
  /** Most workers at a time. */
  readonly threads: number;
  /**
   * Their threads make their file calls themselves, and give way to others when the processor is busy. Default false.
   */
  readonly isBackground?: boolean;
  /** Nothing is served beside the threads: they give way to no other work. Default false. */
  readonly isOffline?: boolean | undefined;
  readonly idleMs?: number | undefined;
  /** Entry point of a worker, where a bundle has moved it. */
  readonly workerUrl?: URL | undefined;
  /** Module whose `JOBS` replace those of the core, for tests. */
  readonly jobsUrl?: URL | undefined;
}

/**
 * Worker threads, which are started when there is work and ended when there has been none for a while, and the jobs
 * that wait for them.
 */
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
  get workers(): number {
    return this.#workers.size;
  }

  async run(name: string, args: unknown, options: JobOptions): Promise<unknown> {
    const { signal, onProgress } = options;
    if (this.#isClosed) throw jobsClosed();
    if (signal?.aborted === true) throw jobAborted(name);
    if (this.#queue.length >= JOBS_QUEUED_MAX) {
      throw new SkuaError(
        'too_busy',
        `${JOBS_QUEUED_MAX} jobs are already waiting for a worker thread: try again later.`,
        { limit: JOBS_QUEUED_MAX },
      );
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

  /** Starts a worker if there is none, with the code of this job. It goes again when no work comes. */
  prepare(expectedJob?: string): void {
    if (this.#isClosed || this.#workers.size > 0) return;
    const worker = this.#idleWorker(expectedJob)!;
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

  #idleWorker(expectedJob?: string): PooledWorker | null {
    for (const worker of this.#workers) if (worker.task === null) return worker;
    if (this.#workers.size >= this.#options.threads) return null;
    const { root, indexRoot, jobsUrl, isBackground = false, isOffline = false } = this.#options;
    const url = this.#options.workerUrl ?? WORKER_URL;
    const worker = new PooledWorker(
      url,
      { root, indexRoot, isBackground, givesWay: isBackground && !isOffline, jobsUrl: jobsUrl?.href, expectedJob },
      (idle) => this.#rest(idle),
      (gone) => this.#forget(gone),
    );
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

/** A job that waits or runs. */
interface Task {
  readonly name: string;
  readonly args: unknown;
  readonly onProgress: ((progress: JobProgress) => void) | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** One worker thread and the job it runs. `onIdle` is called when a job has ended, `onGone` when the thread has. */
class PooledWorker {
  readonly #worker: Worker;
  readonly #signal = new Int32Array(new SharedArrayBuffer(4));
  readonly #onIdle: (worker: PooledWorker) => void;
  readonly #onGone: (worker: PooledWorker) => void;
  #deathCause: unknown = undefined;
  task: Task | null = null;

  constructor(
    workerUrl: URL,
    setup: Omit<WorkerSetup, 'signal' | 'syncTurns' | 'workerUrl'>,
    onIdle: (worker: PooledWorker) => void,
    onGone: (worker: PooledWorker) => void,
  ) {
    this.#onIdle = onIdle;
    this.#onGone = onGone;
    const workerData: WorkerSetup = {
      ...setup,
      signal: this.#signal,
      syncTurns: syncTurns.cells,
      workerUrl: workerUrl.href,
    };
    this.#worker = new Worker(workerUrl, {
      workerData,
      env: environmentOf(workerUrl),
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX, maxYoungGenerationSizeMb: YOUNG_MIB_MAX },
    });
    this.#worker.on('message', (message: WorkerMessage) => this.#take(message));
    this.#worker.on('messageerror', (error) => this.#end((task) => task.reject(died(task, error))));
    this.#worker.on('error', (error) => {
      this.#deathCause = error;
    });
    this.#worker.on('exit', (exitCode) => {
      const task = this.task;
      this.task = null;
      this.#onGone(this);
      task?.reject(died(task, this.#deathCause ?? `exit code ${exitCode}`));
    });
  }

  run(task: Task): void {
    this.task = task;
    Atomics.store(this.#signal, 0, GO_ON);
    // A running job keeps the process alive, an idle worker does not.
    this.#worker.ref();
    try {
      this.#worker.postMessage({ name: task.name, args: task.args });
    } catch (error) {
      this.#end(() => task.reject(error));
    }
  }

  /** It has nothing to do yet, and keeps no process alive. */
  rest(): void {
    this.#worker.unref();
  }

  /** Ends the running job at its next checkpoint. */
  abort(): void {
    Atomics.store(this.#signal, 0, ABORT);
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  #take(message: WorkerMessage): void {
    switch (message.kind) {
      case 'progress':
        return this.task?.onProgress?.(message.progress);
      case 'done':
        return this.#end((task) => task.resolve(message.result));
      case 'failed':
        return this.#end((task) => task.reject(errorOfImage(message.error)));
    }
  }

  #end(settle: (task: Task) => void): void {
    const task = this.task;
    if (task === null) return;
    this.task = null;
    this.#worker.unref();
    settle(task);
    this.#onIdle(this);
  }
}

function died(task: Task, cause: unknown): SkuaError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new SkuaError(
    'io_error',
    `The worker thread that ran the job ${task.name} ended unexpectedly: ${why}. Run it again; if it happens again, give the process more memory.`,
    { job: task.name },
    cause,
  );
}
