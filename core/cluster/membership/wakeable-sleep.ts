import type { Clock } from '../../ports/clock.ts';

/**
 * A sleep that others end. What rings while no sleep is under way ends the next sleep at once, so nothing is missed
 * between a look and a sleep.
 */
export class WakeableSleep {
  readonly #clock: Clock;
  #ringing = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#ringing.abort();
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    const { signal: rung } = this.#ringing;
    if (!rung.aborted) await this.#clock.sleep(ms, AbortSignal.any([rung, signal]));
    if (this.#ringing.signal.aborted) this.#ringing = new AbortController();
  }
}
