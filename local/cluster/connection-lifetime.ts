/**
 * For so long connections between members live, in milliseconds, as those of the reference do: after a reload of
 * certificates the former ones are out of use everywhere after this.
 */
export const CONNECTION_LIFETIME_MS = 600_000;
