import { SkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';

/** Pause in milliseconds before failed background work is tried again. */
export const RETRY_MS = 5_000;

interface Waiter {
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * One line of background work: `step` is repeated until it reports that nothing is left, and started anew by `kick`. A
 * step that fails is logged, reported to callers that wait, and tried again after a pause.
 */
export class Background {
  readonly #step: () => Promise<boolean>;
  readonly #what: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #signal: AbortSignal;
  #running: Promise<void> | null = null;
  #isKicked = false;
  #pause: AbortController | null = null;
  #waiters: Waiter[] = [];
  #loggedMs = -Infinity;
  #failure: unknown = null;

  constructor(what: string, step: () => Promise<boolean>, world: { clock: Clock; log: Log; signal: AbortSignal }) {
    this.#what = what;
    this.#step = step;
    this.#clock = world.clock;
    this.#log = world.log;
    this.#signal = world.signal;
  }

  /** Of the last step, where it failed; null where it did not. */
  get failure(): unknown {
    return this.#failure;
  }

  /** There may be work. */
  kick(): void {
    this.#isKicked = true;
    this.#running ??= this.#run();
  }

  /**
   * Resolves when no work is left. Rejects with the error of the next step that fails, or `store_closed`. Ends a pause.
   */
  idle(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      this.#pause?.abort();
      this.kick();
    });
  }

  /** Resolves when the work under way has ended, which the signal brings about. */
  async ended(): Promise<void> {
    await this.#running;
  }

  #release(tell: (waiter: Waiter) => void): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    waiters.forEach(tell);
  }

  async #run(): Promise<void> {
    // Kicked in the middle of a caller's step, which is to end before the work begins.
    await Promise.resolve();
    while (!this.#signal.aborted) {
      this.#isKicked = false;
      try {
        const isMore = await this.#step();
        this.#failure = null;
        if (isMore || this.#isKicked) continue;
        // Nothing is awaited from here to the return, so no kick gets lost.
        this.#running = null;
        this.#release((waiter) => waiter.resolve());
        return;
      } catch (error) {
        if (this.#signal.aborted) break;
        this.#failure = error;
        this.#release((waiter) => waiter.reject(error));
        this.#logFailure(error);
        await this.#rest();
      }
    }
    this.#running = null;
    this.#release((waiter) =>
      waiter.reject(
        new SkuaError('store_closed', 'The index was closed before its tables were written; the log has everything.'),
      ),
    );
  }

  /** Callers that ask again and again end the pause, and shall not fill the log. */
  #logFailure(error: unknown): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#loggedMs < RETRY_MS) return;
    this.#loggedMs = nowMs;
    this.#log.error(`${this.#what} failed; will retry.`, { error, retryMs: RETRY_MS });
  }

  async #rest(): Promise<void> {
    this.#pause = new AbortController();
    await this.#clock.sleep(RETRY_MS, AbortSignal.any([this.#signal, this.#pause.signal]));
    this.#pause = null;
  }
}
