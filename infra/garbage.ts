import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** In milliseconds; longer than a worker that has written a table stays, which holds the table's memory too. */
const IDLE_MS = 35_000;
/** Share of that time in which the thread may have had something to do. */
const BUSY_MAX = 0.05;

type Collect = (options: { readonly type: 'major' }) => void;

let collect: Collect | null = null;

/** Collects the garbage of this thread's heap. It halts the thread, for some 10 ms for each 10 MiB that are in use. */
export function collectGarbage(): void {
  if (collect === null) {
    // Only contexts that are made meanwhile have the function.
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as Collect;
    setFlagsFromString('--no-expose-gc');
  }
  collect({ type: 'major' });
}

/**
 * Collects the garbage of a process that is ours alone, once each time it has come to rest: V8 begins no collection
 * while nothing is allocated, so that what was let go would stay for hours. One that has something to do is not halted:
 * it allocates, and V8 collects.
 */
export class IdleCollector {
  readonly #collect: () => void;
  readonly #utilization: (since?: EventLoopUtilization) => EventLoopUtilization;
  #timer: NodeJS.Timeout | undefined;

  /** `utilization`: that of this thread since it began, or since an earlier answer. */
  constructor(
    collect = collectGarbage,
    utilization = (since?: EventLoopUtilization) => performance.eventLoopUtilization(since),
  ) {
    this.#collect = collect;
    this.#utilization = utilization;
  }

  /** Memory has been let go. */
  begin(): void {
    this.cancel();
    const before = this.#utilization();
    this.#timer = setTimeout(() => {
      if (this.#utilization(before).utilization <= BUSY_MAX) this.#collect();
    }, IDLE_MS);
    this.#timer.unref();
  }

  /** Nothing is collected until `begin`. */
  cancel(): void {
    clearTimeout(this.#timer);
  }
}
