import type { Clock } from '../../core/ports/clock.ts';
import { clearTimeout, setImmediate, setTimeout } from '../../infra/timers.ts';

/** Longest delay a timer takes in milliseconds. */
const TIMER_MS_MAX = 2_147_483_647;

// As they were when the program was loaded: the tests of others may put a time that stands still in their place.
const wallMs = Date.now;
const monotonicMs = performance.now.bind(performance);

interface Sleeper {
  readonly dueMs: number;
  wake(): void;
}

/**
 * The time of the machine, with what it was moved on by. A sleep does not keep the process alive, and ends when it
 * is time by this clock.
 */
export class MovedClock implements Clock {
  #movedMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  nowMs(): number {
    return wallMs() + this.#movedMs;
  }
  monotonicMs(): number {
    return monotonicMs() + this.#movedMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const sleeper: Sleeper = {
        dueMs: this.monotonicMs() + ms,
        wake: () => {
          clearTimeout(timer);
          this.#sleepers.delete(sleeper);
          signal?.removeEventListener('abort', sleeper.wake);
          resolve();
        },
      };
      const look = () => {
        const leftMs = sleeper.dueMs - this.monotonicMs();
        if (leftMs <= 0) sleeper.wake();
        else timer = setTimeout(look, Math.min(leftMs, TIMER_MS_MAX)).unref();
      };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', sleeper.wake);
      look();
    });
  }

  yield(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  /** Moves the time on, and ends the sleeps that are due by then. */
  async advance(ms: number): Promise<void> {
    this.#movedMs += ms;
    const nowMs = this.monotonicMs();
    const due = [...this.#sleepers].filter(({ dueMs }) => dueMs <= nowMs).sort((a, b) => a.dueMs - b.dueMs);
    for (const sleeper of due) {
      sleeper.wake();
      await this.yield();
    }
    await this.yield();
  }
}
