import { i32 } from '../bytes.ts';
import { END, HIT, isMiss, type Outcome } from '../cache/step.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame, streamOf } from '../log/records.ts';
import { type Lookup, StreamKey } from './lookup.ts';
import type { StoreContext } from './store-context.ts';

/** Slots of the hash table for each remembered id: at most half of them is taken. */
const SLOTS_PER_ID = 2;

/**
 * Where the events written last stand in the log, by event id and stream, so that a repeated request is recognised
 * without knowing an event number (http-api.md section 2.4).
 *
 * A ring of ids in the order of writing, so that the oldest makes room, and a hash table with linear probing over it.
 * Typed arrays only: a hundred thousand ids are no objects for the garbage collector.
 */
export class RecentIds {
  readonly capacity: number;
  /** Every event at or after this position is remembered, as far as events were added in the order of the log. */
  completeFrom = 0;
  /** Four words of id and one of stream hash an entry. */
  readonly #keys: Int32Array;
  /** Log position; -1 for a free or withdrawn entry. */
  readonly #positions: Float64Array;
  /** Two words a slot: entry + 1 (0: an empty slot) and the hash of its key, which spares most looks at keys far away. */
  readonly #slots: Int32Array;
  readonly #mask: number;
  #head = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#keys = new Int32Array(capacity * 5);
    this.#positions = new Float64Array(capacity).fill(-1);
    let slots = 16;
    while (slots < capacity * SLOTS_PER_ID) slots *= 2;
    this.#slots = new Int32Array(slots * 2);
    this.#mask = slots - 1;
  }

  /** Position of the event with the id at `at` in the stream with this salt, -1 when not known. */
  find(ids: Uint8Array, at: number, salt: number): number {
    const w0 = i32(ids, at), w1 = i32(ids, at + 4), w2 = i32(ids, at + 8), w3 = i32(ids, at + 12);
    const slot = this.#slotOf(w0, w1, w2, w3, salt, hashOf(w0, w1, w2, w3, salt));
    return this.#slots[slot * 2] === 0 ? -1 : this.#positions[this.#slots[slot * 2]! - 1]!;
  }

  /**
   * Remembers an event just placed at `position`. Where the key is known already the earlier event stays the answer,
   * unless it lies before `validFrom`: then it has been looked at and is not there any more.
   */
  add(ids: Uint8Array, at: number, salt: number, position: number, validFrom: number): void {
    const w0 = i32(ids, at), w1 = i32(ids, at + 4), w2 = i32(ids, at + 8), w3 = i32(ids, at + 12);
    const hash = hashOf(w0, w1, w2, w3, salt);
    const slots = this.#slots;
    const positions = this.#positions;
    let slot = this.#slotOf(w0, w1, w2, w3, salt, hash);
    const known = slots[slot * 2]! - 1;
    if (known >= 0) {
      if (positions[known]! >= validFrom) return;
      this.#withdraw(known, slot);
    }
    const entry = this.#head;
    this.#head = entry + 1 === this.capacity ? 0 : entry + 1;
    const oldest = positions[entry]!;
    if (oldest >= 0) {
      if (oldest >= this.completeFrom) this.completeFrom = oldest + 1;
      this.#remove(entry);
    }
    // What was removed may have left a place that is nearer.
    slot = hash & this.#mask;
    while (slots[slot * 2] !== 0) slot = (slot + 1) & this.#mask;
    slots[slot * 2] = entry + 1;
    slots[slot * 2 + 1] = hash;
    const keys = this.#keys;
    const k = entry * 5;
    keys[k] = w0;
    keys[k + 1] = w1;
    keys[k + 2] = w2;
    keys[k + 3] = w3;
    keys[k + 4] = salt;
    positions[entry] = position;
  }

  /** Forgets what was added at or after `position`, because it did not become durable. */
  withdrawFrom(position: number): void {
    for (let i = 0; i < this.capacity; i++) {
      const entry = this.#head === 0 ? this.capacity - 1 : this.#head - 1;
      const at = this.#positions[entry]!;
      // Entries replaced within the same group are free already, and others may lie before them.
      if (at >= 0 && at < position) return;
      if (at < 0 && !this.#isHole(entry)) return;
      if (at >= 0) this.#remove(entry);
      this.#clearHole(entry);
      this.#head = entry;
    }
  }

  /** The slot that holds the key, or the empty one where it belongs. */
  #slotOf(w0: number, w1: number, w2: number, w3: number, salt: number, hash: number): number {
    const keys = this.#keys;
    const slots = this.#slots;
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const entry = slots[slot * 2]! - 1;
      if (entry < 0) return slot;
      if (slots[slot * 2 + 1] !== hash) continue;
      const at = entry * 5;
      if (keys[at] === w0 && keys[at + 1] === w1 && keys[at + 2] === w2 && keys[at + 3] === w3 && keys[at + 4] === salt) return slot;
    }
  }

  #hashOfEntry(entry: number): number {
    const keys = this.#keys;
    const at = entry * 5;
    return hashOf(keys[at]!, keys[at + 1]!, keys[at + 2]!, keys[at + 3]!, keys[at + 4]!);
  }

  /** Frees an entry that a newer one replaces. It stays in its place of the ring as a hole. */
  #withdraw(entry: number, slot: number): void {
    this.#freeSlot(slot);
    this.#positions[entry] = HOLE;
  }

  #isHole(entry: number): boolean { return this.#positions[entry] === HOLE; }

  #clearHole(entry: number): void { this.#positions[entry] = -1; }

  #remove(entry: number): void {
    let slot = this.#hashOfEntry(entry) & this.#mask;
    while (this.#slots[slot * 2] !== entry + 1) slot = (slot + 1) & this.#mask;
    this.#freeSlot(slot);
    this.#positions[entry] = -1;
  }

  /** Empties a slot and moves up those behind it that would not be found any more. */
  #freeSlot(free: number): void {
    const slots = this.#slots;
    const mask = this.#mask;
    let hole = free;
    for (let slot = (hole + 1) & mask; slots[slot * 2] !== 0; slot = (slot + 1) & mask) {
      const hash = slots[slot * 2 + 1]!;
      // It may move to the hole unless its home lies between the hole and itself.
      if (((slot - hash) & mask) < ((slot - hole) & mask)) continue;
      slots[hole * 2] = slots[slot * 2]!;
      slots[hole * 2 + 1] = hash;
      hole = slot;
    }
    slots[hole * 2] = 0;
  }
}

