import { hashKey } from '../attributes/format/attribute-keys.ts';
import { AttributeIntake, type AttributeSink } from '../attributes/intake/intake.ts';
import { Hash64 } from '../base/stream-hash.ts';
import type { ConditionItem } from './api.ts';

/** What of a group in flight is asked. */
export interface GroupInFlight {
  /** How often it was begun. */
  readonly begun: number;
  readonly start: number;
  readonly length: number;
  bytes(): Uint8Array;
}

/** Types and tags as hashes that a set can hold; two may share one. */
const LOW_BITS = 21;
function keyOf(hi: number, lo: number): number {
  return hi * 2 ** LOW_BITS + (lo >>> (32 - LOW_BITS));
}

const scratch = new Hash64();
function keyOfText(kind: 'et' | 'tag', text: string): number {
  hashKey(kind, text, scratch);
  return keyOf(scratch.hi, scratch.lo);
}

/** The keys of an item of a query. */
export class ItemKeys {
  readonly #types: readonly number[];
  readonly #tags: readonly number[];

  constructor({ types = [], tags = [] }: ConditionItem) {
    this.#types = types.map((type) => keyOfText('et', type));
    this.#tags = tags.map((tag) => keyOfText('tag', tag));
  }

  mayMatch(keys: ReadonlySet<number>): boolean {
    if (this.#types.length > 0 && !this.#types.some((key) => keys.has(key))) return false;
    return this.#tags.every((key) => keys.has(key));
  }
}

/**
 * The types and tags of all events of the group in flight, read from its bytes as far as they have been written when it
 * is asked. Where it has those of a query, one of its events may match, or several have them together.
 */
export class GroupKeys implements AttributeSink {
  readonly #keys = new Set<number>();
  readonly #intake = new AttributeIntake({ names: this, correlations: null, tags: this });
  #begun = -1;
  #taken = 0;

  add(hi: number, lo: number): void {
    this.#keys.add(keyOf(hi, lo));
  }

  end(): void {}

  /** Whether an event of the group may match one of the items; of no item any event. */
  mayMatch(items: readonly ItemKeys[], group: GroupInFlight): boolean {
    if (group.length === 0) return false;
    if (items.length === 0) return true;
    if (group.begun !== this.#begun) {
      this.#keys.clear();
      this.#begun = group.begun;
      this.#taken = 0;
    }
    // A group has no records of explicit transactions, at which the intake would stop.
    if (this.#taken < group.length)
      this.#taken += this.#intake.take(group.bytes().subarray(this.#taken), group.start + this.#taken);
    return items.some((item) => item.mayMatch(this.#keys));
  }
}
