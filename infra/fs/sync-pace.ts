/** Quick syncs in a row after which the next is made on the caller's thread. */
const QUICK_IN_A_ROW = 4;
/** A sync through the thread pool is quick when it takes no longer than this, the trip and what the loop does meanwhile included. */
const QUICK_MS_MAX = 0.75;
/** A sync on the caller's thread that takes longer ends that for a while. */
const SLOW_MS = 1;
/** At most one sync on the caller's thread in this many may be a slow one: after a second one the rest of them goes through the thread pool. */
const SLOW_EVERY = 1_024;

/**
 * Decides for one file whether its next sync goes through the thread pool. The way there and back costs a hundred
 * microseconds, as much as the sync itself on a fast disk, and the loop has little else to do meanwhile; on a slow disk the
 * loop must not stand still. So a sync is made on the spot only while the last ones were quick, and never one that
 * follows a large write or a truncation.
 */
export class SyncPace {
  /** Quick ones in a row; below 0: those that still go through the pool. */
  #quick = 0;
  /** Syncs since a slow one on the caller's thread. */
  #sinceSlow = 0;

  get isOnTheSpot(): boolean { return this.#quick >= QUICK_IN_A_ROW; }

  /** Takes in how long a sync took, as seen by whoever waited. */
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
