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
export class ReadLatency {
  #excessMs = 0;
  #refuse = 0;
  #refuseNext = REFUSED_MIN;

  /** Asks for one read on the spot; a caller that may make it calls `note` with how long it took. */
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

/** Quick syncs in a row after which the next is made on the caller's thread. */
const QUICK_IN_A_ROW = 4;
/**
 * A sync through the thread pool is quick when it takes no longer than this, the trip and what the loop does meanwhile
 * included.
 */
const QUICK_MS_MAX = 0.75;
/** A sync on the caller's thread that takes longer ends that for a while. */
const SLOW_MS = 1;
/**
 * At most one sync on the caller's thread in this many may be a slow one: after a second one the rest of them goes
 * through the thread pool.
 */
const SLOW_EVERY = 1_024;

/**
 * Decides for one file whether its next sync goes through the thread pool. The way there and back costs a hundred
 * microseconds, as much as the sync itself on a fast disk, and the loop has little else to do meanwhile; on a slow disk
 * the loop must not stand still. So a sync is made on the spot only while the last ones were quick, and never one that
 * follows a large write or a truncation.
 */
export class SyncLatency {
  /** Quick ones in a row; below 0: those that still go through the pool. */
  #quick = 0;
  /** Syncs since a slow one on the caller's thread. */
  #sinceSlow = 0;

  get isOnTheSpot(): boolean {
    return this.#quick >= QUICK_IN_A_ROW;
  }

  /** Takes in how long a sync took, as seen by the caller that waited. */
  note(ms: number): void {
    this.#sinceSlow++;
    if (this.isOnTheSpot) {
      if (ms <= SLOW_MS) return;
      this.#quick = Math.min(0, this.#sinceSlow - SLOW_EVERY);
      this.#sinceSlow = 0;
    } else if (this.#quick < 0 || ms <= QUICK_MS_MAX) this.#quick++;
    else this.#quick = 0;
  }

  /** The next sync has much to write. */
  expectSlow(): void {
    this.#quick = Math.min(this.#quick, 0);
  }
}
