import type { Clock } from '../../core/ports/clock.ts';
import { NOW_MS } from './tick-kit.ts';

/** Time that passes only while somebody sleeps, and then at once; those who sleep at the same time share it. */
export class AutoClock implements Clock {
  #ms = 0;

  nowMs(): number {
    return NOW_MS + this.#ms;
  }
  monotonicMs(): number {
    return this.#ms;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const dueMs = this.#ms + ms;
    await this.yield();
    if (signal?.aborted !== true) this.#ms = Math.max(this.#ms, dueMs);
  }

  yield(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  advance(ms: number): void {
    this.#ms += ms;
  }
}
