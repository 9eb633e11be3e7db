/** Failures of one user from one place within the window after which the user is locked out there. */
export const FAILURES_MAX = 10;

/**
 * Failed logins as processes count them together that know of each other by nothing else: without it each of many
 * instances would allow as many guesses as one node does.
 */
export interface SharedFailures {
  /**
   * Counts one more failure of a user from a place (an address, or a network of them). True when there are as many by
   * now as are allowed, so that the caller takes no more attempts for this pair either; true, too, where no more can be
   * counted. Never rejects.
   */
  add(name: string, place: string): Promise<boolean>;
}
