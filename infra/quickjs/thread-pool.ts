import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { RoutingLimits } from '../../core/ports/routing-sandbox.ts';
import { SandboxThread } from './sandbox-thread.ts';
import type { Loss } from './sandbox-thread.ts';
import { compile } from './webassembly.ts';
import type { WasmModule } from './webassembly.ts';

/** Threads that stand ready beside those that work, so that the replacement of one that was ended costs no call its time. */
const SPARE_THREADS = 1;
/** After so many threads in a row that ended before they had started, no further one is tried until a call asks again. */
const START_FAILURES_MAX = 3;

export interface ThreadPoolOptions {
  readonly limits: RoutingLimits;
  readonly workerUrl: URL;
  readonly engineUrl: URL;
}

export interface PoolEvents {
  onIdle(): void;
  onLost(thread: SandboxThread, loss: Loss): void;
  /** No thread could be started. */
  onFailed(reason: string): void;
}

/** The worker threads, one more than work at a time. They start with the first call. */
export class ThreadPool {
  readonly #options: ThreadPoolOptions;
  readonly #events: PoolEvents;
  readonly #threads = new Set<SandboxThread>();
  #module: Promise<WasmModule> | null = null;
  #failures = 0;
  #isFilling = false;
  #isClosed = false;

  constructor(options: ThreadPoolOptions, events: PoolEvents) {
    this.#options = options;
    this.#events = events;
  }

  /** Threads that exist now. */
  get size(): number { return this.#threads.size; }

  /** Starts what is missing. */
  async fill(): Promise<void> {
    const { limits, workerUrl, engineUrl } = this.#options;
    const wanted = limits.workers + SPARE_THREADS;
    if (this.#isFilling || this.#isClosed || this.#threads.size >= wanted) return;
    this.#isFilling = true;
    try {
      // Compiled once; threads share the code.
      const module = await (this.#module ??= readFile(fileURLToPath(engineUrl)).then((bytes) => compile(bytes)));
      while (!this.#isClosed && this.#threads.size < wanted) {
        this.#threads.add(new SandboxThread(workerUrl, { module, limits }, { onIdle: () => this.#onIdle(), onGone: (thread, loss) => this.#onGone(thread, loss) }));
      }
    } catch (error) {
      this.#module = null;
      this.#events.onFailed(error instanceof Error ? error.message : String(error));
    } finally {
      this.#isFilling = false;
    }
  }

  /** An idle thread, if possible one that has the script prepared. */
  idle(connectorId: string, script: string): SandboxThread | null {
    let found: SandboxThread | null = null;
    for (const thread of this.#threads) {
      if (!thread.isIdle) continue;
      if (thread.knows(connectorId, script)) return thread;
      found ??= thread;
    }
    return found;
  }

  release(connectorId: string): void {
    for (const thread of this.#threads) thread.release(connectorId);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const threads = [...this.#threads];
    this.#threads.clear();
    await Promise.all(threads.map((thread) => thread.close()));
  }

  #onIdle(): void {
    this.#failures = 0;
    this.#events.onIdle();
  }

  #onGone(thread: SandboxThread, loss: Loss): void {
    this.#threads.delete(thread);
    this.#events.onLost(thread, loss);
    if (!loss.hadStarted) this.#failures++;
    if (this.#failures < START_FAILURES_MAX) return void this.fill();
    if (this.#threads.size > 0) return;
    this.#failures = 0;
    this.#events.onFailed(loss.reason);
  }
}
