import { BLOCK_BYTES, type BlockCache } from '../../cache/cache.ts';
import { END, HIT } from '../../base/step.ts';
import { SkuaError } from '../../base/errors.ts';
import { BloomFilter, checkLines, isTooCorrupt, LINE_BYTES, readBloomHeader } from '../../index/format/bloom.ts';
import type { TableBloom } from '../../index/format/table-bloom.ts';
import {
  FOOTER_BYTES,
  HEADER_BYTES as TABLE_HEADER_BYTES,
  MD5_BYTES,
  MIDPOINT_BYTES,
  midpointCount,
  readShape,
  tableCorrupt,
} from '../../index/format/table-format.ts';
import { Midpoints, TableReader } from '../../index/tables/tables.ts';
import { HEADER_BYTES } from '../../log/format/chunk-format.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { StorageFile } from '../../ports/storage.ts';
import type { ObjectFile, ObjectSegment } from '../format/manifest.ts';

/**
 * Bytes [from, from + length) of an object. Throws `file_not_found`, with the key, when there is no such object, and
 * `io_error` when it is too short.
 */
async function getRange(objects: ObjectStore, key: string, from: number, length: number): Promise<Uint8Array> {
  const bytes = await objects.get(key, { from, length });
  if (bytes === null)
    throw new SkuaError(
      'file_not_found',
      `The object ${key}, which a manifest names, no longer exists: the manifest in use may be outdated, and the newest names its replacement.`,
      { path: key, key },
    );
  if (bytes.length !== length)
    throw new SkuaError(
      'io_error',
      `The object ${key} gave ${bytes.length} of ${length} bytes at offset ${from}: it is shorter than its manifest says. Restore it from a version or a backup of the bucket.`,
      { path: key, key, offset: from },
    );
  return bytes;
}

/** Read-only files: what may not be done with them. */
abstract class ReadOnlyFile implements StorageFile {
  abstract readonly path: string;
  abstract readonly size: number;
  readonly isRemote = true;
  abstract read(position: number, length: number): Uint8Array | Promise<Uint8Array>;

  writeAt(): void {
    throw this.#refusal();
  }
  truncate(): Promise<void> {
    return Promise.reject(this.#refusal());
  }
  async sync(): Promise<void> {}
  async seal(): Promise<void> {}
  async close(): Promise<void> {}

  #refusal(): SkuaError {
    return new SkuaError('io_error', `${this.path} is an object that never changes: this is a defect.`, {
      path: this.path,
    });
  }
}

/** A whole object as a file, read by range. Opening and closing it costs nothing. */
export class ObjectFileReader extends ReadOnlyFile {
  readonly path: string;
  readonly size: number;
  readonly #objects: ObjectStore;
  readonly #key: string;

  constructor(objects: ObjectStore, path: string, key: string, size: number) {
    super();
    this.path = path;
    this.size = size;
    this.#objects = objects;
    this.#key = key;
  }

  read(position: number, length: number): Promise<Uint8Array> | Uint8Array {
    const count = Math.min(length, this.size - position);
    return count <= 0 ? new Uint8Array(0) : getRange(this.#objects, this.#key, position, count);
  }
}

/**
 * A filter up to this size is read whole, with one request; a table with a larger one is searched without: that costs
 * one request too, at most.
 */
const BLOOM_BYTES_MAX = 1_048_576;
const TAIL_BYTES = FOOTER_BYTES + MD5_BYTES;

interface ObjectTableParts {
  readonly file: ObjectFile;
  /** Null: it is searched without. */
  readonly bloom: ObjectFile | null;
  /** Bytes of an entry. */
  readonly entryBytes: number;
  /** With which it was written, as far as is known. */
  readonly cacheDepth: number;
}

/** An index table among the files of a manifest, opened when it is first searched. */
export class ObjectTable {
  readonly file: ObjectFile;
  reader: TableReader | null = null;
  readonly #objects: ObjectStore;
  readonly #cache: BlockCache;
  readonly #bloom: ObjectFile | null;
  readonly #entryBytes: number;
  readonly #cacheDepth: number;
  #opening: Promise<void> | null = null;

  constructor(objects: ObjectStore, cache: BlockCache, { file, bloom, entryBytes, cacheDepth }: ObjectTableParts) {
    this.#objects = objects;
    this.#cache = cache;
    this.file = file;
    this.#bloom = bloom !== null && bloom.key !== null && bloom.sizeBytes <= BLOOM_BYTES_MAX ? bloom : null;
    this.#entryBytes = entryBytes;
    this.#cacheDepth = cacheDepth;
  }