/** Hash of a key, whose low bits are the slot where its search starts. Ids need not be random, so all words are mixed. */
function hashOf(w0: number, w1: number, w2: number, w3: number, salt: number): number {
  let hash = mixed(mixed(mixed(mixed(salt, w0), w1), w2), w3);
  hash = Math.imul(hash, 0xc2b2ae35);
  return hash ^ (hash >>> 13);
}

function mixed(hash: number, word: number): number {
  const product = Math.imul(hash ^ word, 0x85ebca6b);
  return product ^ (product >>> 15);
}

/** Mark of an entry that was replaced by a newer one. */
const HOLE = -2;

/** Records at the end of the log whose ids are remembered after a start: those whose writers may not have got their answer. */
const PRIMED_RECORDS_MAX = 16_384;

/** Walks back over the last records of the log, then remembers their events in the order in which they were written. */
export async function primeRecentIds(context: StoreContext, recent: RecentIds): Promise<void> {
  const { lookup, clock, options } = context;
  const walk = new WalkBack(lookup);
  for (let isDone = false; !isDone;) {
    const outcome = walk.step(options.readSliceEvents);
    if (isMiss(outcome)) await outcome;
    else if (outcome === END) isDone = true;
    else await clock.yield();
  }
  walk.fillIn(recent);
}

class WalkBack {
  readonly #lookup: Lookup;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();
  readonly #ids = new Uint8Array(PRIMED_RECORDS_MAX * 16);
  readonly #salts = new Int32Array(PRIMED_RECORDS_MAX);
  readonly #positions = new Float64Array(PRIMED_RECORDS_MAX);
  #count = 0;
  #examined = 0;
  #position: number;

  constructor(lookup: Lookup) {
    this.#lookup = lookup;
    this.#position = lookup.reader.end;
  }

  /** END when enough has been seen; HIT after a slice. */
  step(slice: number): Outcome {
    const { reader, index } = this.#lookup;
    const f = this.#fields;
    for (let i = 0; i < slice; i++) {
      if (this.#examined === PRIMED_RECORDS_MAX) return END;
      const outcome = reader.readBackward(this.#position, this.#frame);
      if (outcome !== HIT) return outcome;
      this.#examined++;
      this.#position = this.#frame.position;
      if (this.#frame.type !== PREPARE) continue;
      parsePrepare(this.#frame, f);
      if (!f.isCommitted || !f.isEvent) continue;
      this.#ids.set(this.#frame.bytes.subarray(f.eventIdAt, f.eventIdAt + 16), this.#count * 16);
      this.#salts[this.#count] = new StreamKey(streamOf(this.#frame, f), index.hasher).salt;
      this.#positions[this.#count++] = this.#position;
    }
    return HIT;
  }

  fillIn(recent: RecentIds): void {
    for (let i = this.#count - 1; i >= 0; i--) recent.add(this.#ids, i * 16, this.#salts[i]!, this.#positions[i]!, 0);
  }
}
