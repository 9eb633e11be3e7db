import { BLOCK_BYTES, type BlockCache, type CachedFile } from '../../cache/cache.ts';
import { END, HIT, isMiss, type Miss, type Outcome } from '../../base/step.ts';
import type { Scrubbed } from '../../log/api.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import type { EntryList, IndexEntry } from '../format/entries.ts';
import { type BloomBudget, openTableBloom, type TableBloom } from '../format/table-bloom.ts';
import {
  bloomPathOf,
  hashHiOf,
  HEADER_BYTES,
  MIDPOINT_BYTES,
  midpointCount,
  midpointIndex,
  readEntry,
  tableCorrupt,
  TableEntry,
  type TableShape,
} from '../format/table-format.ts';
import { openTable, READ_BYTES } from '../format/table-scan.ts';

/** Ranges of at most this many entries are fetched at once; larger ones are halved by single entries first. */
const WINDOW_ENTRIES_MAX = 1_024;
/** With one more at either end. */
const OWN_ENTRIES_MAX = WINDOW_ENTRIES_MAX + 2;
/**
 * A table that is larger than this part of the cache would not stay there: what is wanted of it is read by itself where
 * the storage has it at hand.
 */
const CACHE_PART_MAX = 0.25;

export interface TableReaderParts {
  readonly storage: Storage;
  readonly cache: BlockCache;
  readonly log: Log;
  readonly budget: BloomBudget;
  readonly cacheDepth: number;
  readonly bloomFilters: boolean;
  readonly order?: AskingOrder;
}

/**
 * Whether streams are asked for in the order of their hashes, so that one block answers for many of them, or in none.
 */
type AskingOrder = 'by-hash' | 'none';

export interface OpenedTable {
  readonly path: string;
  readonly file: StorageFile;
  readonly shape: TableShape;
  readonly midpoints: Midpoints;
  readonly bloom: TableBloom | null;
  readonly cache: BlockCache;
  readonly order?: AskingOrder;
}

/**
 * Searches one table through the block cache, in steps that never wait (core/base/step.ts). Entries are compared where
 * they lie; a search makes one view of cached bytes and no other object.
 */
export class TableReader {
  readonly path: string;
  readonly shape: TableShape;
  /** Of the content that was found to fit its checksum; null where nothing has looked yet. */
  scrubbed: Scrubbed | null = null;
  readonly #file: StorageFile;
  readonly #cached: CachedFile;
  readonly #readsAlone: boolean;
  readonly #midpoints: Midpoints;
  readonly #bloom: TableBloom | null;
  readonly #entry = new TableEntry();
  /** Bytes of the entries from `#windowFrom` up to `#windowTo`. */
  #window: Uint8Array = new Uint8Array(0);
  #windowFrom = 0;
  #windowTo = 0;
  /**
   * The last range that was read past the cache. A read of an event asks twice, for the stream's last number and for
   * the event, and mostly finds both in this range.
   */
  #own: Uint8Array = new Uint8Array(0);
  #ownFrom = 0;
  #ownTo = 0;

  /** A table whose parts have been read already; `open` reads them. */
  constructor({ path, file, shape, midpoints, bloom, cache, order = 'by-hash' }: OpenedTable) {
    this.path = path;
    this.shape = shape;
    this.#file = file;
    this.#cached = cache.attach(file, true);
    this.#readsAlone = order === 'none' && file.size > cache.capacityBytes * CACHE_PART_MAX;
    this.#midpoints = midpoints;
    this.#bloom = bloom;
  }

