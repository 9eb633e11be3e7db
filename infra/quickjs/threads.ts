import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { RoutingLimits } from '../../core/ports/routing-sandbox.ts';
import { sharedNowMs, SIGNAL_BYTES, ThreadSignal } from './script-messages.ts';
import type { FromWorker, Run, RunResult, SandboxSetup, ToWorker, WasmModule } from './script-messages.ts';
import { background } from '../../core/base/background.ts';

const { compile } = (globalThis as unknown as { WebAssembly: { compile(bytes: Uint8Array): Promise<WasmModule> } })
  .WebAssembly;

/**
 * Threads that stand ready beside those that work, so that the replacement of one that was ended costs no call its
 * time.
 */
const SPARE_THREADS = 1;
/**
 * After so many threads in a row that ended before they had started, no further one is tried until a call asks again.
 */
const START_FAILURES_MAX = 3;

interface ThreadPoolOptions {
  readonly limits: RoutingLimits;
  readonly workerUrl: URL;
  readonly engineUrl: URL;
}

interface PoolEvents {
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
  get size(): number {
    return this.#threads.size;
  }

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
        this.#threads.add(
          new SandboxThread(
            workerUrl,
            { module, limits },
            { onIdle: () => this.#onIdle(), onGone: (thread, loss) => this.#onGone(thread, loss) },
          ),
        );
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

/** Time in milliseconds that a script gets beyond its limit before its thread is ended. */
const GRACE_MS = 50;
/** Time in milliseconds between two looks at a script that is late. */
const LOOK_MS = 25;
/** A thread that has to wait for the processor may take so many times the limit by the clock. */
const LIMITS_MAX = 5;
/** Scripts that one thread keeps prepared. */
const SCRIPTS_MAX = 64;
const HEAP_MIB_MAX = 64;
const YOUNG_MIB_MAX = 4;
/** The engine's own limit of its stack comes first. */
const STACK_MIB = 8;
/** Numbers of runs are 31 bits long and begin again. */
const RUN_MAX = 2 ** 30;
/** Where the code of workers is kept as Node.js compiles it, so that TypeScript is stripped of its types once. */
const CODE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/skua', import.meta.url));

interface ThreadEvents {
  /** The thread takes runs now: it has started, or has ended what it was given. */
  onIdle(thread: SandboxThread): void;
  /** The thread is no more, and took this with it, if anything. */
  onGone(thread: SandboxThread, loss: Loss): void;
}

export interface Loss {
  /**
   * Index of the run during which it ended; -1 when there was none. The runs behind it were not begun; those before it
   * are unanswered and can be run again.
   */
  readonly index: number;
  readonly cause: 'timeout' | 'died';
  readonly reason: string;
  readonly hadStarted: boolean;
}

/** One worker thread, the scripts that it has, and its watchdog: what runs in the thread cannot be trusted to end. */
export class SandboxThread {
  readonly #worker: Worker;
  readonly #signal: ThreadSignal;
  readonly #timeoutMs: number;
  readonly #events: ThreadEvents;
  /** Script by connector, the one used last at the end. */
  readonly #scripts = new Map<string, string>();
  #onResults: ((results: readonly RunResult[]) => void) | null = null;
  #firstRun = 1;
  #runCount = 0;
  #watchdog: NodeJS.Timeout | undefined;
  #hasStarted = false;
  #isGone = false;
  #deathCause = 'the thread ended by itself';

