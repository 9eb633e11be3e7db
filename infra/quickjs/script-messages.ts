import { openSync, readSync } from 'node:fs';
import type { RoutingLimits, RoutingResult } from '../../core/ports/routing-sandbox.ts';

/** A compiled module of WebAssembly, of which the types of Node.js know nothing. */
export interface WasmModule {
  readonly __module?: never;
}

/** What a worker thread is started with. */
export interface SandboxSetup {
  readonly module: WasmModule;
  readonly limits: RoutingLimits;
  readonly signal: SharedArrayBuffer;
}

/** One script run. */
export interface Run {
  readonly kind: 'route' | 'check';
  readonly requestJson: string;
  readonly bodyLength: number;
  readonly nowMs: number;
  readonly seed: number;
}

/** Of a check, too, for which `skipped` means that all is well. */
export type RunResult = Exclude<RoutingResult, { kind: 'unavailable' }>;

/** To a worker. */
export type ToWorker =
  | {
      readonly kind: 'run';
      readonly connectorId: string;
      /** Null when the worker has it. */
      readonly script: string | null;
      /** Number of the first run in what the worker signals; the others follow. */
      readonly firstRun: number;
      readonly runs: readonly Run[];
    }
  | { readonly kind: 'release'; readonly connectorId: string };

/** From a worker. Fewer results than runs: the others were not begun, for the worker has been busy long enough. */
export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'results'; readonly results: readonly RunResult[] };

/** Length in bytes of the shared memory of a signal: a cell of an Int32Array, and two times as Float64. */
export const SIGNAL_BYTES = 24;
const TIMES_OFFSET = 8;

/** A clock that never goes back and is the same in all threads, in milliseconds. */
export function sharedNowMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** Processor time of this thread in milliseconds. */
export function threadCpuMs(): number {
  // Node.js reports it from 23.9 on.
  if (process.threadCpuUsage === undefined) return systemThreadCpuMs();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1e3;
}

/**
 * The same as Linux reports it. Where the system has no such file the clock stands in, so that a thread's waiting for
 * its turn counts too.
 */
export function systemThreadCpuMs(): number {
  if (schedule === undefined) schedule = openSchedule();
  if (schedule === null) return performance.now();
  const length = readSync(schedule, SCHEDULE, 0, SCHEDULE.length, 0);
  return Number.parseInt(SCHEDULE.toString('latin1', 0, length), 10) / 1e6;
}

const SCHEDULE = Buffer.alloc(64);
/**
 * File in which the system keeps the nanoseconds that this thread has run; opened once, it stays that of this thread.
 * Null where there is none.
 */
let schedule: number | null | undefined;

function openSchedule(): number | null {
  try {
    return openSync('/proc/thread-self/schedstat', 'r');
  } catch {
    return null;
  }
}

/** Age in milliseconds up to which a processor time counts as that of now. */
const RECENT_MS = 0.5;
let recentMs = -Infinity;
let recentCpuMs = 0;

/**
 * Processor time of this thread in milliseconds, now or up to RECENT_MS ago. The system takes longer to tell it than a
 * tenth of a short run, and a limit of milliseconds need not know better when a run began.
 */
export function recentThreadCpuMs(): number {
  const now = performance.now();
  if (now - recentMs >= RECENT_MS) {
    recentMs = now;
    recentCpuMs = threadCpuMs();
  }
  return recentCpuMs;
}

/** What a worker thread tells its watchdog about the script that runs, which may give no control back. */
export class ThreadSignal {
  readonly #running: Int32Array;
  readonly #times: Float64Array;

  constructor(shared: SharedArrayBuffer) {
    this.#running = new Int32Array(shared, 0, 1);
    this.#times = new Float64Array(shared, TIMES_OFFSET, 2);
  }

  /** Number of the run under way, 0 when there is none. */
  get running(): number {
    return Atomics.load(this.#running, 0);
  }
  /** When the run under way began, by `sharedNowMs`. */
  get startedMs(): number {
    return this.#times[0]!;
  }
  /** Processor time of the thread when the run under way began. */
  get startedCpuMs(): number {
    return this.#times[1]!;
  }

  begin(run: number): void {
    this.#times[0] = sharedNowMs();
    this.#times[1] = recentThreadCpuMs();
    Atomics.store(this.#running, 0, run);
  }

  end(): void {
    Atomics.store(this.#running, 0, 0);
  }
}
