/** What is left of the present call. An instance handles one call at a time, so there is one of these. */
export class Deadline {
  #remainingMs: () => number = () => Number.POSITIVE_INFINITY;

  begin(remainingMs: () => number): void {
    this.#remainingMs = remainingMs;
  }

  /** Milliseconds until the platform ends the call, less what a reply needs; never negative. */
  leftMs(reserveMs: number = REPLY_RESERVE_MS): number {
    return Math.max(0, this.#remainingMs() - reserveMs);
  }
}

/** Milliseconds kept for the reply behind a wait. */
export const REPLY_RESERVE_MS = 1_000;