  constructor(workerUrl: URL, setup: Omit<SandboxSetup, 'signal'>, events: ThreadEvents) {
    const signal = new SharedArrayBuffer(SIGNAL_BYTES);
    this.#signal = new ThreadSignal(signal);
    this.#timeoutMs = setup.limits.timeoutMs;
    this.#events = events;
    const workerData: SandboxSetup = { ...setup, signal };
    this.#worker = new Worker(workerUrl, {
      workerData,
      // Neither secrets of the environment nor options of the process, some of which fit no worker.
      execArgv: [],
      env: workerUrl.pathname.endsWith('.ts') ? { NODE_COMPILE_CACHE: CODE_CACHE } : {},
      resourceLimits: {
        maxOldGenerationSizeMb: HEAP_MIB_MAX,
        maxYoungGenerationSizeMb: YOUNG_MIB_MAX,
        stackSizeMb: STACK_MIB,
      },
    });
    this.#worker.on('message', (message: FromWorker) => this.#take(message));
    this.#worker.on('error', (error: unknown) => {
      this.#deathCause = error instanceof Error ? error.message : String(error);
    });
    this.#worker.on('exit', () => this.#end('died', this.#deathCause));
  }

  get isIdle(): boolean {
    return this.#hasStarted && this.#onResults === null && !this.#isGone;
  }

  /** Whether a run of this script needs no preparation here. */
  knows(connectorId: string, script: string): boolean {
    return this.#scripts.get(connectorId) === script;
  }

  /** Only when idle. `onResults` is not called when the thread goes. */
  run(
    connectorId: string,
    script: string,
    runs: readonly Run[],
    onResults: (results: readonly RunResult[]) => void,
  ): void {
    const isKnown = this.knows(connectorId, script);
    this.#scripts.delete(connectorId);
    this.#scripts.set(connectorId, script);
    if (this.#scripts.size > SCRIPTS_MAX) this.release(this.#scripts.keys().next().value!);
    this.#firstRun = this.#firstRun + this.#runCount < RUN_MAX ? this.#firstRun + this.#runCount : 1;
    this.#runCount = runs.length;
    this.#onResults = onResults;
    this.#worker.ref();
    this.#post({ kind: 'run', connectorId, script: isKnown ? null : script, firstRun: this.#firstRun, runs });
    this.#watch(this.#timeoutMs + GRACE_MS);
  }

  release(connectorId: string): void {
    if (this.#scripts.delete(connectorId)) this.#post({ kind: 'release', connectorId });
  }

  async close(): Promise<void> {
    this.#isGone = true;
    clearTimeout(this.#watchdog);
    await this.#worker.terminate();
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #take(message: FromWorker): void {
    if (this.#isGone) return;
    clearTimeout(this.#watchdog);
    // A thread without work keeps no process alive.
    this.#worker.unref();
    const onResults = this.#onResults;
    this.#onResults = null;
    if (message.kind === 'ready') this.#hasStarted = true;
    else onResults?.(message.results);
    this.#events.onIdle(this);
  }

  #watch(ms: number): void {
    this.#watchdog = setTimeout(() => this.#look(), ms);
  }

  /**
   * Looks at the run under way, never at how long an answer is in coming: the main thread may be late itself. Its end
   * is decided by the processor time that it has used, which can be read from outside whatever the thread does.
   */
  #look(): void {
    const { running, startedMs, startedCpuMs } = this.#signal;
    if (running === 0) return this.#watch(this.#timeoutMs + GRACE_MS);
    const elapsedMs = sharedNowMs() - startedMs;
    if (elapsedMs < this.#timeoutMs + GRACE_MS) return this.#watch(this.#timeoutMs + GRACE_MS - elapsedMs);
    if (elapsedMs >= LIMITS_MAX * this.#timeoutMs + GRACE_MS) return this.#kill();
    this.#watch(LOOK_MS);
    // Before Node.js 24.6 a thread's processor time can't be read from outside: then the clock decides, above.
    if (this.#worker.cpuUsage === undefined) return;
    this.#worker.cpuUsage().then(
      ({ user, system }) => {
        const usedMs = (user + system) / 1e3 - startedCpuMs;
        if (usedMs >= this.#timeoutMs + GRACE_MS / 2 && this.#signal.running === running && !this.#isGone) this.#kill();
      },
      () => {
        /* The thread has ended, which its own event reports. */
      },
    );
  }

  #kill(): void {
    this.#end(
      'timeout',
      `The script ran longer than the ${this.#timeoutMs} ms that it may take, in a built-in function that cannot be interrupted.`,
    );
    background(this.#worker.terminate());
  }

  #end(cause: Loss['cause'], reason: string): void {
    if (this.#isGone) return;
    this.#isGone = true;
    clearTimeout(this.#watchdog);
    const index = this.#onResults === null ? -1 : this.#signal.running - this.#firstRun;
    this.#onResults = null;
    this.#events.onGone(this, {
      index: index >= 0 && index < this.#runCount ? index : -1,
      cause,
      reason,
      hadStarted: this.#hasStarted,
    });
  }
}
