import type { Clock } from '../../core/ports/clock.ts';

interface Sleeper {
  readonly due: number;
  readonly wake: () => void;
}

/** Turns of the event loop that work which yields again and again gets before time goes on all the same. */
const WORKING_TURNS_MAX = 1_000;

/**
 * Time driven by hand. Wall and monotonic time move together with `advance`; `setNow` moves the wall clock alone. Who
 * sleeps is known to the clock alone: Node.js keeps a signal of several (`AbortSignal.any`) for as long as somebody
 * listens to it, and with it would keep all of a store that lost its power in its sleep.
 */
export class ManualClock implements Clock {
  #now: number;
  #monotonic = 0;
  #sleepers: Sleeper[] = [];
  /** Yields so far. */
  #yields = 0;
  readonly #yieldBy: 'macrotask' | 'microtask';

  constructor(nowMs = Date.UTC(2024, 0, 1), yieldBy: 'macrotask' | 'microtask' = 'macrotask') {
    this.#now = nowMs;
    this.#yieldBy = yieldBy;
  }

  nowMs(): number {
    return this.#now;
  }
  monotonicMs(): number {
    return this.#monotonic;
  }
  /** How many are asleep. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  /** Sets the wall clock, as an operator or a time service does; nobody wakes. */
  setNow(nowMs: number): void {
    this.#now = nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper: Sleeper = {
        due: this.#monotonic + ms,
        wake: () => {
          this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
          signal?.removeEventListener('abort', abort);
          resolve();
        },
      };
      const abort = wakes(new WeakRef(sleeper));
      this.#sleepers.push(sleeper);
      signal?.addEventListener('abort', abort);
    });
  }

  /**
   * Moves time on, waking each sleeper at its own time and in order. After each one other work gets to run, as long as
   * it yields to others, so a sleeper that goes back to sleep within the span is woken again.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await this.settle();
    for (;;) {
      let next: Sleeper | undefined;
      for (const sleeper of this.#sleepers)
        if (sleeper.due <= end && (next === undefined || sleeper.due < next.due)) next = sleeper;
      if (next === undefined) break;
      this.#moveTo(next.due);
      next.wake();
      await this.settle();
    }
    this.#moveTo(end);
  }

  /**
   * Resolves when nobody has yielded to others for a turn of the event loop: what goes on without time passing has gone
   * on.
   */
  async settle(): Promise<void> {
    for (let seen = -1, turns = 0; seen !== this.#yields && turns < WORKING_TURNS_MAX; turns++) {
      seen = this.#yields;
      await turn();
    }
  }

  #moveTo(monotonic: number): void {
    if (monotonic <= this.#monotonic) return;
    this.#now += monotonic - this.#monotonic;
    this.#monotonic = monotonic;
  }

  yield(): Promise<void> {
    this.#yields++;
    return this.#yieldBy === 'microtask' ? Promise.resolve() : turn();
  }
}

/** Apart from the clock: a function holds all that the functions beside it can see. */
function wakes(sleeper: WeakRef<Sleeper>): () => void {
  return () => sleeper.deref()?.wake();
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
