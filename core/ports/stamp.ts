import type { Clock } from './clock.ts';

/** A moment by both clocks of a process. */
export interface Stamp {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

export function stampOf(clock: Clock): Stamp {
  return { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
}

/**
 * Milliseconds since the stamp, by the clock that shows more: a frozen process may have a monotonic clock that stood
 * still, and a wall clock may be set back.
 */
export function sinceMs(stamp: Stamp, clock: Clock): number {
  return Math.max(clock.nowMs() - stamp.wallMs, clock.monotonicMs() - stamp.monotonicMs);
}
