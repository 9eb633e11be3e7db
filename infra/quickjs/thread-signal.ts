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
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1e3;
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
  get running(): number { return Atomics.load(this.#running, 0); }
  /** When the run under way began, by `sharedNowMs`. */
  get startedMs(): number { return this.#times[0]!; }
  /** Processor time of the thread when the run under way began. */
  get startedCpuMs(): number { return this.#times[1]!; }

  begin(run: number): void {
    this.#times[0] = sharedNowMs();
    this.#times[1] = threadCpuMs();
    Atomics.store(this.#running, 0, run);
  }

  end(): void { Atomics.store(this.#running, 0, 0); }
}