  /** Entries in it; as many as fit into the file while it has not been opened. */
  get entries(): number {
    return (
      this.reader?.shape.entries ??
      Math.max(0, Math.floor((this.file.sizeBytes - TABLE_HEADER_BYTES - TAIL_BYTES) / this.#entryBytes))
    );
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
    // A large table has more midpoints than the depth says.
    const midpointsMax = Math.max(2 ** this.#cacheDepth, midpointCount(this.entries, this.#cacheDepth));
    const guessed = Math.min(sizeBytes, midpointsMax * MIDPOINT_BYTES + TAIL_BYTES);
    const [end, bloom] = await Promise.all([file.read(sizeBytes - guessed, guessed), this.#openBloom()]);
    // The footer repeats what the header says, so the header need not be read.
    const footer = end.subarray(end.length - TAIL_BYTES);
    const shape = readShape(name, sizeBytes, footer.subarray(0, 2), footer);
    const midpointBytes = shape.midpoints * MIDPOINT_BYTES;
    const missing = midpointBytes + TAIL_BYTES - end.length;
    const stored =
      missing <= 0
        ? end.subarray(-missing, -missing + midpointBytes)
        : await file.read(TABLE_HEADER_BYTES + shape.entries * shape.entryBytes, midpointBytes);
    const midpoints = Midpoints.ofStored(stored, shape);
    if (midpoints === null) throw tableCorrupt(name, 'has midpoints that do not belong to its entries');
    this.reader = new TableReader({ path: name, file, shape, midpoints, bloom, cache: this.#cache });
  }

  async #openBloom(): Promise<TableBloom | null> {
    if (this.#bloom === null) return null;
    const { name, key, sizeBytes } = this.#bloom;
    const bytes = (await new ObjectFileReader(this.#objects, name, key!, sizeBytes).read(0, sizeBytes)).slice();
    // A damaged filter would hide events; without one the table is searched.
    if (readBloomHeader(bytes, sizeBytes) === null || isTooCorrupt(checkLines(bytes, LINE_BYTES, sizeBytes), sizeBytes))
      return null;
    const filter = new BloomFilter(bytes);
    return { mayContain: (hi, lo) => (filter.mayContain(hi, lo) ? HIT : END), close: async () => {} };
  }

  /** Forgets its blocks. */
  async close(): Promise<void> {
    await this.reader?.close();
  }
}

/** Blocks that are fetched with the seam. */
const SEAM_BLOCKS_BEFORE = 2;

/**
 * The file of a chunk that has not been completed, as it would be on a disk: header, the segments of a manifest, and
 * behind them what commits have added, in memory.
 *
 * Memory holds whole blocks of the cache's size, which grow in place, so that reading them copies nothing. In the first
 * of them lies the seam: its part from segments is read when a reader first asks for it, together with what lies before
 * it in the same segment: a reader that asks for the last events of a stream often wants those before them next.
 */
export class OngoingFile extends ReadOnlyFile {
  readonly path: string;
  /**
   * Blocks before the seam. Behind it nothing need be read ahead, and a block that still grows must not be part of a
   * longer read.
   */
  readonly size: number;
  readonly #objects: ObjectStore;
  readonly #header: Uint8Array;
  readonly #segments: readonly ObjectSegment[];
  /** File offset 0 stands for this position of the log. */
  readonly #origin: number;
  /** File offset behind header and segments. */
  readonly #baseEnd: number;
  readonly #seam: number;
  /** Blocks from the seam on. */
  readonly #blocks: Uint8Array[] = [];
  #isSeamWhole: boolean;
  /** Bytes before the seam that came with it. */
  #before: Uint8Array = new Uint8Array(0);
  #loading: Promise<void> | null = null;
  #end: number;

  constructor(
    objects: ObjectStore,
    path: string,
    startPosition: number,
    header: Uint8Array,
    segments: readonly ObjectSegment[],
  ) {
    super();
    this.path = path;
    this.#objects = objects;
    this.#header = header;
    this.#segments = segments;
    this.#origin = startPosition - HEADER_BYTES;
    this.#baseEnd = (segments.at(-1)?.to ?? startPosition) - this.#origin;
    this.#end = this.#baseEnd;
    this.#seam = Math.floor(this.#baseEnd / BLOCK_BYTES);
    this.size = this.#seam * BLOCK_BYTES;
    const first = new Uint8Array(BLOCK_BYTES);
    if (this.#seam === 0) first.set(header, 0);
    this.#blocks.push(first);
    this.#isSeamWhole = segments.length === 0 || this.#baseEnd === this.size;
  }

  /** Adds records at the end. */
  append(records: Uint8Array): void {
    for (let from = 0; from < records.length;) {
      const at = this.#end % BLOCK_BYTES;
      const count = Math.min(records.length - from, BLOCK_BYTES - at);
      const index = Math.floor(this.#end / BLOCK_BYTES) - this.#seam;
      if (index === this.#blocks.length) this.#blocks.push(new Uint8Array(BLOCK_BYTES));
      this.#blocks[index]!.set(records.subarray(from, from + count), at);
      this.#end += count;
      from += count;
    }
  }

  /** A copy of what was appended at the position `start` of the log. */
  appended(start: number, length: number): Uint8Array {
    return this.#copy(start - this.#origin, length);
  }

  read(position: number, length: number): Uint8Array | Promise<Uint8Array> {
    const stop = Math.min(position + length, (this.#seam + this.#blocks.length) * BLOCK_BYTES);
    if (stop <= position) return new Uint8Array(0);
    if (position < this.size)
      return position >= this.size - this.#before.length && stop <= this.size
        ? this.#beforeSeam(position, stop)
        : this.#readAcross(position, stop);
    if (!this.#isSeamWhole && position < this.#baseEnd)
      return this.#loadSeam().then(() => this.#inMemory(position, stop));
    return this.#inMemory(position, stop);
  }

  #inMemory(from: number, to: number): Uint8Array {
    const index = Math.floor(from / BLOCK_BYTES);
    const at = from - index * BLOCK_BYTES;
    return at + to - from <= BLOCK_BYTES
      ? this.#blocks[index - this.#seam]!.subarray(at, at + to - from)
      : this.#copy(from, to - from);
  }

  #copy(from: number, length: number): Uint8Array {
    const out = new Uint8Array(length);
    for (let filled = 0; filled < length;) {
      const offset = from + filled;
      const at = offset % BLOCK_BYTES;
      const part = this.#blocks[Math.floor(offset / BLOCK_BYTES) - this.#seam]!.subarray(
        at,
        Math.min(BLOCK_BYTES, at + length - filled),
      );
      out.set(part, filled);
      filled += part.length;
    }
    return out;
  }

  #beforeSeam(from: number, to: number): Uint8Array {
    const start = this.size - this.#before.length;
    return this.#before.subarray(from - start, to - start);
  }

  async #readAcross(from: number, to: number): Promise<Uint8Array> {
    const known = this.size - this.#before.length;
    if (from < known && to > known && to <= this.size) {
      const out = new Uint8Array(to - from);
      out.set(await this.#stored(from, known), 0);
      out.set(this.#beforeSeam(known, to), known - from);
      return out;
    }
    const stored = await this.#stored(from, Math.min(to, this.#baseEnd));
    if (to <= this.#baseEnd) return stored;
    const out = new Uint8Array(to - from);
    out.set(stored, 0);
    out.set(this.#copy(this.#baseEnd, to - this.#baseEnd), stored.length);
    return out;
  }

  #loadSeam(): Promise<void> {
    const from = this.#beginBeforeSeam();
    this.#loading ??= this.#stored(from, this.#baseEnd).then(
      (bytes) => {
        this.#before = bytes.subarray(0, this.size - from);
        this.#blocks[0]!.set(bytes.subarray(this.size - from), 0);
        this.#isSeamWhole = true;
      },
      (error: unknown) => {
        this.#loading = null;
        throw error;
      },
    );
    return this.#loading;
  }

  /** Where a read begins that brings the seam's part of its first segment, and blocks before it from the same one. */
  #beginBeforeSeam(): number {
    const segment = this.#segments.find(({ to }) => to - this.#origin > this.size);
    const start =
      segment === undefined ? this.size : Math.ceil((segment.from - this.#origin) / BLOCK_BYTES) * BLOCK_BYTES;
    return Math.min(this.size, Math.max(start, this.size - SEAM_BLOCKS_BEFORE * BLOCK_BYTES));
  }

  /** Bytes of header and segments, with one request a segment. */
  async #stored(from: number, to: number): Promise<Uint8Array> {
    const parts: Promise<Uint8Array>[] = [];
    for (const segment of this.#segments) {
      const low = Math.max(from, segment.from - this.#origin);
      const high = Math.min(to, segment.to - this.#origin);
      if (low < high) parts.push(getRange(this.#objects, segment.key, low + this.#origin - segment.from, high - low));
    }
    const head = from < HEADER_BYTES ? this.#header.subarray(from, Math.min(to, HEADER_BYTES)) : null;
    const read = await Promise.all(parts);
    if (head === null && read.length === 1) return read[0]!;
    const out = new Uint8Array(to - from);
    if (head !== null) out.set(head, 0);
    let at = head?.length ?? 0;
    for (const part of read) {
      out.set(part, at);
      at += part.length;
    }
    return out;
  }
}
