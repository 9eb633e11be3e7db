import { EntryList } from '../index/entries.ts';
import type { IndexKey, RunIndex } from './run-index.ts';

/** Entries that are looked at for one metadata record. */
const ENTRIES_MAX = 100;
/** No record is garbage. */
export const NONE = -1;

/**
 * Whether metadata records ascend in number with the log; scavenge.md section 4.3. Old defects could leave some that do
 * not, and as readers honour only what the index presents, a record that was overtaken by an earlier one must not count.
 */
export class MetadataOrder {
  readonly #index: RunIndex;
  readonly #entries = new EntryList();
  /** After `check`: the position of the record that is garbage, or NONE. */
  replaced = NONE;

  constructor(index: RunIndex) {
    this.#index = index;
  }

  /** True when the record with this number and position of the metastream is in order. */
  async check(key: IndexKey, number: number, position: number): Promise<boolean> {
    const last = await this.#index.lastNumber(key);
    this.replaced = NONE;
    let isInOrder = true;
    let seen = 0;
    for (let from = Math.max(0, number - 1); from <= last && seen < ENTRIES_MAX;) {
      from = await this.#index.slice(key, from, last, ENTRIES_MAX, this.#entries);
      const { versions, positions, length } = this.#entries;
      for (let i = 0; i < length && seen < ENTRIES_MAX; i++, seen++) {
        if (positions[i]! >= position) continue;
        if (versions[i]! >= number) isInOrder = false;
        else if (seen === 0) this.replaced = positions[i]!;
      }
    }
    if (!isInOrder) this.replaced = position;
    return isInOrder;
  }

  /** Position of the last record of the metastream, or NONE. */
  async lastPosition(key: IndexKey): Promise<number> {
    const last = await this.#index.lastNumber(key);
    if (last < 0) return NONE;
    await this.#index.slice(key, last, last, 1, this.#entries);
    return this.#entries.length > 0 ? this.#entries.positions[0]! : NONE;
  }
}
