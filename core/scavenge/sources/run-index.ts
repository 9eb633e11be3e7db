import { equalBytes } from '../../base/bytes.ts';
import type { BlockCache } from '../../cache/cache.ts';
import { HIT, isMiss, untilHit } from '../../base/step.ts';
import { EntryList, IndexEntry } from '../../index/format/entries.ts';
import type { MemTableColumns, TableReader } from '../../index/api.ts';
import { sortedHeads } from '../../index/mem-table/mem-table.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame, TOMBSTONE } from '../../log/format/records.ts';
import type { RunChunks } from './run-chunks.ts';

/** Numbers looked at together where the entries at the end of a stream are behind the limit, or another stream's. */
const BACKWARD_NUMBERS = 1_024;
const POSITION_MAX = Number.MAX_SAFE_INTEGER;

/** A stream as the index is asked for it. */
export interface IndexKey {
  readonly hi: number;
  readonly lo: number;
  /** The name in UTF-8 where the hash is shared, so that every entry is confirmed by its record; else null. */
  readonly name: Uint8Array | null;
}

interface RunIndexParts {
  readonly tables: readonly TableReader[];
  readonly memTables: readonly FrozenMemTable[];
  readonly chunks: RunChunks;
  readonly cache: BlockCache;
  /** Entries of records at or behind this position do not exist for the run. */
  readonly before: number;
}

/**
 * The index as a run sees it: the entries of all tables and memtables that point before the scavenge point, in order,
 * one a number (the earliest in the log, which is the one that readers see), exact where streams share a hash.
 */
export class RunIndex {
  readonly #parts: RunIndexParts;
  readonly #entry = new IndexEntry();
  readonly #nearest = new IndexEntry();
  readonly #backward = new EntryList();
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();

  constructor(parts: RunIndexParts) {
    this.#parts = parts;
  }

