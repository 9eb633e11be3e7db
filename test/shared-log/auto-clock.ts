import type { Clock } from '../../core/ports/clock.ts';
import { NOW_MS } from './tick-kit.ts';

/**
 * Who sleeps for longer than this watches over others: a deadline, or upkeep that comes round. It lets no time pass, or
 * the time that a test takes would hang on how many turns the work of others has.
 */
const SLEEP_MS_MAX = 4_000;

/**
 * Time that passes only while somebody sleeps, and then at once; those who sleep at the same time share it. Who watches
 * wakes when others have let enough of it pass.
 */
export class AutoClock implements Clock {
  readonly #sleepMsMax: number;
  #ms = 0;
  readonly #watches = new Set<{ readonly dueMs: number; readonly wake: () => void }>();

  constructor(sleepMsMax = SLEEP_MS_MAX) {
    this.#sleepMsMax = sleepMsMax;
  }

  nowMs(): number {
    return NOW_MS + this.#ms;
  }
  monotonicMs(): number {
    return this.#ms;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const dueMs = this.#ms + ms;
    if (ms > this.#sleepMsMax) return this.#watch(dueMs, signal);
    await this.yield();
    if (signal?.aborted !== true) this.#to(dueMs);
  }

  yield(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  advance(ms: number): void {
    this.#to(this.#ms + ms);
  }

  async #watch(dueMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => {
      resolve();
    };
    const watch = { dueMs, wake };
    this.#watches.add(watch);
    signal?.addEventListener('abort', wake, { once: true });
    await promise;
    this.#watches.delete(watch);
    signal?.removeEventListener('abort', wake);
  }

  #to(ms: number): void {
    this.#ms = Math.max(this.#ms, ms);
    for (const { dueMs, wake } of this.#watches) if (dueMs <= this.#ms) wake();
  }
}
