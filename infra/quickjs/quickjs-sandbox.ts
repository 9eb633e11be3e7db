import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { SkuaError } from '../../core/base/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { RoutingCall, RoutingLimits, RoutingResult, RoutingSandbox } from '../../core/ports/routing-sandbox.ts';
import { systemClock } from '../system-clock.ts';
import { ConnectorQueue, Turns } from './connector-queue.ts';
import type { Call } from './connector-queue.ts';
import type { Run, RunResult } from './script-messages.ts';
import type { Loss, SandboxThread } from './threads.ts';
import { cut } from './script-error.ts';
import { ThreadPool } from './threads.ts';
import { background } from '../../core/base/background.ts';

/** Checks queue up as if they were a connector, whose id no connector can have. */
const CHECKS = '\0checks';
/** The pause, in milliseconds, that a caller is advised when too many calls wait. */
const RETRY_AFTER_MS = 1000;

/** Two workers let one connector's scripts run while another's are stuck. */
const WORKERS_MIN = 2;

export interface QuickJsSandboxOptions {
  /** `workers` counts as at least 2. */
  readonly limits: RoutingLimits;
  /** Entry point of a worker, where a bundle has moved it. */
  readonly workerUrl?: URL | undefined;
  /** The engine's WebAssembly, where the package has been moved. */
  readonly engineUrl?: URL | undefined;
  readonly clock?: Clock | undefined;
}

interface Batch {
  readonly queue: ConnectorQueue;
  readonly calls: readonly Call[];
}

/** Routing scripts in QuickJS, compiled to WebAssembly, in worker threads. */
export class QuickJsSandbox implements RoutingSandbox {
  readonly #limits: RoutingLimits;
  readonly #clock: Clock;
  readonly #pool: ThreadPool;
  readonly #turns: Turns;
  readonly #queues = new Map<string, ConnectorQueue>();
  readonly #batches = new Map<SandboxThread, Batch>();
  #waiting = 0;
  #isToDispatch = false;
  #isClosed = false;

