import { equalBytes } from '../base/bytes.ts';
import {
  type PrepareFields,
  type RecordFrame,
  streamOf,
  timestampMsAt,
  timestampTicksAt,
} from '../log/format/records.ts';
import type { ScavengeState } from '../ports/scavenge-state.ts';
import { Hash64, type StreamHasher } from '../base/stream-hash.ts';
import { emptied, isEmptied, redacted } from '../log/format/redaction.ts';
import { type MarkColumns, NO_MARKS } from '../streams/format/mark-columns.ts';
import { Redactions } from '../streams/redactions/redactions.ts';
import { StoredRetention } from '../streams/format/retention.ts';
import { type RunSettings, storedRetention } from './sources/run-settings.ts';

/** Slots of the memory of streams at the beginning and at most: 37 bytes each. */
const SLOTS_MIN = 1_024;
const SLOTS_MAX = 262_144;
/** What becomes of a record. Numbers, since they are asked for of every one. */
export const GOES = 0;
export const STAYS_AS_IT_IS = 1;
/** It stays without its content, as what `KeepRule.rest` gives: see core/log/format/redaction.ts. */
export const LOSES_CONTENT = 2;
export type Fate = typeof GOES | typeof STAYS_AS_IT_IS | typeof LOSES_CONTENT;

const NO_BYTES = new Uint8Array(0);
/** Longer names are not compared with the one of the record before. */
const NAME_BYTES_MAX = 256;

/** Set in the memory for a slot that is in use. */
const IS_FILLED = 0x80;

/**
 * Decides which prepare records survive a scavenge. What the state says of a stream is remembered by hash in a
 * table that grows to a fixed size, and a record whose stream is that of the record before costs a comparison of
 * names only.
 */
export class KeepRule {
  readonly #state: ScavengeState;
  readonly #hasher: StreamHasher;
  readonly #position: number;
  readonly #hash = new Hash64();
  readonly #rule: StoredRetention;
  readonly #marks: Redactions;
  /** Of the record that was asked for last, where it loses its content: what takes its place. */
  rest: Uint8Array = NO_BYTES;
  readonly #lastName = new Uint8Array(NAME_BYTES_MAX);
  #lastLength = -1;
  #memory = new RuleMemory(SLOTS_MIN);

  /** `marks`: those of the records that it will be asked about, as far as they lie before the point. */
  constructor(state: ScavengeState, settings: RunSettings, hasher: StreamHasher, marks: MarkColumns = NO_MARKS) {
    this.#state = state;
    this.#hasher = hasher;
    this.#position = settings.point.position;
    this.#rule = storedRetention(settings);
    this.#marks = Redactions.of(marks);
  }

  /**
   * What becomes of the prepare in `frame`, whose fields have been parsed. One that lost its content by an earlier run
   * stays as it is.
   */
  fateOf(frame: RecordFrame, fields: PrepareFields): Fate {
    if (frame.position >= this.#position) return STAYS_AS_IT_IS;
    this.#find(frame, fields);
    const rule = this.#rule;
    const stays =
      rule.keeps(fields) ??
      !rule.isExpired(
        timestampMsAt(frame.bytes, fields.timestampAt),
        timestampTicksAt(frame.bytes, fields.timestampAt),
      );
    if (!stays) return GOES;
    if (rule.empties(fields)) {
      if (isEmptied(frame, fields)) return STAYS_AS_IT_IS;
      this.rest = emptied(frame, fields);
      return LOSES_CONTENT;
    }
    const mark = this.#marks.count === 0 ? null : this.#marks.of(frame, fields);
    const rest = mark === null ? null : redacted(frame, fields, mark.keys);
    if (rest === null) return STAYS_AS_IT_IS;
    this.rest = rest;
    return LOSES_CONTENT;
  }

  /** Leaves what is known of the record's stream in `#rule`. */
  #find(frame: RecordFrame, fields: PrepareFields): void {
    const { streamAt, streamLength } = fields;
    const b = frame.bytes;
    const last = this.#lastName;
    if (streamLength === this.#lastLength && equalBytes(b, streamAt, last, 0, streamLength)) return;
    if (streamLength <= NAME_BYTES_MAX) {
      for (let i = 0; i < streamLength; i++) last[i] = b[streamAt + i]!;
      this.#lastLength = streamLength;
    } else this.#lastLength = -1;
    const hash = this.#hash;
    this.#hasher.hashUtf8(b, streamAt, streamLength, hash);
    const memory = this.#memory;
    if (memory.recall(hash.hi, hash.lo, this.#rule)) return;
    // In UTF-8 "$" is one byte, and no other character contains it.
    const isMetastream = streamLength >= 2 && b[streamAt] === 36 && b[streamAt + 1] === 36;
    if (this.#state.isSharedHash(hash.hi, hash.lo)) {
      this.#ask(isMetastream, streamOf(frame, fields));
      return;
    }
    this.#ask(isMetastream, null);
    if (memory.isCrowded) this.#memory = new RuleMemory(memory.slots * 4);
    this.#memory.keep(hash.hi, hash.lo, this.#rule);
  }

  /** Asks the state, by name where the hash is shared. */
  #ask(isMetastream: boolean, name: string | null): void {
    const state = this.#state;
    const { hi, lo } = this.#hash;
    if (isMetastream)
      this.#rule.ofMetastream(name === null ? state.metastreamByHash(hi, lo) : state.metastream(name, hi, lo));
    else this.#rule.ofOriginal(name === null ? state.originalByHash(hi, lo) : state.original(name, hi, lo));
  }
}

/** Rules of streams by the hash of their name, one a slot: a newer one takes the place of an older one. */
class RuleMemory {
  readonly slots: number;
  readonly #hi: Uint32Array;
  readonly #lo: Uint32Array;
  readonly #flags: Uint8Array;
  readonly #points: Float64Array;
  readonly #cutoffs: Float64Array;
  #kept = 0;

  constructor(slots: number) {
    this.slots = slots;
    this.#hi = new Uint32Array(slots);
    this.#lo = new Uint32Array(slots);
    this.#flags = new Uint8Array(slots);
    this.#points = new Float64Array(slots * 2);
    this.#cutoffs = new Float64Array(slots);
  }

  /** So many streams have come by that a larger memory pays. */
  get isCrowded(): boolean {
    return this.#kept >= this.slots && this.slots < SLOTS_MAX;
  }

  recall(hi: number, lo: number, out: StoredRetention): boolean {
    const slot = (hi ^ lo) & (this.slots - 1);
    const flags = this.#flags[slot]!;
    if (flags === 0 || this.#lo[slot] !== lo || this.#hi[slot] !== hi) return false;
    out.flags = flags & ~IS_FILLED;
    out.discardPoint = this.#points[slot * 2]!;
    out.maybeDiscardPoint = this.#points[slot * 2 + 1]!;
    out.cutoffMs = this.#cutoffs[slot]!;
    return true;
  }

  keep(hi: number, lo: number, rule: StoredRetention): void {
    const slot = (hi ^ lo) & (this.slots - 1);
    this.#kept++;
    this.#hi[slot] = hi;
    this.#lo[slot] = lo;
    this.#flags[slot] = rule.flags | IS_FILLED;
    this.#points[slot * 2] = rule.discardPoint;
    this.#points[slot * 2 + 1] = rule.maybeDiscardPoint;
    this.#cutoffs[slot] = rule.cutoffMs;
  }
}
