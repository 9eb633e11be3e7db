import { background } from '../../core/base/background.ts';
import type { Clock } from '../../core/ports/clock.ts';

/**
 * While others work, long work rests behind each slice for so many times as long as the slice took: that part of the
 * process is left to them.
 */
const LEFT_TO_OTHERS = 3;
/**
 * Other callers are at work where something short was answered within so many milliseconds: a caller that asks for one
 * thing after another has a slice or two between its answers.
 */
const AT_WORK_MS = 50;
/** A rest takes at most so many milliseconds, whatever a slice took that could not be cut. */
const REST_MS_MAX = 100;

interface Piece {
  /** The part that it is of all that there is to do for it. */
  readonly part: number;
  work(): void;
}

/**
 * Work that takes long is done in slices, one after another, however many such works there are: callers have one in
 * turn, whatever each of them has begun, between two slices all others get to work, and while they do, most of the
 * process is theirs. Long works alone are not held up by one another.
 */
export class Turns {
  readonly #clock: Pick<Clock, 'yield' | 'sleep' | 'monotonicMs'>;
  /** What waits, by caller; the callers in the order of their turns. */
  readonly #waiting = new Map<string | null, Piece[]>();
  #isGoing = false;
  #hasAnswered = false;
  #atWorkUntilMs = -Infinity;
  #restMs = 0;

  constructor(clock: Pick<Clock, 'yield' | 'sleep' | 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** A call, or message, was answered that took no slice. */
  answered(): void {
    this.#hasAnswered = true;
  }

  /** Resolves when it is one's turn. */
  take(caller: string | null): Promise<void> {
    return this.slice(caller, () => {});
  }

  /**
   * Does a piece of work in its turn, which is such a part of all that there is to do for it: the rest was done as it
   * came, which could not wait for a turn. `caller`: whose turn it takes (core/base/shared-limit.ts); null where no
   * caller is known.
   */
  slice<T>(caller: string | null, work: () => T, part = 1): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const piece: Piece = {
      part,
      work: () => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      },
    };
    const before = this.#waiting.get(caller);
    if (before === undefined) this.#waiting.set(caller, [piece]);
    else before.push(piece);
    if (!this.#isGoing) background(this.#goOn());
    return promise;
  }

  /** Does work that yields behind each of its slices. `between` is called behind each. */
  async run<T>(caller: string | null, work: Iterator<void, T, undefined>, between?: () => void): Promise<T> {
    for (;;) {
      // The first slice has its turn, too: many may begin at once.
      const step = await this.slice(caller, () => work.next());
      if (step.done === true) return step.value;
      between?.();
    }
  }

  async #goOn(): Promise<void> {
    this.#isGoing = true;
    while (this.#waiting.size > 0) {
      await this.#leaveRoom();
      // A caller with more work that waits comes again behind all others.
      const [caller, pieces] = this.#waiting.entries().next().value!;
      this.#waiting.delete(caller);
      const { part, work } = pieces.shift()!;
      if (pieces.length > 0) this.#waiting.set(caller, pieces);
      const beganMs = this.#clock.monotonicMs();
      work();
      this.#restMs = Math.min(REST_MS_MAX, ((this.#clock.monotonicMs() - beganMs) / part) * LEFT_TO_OTHERS);
    }
    this.#isGoing = false;
  }

  async #leaveRoom(): Promise<void> {
    await this.#clock.yield();
    const nowMs = this.#clock.monotonicMs();
    if (this.#hasAnswered) this.#atWorkUntilMs = nowMs + AT_WORK_MS;
    this.#hasAnswered = false;
    const restMs = this.#restMs;
    this.#restMs = 0;
    if (restMs > 0 && nowMs < this.#atWorkUntilMs) await this.#clock.sleep(restMs);
  }
}

/** The same work in one stretch, where it is known to be short. */
export function atOnce<T>(work: Iterator<void, T, undefined>): T {
  for (let step = work.next(); ; step = work.next()) if (step.done === true) return step.value;
}
