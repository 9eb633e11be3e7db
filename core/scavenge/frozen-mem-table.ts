import type { EntryList, IndexEntry } from '../index/entries.ts';
import type { MemTableColumns } from '../index/mem-table.ts';
import { sortedHeads } from '../index/table-write.ts';

/** Entries looked at between two checkpoints. */
const SLICE_ENTRIES = 262_144;

/**
 * The first `count` entries of a memtable as they were when its columns were handed over. The table may grow meanwhile
 * on another thread, so neither its list of heads nor entries behind `count` are trusted: heads are the entries that
 * no other entry names as the next smaller one.
 */
export class FrozenMemTable {
  readonly #columns: MemTableColumns;
  /** Greatest entries of all hashes, greatest hash first. */
  readonly #heads: Int32Array;

  private constructor(columns: MemTableColumns, heads: Int32Array) {
    this.#columns = columns;
    this.#heads = heads;
  }

  static async of(columns: MemTableColumns, checkpoint: () => Promise<void>): Promise<FrozenMemTable> {
    const { count } = columns;
    const isBelow = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      const below = olderOf(columns, i);
      if (below >= 0) isBelow[below] = 1;
      if (i % SLICE_ENTRIES === SLICE_ENTRIES - 1) await checkpoint();
    }
    let hashes = 0;
    for (let i = 0; i < count; i++) hashes += 1 - isBelow[i]!;
    const heads = new Int32Array(hashes);
    for (let i = 0, filled = 0; i < count; i++) if (isBelow[i] === 0) heads[filled++] = i + 1;
    return new FrozenMemTable(columns, await sortedHeads({ ...columns, heads, hashes }, checkpoint));
  }

  /** The greatest entry of the hash, or -1. */
  #headOf(hi: number, lo: number): number {
    const { hashHi, hashLo } = this.#columns;
    let low = 0;
    let high = this.#heads.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = this.#heads[middle]!;
      if ((hashHi[entry]! - hi || hashLo[entry]! - lo) > 0) low = middle + 1;
      else high = middle;
    }
    const head = this.#heads[low];
    return head !== undefined && hashHi[head] === hi && hashLo[head] === lo ? head : -1;
  }

  /** The greatest entry of the hash with a number of at most `version`. False, with `out` untouched, when there is none. */
  floor(hi: number, lo: number, version: number, out: IndexEntry): boolean {
    const { versions } = this.#columns;
    let entry = this.#headOf(hi, lo);
    while (entry >= 0 && versions[entry]! > version) entry = olderOf(this.#columns, entry);
    return this.#take(entry, out);
  }

  /** The least entry of the hash with a number of at least `version`. False, with `out` untouched, when there is none. */
  ceiling(hi: number, lo: number, version: number, out: IndexEntry): boolean {
    const { versions } = this.#columns;
    let found = -1;
    for (let entry = this.#headOf(hi, lo); entry >= 0 && versions[entry]! >= version; entry = olderOf(this.#columns, entry)) found = entry;
    return this.#take(found, out);
  }

  #take(entry: number, out: IndexEntry): boolean {
    if (entry < 0) return false;
    out.version = this.#columns.versions[entry]!;
    out.position = this.#columns.positions[entry]!;
    return true;
  }

  /** Appends the entries of the hash with fromVersion <= version <= toVersion to `out`, greatest first. */
  range(hi: number, lo: number, fromVersion: number, toVersion: number, out: EntryList): void {
    const { versions, positions } = this.#columns;
    for (let entry = this.#headOf(hi, lo); entry >= 0 && versions[entry]! >= fromVersion; entry = olderOf(this.#columns, entry)) {
      if (versions[entry]! <= toVersion) out.push(versions[entry]!, positions[entry]!);
    }
  }
}

/** The next smaller entry of the same hash that was there at the time, or -1. */
function olderOf(columns: MemTableColumns, entry: number): number {
  let below = columns.prev[entry]!;
  while (below >= columns.count) below = columns.prev[below]!;
  return below;
}
