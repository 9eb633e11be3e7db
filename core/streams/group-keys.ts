import { hashKey } from '../attributes/format/attribute-keys.ts';
import { EntriesAhead } from '../attributes/entries-ahead/entries-ahead.ts';
import { Hash64 } from '../base/stream-hash.ts';
import type { ConditionItem } from './api.ts';

/** What of a group in flight is asked. */
export interface GroupInFlight {
  readonly start: number;
  readonly length: number;
  readonly keys: GroupKeys;
  /** Its records, `length` bytes as far as they have been written, and room for more. */
  readonly buffer: Uint8Array;
}

/** Types and tags as hashes that a set holds without an object for each; two may share one. */
function keyOf(hi: number, lo: number): number {
  return hi ^ lo;
}

const NONE: readonly number[] = [];
const scratch = new Hash64();
function keyOfText(kind: 'et' | 'tag', text: string): number {
  hashKey(kind, text, scratch);
  return keyOf(scratch.hi, scratch.lo);
}

/** The keys of an item of a query. */
export class ItemKeys {
  readonly #types: readonly number[];
  readonly #tags: readonly number[];

  constructor({ types, tags }: ConditionItem) {
    this.#types = types === undefined ? NONE : types.map((type) => keyOfText('et', type));
    this.#tags = tags === undefined ? NONE : tags.map((tag) => keyOfText('tag', tag));
  }

  get asksTypes(): boolean {
    return this.#types.length > 0;
  }

  mayMatch(keys: ReadonlySet<number>): boolean {
    for (const key of this.#tags) if (!keys.has(key)) return false;
    for (const key of this.#types) if (keys.has(key)) return true;
    return !this.asksTypes;
  }
}

/**
 * The types and tags of all events of a group in flight, read from its bytes as far as they have been written when it
 * is asked. Where it has those of a query, one of its events may match, or several have them together.
 */
export class GroupKeys {
  readonly ahead = new EntriesAhead();
  readonly #keys = new Set<number>();
  /** Names among the keys: only as far as a query has asked for types. */
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
    const { ahead } = this;
    const { names, tags } = ahead.held;
    if (ahead.taken < group.length) ahead.read(group.buffer, group.start, group.length);
    for (; this.#tags < tags.count; this.#tags++) this.#keys.add(keyOf(tags.hiOf(this.#tags), tags.loOf(this.#tags)));
    for (const item of items) {
      if (item.asksTypes)
        for (; this.#names < names.count; this.#names++)
          this.#keys.add(keyOf(names.hiOf(this.#names), names.loOf(this.#names)));
      if (item.mayMatch(this.#keys)) return true;
    }
    return false;
  }
}
