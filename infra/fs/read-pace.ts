/** Reads on the spot may take this long in the mean; from the page cache they take a quarter of it. */
const MEAN_MS = 0.01;
/** What one read counts at most: the scheduler may have taken the processor away meanwhile. */
const COUNTED_MS_MAX = 0.5;
/** Time beyond the mean after which the file's reads are not quick. */
const EXCESS_MS_MAX = 0.75;
/** Reads refused then; the number doubles each time that the file has not become quick. */
const REFUSED_MIN = 64;
const REFUSED_MAX = 4_096;

/**
 * Decides for one file whether a small read is made on the caller's thread. That is many times quicker than through the
 * thread pool where the bytes are in the system's page cache, and must not be done where they are not: the loop would
 * stand still.
 */
export class ReadPace {
  #excessMs = 0;
  #refuse = 0;
  #refuseNext = REFUSED_MIN;

  /** Asks for one read on the spot; whoever may make it tells `note` how long it took. */
  admits(): boolean {
    if (this.#refuse === 0) return true;
    this.#refuse--;
    return false;
  }

  note(ms: number): void {
    this.#excessMs += Math.min(ms, COUNTED_MS_MAX) - MEAN_MS;
    if (this.#excessMs <= 0) {
      this.#excessMs = 0;
      this.#refuseNext = REFUSED_MIN;
    } else if (this.#excessMs > EXCESS_MS_MAX) {
      this.#refuse = this.#refuseNext;
      this.#refuseNext = Math.min(2 * this.#refuseNext, REFUSED_MAX);
      // The next slow read is one too many.
      this.#excessMs = EXCESS_MS_MAX;
    }
  }
}
