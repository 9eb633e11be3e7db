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
const REPLY_RESERVE_MS = 1_000;

/**
 * A long poll ends before the function does: its wait is cut to what is left, and to WAIT_SECONDS_MAX, since a function
 * that waits is paid for. A subscription is answered with what is there (result-of.ts) and how far that is: the id of
 * the last message, from which its client goes on, also where it began at the end.
 */

/** Longest wait of a long poll in seconds. */
const WAIT_SECONDS_MAX = 20;
/** Headers that ask for one, of both generations. */
const LONG_POLL = ['es-longpoll', 'kurrent-longpoll'] as const;
/** Milliseconds for what comes behind the wait. */
const READ_RESERVE_MS = 3_000;

/** The request itself, with shorter waits. */
export function limitedRequest(request: Request, deadline: Deadline): Request {
  const { headers } = request;
  const secondsMax = Math.min(WAIT_SECONDS_MAX, Math.floor(deadline.leftMs(READ_RESERVE_MS) / 1_000));
  for (const name of LONG_POLL) {
    const asked = headers.get(name);
    if (asked === null || !/^\d+$/.test(asked) || Number(asked) <= secondsMax) continue;
    if (secondsMax > 0) headers.set(name, String(secondsMax));
    else headers.delete(name);
  }
  return request;
}
