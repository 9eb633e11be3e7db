import { viewAt } from '../../base/bytes.ts';
import {
  FLAG_REDACTED,
  FLAG_STREAM_DELETE,
  FLAG_TRANSACTION_BEGIN,
  type PrepareFields,
  type RecordFrame,
  TOMBSTONE,
} from '../../log/format/records.ts';
import {
  STATUS_ACTIVE,
  STATUS_ARCHIVED,
  STATUS_SPENT,
  type ChunkTimeRange,
  type MetastreamData,
  type OriginalStreamData,
  type StreamStatus,
} from '../../ports/scavenge-state.ts';
import { isWholeEvent } from '../../log/format/redaction.ts';

/**
 * Which events of a stream are seen and stay, and by which rule the others go. Readers, explain and all
 * phases of a scavenge ask here.
 *
 * By its number an event goes with a tombstone, `$tb` or `$maxCount`; by its own time, never a neighbour's, it goes
 * with `$maxAge`: a clock that was set back leaves expired events behind live ones.
 */

/** A rule that removes events, in the order in which they are asked. */
export type RetentionRule = 'tombstone' | 'superseded-metadata' | '$tb' | '$maxCount' | '$maxAge';

/** Event number of a tombstone of the time when numbers had 32 bits. */
export const TOMBSTONE_I32 = 2_147_483_647;

/** Limits of a stream, as its metadata have them. Absent or null: none. Ages are seconds. */
export interface RetentionLimits {
  readonly truncateBefore?: number | null;
  readonly maxCount?: number | null;
  readonly maxAge?: number | null;
}

/** What an index entry and the times of its chunk show about an event. */
export const DISCARD = 0;
/** Its record was removed earlier. */
export const GONE = 1;
/** The event's own timestamp will decide. */
export const MAYBE = 2;
/** The event is alive, by its time. Behind it expired events may follow where a clock was set back. */
export const YOUNG = 3;
/** The event stays, and so does everything behind it. */
export const STAYS = 4;
export type Decision = typeof DISCARD | typeof GONE | typeof MAYBE | typeof YOUNG | typeof STAYS;

/** The rules of one stream at one moment. */
export class Retention {
  isTombstoned = false;
  /** Lower numbers are below `$tb`; 0 without one. */
  truncateBefore = 0;
  /** Lower numbers are outside `$maxCount`; 0 without one. */
  countFrom = 0;
  /**
   * No rule reaches this number and those behind it. Infinity for readers, from whom even the last event may be hidden.
   */
  staysFrom = Infinity;
  hasAge = false;
  /** Events written before this are too old: milliseconds since 1970, and 100 ns ticks beyond. */
  cutoffMs = -Infinity;
  cutoffTicks = 0;
  readonly #countRule: RetentionRule;

  /** In a metastream only the last metadata count. */
  constructor(isMetastream = false) {
    this.#countRule = isMetastream ? 'superseded-metadata' : '$maxCount';
  }

  /** What readers may see now, milliseconds since 1970 with a fraction. A deleted stream is refused before. */
  static forReaders(limits: RetentionLimits, lastNumber: number, nowMs: number): Retention {
    const retention = new Retention();
    const wholeMs = Math.floor(nowMs);
    retention.#set(limits, lastNumber, wholeMs, Math.floor((nowMs - wholeMs) * 10_000));
    return retention;
  }

  /**
   * What a scavenge leaves whose point has this time: the last event stays whatever is set, so that its number is not
   * given again.
   */
  setForScavenge(
    limits: RetentionLimits,
    isTombstoned: boolean,
    lastNumber: number,
    nowMs: number,
    nowTicks: number,
  ): void {
    this.#set(limits, lastNumber, nowMs, nowTicks);
    this.isTombstoned = isTombstoned;
    this.staysFrom = lastNumber;
  }

  #set(
    { truncateBefore, maxCount, maxAge }: RetentionLimits,
    lastNumber: number,
    nowMs: number,
    nowTicks: number,
  ): void {
    this.truncateBefore = truncateBefore ?? 0;
    this.countFrom = maxCount === undefined || maxCount === null ? 0 : Math.max(0, lastNumber - maxCount + 1);
    this.hasAge = maxAge !== undefined && maxAge !== null;
    // An absurd age is no overflow here: the cutoff just lies before every timestamp.
    this.cutoffMs = this.hasAge ? nowMs - maxAge! * 1_000 : -Infinity;
    this.cutoffTicks = nowTicks;
  }

  /** Lower numbers are hidden, whatever their time. */
  get firstNumber(): number {
    return Math.max(this.truncateBefore, this.countFrom);
  }

  /** True for an event written at this time that is older than the maximum age: strictly before the cutoff. */
  isExpired(ms: number, ticks: number): boolean {
    return isBefore(ms, ticks, this.cutoffMs, this.cutoffTicks);
  }

  /** The first rule against the event with this number that was written at this time, or null when it stays. */
  ruleAgainst(number: number, ms: number, ticks: number): RetentionRule | null {
    if (number >= this.staysFrom) return null;
    if (this.isTombstoned) return 'tombstone';
    if (number < this.truncateBefore) return '$tb';
    if (number < this.countFrom) return this.#countRule;
    return this.isExpired(ms, ticks) ? '$maxAge' : null;
  }

  /**
   * Decides by the number and the timestamps of the event's chunk, `undefined` for a chunk in which accumulation met no
   * prepare. The caller has looked whether an event with the number TOMBSTONE_I32 is a tombstone.
   */
  decide(number: number, range: ChunkTimeRange | undefined): Decision {
    if (number >= this.staysFrom) return STAYS;
    if (this.isTombstoned || number < this.firstNumber) return DISCARD;
    if (!this.hasAge) return STAYS;
    if (range === undefined) return GONE;
    if (!this.isExpired(range.minMs, range.minTicks)) return YOUNG;
    return this.isExpired(range.maxMs, range.maxTicks) ? DISCARD : MAYBE;
  }
}

