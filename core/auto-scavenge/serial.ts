import { SkuaError } from '../errors.ts';

/** Runs one piece of work after the other. */
export class Serial {
  readonly #max: number;
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** At most `max` bounded pieces wait. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Bounded pieces that wait for their turn. */
  get waiting(): number { return this.#waiting; }

  run<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#tail.then(work);
    this.#tail = turn.catch(() => {});
    return turn;
  }

  /** Errors: `auto_scavenge_busy`, and those of the work. */
  runBounded<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= this.#max) return Promise.reject(new SkuaError('auto_scavenge_busy', 'AutoScavenge queue is full', { limit: this.#max, hint: 'Try again in a moment.' }));
    this.#waiting++;
    return this.run(() => {
      this.#waiting--;
      return work();
    });
  }
}