  /** Number of the last event of the stream, -1 when it has none. */
  async lastNumber(key: IndexKey): Promise<number> {
    const { before } = this.#parts;
    for (let to = TOMBSTONE; to >= 0;) {
      if (!(await this.#floor(key, to))) return -1;
      const { version, position } = this.#nearest;
      if (key.name === null && position < before) return version;
      const from = Math.max(0, version - BACKWARD_NUMBERS + 1);
      await this.#range(key, from, version, this.#backward);
      for (let i = this.#backward.length - 1; i >= 0; i--) {
        if (await this.#counts(key, this.#backward.positions[i]!)) return this.#backward.versions[i]!;
      }
      to = from - 1;
    }
    return -1;
  }

  /**
   * Fills `out` with the entries of the first event numbers at or after `from`: as many numbers as `numbers` says,
   * beginning with the first that has an entry. `last` is the stream's last number. Returns the number to go on with,
   * which is greater than `last` when there are no more.
   */
  async slice(key: IndexKey, from: number, last: number, numbers: number, out: EntryList): Promise<number> {
    out.clear();
    if (from > last) return from;
    let first = from;
    if (last - from >= numbers) {
      // The last number has an entry, so there is one.
      first = (await this.#ceiling(key, from)) ?? from;
    }
    const to = Math.min(last, first + numbers - 1);
    await this.#range(key, first, to, out);
    if (key.name === null) this.#keepEarliest(out);
    else await this.#keepConfirmed(key, out);
    return to + 1;
  }

  /** Drops what lies behind the limit, and all but the first entry of a number. */
  #keepEarliest(list: EntryList): void {
    const { before } = this.#parts;
    const { versions, positions } = list;
    let kept = 0;
    for (let i = 0; i < list.length; i++) {
      if (positions[i]! >= before || (kept > 0 && versions[kept - 1] === versions[i])) continue;
      versions[kept] = versions[i]!;
      positions[kept++] = positions[i]!;
    }
    list.length = kept;
  }

  async #keepConfirmed(key: IndexKey, list: EntryList): Promise<void> {
    const { versions, positions } = list;
    let kept = 0;
    for (let i = 0; i < list.length; i++) {
      if (kept > 0 && versions[kept - 1] === versions[i]) continue;
      if (!(await this.#counts(key, positions[i]!))) continue;
      versions[kept] = versions[i]!;
      positions[kept++] = positions[i]!;
    }
    list.length = kept;
  }

  /** True when the entry with this position is one of the stream's, as far as the run goes. */
  async #counts(key: IndexKey, position: number): Promise<boolean> {
    if (position >= this.#parts.before) return false;
    const { name } = key;
    if (name === null) return true;
    const frame = this.#frame;
    if (!(await this.#parts.chunks.record(position, frame)) || frame.type !== PREPARE) return false;
    const fields = this.#fields;
    parsePrepare(frame, fields);
    return fields.streamLength === name.length && equalBytes(frame.bytes, fields.streamAt, name, 0, name.length);
  }

  /**
   * Leaves the greatest entry with a number of at most `version` in `#nearest`; false where there is none. A table that
   * misses is asked again by itself: what all tables need together may be more than the cache holds.
   */
  async #floor({ hi, lo }: IndexKey, version: number): Promise<boolean> {
    const { tables, memTables } = this.#parts;
    const entry = this.#entry;
    let isFound = false;
    for (const table of memTables) if (table.floor(hi, lo, version, entry)) isFound = this.#takeGreater(isFound);
    for (const table of tables) {
      let outcome = table.floor(hi, lo, version, POSITION_MAX, entry);
      if (isMiss(outcome)) outcome = await untilHit(() => table.floor(hi, lo, version, POSITION_MAX, entry));
      if (outcome === HIT) isFound = this.#takeGreater(isFound);
    }
    return isFound;
  }

  #takeGreater(isFound: boolean): true {
    const { version, position } = this.#entry;
    const nearest = this.#nearest;
    if (!isFound || version > nearest.version || (version === nearest.version && position < nearest.position)) {
      nearest.version = version;
      nearest.position = position;
    }
    return true;
  }

  /** The least number of at least `version`, as `#floor`; null where there is none. */
  async #ceiling({ hi, lo }: IndexKey, version: number): Promise<number | null> {
    const { tables, memTables } = this.#parts;
    const entry = this.#entry;
    let least = Infinity;
    for (const table of memTables) if (table.ceiling(hi, lo, version, entry)) least = Math.min(least, entry.version);
    for (const table of tables) {
      let outcome = table.ceiling(hi, lo, version, 0, entry);
      if (isMiss(outcome)) outcome = await untilHit(() => table.ceiling(hi, lo, version, 0, entry));
      if (outcome === HIT) least = Math.min(least, entry.version);
    }
    return least === Infinity ? null : least;
  }

  /** All entries of the hash with numbers from `from` to `to`, ascending by number, then position. */
  async #range({ hi, lo }: IndexKey, from: number, to: number, out: EntryList): Promise<void> {
    const { tables, memTables } = this.#parts;
    out.clear();
    for (const table of memTables) table.range(hi, lo, from, to, out);
    for (const table of tables) {
      const { length } = out;
      // Only this table is asked again.
      await untilHit(() => {
        out.length = length;
        return table.range(hi, lo, from, to, out);
      });
    }
    out.sortAscending();
  }
}

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

  /**
   * The greatest entry of the hash with a number of at most `version`. False, with `out` untouched, when there is none.
   */
  floor(hi: number, lo: number, version: number, out: IndexEntry): boolean {
    const { versions } = this.#columns;
    let entry = this.#headOf(hi, lo);
    while (entry >= 0 && versions[entry]! > version) entry = olderOf(this.#columns, entry);
    return this.#take(entry, out);
  }

  /**
   * The least entry of the hash with a number of at least `version`. False, with `out` untouched, when there is none.
   */
  ceiling(hi: number, lo: number, version: number, out: IndexEntry): boolean {
    const { versions } = this.#columns;
    let found = -1;
    for (
      let entry = this.#headOf(hi, lo);
      entry >= 0 && versions[entry]! >= version;
      entry = olderOf(this.#columns, entry)
    )
      found = entry;
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
    for (
      let entry = this.#headOf(hi, lo);
      entry >= 0 && versions[entry]! >= fromVersion;
      entry = olderOf(this.#columns, entry)
    ) {
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
