/** Events that a scavenge of a test node tells by name, at most. */
export const REMOVED_MAX = 10_000;
