import type { StorageFile } from '../ports/storage.ts';
import { HEADER_BYTES, MIDPOINT_BYTES, midpointCount, midpointIndex, readEntry, tableCorrupt, TableEntry, type TableShape } from './table-format.ts';
import { READ_BYTES } from './table-source.ts';

/**
 * The midpoints of a table in memory: hash and event number of evenly spread entries, greatest first. Which entry a
 * midpoint stands for follows from its number.
 */
export class Midpoints {
  readonly #entries: number;
  readonly #count: number;
  readonly #hi: Uint32Array;
  readonly #lo: Uint32Array;
  readonly #versions: Float64Array;
  /** Bounds that `narrow` found. */
  from = 0;
  to = 0;

  constructor(entries: number, count: number) {
    this.#entries = entries;
    this.#count = count;
    this.#hi = new Uint32Array(count);
    this.#lo = new Uint32Array(count);
    this.#versions = new Float64Array(count);
  }

  /**
   * Reads the stored midpoints where they are the ones that belong to the table at this depth, and else takes them from the
   * entries (tables of versions 2 and 3 have none).
   */
  static async load(path: string, file: StorageFile, shape: TableShape, cacheDepth: number): Promise<Midpoints> {
    const midpoints = new Midpoints(shape.entries, midpointCount(shape.entries, cacheDepth));
    if (shape.midpoints !== midpoints.#count || !(await midpoints.#readStored(path, file, shape))) await midpoints.#collect(path, file, shape);
    return midpoints;
  }

  /** The stored midpoints of a table, whatever their depth, from their bytes. Null when they are not spread as they should be. */
  static ofStored(bytes: Uint8Array, shape: TableShape): Midpoints | null {
    const midpoints = new Midpoints(shape.entries, shape.midpoints);
    const entry = new TableEntry();
    for (let k = 0; k < shape.midpoints; k++) {
      readEntry(bytes, k * MIDPOINT_BYTES, 4, entry);
      if (entry.position !== midpointIndex(k, shape.midpoints, shape.entries)) return null;
      midpoints.#set(k, entry);
    }
    return midpoints;
  }

  #set(k: number, entry: TableEntry): void {
    this.#hi[k] = entry.hi;
    this.#lo[k] = entry.lo;
    this.#versions[k] = entry.version;
  }

  async #readStored(path: string, file: StorageFile, shape: TableShape): Promise<boolean> {
    const entry = new TableEntry();
    const start = HEADER_BYTES + shape.entries * shape.entryBytes;
    const step = Math.floor(READ_BYTES / MIDPOINT_BYTES);
    for (let k = 0; k < this.#count; ) {
      const count = Math.min(step, this.#count - k);
      const bytes = await file.read(start + k * MIDPOINT_BYTES, count * MIDPOINT_BYTES);
      if (bytes.length !== count * MIDPOINT_BYTES) throw tableCorrupt(path, 'ends within its midpoints');
      for (let at = 0; at < bytes.length; at += MIDPOINT_BYTES, k++) {
        readEntry(bytes, at, 4, entry);
        if (entry.position !== midpointIndex(k, this.#count, this.#entries)) return false;
        this.#set(k, entry);
      }
    }
    return true;
  }

  async #collect(path: string, file: StorageFile, shape: TableShape): Promise<void> {
    const entry = new TableEntry();
    const perBlock = Math.floor(READ_BYTES / shape.entryBytes);
    let block: Uint8Array = new Uint8Array(0);
    let loaded = -1;
    for (let k = 0; k < this.#count; k++) {
      const index = midpointIndex(k, this.#count, this.#entries);
      if (Math.floor(index / perBlock) !== loaded) {
        loaded = Math.floor(index / perBlock);
        block = await file.read(HEADER_BYTES + loaded * perBlock * shape.entryBytes, perBlock * shape.entryBytes);
      }
      const at = (index - loaded * perBlock) * shape.entryBytes;
      if (at + shape.entryBytes > block.length) throw tableCorrupt(path, 'ends within its entries');
      readEntry(block, at, shape.version, entry);
      this.#set(k, entry);
    }
  }

  /** Positive when midpoint `k` is greater than (hash, version), and so stands before it in the file. */
  #compare(k: number, hi: number, lo: number, version: number): number {
    return this.#hi[k]! - hi || this.#lo[k]! - lo || this.#versions[k]! - version;
  }

  /** The first midpoint that is less than (hash, version), or at most equal to it. */
  #first(hi: number, lo: number, version: number, orEqual: boolean): number {
    let low = 0;
    let high = this.#count;
    while (low < high) {
      const mid = (low + high) >>> 1;
      const order = this.#compare(mid, hi, lo, version);
      if (order > 0 || (order === 0 && !orEqual)) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  /**
   * Sets `from` and `to` so that the first entry in the file that is at most (hash, version, any position) has a
   * number from `from` to `to`, both included; `to` may be the number of entries, which means there is none. Several entries
   * may share hash and version, hence the two searches.
   */
  narrow(hi: number, lo: number, version: number): void {
    const before = this.#first(hi, lo, version, true);
    const after = before < this.#count && this.#compare(before, hi, lo, version) === 0 ? this.#first(hi, lo, version, false) : before;
    this.from = before === 0 ? 0 : midpointIndex(before - 1, this.#count, this.#entries) + 1;
    this.to = after === this.#count ? this.#entries : midpointIndex(after, this.#count, this.#entries);
  }
}