function isBefore(ms: number, ticks: number, cutoffMs: number, cutoffTicks: number): boolean {
  return ms < cutoffMs || (ms === cutoffMs && ticks < cutoffTicks);
}

/**
 * The discard point and the maybe-discard point of a stream in the making, from the decisions about its events by
 * ascending number: first event numbers to keep. Everything below the first goes for certain; in between the own time
 * of each event tells. So the first ends before the first event that may be alive, and what has expired behind that one
 * goes by the second.
 */
export class DiscardPoints {
  discard = 0;
  maybe = 0;
  isFirst = true;
  isDone = false;
  /** Nothing so far may be alive. */
  #isCertain = true;

  take(number: number, decision: Decision): void {
    if (this.isFirst) {
      // Numbers that left the index in an earlier run are covered too.
      this.discard = number;
      this.maybe = number;
      this.isFirst = false;
    }
    if (decision === STAYS) {
      this.maybe = Math.max(this.maybe, this.discard);
      this.isDone = true;
    } else if (decision === YOUNG) this.#isCertain = false;
    else if (decision === MAYBE) {
      this.maybe = number + 1;
      this.#isCertain = false;
    } else if (this.#isCertain) this.discard = number + 1;
    else if (decision === DISCARD) this.maybe = number + 1;
  }
}

/** Whether a stream has to be looked at again by the next run. */
export function statusOf(
  { isTombstoned, maxAge, maxCount, truncateBefore }: OriginalStreamData,
  lastNumber: number,
): StreamStatus {
  if (isTombstoned) return STATUS_ARCHIVED;
  if (maxAge !== null || maxCount !== null) return STATUS_ACTIVE;
  return truncateBefore !== null && truncateBefore !== TOMBSTONE && lastNumber < truncateBefore
    ? STATUS_ACTIVE
    : STATUS_SPENT;
}

/** The metadata of the stream say that it was deleted, and no tombstone says so for ever. */
export function isSoftDeleted({
  isTombstoned,
  truncateBefore,
}: Pick<OriginalStreamData, 'isTombstoned' | 'truncateBefore'>): boolean {
  return !isTombstoned && truncateBefore === TOMBSTONE;
}

const NO_BYTES = new Uint8Array(0);

/**
 * The data of a parsed prepare, as a view. The bytes of a redacted event are still there, but no reader may see them,
 * and metadata that no reader sees have no effect.
 */
export function shownData({ bytes }: RecordFrame, { flags, dataAt, dataLength }: PrepareFields): Uint8Array {
  return dataLength === 0 || (flags & FLAG_REDACTED) !== 0 ? NO_BYTES : viewAt(bytes, dataAt, dataLength);
}

/** All entries of a stream go: no number, not even a tombstone's, is as high. */
const NO_ENTRY = Infinity;

const HAS_DATA = 1;
const IS_TOMBSTONED = 2;
const IS_METASTREAM = 4;
const EMPTIES_LAST = 8;

/**
 * What a scavenge has calculated and stored for one stream, by which its records and index entries go. Without data all
 * stay.
 */
export class StoredRetention {
  /** Whether there are data, and of what; together with the three numbers all there is to remember. */
  flags = 0;
  discardPoint = 0;
  maybeDiscardPoint = 0;
  /** Milliseconds since 1970; -Infinity without a maximum age. */
  cutoffMs = -Infinity;
  readonly #nowMs: number;
  /** Ages are whole seconds, so all cutoffs have the ticks of the scavenge point. */
  readonly #cutoffTicks: number;
  readonly #dropsTombstones: boolean;
  readonly #keepsDeletedData: boolean;

  /**
   * The time of the scavenge point, whether hard deletes are undone, and whether the last event of a soft-deleted
   * stream keeps its data.
   */
  constructor(nowMs: number, nowTicks: number, dropsTombstones: boolean, keepsDeletedData: boolean) {
    this.#nowMs = nowMs;
    this.#cutoffTicks = nowTicks;
    this.#dropsTombstones = dropsTombstones;
    this.#keepsDeletedData = keepsDeletedData;
  }

