/** Quick syncs in a row after which the next is made on the caller's thread. */
const QUICK_IN_A_ROW = 4;
/** A sync is quick when it takes no longer than this, which is less than what a group of appends takes to encode. */
const QUICK_MS_MAX = 0.5;
/** A sync on the caller's thread that takes longer ends that for a while. */
const SLOW_MS = 1;
/** Syncs that go through the thread pool after a slow one. */
const POOLED_AFTER_SLOW = 1_024;

/**
 * Decides for one file whether its next sync goes through the thread pool. The way there and back costs a hundred
 * microseconds, as much as the sync itself on a fast disk, and the loop has little else to do meanwhile; on a slow disk the
 * loop must not stand still. So a sync is made on the spot only while the last ones were quick, and never one that
 * follows a large write or a truncation.
 */
export class SyncPace {
  #quick = 0;

  get isOnTheSpot(): boolean { return this.#quick >= QUICK_IN_A_ROW; }

  /** Takes in how long a sync took, as seen by whoever waited. */
  note(ms: number): void {
    if (this.isOnTheSpot) {
      if (ms > SLOW_MS) this.#quick = -POOLED_AFTER_SLOW;
    } else if (this.#quick < 0 || ms <= QUICK_MS_MAX) this.#quick++;
    else this.#quick = 0;
  }

  /** The next sync has much to write. */
  expectSlow(): void {
    this.#quick = Math.min(this.#quick, 0);
  }
}
