import { SkuaError } from '../../base/errors.ts';
import { type EntryList, IndexEntry } from '../format/entries.ts';
import { MemTable, MemTableRooms } from './mem-table.ts';

/** Share of a memtable that is full when the worker that will write it is called. */
const PREPARE_AT = 7 / 8;

/** Share of a memtable; fewer entries are hardly any. */
const IDLE_SHARE = 0.01;

/** A memtable and the checkpoints of the last bulk in it. */
interface Frozen {
  readonly table: MemTable;
  readonly commit: number;
  readonly prepare: number;
}

export interface MemTablesOptions {
  /** Entries of a full memtable. */
  readonly entriesMax: number;
  /** One will soon be full. */
  readonly onNearlyFull: () => void;
  /** One is full: `oldest` is to be written. */
  readonly onFull: () => void;
}

/**
 * The entries of an index that are in no table yet: a memtable that is being filled, and full ones that wait to be
 * written. Searches see all of them.
 */
export class MemTables {
  readonly #options: MemTablesOptions;
  readonly #rooms = new MemTableRooms();
  readonly #candidate = new IndexEntry();
  #active: MemTable;
  /** Newest first. */
  #frozen: readonly Frozen[] = [];
  /** A table that has been written, to be filled again. */
  #spare: MemTable | null = null;
  #bulkCommit = -1;
  #bulkPrepare = -1;
  #isBulkOpen = false;
  #isNearlyFull = false;
  /** Entries of the memtable that is being filled, at the last `rest`. */
  #countAtRest = 0;

  constructor(options: MemTablesOptions) {
    this.#options = options;
    this.#active = new MemTable(options.entriesMax, this.#rooms);
  }

  /** Commit position of the last transaction that was added; -1 for none. */
  get commitPosition(): number {
    return this.#bulkCommit;
  }
  /** Position of its last prepare; -1 for none. */
  get preparePosition(): number {
    return this.#bulkPrepare;
  }
  get count(): number {
    return this.#frozen.reduce((sum, { table }) => sum + table.count, this.#active.count);
  }
  /** Full memtables that wait to be written, and the one that is to be written next. */
  get waiting(): number {
    return this.#frozen.length;
  }
  get oldest(): Frozen | undefined {
    return this.#frozen.at(-1);
  }

  /** Adds an entry, unless it is in the memtable already. Part of a bulk that `endBulk` ends. */
  add(hi: number, lo: number, version: number, position: number): void {
    this.#isBulkOpen = true;
    this.#active.add(hi, lo, version, position);
  }

  /** Ends the entries of one transaction. A full memtable is switched out here. */
  endBulk(commitPosition: number, preparePosition: number): void {
    this.#isBulkOpen = false;
    this.#bulkCommit = commitPosition;
    this.#bulkPrepare = preparePosition;
    const { count } = this.#active;
    const { entriesMax, onNearlyFull } = this.#options;
    if (count >= entriesMax) this.#freeze();
    else if (!this.#isNearlyFull && count >= entriesMax * PREPARE_AT) {
      this.#isNearlyFull = true;
      onNearlyFull();
    }
  }

  /** All entries wait to be written from now on. */
  freeze(): void {
    if (this.#isBulkOpen)
      throw new SkuaError('io_error', 'The index was flushed in the middle of a transaction: this is a defect.');
    if (this.#active.count > 0) this.#freeze();
  }

  #freeze(): void {
    this.#isNearlyFull = false;
    this.#frozen = [{ table: this.#active, commit: this.#bulkCommit, prepare: this.#bulkPrepare }, ...this.#frozen];
    this.#active = this.#spare ?? new MemTable(this.#options.entriesMax, this.#rooms);
    this.#spare = null;
    this.#options.onFull();
  }

  /** Its entries are in a table. */
  written(oldest: Frozen): void {
    this.#frozen = this.#frozen.filter((frozen) => frozen !== oldest);
    const { table } = oldest;
    if (table.isLent || this.#spare !== null) return;
    table.clear();
    this.#spare = table;
  }

  /**
   * Whether hardly any entries have come since the last call; then no memory is kept for the next table. While more
   * come, what is let go would wait for the garbage collectors of all threads, which don't count it, and another piece
   * be filled meanwhile.
   */
  rest(): boolean {
    const { count } = this.#active;
    const isIdle = Math.abs(count - this.#countAtRest) < this.#options.entriesMax * IDLE_SHARE;
    this.#countAtRest = count;
    if (isIdle) this.#rooms.forget();
    return isIdle;
  }

  /**
   * Whether there is a greatest entry of the hash that is at most (version, position), or for no floor a least one that
   * is at least that, which is then in `out`.
   */
  nearest(hi: number, lo: number, version: number, position: number, out: IndexEntry, isFloor: boolean): boolean {
    const c = this.#candidate;
    let isFound = false;
    for (let i = -1; i < this.#frozen.length; i++) {
      const table = i < 0 ? this.#active : this.#frozen[i]!.table;
      const hit = isFloor ? table.floor(hi, lo, version, position, c) : table.ceiling(hi, lo, version, position, c);
      if (hit) isFound = out.takeNearer(c, isFound, isFloor);
    }
    return isFound;
  }

  range(hi: number, lo: number, fromVersion: number, toVersion: number, out: EntryList): void {
    this.#active.range(hi, lo, fromVersion, toVersion, out);
    for (const { table } of this.#frozen) table.range(hi, lo, fromVersion, toVersion, out);
  }

  /** As `MemTable.run` does. */
  run(hi: number, lo: number, from: number, isUpwards: boolean, count: number, out: number[]): void {
    const last = this.#frozen.length - 1;
    for (let i = isUpwards ? last : -1; i >= -1 && i <= last; i += isUpwards ? -1 : 1)
      (i < 0 ? this.#active : this.#frozen[i]!.table).run(hi, lo, from, isUpwards, count, out);
  }

  /** The tables with entries, newest first. */
  filled(): MemTable[] {
    return [this.#active, ...this.#frozen.map(({ table }) => table)].filter(({ count }) => count > 0);
  }
}
