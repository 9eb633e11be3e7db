import type { StreamMetadata } from './api.ts';

/** Which events of a stream readers see. */
export interface Visibility {
  /** Events with a lower number are hidden. */
  readonly minimum: number;
  /** Events older than this (milliseconds since 1970) are hidden; -Infinity when nothing expires. */
  readonly oldestMs: number;
}

/** Rules of disk-format.md section 6.2: `$tb`, `$maxCount` and `$maxAge` all apply. */
export function visibilityOf(lastNumber: number, metadata: StreamMetadata, nowMs: number): Visibility {
  const { truncateBefore = 0, maxCount, maxAge } = metadata;
  const byCount = maxCount === undefined ? 0 : lastNumber + 1 - maxCount;
  return {
    minimum: Math.max(truncateBefore, byCount, 0),
    oldestMs: maxAge === undefined ? -Infinity : nowMs - maxAge * 1000,
  };
}
