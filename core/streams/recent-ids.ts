import { i32 } from '../base/bytes.ts';
import { END, HIT, isMiss, type Outcome } from '../base/step.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame } from '../log/format/records.ts';
import { type Lookup, saltAt } from './lookup/lookup.ts';
import type { StoreContext } from './store-context.ts';

/**
 * Places of a bucket, which together are one line of the processor's memory, and ids that are in it in the mean, at
 * most.
 */
const BUCKET = 16;
const BUCKET_MEAN = 8;

/**
 * Where the events written last stand in the log, by event id and stream, so that a repeated request is recognised
 * without knowing an event number.
 *
 * A ring of ids in the order of writing, so that the oldest makes room, and a hash table of buckets over it. Typed
 * arrays only: a hundred thousand ids are no objects for the garbage collector. Each id that is added looks at two
 * places anywhere in the table, which takes longer than all else: so a place is one word, and the whole of a bucket
 * lies together.
 */
export class RecentIds {
  readonly capacity: number;
  /** Every event at or after this position is remembered, as far as events were added in the order of the log. */
  completeFrom = 0;
  /** Four words of id and one of stream hash an entry. */
  readonly #keys: Int32Array;
  /** Log position; -1 for a free or withdrawn entry. */
  readonly #positions: Float64Array;
  /**
   * The number of an entry, and above it the upper bits of the hash of its key, which spare most looks at keys far
   * away.
   */
  readonly #places: Int32Array;
  /** Places of each bucket that are taken, from its first one on. */
  readonly #taken: Uint8Array;
  /**
   * For each bucket, how many of its ids are in buckets behind it because it was full, and how far behind they may be.
   */
  readonly #elsewhere: Int32Array;
  readonly #reach: Int32Array;
  /** Bits of a hash that say which bucket it belongs to, and of a place that say which entry. */
  readonly #bucketMask: number;
  readonly #entryMask: number;
  #head = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#keys = new Int32Array(capacity * 5);
    this.#positions = new Float64Array(capacity).fill(-1);
    let buckets = 1;
    while (buckets * BUCKET_MEAN < capacity) buckets *= 2;
    this.#places = new Int32Array(buckets * BUCKET);
    this.#taken = new Uint8Array(buckets);
    this.#elsewhere = new Int32Array(buckets);
    this.#reach = new Int32Array(buckets);
    this.#bucketMask = buckets - 1;
    this.#entryMask = capacity > 1 ? -1 >>> Math.clz32(capacity - 1) : 0;
  }

  /** Position of the event with the id at `at` in the stream with this salt, -1 when not known. */
  find(ids: Uint8Array, at: number, salt: number): number {
    const w0 = i32(ids, at),
      w1 = i32(ids, at + 4),
      w2 = i32(ids, at + 8),
      w3 = i32(ids, at + 12);
    const entry = this.#entryOf(w0, w1, w2, w3, salt, hashOf(w0, w1, w2, w3, salt));
    return entry < 0 ? -1 : this.#positions[entry]!;
  }

  /**
   * Remembers an event just placed at `position`. Where the key is known already the earlier event stays the answer,
   * unless it lies before `validFrom`: then it has been looked at and is not there any more.
   */
  add(ids: Uint8Array, at: number, salt: number, position: number, validFrom: number): void {
    const w0 = i32(ids, at),
      w1 = i32(ids, at + 4),
      w2 = i32(ids, at + 8),
      w3 = i32(ids, at + 12);
    const hash = hashOf(w0, w1, w2, w3, salt);
    const positions = this.#positions;
    const known = this.#entryOf(w0, w1, w2, w3, salt, hash);
    if (known >= 0) {
      if (positions[known]! >= validFrom) return;
      // The old entry stays in its place of the ring as a hole.
      this.#free(known, hash);
      positions[known] = HOLE;
    }
    const entry = this.#head;
    this.#head = entry + 1 === this.capacity ? 0 : entry + 1;
    const oldest = positions[entry]!;
    if (oldest >= 0) {
      if (oldest >= this.completeFrom) this.completeFrom = oldest + 1;
      this.#free(entry, this.#hashOfEntry(entry));
    }
    const keys = this.#keys;
    const k = entry * 5;
    keys[k] = w0;
    keys[k + 1] = w1;
    keys[k + 2] = w2;
    keys[k + 3] = w3;
    keys[k + 4] = salt;
    positions[entry] = position;
    this.#put(entry, hash);
  }

  /** Forgets what was added at or after `position`, because it did not become durable. */
  withdrawFrom(position: number): void {
    for (let i = 0; i < this.capacity; i++) {
      const entry = this.#head === 0 ? this.capacity - 1 : this.#head - 1;
      const at = this.#positions[entry]!;
      // Entries replaced within the same group are free already, and others may lie before them.
      if (at >= 0 && at < position) return;
      if (at < 0 && at !== HOLE) return;
      if (at >= 0) this.#free(entry, this.#hashOfEntry(entry));
      this.#positions[entry] = -1;
      this.#head = entry;
    }
  }

  /** The entry of a key, or -1. */
  #entryOf(w0: number, w1: number, w2: number, w3: number, salt: number, hash: number): number {
    const keys = this.#keys;
    const places = this.#places;
    const mask = this.#entryMask;
    const home = hash & this.#bucketMask;
    for (let left = this.#reach[home]!, bucket = home; left >= 0; left--, bucket = (bucket + 1) & this.#bucketMask) {
      const begin = bucket * BUCKET;
      for (let i = begin, end = begin + this.#taken[bucket]!; i < end; i++) {
        const position = places[i]!;
        if (((position ^ hash) & ~mask) !== 0) continue;
        const entry = position & mask;
        const at = entry * 5;
        if (
          keys[at] === w0 &&
          keys[at + 1] === w1 &&
          keys[at + 2] === w2 &&
          keys[at + 3] === w3 &&
          keys[at + 4] === salt
        )
          return entry;
      }
    }
    return -1;
  }

  #hashOfEntry(entry: number): number {
    const keys = this.#keys;
    const at = entry * 5;
    return hashOf(keys[at]!, keys[at + 1]!, keys[at + 2]!, keys[at + 3]!, keys[at + 4]!);
  }

  /** There are twice as many places as entries, so that some bucket has one. */
  #put(entry: number, hash: number): void {
    const taken = this.#taken;
    const home = hash & this.#bucketMask;
    let bucket = home;
    let distance = 0;
    for (; taken[bucket] === BUCKET; distance++) bucket = (bucket + 1) & this.#bucketMask;
    this.#places[bucket * BUCKET + taken[bucket]!++] = (hash & ~this.#entryMask) | entry;
    if (distance === 0) return;
    this.#elsewhere[home]!++;
    if (distance > this.#reach[home]!) this.#reach[home] = distance;
  }

  /** Frees the place of an entry: the last one of its bucket moves there. */
  #free(entry: number, hash: number): void {
    const places = this.#places;
    const wanted = (hash & ~this.#entryMask) | entry;
    const home = hash & this.#bucketMask;
    for (let left = this.#reach[home]!, bucket = home; left >= 0; left--, bucket = (bucket + 1) & this.#bucketMask) {
      const begin = bucket * BUCKET;
      const last = begin + this.#taken[bucket]! - 1;
      let i = last;
      while (i >= begin && places[i] !== wanted) i--;
      if (i < begin) continue;
      places[i] = places[last]!;
      this.#taken[bucket]!--;
      if (bucket !== home && --this.#elsewhere[home]! === 0) this.#reach[home] = 0;
      return;
    }
  }
}

/** Hash of a key, whose low bits are the bucket that it belongs to. Ids need not be random, so all words are mixed. */
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

/**
 * Records at the end of the log whose ids are remembered after a start: those whose writers may not have got their
 * answer.
 */
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
    const { reader } = this.#lookup;
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
      this.#salts[this.#count] = saltAt(this.#frame.bytes, f.streamAt, f.streamLength);
      this.#positions[this.#count++] = this.#position;
    }
    return HIT;
  }

  fillIn(recent: RecentIds): void {
    for (let i = this.#count - 1; i >= 0; i--) recent.add(this.#ids, i * 16, this.#salts[i]!, this.#positions[i]!, 0);
  }
}
