import { SkuaError } from '../errors.ts';

/** Derivations at the same time: each takes a thread that the files of the log also need, a processor, and 32 MiB. */
const AT_ONCE_MAX = 2;
/** Derivations that wait. At 0.1 s each the last of them waits for some three seconds. */
const WAITING_MAX = 64;

/** Lets a few derivations run at a time and a bounded number wait, so that callers with wrong passwords can't take the machine. */
export class Derivations {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** Errors: `too_busy`, and what the task rejects with. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running < AT_ONCE_MAX) this.#running++;
    else {
      if (this.#waiting.length >= WAITING_MAX) {
        throw new SkuaError('too_busy', 'Too many passwords are waiting to be checked: try again in a few seconds.', { limit: WAITING_MAX, retryAfterSeconds: 5 });
      }
      // Whoever ends hands its place over.
      await new Promise<void>((resolve) => { this.#waiting.push(resolve); });
    }
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
