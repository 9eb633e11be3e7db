import type { Clock } from '../../core/ports/clock.ts';

interface Sleeper { readonly due: number; readonly wake: () => void }

/** Time driven by hand. Wall and monotonic time move together with `advance`; `setNow` moves the wall clock alone. */
export class ManualClock implements Clock {
  #now: number;
  #monotonic = 0;
  #sleepers: Sleeper[] = [];
  readonly #yieldBy: 'macrotask' | 'microtask';

  constructor(nowMs = Date.UTC(2024, 0, 1), yieldBy: 'macrotask' | 'microtask' = 'macrotask') {
    this.#now = nowMs;
    this.#yieldBy = yieldBy;
  }

  nowMs(): number { return this.#now; }
  monotonicMs(): number { return this.#monotonic; }
  /** How many are asleep. */
  get sleeping(): number { return this.#sleepers.length; }

  /** Sets the wall clock, as an operator or a time service does; nobody wakes. */
  setNow(nowMs: number): void { this.#now = nowMs; }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper: Sleeper = {
        due: this.#monotonic + ms,
        wake: () => {
          this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
          signal?.removeEventListener('abort', sleeper.wake);
          resolve();
        },
      };
      this.#sleepers.push(sleeper);
      signal?.addEventListener('abort', sleeper.wake);
    });
  }

  /**
   * Moves time on, waking each sleeper at its own time and in order. After each one other work gets to run, so a
   * sleeper that goes back to sleep within the span is woken again.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await settle();
    for (;;) {
      let next: Sleeper | undefined;
      for (const sleeper of this.#sleepers) if (sleeper.due <= end && (next === undefined || sleeper.due < next.due)) next = sleeper;
      if (next === undefined) break;
      this.#moveTo(next.due);
      next.wake();
      await settle();
    }
    this.#moveTo(end);
  }

  #moveTo(monotonic: number): void {
    if (monotonic <= this.#monotonic) return;
    this.#now += monotonic - this.#monotonic;
    this.#monotonic = monotonic;
  }

  yield(): Promise<void> {
    return this.#yieldBy === 'microtask' ? Promise.resolve() : settle();
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => { setImmediate(resolve); });
}