  /** Opens a table. Throws `index_corrupt` when its shape is wrong, `file_not_found` when it is missing. */
  static async open(path: string, parts: TableReaderParts): Promise<TableReader> {
    const { file, shape } = await openTable(parts.storage, path);
    try {
      const midpoints = await Midpoints.load(path, file, shape, parts.cacheDepth);
      const bloom = parts.bloomFilters
        ? await openTableBloom(parts.storage, parts.cache, parts.budget, bloomPathOf(path), parts.log)
        : null;
      return new TableReader({
        path,
        file,
        shape,
        midpoints,
        bloom,
        cache: parts.cache,
        ...(parts.order !== undefined && { order: parts.order }),
      });
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Bytes of the file. */
  get fileBytes(): number {
    return this.#file.size;
  }

  /** Name of the file in the index folder. */
  get name(): string {
    return this.path.slice(this.path.lastIndexOf('/') + 1);
  }

  #mayContain(hi: number, lo: number): Outcome {
    return this.#bloom === null ? HIT : this.#bloom.mayContain(hi, lo);
  }

  /** Reads the entries [from, to) at once; null when they are there. */
  #openWindow(from: number, to: number): Miss | null {
    if (this.#readsAlone && this.#openOwn(from, to)) return null;
    const { entryBytes } = this.shape;
    const bytes = this.#cached.bytes(HEADER_BYTES + from * entryBytes, (to - from) * entryBytes);
    if (bytes instanceof Promise) return bytes;
    if (bytes.length !== (to - from) * entryBytes) throw tableCorrupt(this.path, 'ends in the middle of its entries');
    this.#window = bytes;
    this.#windowFrom = from;
    this.#windowTo = to;
    return null;
  }

  /** The same past the cache, where the storage has them at hand. */
  #openOwn(from: number, to: number): boolean {
    if (from < this.#ownFrom || to > this.#ownTo) {
      const { entryBytes } = this.shape;
      if (to - from > OWN_ENTRIES_MAX) return false;
      if (this.#own.length === 0) this.#own = new Uint8Array(OWN_ENTRIES_MAX * entryBytes);
      this.#ownFrom = this.#ownTo = 0;
      const length = (to - from) * entryBytes;
      if (this.#cached.aloneInto(HEADER_BYTES + from * entryBytes, length, this.#own) !== length) return false;
      this.#ownFrom = from;
      this.#ownTo = to;
    }
    this.#window = this.#own;
    this.#windowFrom = this.#ownFrom;
    this.#windowTo = this.#ownTo;
    return true;
  }

  /**
   * Puts entry `index` into `#entry`, with as many after it, or before it, as lie in the same block of the cache; null
   * when it is there.
   */
  #read(index: number, isBackward = false): Miss | null {
    const { entries, entryBytes, version } = this.shape;
    if (index < this.#windowFrom || index >= this.#windowTo) {
      const inBlock = (HEADER_BYTES + index * entryBytes) % BLOCK_BYTES;
      const behind = isBackward ? 1 : Math.max(1, Math.floor((BLOCK_BYTES - inBlock) / entryBytes));
      const before = isBackward ? Math.min(index, WINDOW_ENTRIES_MAX, Math.floor(inBlock / entryBytes)) : 0;
      const miss = this.#openWindow(index - before, Math.min(entries, index + behind));
      if (miss !== null) return miss;
    }
    readEntry(this.#window, (index - this.#windowFrom) * entryBytes, version, this.#entry);
    return null;
  }

  /** Positive when `#entry` is greater than the key. */
  #compare(hi: number, lo: number, version: number, position: number): number {
    const e = this.#entry;
    return e.hi - hi || e.lo - lo || e.version - version || e.position - position;
  }

  /**
   * The first entry of the file that is at most the key, the greatest such one; the number of entries when there is
   * none.
   */
  #locate(hi: number, lo: number, version: number, position: number): number | Miss {
    this.#windowTo = this.#windowFrom = 0;
    this.#midpoints.narrow(hi, lo, version);
    const { entries } = this.shape;
    let low = this.#midpoints.from;
    let high = this.#midpoints.to;
    while (low < high) {
      let mid = Math.floor((low + high) / 2);
      if (high - low <= WINDOW_ENTRIES_MAX) {
        // One more at either end: the searches look at the entry that is found and at the one before it.
        const from = Math.max(0, low - 1);
        const to = Math.min(entries, high + 1);
        const end = this.#readsAlone ? to : this.#blockEnd(from);
        if (end >= high) {
          const miss = this.#openWindow(from, Math.min(to, end));
          return miss ?? this.#locateInWindow(hi, lo, version, position, low, high);
        }
        // Of two blocks the entry at their boundary says which it is: a piece of both would be a copy.
        mid = end;
      }
      const miss = this.#read(mid);
      if (miss !== null) return miss;
      if (this.#compare(hi, lo, version, position) > 0) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  /** As `#locate`, among the entries [low, high) of the window. */
  #locateInWindow(hi: number, lo: number, version: number, position: number, low: number, high: number): number {
    const { entryBytes, version: tableVersion } = this.shape;
    const window = this.#window;
    const first = this.#windowFrom;
    while (low < high) {
      const mid = Math.floor((low + high) / 2);
      const at = (mid - first) * entryBytes;
      // Nearly all differ in the greater half of the hash.
      let order = hashHiOf(window, at, entryBytes) - hi;
      if (order === 0) {
        readEntry(window, at, tableVersion, this.#entry);
        order = this.#compare(hi, lo, version, position);
      }
      if (order > 0) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  /** Number of the first entry behind this one that does not lie wholly in the same block of the cache. */
  #blockEnd(index: number): number {
    const { entryBytes } = this.shape;
    const block = Math.floor((HEADER_BYTES + index * entryBytes) / BLOCK_BYTES);
    return Math.max(index + 1, Math.floor(((block + 1) * BLOCK_BYTES - HEADER_BYTES) / entryBytes));
  }

  #take(index: number, hi: number, lo: number, out: IndexEntry): Outcome {
    if (index < 0 || index >= this.shape.entries) return END;
    const miss = this.#read(index);
    if (miss !== null) return miss;
    if (this.#entry.hi !== hi || this.#entry.lo !== lo) return END;
    out.version = this.#entry.version;
    out.position = this.#entry.position;
    return HIT;
  }

  /** The greatest entry of the hash that is at most (version, position). */
  floor(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    const maybe = this.#mayContain(hi, lo);
    if (maybe !== HIT) return maybe;
    const found = this.#locate(hi, lo, version, position);
    return isMiss(found) ? found : this.#take(found, hi, lo, out);
  }

  /** The least entry of the hash that is at least (version, position). */
  ceiling(hi: number, lo: number, version: number, position: number, out: IndexEntry): Outcome {
    const maybe = this.#mayContain(hi, lo);
    if (maybe !== HIT) return maybe;
    const found = this.#locate(hi, lo, version, position - 1);
    return isMiss(found) ? found : this.#take(found - 1, hi, lo, out);
  }

  /**
   * Appends the entries of the hash with fromVersion <= version <= toVersion to `out`, greatest first. END after the
   * last one.
   */
  range(hi: number, lo: number, fromVersion: number, toVersion: number, out: EntryList): Outcome {
    const maybe = this.#mayContain(hi, lo);
    if (maybe !== HIT) return maybe;
    const found = this.#locate(hi, lo, toVersion, Number.MAX_SAFE_INTEGER);
    if (isMiss(found)) return found;
    const e = this.#entry;
    let lastVersion = Infinity;
    let lastPosition = Infinity;
    for (let i = found; i < this.shape.entries; i++) {
      const miss = this.#read(i);
      if (miss !== null) return miss;
      if (e.hi !== hi || e.lo !== lo || e.version < fromVersion) break;
      if (e.version > lastVersion || (e.version === lastVersion && e.position > lastPosition))
        throw tableCorrupt(this.path, `is out of order at entry ${i}`);
      out.push(e.version, e.position);
      lastVersion = e.version;
      lastPosition = e.position;
    }
    return END;
  }

  /**
   * Of a table of positions: appends those of the hash from `from` on upwards, or downwards, nearest first, to `out`,
   * until that has `count`. END after the last one.
   */
  run(hi: number, lo: number, from: number, isUpwards: boolean, count: number, out: number[]): Outcome {
    const maybe = this.#mayContain(hi, lo);
    if (maybe !== HIT) return maybe;
    const found = this.#locate(hi, lo, isUpwards ? from - 1 : from, Number.MAX_SAFE_INTEGER);
    if (isMiss(found)) return found;
    const e = this.#entry;
    const step = isUpwards ? -1 : 1;
    let last = out.at(-1) ?? from;
    for (let i = isUpwards ? found - 1 : found; out.length < count && i >= 0 && i < this.shape.entries; i += step) {
      const miss = this.#read(i, isUpwards);
      if (miss !== null) return miss;
      if (e.hi !== hi || e.lo !== lo) break;
      if (isUpwards ? e.position < last : e.position > last)
        throw tableCorrupt(this.path, `is out of order at entry ${i}`);
      out.push(e.position);
      last = e.position;
    }
    return END;
  }

  /** The least and the greatest number of an entry that are known: there may be lesser and greater ones. */
  get known(): { readonly least: number; readonly greatest: number } {
    return this.#midpoints;
  }

  /** Closes the files. Reads that are under way end first. */
  async close(): Promise<void> {
    this.#cached.detach();
    await this.#bloom?.close();
    await this.#file.close();
  }
}

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
  /** Of their event numbers. */
  least = Infinity;
  greatest = -Infinity;

  constructor(entries: number, count: number) {
    this.#entries = entries;
    this.#count = count;
    this.#hi = new Uint32Array(count);
    this.#lo = new Uint32Array(count);
    this.#versions = new Float64Array(count);
  }

  /**
   * Reads the stored midpoints where they are the ones that belong to the table at this depth, and else takes them from
   * the entries (tables of versions 2 and 3 have none).
   */
  static async load(path: string, file: StorageFile, shape: TableShape, cacheDepth: number): Promise<Midpoints> {
    const midpoints = new Midpoints(shape.entries, midpointCount(shape.entries, cacheDepth));
    if (shape.midpoints !== midpoints.#count || !(await midpoints.#readStored(path, file, shape)))
      await midpoints.#collect(path, file, shape);
    return midpoints;
  }

  /**
   * The stored midpoints of a table, whatever their depth, from their bytes. Null when they are not spread as they
   * should be.
   */
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
    this.least = Math.min(this.least, entry.version);
    this.greatest = Math.max(this.greatest, entry.version);
  }

  async #readStored(path: string, file: StorageFile, shape: TableShape): Promise<boolean> {
    const entry = new TableEntry();
    const start = HEADER_BYTES + shape.entries * shape.entryBytes;
    const step = Math.floor(READ_BYTES / MIDPOINT_BYTES);
    for (let k = 0; k < this.#count;) {
      const count = Math.min(step, this.#count - k);
      const bytes = await file.read(start + k * MIDPOINT_BYTES, count * MIDPOINT_BYTES);
      if (bytes.length !== count * MIDPOINT_BYTES) throw tableCorrupt(path, 'ends in the middle of its midpoints');
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
    // One buffer: new ones would wait for the garbage collector by the dozen.
    const buffer = new Uint8Array(Math.min(perBlock, shape.entries) * shape.entryBytes);
    let block: Uint8Array = buffer.subarray(0, 0);
    let loaded = -1;
    for (let k = 0; k < this.#count; k++) {
      const index = midpointIndex(k, this.#count, this.#entries);
      if (Math.floor(index / perBlock) !== loaded) {
        loaded = Math.floor(index / perBlock);
        block = await file.read(HEADER_BYTES + loaded * perBlock * shape.entryBytes, buffer.length, buffer);
      }
      const at = (index - loaded * perBlock) * shape.entryBytes;
      if (at + shape.entryBytes > block.length) throw tableCorrupt(path, 'ends in the middle of its entries');
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
   * Sets `from` and `to` so that the first entry in the file that is at most (hash, version, any position) has a number
   * from `from` to `to`, both included; `to` may be the number of entries, which means there is none. Several entries
   * may share hash and version, hence the two searches.
   */
  narrow(hi: number, lo: number, version: number): void {
    const before = this.#first(hi, lo, version, true);
    const after =
      before < this.#count && this.#compare(before, hi, lo, version) === 0
        ? this.#first(hi, lo, version, false)
        : before;
    this.from = before === 0 ? 0 : midpointIndex(before - 1, this.#count, this.#entries) + 1;
    this.to = after === this.#count ? this.#entries : midpointIndex(after, this.#count, this.#entries);
  }
}
