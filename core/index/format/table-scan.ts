import { mappedBytes } from '../../base/mapped-memory.ts';
import { equalBytes } from '../../base/bytes.ts';
import type { Digest, Digests } from '../../ports/digests.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import {
  compareEntries,
  FOOTER_BYTES,
  HEADER_BYTES,
  MD5_BYTES,
  readEntry,
  readShape,
  TableEntry,
  tableCorrupt,
  type TableShape,
} from './table-format.ts';

/** Bytes read at once. */
export const READ_BYTES = 1_048_576;

/**
 * Opens a table file and reads its shape. The caller closes the file. Throws `index_corrupt` and what the storage
 * throws.
 */
export async function openTable(storage: Storage, path: string): Promise<{ file: StorageFile; shape: TableShape }> {
  const file = await storage.open(path, 'read');
  try {
    return { file, shape: await shapeOf(path, file) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Reads the shape of an open table file. Throws `index_corrupt`. */
export async function shapeOf(path: string, file: StorageFile): Promise<TableShape> {
  const header = (await file.read(0, HEADER_BYTES)).slice();
  const tailAt = Math.max(0, file.size - FOOTER_BYTES - MD5_BYTES);
  return readShape(path, file.size, header, await file.read(tailAt, FOOTER_BYTES + MD5_BYTES));
}

/**
 * Reads the entries of one table in the order of the file, block by block, past the cache. `fill` loads the next block
 * and is false at the end; `next` takes an entry of the block and is false when the block is used up.
 */
export class TableSource {
  readonly path: string;
  readonly shape: TableShape;
  readonly entry = new TableEntry();
  readonly #file: StorageFile;
  readonly #other = new TableEntry();
  #loaded = 0;
  /** One buffer for all blocks: new ones would wait for the garbage collector by the dozen. */
  #buffer: Uint8Array = new Uint8Array(0);
  #block: Uint8Array = new Uint8Array(0);
  #at = 0;

  constructor(path: string, file: StorageFile, shape: TableShape) {
    this.path = path;
    this.#file = file;
    this.shape = shape;
  }

  static async open(storage: Storage, path: string): Promise<TableSource> {
    const { file, shape } = await openTable(storage, path);
    return new TableSource(path, file, shape);
  }

  async fill(): Promise<boolean> {
    const { entries, entryBytes } = this.shape;
    const count = Math.min(Math.floor(READ_BYTES / entryBytes), entries - this.#loaded);
    if (count <= 0) return false;
    if (this.#buffer.length < count * entryBytes) this.#buffer = mappedBytes(count * entryBytes);
    this.#block = await this.#file.read(HEADER_BYTES + this.#loaded * entryBytes, count * entryBytes, this.#buffer);
    if (this.#block.length !== count * entryBytes) throw tableCorrupt(this.path, 'ends in the middle of its entries');
    this.#loaded += count;
    this.#at = 0;
    return true;
  }

  /** Starts again before the first entry. */
  rewind(): void {
    this.#loaded = 0;
    this.#block = new Uint8Array(0);
    this.#at = 0;
  }

  /** Bytes of the file. */
  get fileBytes(): number {
    return this.#file.size;
  }

  next(): boolean {
    if (this.#at >= this.#block.length) return false;
    readEntry(this.#block, this.#at, this.shape.version, this.entry);
    this.#at += this.shape.entryBytes;
    return true;
  }

  /**
   * How many entries, from the one in `entry` on, have its hash and are greater than `limit`, as far as they are in the
   * block: at least one, at most `max`.
   */
  run(limit: TableEntry | null, max: number): number {
    const { entryBytes } = this.shape;
    let known = 1;
    let end = Math.min(max, (this.#block.length - this.#at) / entryBytes + 1);
    for (let step = 1; known < end; step *= 2) {
      const last = Math.min(known + step, end) - 1;
      if (this.#isInRun(last, limit)) known = last + 1;
      else end = last;
    }
    while (known < end) {
      const middle = (known + end) >>> 1;
      if (this.#isInRun(middle, limit)) known = middle + 1;
      else end = middle;
    }
    return known;
  }

  /** Whether the entry so many behind the one in `entry` belongs to its run. */
  #isInRun(behind: number, limit: TableEntry | null): boolean {
    const other = this.#other;
    const { entryBytes, version } = this.shape;
    readEntry(this.#block, this.#at + (behind - 1) * entryBytes, version, other);
    const { hi, lo } = this.entry;
    return other.hi === hi && other.lo === lo && (limit === null || compareEntries(other, limit) > 0);
  }

  /** The bytes of so many entries, from the one in `entry` on, which are passed over. */
  takeRun(count: number): Uint8Array {
    const { entryBytes } = this.shape;
    const from = this.#at - entryBytes;
    this.#at = from + count * entryBytes;
    return this.#block.subarray(from, this.#at);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** Entries handed over at once. */
const BATCH_ENTRIES = 4_096;

/** Entries of a table in columns; valid below `count`. */
export class EntryBatch {
  readonly hi = new Uint32Array(BATCH_ENTRIES);
  readonly lo = new Uint32Array(BATCH_ENTRIES);
  readonly versions = new Float64Array(BATCH_ENTRIES);
  readonly positions = new Float64Array(BATCH_ENTRIES);
  count = 0;
}

function takeBatch(source: TableSource, batch: EntryBatch): void {
  const { entry } = source;
  batch.count = 0;
  while (batch.count < BATCH_ENTRIES && source.next()) {
    batch.hi[batch.count] = entry.hi;
    batch.lo[batch.count] = entry.lo;
    batch.versions[batch.count] = entry.version;
    batch.positions[batch.count++] = entry.position;
  }
}

/** Reads a table's entries in the order of the file. The one batch object is filled again for each step. */
export async function* readBatches(storage: Storage, path: string): AsyncGenerator<EntryBatch, undefined, undefined> {
  const source = await TableSource.open(storage, path);
  const batch = new EntryBatch();
  try {
    while (await source.fill()) {
      for (takeBatch(source, batch); batch.count > 0; takeBatch(source, batch)) yield batch;
    }
  } finally {
    await source.close();
  }
}

/** Feeds the whole file but the digest at its end to `each`, and says whether the digest fits. */
export async function checkMd5(
  file: StorageFile,
  digests: Digests,
  each: (done: number) => Promise<void>,
): Promise<boolean> {
  const digest: Digest = digests.md5();
  const end = file.size - MD5_BYTES;
  // One buffer: new ones, a MiB each, would wait for the garbage collector by the dozen.
  const buffer = mappedBytes(Math.max(0, Math.min(READ_BYTES, end)));
  for (let at = 0; at < end; at += READ_BYTES) {
    digest.update(await file.read(at, Math.min(READ_BYTES, end - at), buffer));
    await each(Math.min(at + READ_BYTES, end));
  }
  const stored = await file.read(end, MD5_BYTES);
  return stored.length === MD5_BYTES && equalBytes(digest.finish(), 0, stored, 0, MD5_BYTES);
}
