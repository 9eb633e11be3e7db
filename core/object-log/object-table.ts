import type { BlockCache } from '../cache/block-cache.ts';
import { BloomFilter, checkLines, isTooCorrupt, LINE_BYTES, readBloomHeader } from '../index/bloom.ts';
import { Midpoints, TableReader } from '../index/table-search.ts';
import type { TableBloom } from '../index/table-bloom.ts';
import { ENTRY_BYTES, FOOTER_BYTES, HEADER_BYTES, MD5_BYTES, MIDPOINT_BYTES, readShape, tableCorrupt } from '../index/table-format.ts';
import { END, HIT } from '../cache/step.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { ObjectFile } from './manifest.ts';
import { ObjectFileReader } from './object-file.ts';

/** A filter up to this size is read whole, with one request; a table with a larger one is searched without: that costs one request too, at most. */
const BLOOM_BYTES_MAX = 1_048_576;
const TAIL_BYTES = FOOTER_BYTES + MD5_BYTES;

/** An index table among the files of a manifest, opened when it is first searched. */
export class ObjectTable {
  readonly file: ObjectFile;
  reader: TableReader | null = null;
  readonly #objects: ObjectStore;
  readonly #cache: BlockCache;
  readonly #bloom: ObjectFile | null;
  readonly #cacheDepth: number;
  #opening: Promise<void> | null = null;

  constructor(objects: ObjectStore, cache: BlockCache, file: ObjectFile, bloom: ObjectFile | null, cacheDepth: number) {
    this.#objects = objects;
    this.#cache = cache;
    this.file = file;
    this.#bloom = bloom !== null && bloom.key !== null && bloom.sizeBytes <= BLOOM_BYTES_MAX ? bloom : null;
    this.#cacheDepth = cacheDepth;
  }

  /** Entries in it; as many as fit into the file while it has not been opened. */
  get entries(): number {
    return this.reader?.shape.entries ?? Math.max(0, Math.floor((this.file.sizeBytes - HEADER_BYTES - TAIL_BYTES) / ENTRY_BYTES));
  }

  /** Sets `reader`. Two requests at once: one for footer and midpoints, one for the filter. */
  open(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    const { name, key, sizeBytes } = this.file;
    const file = new ObjectFileReader(this.#objects, name, key!, sizeBytes);
    const guessed = Math.min(sizeBytes, 2 ** this.#cacheDepth * MIDPOINT_BYTES + TAIL_BYTES);
    const [end, bloom] = await Promise.all([file.read(sizeBytes - guessed, guessed), this.#openBloom()]);
    // The footer repeats what the header says, so the header need not be read.
    const footer = end.subarray(end.length - TAIL_BYTES);
    const shape = readShape(name, sizeBytes, footer.subarray(0, 2), footer);
    const midpointBytes = shape.midpoints * MIDPOINT_BYTES;
    const missing = midpointBytes + TAIL_BYTES - end.length;
    const stored = missing <= 0 ? end.subarray(-missing, -missing + midpointBytes) : await file.read(HEADER_BYTES + shape.entries * shape.entryBytes, midpointBytes);
    const midpoints = Midpoints.ofStored(stored, shape);
    if (midpoints === null) throw tableCorrupt(name, 'has midpoints that do not belong to its entries');
    this.reader = new TableReader({ path: name, file, shape, midpoints, bloom, cache: this.#cache });
  }

  async #openBloom(): Promise<TableBloom | null> {
    if (this.#bloom === null) return null;
    const { name, key, sizeBytes } = this.#bloom;
    const bytes = (await new ObjectFileReader(this.#objects, name, key!, sizeBytes).read(0, sizeBytes)).slice();
    // A damaged filter would hide events; without one the table is searched.
    if (readBloomHeader(bytes, sizeBytes) === null || isTooCorrupt(checkLines(bytes, LINE_BYTES, sizeBytes), sizeBytes)) return null;
    const filter = new BloomFilter(bytes);
    return { mayContain: (hi, lo) => (filter.mayContain(hi, lo) ? HIT : END), close: async () => {} };
  }

  /** Forgets its blocks. */
  async close(): Promise<void> {
    await this.reader?.close();
  }
}
