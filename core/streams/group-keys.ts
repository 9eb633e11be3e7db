import { hashKey } from '../attributes/format/attribute-keys.ts';
import { EntriesAhead } from '../attributes/entries-ahead/entries-ahead.ts';
import { Hash64 } from '../base/stream-hash.ts';
import type { ConditionItem } from './api.ts';

/** What of a group in flight is asked. */
export interface GroupInFlight {
  readonly start: number;
  readonly length: number;
  readonly keys: GroupKeys;
  bytes(): Uint8Array;
}

/** Places of an empty set of hashes, and those that are kept from one group to the next; powers of two. */
const PLACES_MIN = 256;
const PLACES_KEPT_MAX = 65_536;
/** What a place holds: both halves of a hash, and the round in which it was added. */
const PLACE_WORDS = 3;
const ROUNDS_MAX = 2_147_483_647;

/** Hashes that are all forgotten at once. One that is asked for thousands of times a second makes no garbage. */
class HashSet {
  #words = new Int32Array(PLACES_MIN * PLACE_WORDS);
  #mask = PLACES_MIN - 1;
  #count = 0;
  #round = 1;

  clear(): void {
    this.#count = 0;
    if (this.#mask >= PLACES_KEPT_MAX || this.#round === ROUNDS_MAX) {
      this.#words = new Int32Array(PLACES_MIN * PLACE_WORDS);
      this.#mask = PLACES_MIN - 1;
      this.#round = 0;
    }
    this.#round++;
  }

  has(hi: number, lo: number): boolean {
    const at = this.#placeOf(hi, lo);
    return this.#words[at + 2] === this.#round;
  }

  add(hi: number, lo: number): void {
    if (this.#count * 2 > this.#mask) this.#grow();
    const at = this.#placeOf(hi, lo);
    const words = this.#words;
    if (words[at + 2] === this.#round) return;
    words[at] = hi;
    words[at + 1] = lo;
    words[at + 2] = this.#round;
    this.#count++;
  }

  /** Where the hash stands, or would. */
  #placeOf(hi: number, lo: number): number {
    const words = this.#words;
    for (let place = lo & this.#mask; ; place = (place + 1) & this.#mask) {
      const at = place * PLACE_WORDS;
      if (words[at + 2] !== this.#round || (words[at] === (hi | 0) && words[at + 1] === (lo | 0))) return at;
    }
  }

  #grow(): void {
    const old = this.#words;
    this.#mask = this.#mask * 2 + 1;
    this.#words = new Int32Array((this.#mask + 1) * PLACE_WORDS);
    this.#count = 0;
    for (let at = 0; at < old.length; at += PLACE_WORDS)
      if (old[at + 2] === this.#round) this.add(old[at]!, old[at + 1]!);
  }
}

const scratch = new Hash64();

/** The hashes of texts, both halves of one behind the other. */
function hashesOf(kind: 'et' | 'tag', texts: readonly string[]): readonly number[] {
  const halves: number[] = [];
  for (const text of texts) {
    hashKey(kind, text, scratch);
    halves.push(scratch.hi, scratch.lo);
  }
  return halves;
}

/** The keys of an item of a query. */
export class ItemKeys {
  readonly #types: readonly number[];
  readonly #tags: readonly number[];

  constructor({ types = [], tags = [] }: ConditionItem) {
    this.#types = hashesOf('et', types);
    this.#tags = hashesOf('tag', tags);
  }

  mayMatch(keys: Pick<HashSet, 'has'>): boolean {
    const types = this.#types;
    const tags = this.#tags;
    for (let i = 0; i < tags.length; i += 2) if (!keys.has(tags[i]!, tags[i + 1]!)) return false;
    for (let i = 0; i < types.length; i += 2) if (keys.has(types[i]!, types[i + 1]!)) return true;
    return types.length === 0;
  }
}

/**
 * The types and tags of all events of a group in flight, read from its bytes as far as they have been written when it
 * is asked. Where it has those of a query, one of its events may match, or several have them together.
 */
export class GroupKeys {
  readonly ahead = new EntriesAhead();
  readonly #keys = new HashSet();
  #names = 0;
  #tags = 0;

  /** A group begins. */
  clear(): void {
    if (this.ahead.taken === 0) return;
    this.ahead.clear();
    this.#keys.clear();
    this.#names = this.#tags = 0;
  }

  /** Whether an event of the group may match one of the items; of no item any event. */
  mayMatch(items: readonly ItemKeys[], group: GroupInFlight): boolean {
    if (group.length === 0) return false;
    if (items.length === 0) return true;
    // A group has no records of explicit transactions, at which the reading would stop.
    if (this.ahead.taken < group.length) {
      const { names, tags } = this.ahead.held;
      this.ahead.read(group.bytes(), group.start);
      for (; this.#names < names.count; this.#names++) this.#keys.add(names.hiOf(this.#names), names.loOf(this.#names));
      for (; this.#tags < tags.count; this.#tags++) this.#keys.add(tags.hiOf(this.#tags), tags.loOf(this.#tags));
    }
    return items.some((item) => item.mayMatch(this.#keys));
  }
}
