/** How much a growing figure grew per second lately: between two readings that lie at least `windowMs` apart. */
export class RecentRate {
  readonly #windowMs: number;
  #fromMs: number;
  #from: number;
  #rate = 0;

  constructor(windowMs: number, nowMs: number, value: number) {
    this.#windowMs = windowMs;
    this.#fromMs = nowMs;
    this.#from = value;
  }

  /** The rate per second by this reading; the one before while the window has not passed, so that several may ask. */
  read(nowMs: number, value: number): number {
    const passedMs = nowMs - this.#fromMs;
    if (passedMs >= this.#windowMs) {
      this.#rate = Math.max(0, (value - this.#from) / passedMs * 1_000);
      this.#fromMs = nowMs;
      this.#from = value;
    }
    return this.#rate;
  }
}
