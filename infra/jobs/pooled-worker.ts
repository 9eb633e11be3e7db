import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { SkuaError } from '../../core/base/errors.ts';
import type { JobProgress } from '../../core/ports/jobs.ts';
import { syncTurns } from '../fs/sync-turns.ts';
import { ABORT, GO_ON, errorOfImage } from './messages.ts';
import type { WorkerMessage, WorkerSetup } from './messages.ts';
import { environmentOf } from './worker-environment.ts';

/** Heap of one worker in MiB, and what of it is for young objects. Large data lives in typed arrays, which do not count. */
const HEAP_MIB_MAX = 128;
const YOUNG_MIB_MAX = 6;
// What the command line sets for the main thread, whose heap has it already, would count for workers too and overrule this.
setFlagsFromString('--max-semi-space-size=0');

/** A job that waits or runs. */
export interface Task {
  readonly name: string;
  readonly args: unknown;
  readonly onProgress: ((progress: JobProgress) => void) | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** One worker thread and the job it runs. `onIdle` is called when a job has ended, `onGone` when the thread has. */
export class PooledWorker {
  readonly #worker: Worker;
  readonly #signal = new Int32Array(new SharedArrayBuffer(4));
  readonly #onIdle: (worker: PooledWorker) => void;
  readonly #onGone: (worker: PooledWorker) => void;
  #deathCause: unknown = undefined;
  task: Task | null = null;

  constructor(workerUrl: URL, setup: Omit<WorkerSetup, 'signal' | 'syncTurns' | 'workerUrl'>, onIdle: (worker: PooledWorker) => void, onGone: (worker: PooledWorker) => void) {
    this.#onIdle = onIdle;
    this.#onGone = onGone;
    const workerData: WorkerSetup = { ...setup, signal: this.#signal, syncTurns: syncTurns.cells, workerUrl: workerUrl.href };
    this.#worker = new Worker(workerUrl, { workerData, env: environmentOf(workerUrl), resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX, maxYoungGenerationSizeMb: YOUNG_MIB_MAX } });
    this.#worker.on('message', (message: WorkerMessage) => this.#take(message));
    this.#worker.on('messageerror', (error) => this.#end((task) => task.reject(died(task, error))));
    this.#worker.on('error', (error) => { this.#deathCause = error; });
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
      case 'progress': return this.task?.onProgress?.(message.progress);
      case 'done': return this.#end((task) => task.resolve(message.result));
      case 'failed': return this.#end((task) => task.reject(errorOfImage(message.error)));
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
  return new SkuaError('io_error', `The worker thread that ran the job ${task.name} ended unexpectedly: ${why}. Run it again; if it happens again, give the process more memory.`, { job: task.name }, cause);
}
