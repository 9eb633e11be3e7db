/** What is sent at this pace does not lag, in bytes a millisecond: 64 KiB a second. */
const BRISK_BYTES_A_MS = 65.536;
/** A sender that lags no more than this had bad luck; one that lags more is slow. Milliseconds. */
export const SLOW_MS = 1_000;

/**
 * For how long a body has been arriving beyond the time that a brisk sender needs for as many bytes; negative for a
 * faster one.
 */
export function lagMs(arrivingMs: number, bytes: number): number {
  return arrivingMs - bytes / BRISK_BYTES_A_MS;
}