  constructor(options: QuickJsSandboxOptions) {
    const limits = { ...options.limits, workers: Math.max(WORKERS_MIN, options.limits.workers) };
    this.#limits = limits;
    this.#clock = options.clock ?? systemClock;
    this.#turns = new Turns(limits.workers);
    const workerUrl = options.workerUrl ?? new URL('./script-worker.ts', import.meta.url);
    const engineUrl =
      options.engineUrl ?? pathToFileURL(createRequire(import.meta.url).resolve('quickjs-wasi/quickjs.wasm'));
    this.#pool = new ThreadPool(
      { limits, workerUrl, engineUrl },
      {
        onIdle: () => this.#dispatch(),
        onLost: (thread, loss) => this.#lose(thread, loss),
        onFailed: (reason) => this.#refuseAll(reason),
      },
    );
  }

  /** Worker threads that exist now. */
  get threads(): number {
    return this.#pool.size;
  }

  async check(script: string): Promise<string | null> {
    const answer = await this.#run(CHECKS, script, {
      kind: 'check',
      requestJson: '',
      bodyLength: 0,
      nowMs: this.#clock.nowMs(),
      seed: 0,
    });
    return 'reason' in answer ? answer.reason : null;
  }

  async route(call: RoutingCall): Promise<RoutingResult> {
    const { connectorId, script, requestJson, bodyLength = 0, nowMs, seed } = call;
    return this.#run(connectorId, script, { kind: 'route', requestJson, bodyLength, nowMs, seed });
  }

  release(connectorId: string): void {
    this.#pool.release(connectorId);
    const queue = this.#queues.get(connectorId);
    if (queue !== undefined && queue.length === 0 && !queue.isRunning) this.#queues.delete(connectorId);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const calls = [...this.#batches.values()]
      .flatMap((batch) => batch.calls)
      .concat([...this.#queues.values()].flatMap((queue) => queue.takeAll()));
    this.#batches.clear();
    this.#queues.clear();
    this.#waiting = 0;
    for (const call of calls) call.reject(closed());
    await this.#pool.close();
  }

  async #run(connectorId: string, script: string, run: Run): Promise<RoutingResult> {
    if (this.#isClosed) throw closed();
    const queue = this.#queueOf(connectorId);
    const pausedMs = connectorId === CHECKS ? 0 : queue.pausedForMs(this.#clock.monotonicMs());
    if (pausedMs > 0) return paused(pausedMs);
    if (this.#waiting >= this.#limits.callsQueuedMax || queue.length >= this.#limits.connectorCallsQueuedMax) {
      return {
        kind: 'unavailable',
        reason: 'Too many calls are waiting for their scripts to run.',
        retryAfterMs: RETRY_AFTER_MS,
      };
    }
    const { promise, resolve, reject } = Promise.withResolvers<RoutingResult>();
    queue.push({ script, run, resolve, reject });
    this.#waiting++;
    this.#turns.add(queue);
    background(this.#pool.fill());
    this.#dispatchSoon();
    return promise;
  }

  #queueOf(connectorId: string): ConnectorQueue {
    let queue = this.#queues.get(connectorId);
    if (queue === undefined) this.#queues.set(connectorId, (queue = new ConnectorQueue(connectorId)));
    return queue;
  }

  /**
   * Behind all that this turn of the event loop brings, so that calls which come together go in one message: each costs
   * both threads a turn.
   */
  #dispatchSoon(): void {
    if (this.#isToDispatch) return;
    this.#isToDispatch = true;
    setImmediate(() => {
      this.#isToDispatch = false;
      this.#dispatch();
    });
  }

  /** Gives work to idle threads, as long as a queue has its turn. */
  #dispatch(): void {
    if (this.#isClosed) return;
    for (let queue = this.#turns.next(); queue !== null; queue = this.#turns.next()) {
      const thread = this.#pool.idle(queue.connectorId, queue.nextScript);
      if (thread === null) return;
      const calls = queue.takeBatch();
      this.#waiting -= calls.length;
      this.#turns.begin(queue);
      this.#batches.set(thread, { queue, calls });
      thread.run(
        queue.connectorId,
        calls[0]!.script,
        calls.map((call) => call.run),
        (results) => this.#settle(thread, results),
      );
    }
  }

  #settle(thread: SandboxThread, results: readonly RunResult[]): void {
    const batch = this.#batches.get(thread);
    if (batch === undefined) return;
    const { queue, calls } = batch;
    results.forEach((result, i) => this.#answer(queue, calls[i]!, result, false));
    this.#end(thread, batch, calls.slice(results.length));
  }

  /**
   * The call during which the thread ended has its answer in that; the others run in another thread. Running twice
   * shows nowhere, for scripts have no effects.
   */
  #lose(thread: SandboxThread, loss: Loss): void {
    const batch = this.#batches.get(thread);
    if (batch === undefined) return;
    const { queue, calls } = batch;
    const lost = Math.max(0, loss.index);
    const result: RunResult =
      loss.cause === 'timeout'
        ? { kind: 'timed-out', reason: loss.reason }
        : { kind: 'failed', reason: cut(`The thread in which the script ran has ended: ${loss.reason}.`), cpuMs: 0 };
    // Those before it ended in time, or the thread would have given the others back.
    if (lost > 0) queue.noteInTime();
    this.#answer(queue, calls[lost]!, result, true);
    this.#end(
      thread,
      batch,
      calls.filter((_, i) => i !== lost),
    );
  }

  #answer(queue: ConnectorQueue, call: Call, result: RunResult, hasEndedThread: boolean): void {
    queue.note(result, this.#clock.monotonicMs(), hasEndedThread);
    call.resolve(result);
  }

  #end(thread: SandboxThread, { queue }: Batch, unanswered: readonly Call[]): void {
    this.#batches.delete(thread);
    queue.unshift(unanswered);
    this.#waiting += unanswered.length;
    this.#refuseWhilePaused(queue);
    this.#turns.end(queue);
    if (queue.isForgettable && this.#queues.get(queue.connectorId) === queue) this.#queues.delete(queue.connectorId);
    this.#dispatch();
  }

  #refuseWhilePaused(queue: ConnectorQueue): void {
    const pausedMs = queue.connectorId === CHECKS ? 0 : queue.pausedForMs(this.#clock.monotonicMs());
    if (pausedMs === 0) return;
    const calls = queue.takeAll();
    this.#waiting -= calls.length;
    for (const call of calls) call.resolve(paused(pausedMs));
  }

  #refuseAll(reason: string): void {
    for (const queue of this.#queues.values()) {
      this.#turns.remove(queue);
      for (const call of queue.takeAll()) {
        call.resolve({
          kind: 'unavailable',
          reason: cut(`No thread could be started for scripts: ${reason}.`),
          retryAfterMs: RETRY_AFTER_MS,
        });
      }
    }
    this.#waiting = 0;
  }
}

function paused(ms: number): RoutingResult {
  return {
    kind: 'unavailable',
    reason: 'The last runs of this script all exceeded the time limit.',
    retryAfterMs: Math.ceil(ms),
  };
}

function closed(): SkuaError {
  return new SkuaError('aborted', "Scripts can't be run: the node is stopping.", {});
}
