import type { ThrottleStart } from './run-files.ts';

/** Shorter pauses are saved up. */
const PAUSE_MS_MIN = 1_000;

/** What a throttle needs of the world; a `JobContext` has both. */
export interface ThrottleWorld {
  monotonicMs(): number;
  /** Rejects with `aborted` when the run is to stop. */
  sleep(ms: number): Promise<void>;
}

/** Keeps the share of active time over the whole run at `percent`; scavenge.md section 12. */
export class Throttle {
  readonly #world: ThrottleWorld;
  readonly #restShare: number;
  readonly #createdMs: number;
  restedMs: number;

  constructor(start: ThrottleStart, world: ThrottleWorld) {
    this.#world = world;
    this.#restShare = 1 - start.percent / 100;
    this.#createdMs = world.monotonicMs() - start.elapsedMs;
    this.restedMs = start.restedMs;
  }

  /** Where another throttle of the same run would begin now. */
  start(percent: number): ThrottleStart {
    return { percent, elapsedMs: this.#world.monotonicMs() - this.#createdMs, restedMs: this.restedMs };
  }

  /** Pauses when a second or more is due. Returns at once otherwise, without a promise. */
  rest(): Promise<void> | undefined {
    if (this.#restShare <= 0) return undefined;
    const elapsedMs = this.#world.monotonicMs() - this.#createdMs;
    const dueMs = (this.#restShare * elapsedMs - this.restedMs) / (1 - this.#restShare);
    if (dueMs < PAUSE_MS_MIN) return undefined;
    this.restedMs += dueMs;
    return this.#world.sleep(dueMs);
  }
}
