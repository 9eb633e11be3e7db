import type { Clock } from '../../core/ports/clock.ts';

/**
 * Work that takes long is done in slices, one slice in each turn of the process, however many such works there are: between two slices all others
 * get to work.
 */
export class Turns {
  readonly #clock: Pick<Clock, 'yield'>;
  #last = Promise.resolve();

  constructor(clock: Pick<Clock, 'yield'>) {
    this.#clock = clock;
  }

  /** Resolves when it is one's turn, in the order of coming. */
  take(): Promise<void> {
    return (this.#last = this.#last.then(() => this.#clock.yield()));
  }

  /** Does work that yields behind each of its slices. `between` is called behind each. */
  async run<T>(work: Iterator<void, T, undefined>, between?: () => void): Promise<T> {
    for (;;) {
      // The first slice has its turn, too: many may begin at once.
      await this.take();
      const step = work.next();
      if (step.done === true) return step.value;
      between?.();
    }
  }
}

/** The same work in one stretch, where it is known to be short. */
export function atOnce<T>(work: Iterator<void, T, undefined>): T {
  for (let step = work.next(); ; step = work.next()) if (step.done === true) return step.value;
}