  ofOriginal(data: OriginalStreamData | undefined): void {
    this.#set(data, 0, data?.maybeDiscardPoint ?? 0, data?.maxAge ?? null);
    if (!this.#keepsDeletedData && data !== undefined && isSoftDeleted(data) && data.status === STATUS_SPENT)
      this.flags |= EMPTIES_LAST;
  }

  ofMetastream(data: MetastreamData | undefined): void {
    this.#set(data, IS_METASTREAM, data?.discardPoint ?? 0, null);
  }

  #set(data: MetastreamData | undefined, kind: number, maybeDiscardPoint: number, maxAge: number | null): void {
    this.flags = data === undefined ? 0 : HAS_DATA | kind | (data.isTombstoned ? IS_TOMBSTONED : 0);
    this.discardPoint = data?.discardPoint ?? 0;
    this.maybeDiscardPoint = maybeDiscardPoint;
    this.cutoffMs = maxAge === null ? -Infinity : this.#nowMs - maxAge * 1_000;
  }

  /**
   * True when the prepare with these fields stays whatever its time; null when the time is to decide, by `isExpired`.
   */
  keeps(fields: PrepareFields): boolean | null {
    const { flags } = this;
    if (flags === 0) return true;
    const isTombstoned = (flags & IS_TOMBSTONED) !== 0;
    if (!fields.isCommitted) return keepsTransactionRecord(fields.flags, isTombstoned, this.#dropsTombstones);
    if (isTombstoned && (this.#dropsTombstones || (flags & IS_METASTREAM) !== 0)) return false;
    const number = fields.eventNumber;
    if (number < this.discardPoint) return false;
    return number >= this.maybeDiscardPoint || this.cutoffMs === -Infinity ? true : null;
  }

  isExpired(ms: number, ticks: number): boolean {
    return isBefore(ms, ticks, this.cutoffMs, this.#cutoffTicks);
  }

  /**
   * True when the prepare with these fields, which stays, is the last event of a soft-deleted stream, and is to lose
   * its data.
   */
  empties(fields: PrepareFields): boolean {
    return (this.flags & EMPTIES_LAST) !== 0 && fields.eventNumber === this.discardPoint && isWholeEvent(fields);
  }

  /** The first event number whose index entry stays. Entries of events of which only the time can decide stay. */
  get firstEntry(): number {
    if (this.flags === 0) return 0;
    const isTombstoned = (this.flags & IS_TOMBSTONED) !== 0;
    return isTombstoned && (this.#dropsTombstones || (this.flags & IS_METASTREAM) !== 0) ? NO_ENTRY : this.discardPoint;
  }
}

/**
 * Records of explicit transactions stay while their stream lives, and of a deleted one the tombstone and what began the
 * transaction.
 */
export function keepsTransactionRecord(flags: number, isTombstoned: boolean, dropsTombstones: boolean): boolean {
  return !isTombstoned || (!dropsTombstones && (flags & (FLAG_STREAM_DELETE | FLAG_TRANSACTION_BEGIN)) !== 0);
}

/** Stretches that are remembered of one stream. Where the clock never was set back there is one. */
const STRETCHES_MAX = 4;

interface Stretch {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
  readonly newestMs: number;
  readonly newestTicks: number;
}

/**
 * Stretches of event numbers all of whose events are known to be no newer than a certain time. Events never change, so
 * that holds for ever: readers pass over a stretch without a look once its time has expired.
 */
export class KnownStretches {
  /** Apart from each other; the one that was noted last comes last. */
  #stretches: readonly Stretch[] = [];

  /** All events with numbers in [from, to) were written at this time or before, and have expired. */
  note(from: number, to: number, newestMs: number, newestTicks: number, retention: Retention): void {
    if (from >= to) return;
    let joined: Stretch = { from, to, newestMs, newestTicks };
    const others: Stretch[] = [];
    for (const other of this.#stretches) {
      if (other.to < joined.from || other.from > joined.to) others.push(other);
      // One that no longer counts, since the maximum age was raised, would take what is known with it.
      else if (retention.isExpired(other.newestMs, other.newestTicks)) joined = join(joined, other);
    }
    this.#stretches = [...others.slice(-(STRETCHES_MAX - 1)), joined];
  }

  /** The least number from this one on of which it is not known that it has expired. */
  above(number: number, retention: Retention): number {
    return this.#around(number, retention)?.to ?? number;
  }

  /** The greatest number from this one down of which it is not known that it has expired; -1 for none. */
  below(number: number, retention: Retention): number {
    const stretch = this.#around(number, retention);
    return stretch === undefined ? number : stretch.from - 1;
  }

  #around(number: number, retention: Retention): Stretch | undefined {
    return this.#stretches.find(
      ({ from, to, newestMs, newestTicks }) =>
        number >= from && number < to && retention.isExpired(newestMs, newestTicks),
    );
  }
}

function join(a: Stretch, b: Stretch): Stretch {
  const newest = isBefore(a.newestMs, a.newestTicks, b.newestMs, b.newestTicks) ? b : a;
  return {
    from: Math.min(a.from, b.from),
    to: Math.max(a.to, b.to),
    newestMs: newest.newestMs,
    newestTicks: newest.newestTicks,
  };
}
