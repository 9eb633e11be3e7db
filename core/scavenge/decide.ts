import { TOMBSTONE } from '../log/records.ts';
import { STATUS_ACTIVE, STATUS_ARCHIVED, STATUS_SPENT, type ChunkTimeRange, type OriginalStreamData, type ScavengePoint, type StreamStatus } from '../ports/scavenge-state.ts';

/** What becomes of an event, by its index entry; scavenge.md section 5.3. */
export const KEEP = 0;
/** Its record was removed earlier. */
export const GONE = 1;
/** Its own timestamp will tell. */
export const MAYBE = 2;
export const DISCARD = 3;
export type Decision = typeof KEEP | typeof GONE | typeof MAYBE | typeof DISCARD;

/** Event number of a tombstone of the time when numbers had 32 bits. */
export const TOMBSTONE_I32 = 2_147_483_647;

/** What decides about the events of one stream. */
export class StreamLimits {
  lastNumber = -1;
  isTombstoned = false;
  /** Lower numbers are below `$tb`; 0 without one. */
  truncateBefore = 0;
  /** Lower numbers are outside `$maxCount`; 0 without one. */
  countFrom = 0;
  /** Whether there is a maximum age; events written before the cutoff are older. */
  hasAge = false;
  cutoffMs = 0;
  /** 100 ns ticks beyond `cutoffMs`. */
  cutoffTicks = 0;

  set(data: Pick<OriginalStreamData, 'isTombstoned' | 'truncateBefore' | 'maxCount' | 'maxAge'>, lastNumber: number, point: ScavengePoint): void {
    this.lastNumber = lastNumber;
    this.isTombstoned = data.isTombstoned;
    this.truncateBefore = data.truncateBefore ?? 0;
    this.countFrom = data.maxCount === null ? 0 : Math.max(0, lastNumber - data.maxCount + 1);
    this.hasAge = data.maxAge !== null;
    // An absurd age is no overflow here: the cutoff just lies before every timestamp.
    this.cutoffMs = point.effectiveNowMs - (data.maxAge ?? 0) * 1_000;
    this.cutoffTicks = point.effectiveNowTicks ?? 0;
  }

  /** True for an event written at (ms, ticks) that is older than the maximum age: strictly before the cutoff. */
  isExpired(ms: number, ticks: number): boolean {
    return this.hasAge && (ms < this.cutoffMs || (ms === this.cutoffMs && ticks < this.cutoffTicks));
  }
}

/**
 * Decides about an event before the scavenge point by its number and the timestamps of its chunk, `undefined` for a chunk
 * in which accumulation met no prepare. The caller has looked whether an event with the number TOMBSTONE_I32 is a tombstone.
 */
export function decide(limits: StreamLimits, number: number, range: ChunkTimeRange | undefined): Decision {
  if (number >= limits.lastNumber) return KEEP;
  if (limits.isTombstoned || number < limits.truncateBefore || number < limits.countFrom) return DISCARD;
  if (!limits.hasAge) return KEEP;
  if (range === undefined) return GONE;
  if (!limits.isExpired(range.minMs, range.minTicks)) return KEEP;
  return limits.isExpired(range.maxMs, range.maxTicks) ? DISCARD : MAYBE;
}

/** Whether a stream has to be looked at again by the next run; scavenge.md section 5.3. */
export function statusOf(data: OriginalStreamData, lastNumber: number): StreamStatus {
  if (data.isTombstoned) return STATUS_ARCHIVED;
  if (data.maxAge !== null || data.maxCount !== null) return STATUS_ACTIVE;
  const { truncateBefore } = data;
  return truncateBefore !== null && truncateBefore !== TOMBSTONE && lastNumber < truncateBefore ? STATUS_ACTIVE : STATUS_SPENT;
}
