import type { Clock } from '../../../core/ports/clock.ts';
import type { Random } from '../../support/random.ts';
import type { Timeline } from '../auto-scavenge/timeline.ts';

/** Milliseconds since 1970 at which simulated time begins. */
export const EPOCH_MS = Date.UTC(2026, 10, 22);

/**
 * A process that may stand still at any moment and go on later, and that may die. While it stands still nothing reaches
 * it, though its requests go on without it. Its wall clock is wrong by a constant, and its monotonic clock may stand
 * still too.
 */
export class SimProcess implements Clock {
  readonly name: string;
  readonly #timeline: Timeline;
  readonly #skewMs: number;
  readonly #stopsWhenFrozen: boolean;
  isDead = false;
  #frozenUntil = 0;
  #frozenMs = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(name: string, timeline: Timeline, random: Random) {
    this.name = name;
    this.#timeline = timeline;
    this.#skewMs = random.int(-20_000, 20_000);
    this.#stopsWhenFrozen = random.chance(0.5);
  }

  nowMs(): number {
    return EPOCH_MS + this.#timeline.now + this.#skewMs;
  }
  monotonicMs(): number {
    return this.#timeline.now - (this.#stopsWhenFrozen ? this.#frozenMs : 0);
  }

  freeze(ms: number): void {
    const until = Math.max(this.#frozenUntil, this.#timeline.now + ms);
    this.#frozenMs += until - Math.max(this.#timeline.now, this.#frozenUntil);
    this.#frozenUntil = until;
  }

  thaw(): void {
    this.#frozenUntil = this.#timeline.now;
    this.#goOn();
  }

  /** Lets `run` happen in this process: now, when it goes on, or never. */
  deliver(run: () => void): void {
    if (this.isDead) return;
    if (this.#frozenUntil <= this.#timeline.now) run();
    else if (this.#waiting.push(run) === 1) this.#goOn();
  }

  /** What has come meanwhile, in order, once it does not stand still any more. */
  #goOn(): void {
    const waitMs = this.#frozenUntil - this.#timeline.now;
    if (waitMs > 0) this.#timeline.in(waitMs, () => this.#goOn());
    else for (const run of this.#waiting.splice(0)) this.#timeline.in(0, () => this.deliver(run));
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      this.#timeline.in(ms, () => this.deliver(resolve));
      signal?.addEventListener('abort', () => resolve());
    });
  }

  yield(): Promise<void> {
    return Promise.resolve();
  }
}
