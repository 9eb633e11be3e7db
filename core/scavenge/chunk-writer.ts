import { putI32, putI64 } from '../bytes.ts';
import { BlockCache } from '../cache/block-cache.ts';
import { SkuaError } from '../errors.ts';
import type { Chunk } from '../log/chunk.ts';
import { type ChunkHeader, completeChunkFile, encodeHeader, HEADER_BYTES } from '../log/chunk-format.ts';
import { openCompleted } from '../log/open-chunks.ts';
import type { Digest, Digests } from '../ports/digests.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';

/** Bytes collected before they are written. */
const BUFFER_BYTES = 1_048_576;
/** As many bytes or more are written from where they lie. */
const DIRECT_BYTES_MIN = 262_144;

/** Opens a complete chunk that is to be rewritten, past every cache. Throws `log_corrupt` when it belongs to another log. */
export async function openSource(storage: Storage, name: string, chunkSize: number): Promise<Chunk> {
  const source = await openCompleted(storage, new BlockCache(0), name);
  if (source.endPosition === (source.endNumber + 1) * chunkSize) return source;
  await source.file.retire();
  throw new SkuaError('log_corrupt', `${name} is of a log with another chunk size than ${chunkSize} bytes. It does not belong here: restore the file from a backup.`, { file: name, offset: 2 });
}

interface ChunkTarget {
  /** Temporary path; only the switch gives the file its name. */
  readonly path: string;
  readonly chunkSize: number;
  readonly startNumber: number;
  readonly endNumber: number;
  /** 16 on-disk bytes. */
  readonly chunkId: Uint8Array;
}

/**
 * Writes one scavenged chunk file from its first byte to its last: header, records, position map, padding and footer
 * (disk-format.md section 2; scavenge.md 6.3). Every byte is hashed once, while the disk writes it; a piece is waited
 * for only when the next one is ready. After an error the file is worth nothing: `discard` it.
 */
export class ChunkWriter {
  readonly #storage: Storage;
  readonly #file: StorageFile;
  readonly #md5: Digest;
  readonly #map = new PositionMap();
  #buffer = new Uint8Array(BUFFER_BYTES);
  #spare = new Uint8Array(BUFFER_BYTES);
  #used = 0;
  #written = 0;
  #writing: Promise<void> | null = null;
  /** A write under way may be of someone else's memory. */
  #isBorrowing = false;
  /** Kept records that lie one behind the other in the same piece of memory are copied together. */
  #run: Uint8Array = new Uint8Array(0);
  #runStart = 0;
  #runEnd = 0;
  #dataBytes = 0;
  /** End of the last record relative to the start of the first chunk; 0 without records. */
  logicalBytes = 0;

  private constructor(storage: Storage, digests: Digests, file: StorageFile) {
    this.#storage = storage;
    this.#file = file;
    this.#md5 = digests.md5();
  }

  static async create(storage: Storage, digests: Digests, target: ChunkTarget): Promise<ChunkWriter> {
    const { path, chunkSize, startNumber, endNumber, chunkId } = target;
    const writer = new ChunkWriter(storage, digests, await storage.create(path));
    const header: ChunkHeader = { version: 3, chunkSize, startNumber, endNumber, isScavenged: true, chunkId };
    writer.#buffer.set(encodeHeader(header), 0);
    writer.#used = HEADER_BYTES;
    return writer;
  }

  /** Data so far: where the next record will lie in the data region. */
  get dataBytes(): number { return this.#dataBytes; }
  get records(): number { return this.#map.count; }

  /**
   * Appends the framed record of `size` bytes at `at` of `bytes`, which must stay as they are until `settle` or `finish`.
   * `logical` is its position relative to the start of the first chunk. A promise must be waited for.
   */
  addRecord(logical: number, bytes: Uint8Array, at: number, size: number): void | Promise<void> {
    this.addEntry(this.#dataBytes, logical);
    this.#dataBytes += size;
    this.logicalBytes = logical + size;
    if (bytes === this.#run && at === this.#runEnd) {
      this.#runEnd += size;
      return undefined;
    }
    const waiting = this.#flushRun();
    this.#run = bytes;
    this.#runStart = at;
    this.#runEnd = at + size;
    return waiting;
  }

  /** Takes over all bytes that were given so far: their memory may be used again when the promise has ended. */
  async settle(): Promise<void> {
    await this.#flushRun();
    if (this.#isBorrowing) await this.#writing;
    this.#isBorrowing = false;
  }

  /** Appends data whose records are entered with `addEntry`; they must stay until `settle` or `finish`. */
  addData(bytes: Uint8Array): void | Promise<void> {
    this.#dataBytes += bytes.length;
    const waiting = this.#flushRun();
    return waiting === undefined ? this.#append(bytes) : waiting.then(() => this.#append(bytes));
  }

  addEntry(actual: number, logical: number): void {
    this.#map.add(actual, logical);
  }

  #flushRun(): void | Promise<void> {
    if (this.#runEnd === this.#runStart) return undefined;
    const run = this.#run.subarray(this.#runStart, this.#runEnd);
    this.#runEnd = this.#runStart;
    return this.#append(run);
  }

  #append(bytes: Uint8Array): void | Promise<void> {
    if (this.#used + bytes.length > BUFFER_BYTES || bytes.length >= DIRECT_BYTES_MIN) return this.#appendMore(bytes);
    this.#buffer.set(bytes, this.#used);
    this.#used += bytes.length;
    return undefined;
  }

  async #appendMore(bytes: Uint8Array): Promise<void> {
    await this.#drain();
    if (bytes.length >= DIRECT_BYTES_MIN) {
      this.#isBorrowing = true;
      return this.#write(bytes);
    }
    this.#buffer.set(bytes, 0);
    this.#used = bytes.length;
  }

  /** Writes what has been collected; the other buffer, whose write has ended, is filled next. */
  async #drain(): Promise<void> {
    if (this.#used === 0) return;
    const full = this.#buffer.subarray(0, this.#used);
    this.#used = 0;
    [this.#buffer, this.#spare] = [this.#spare, this.#buffer];
    await this.#write(full);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    const before = this.#writing;
    const writing = this.#file.writeAt(this.#written, bytes);
    this.#writing = writing ?? null;
    // Its error is met by whoever waits for it.
    this.#writing?.catch(() => {});
    this.#written += bytes.length;
    this.#md5.update(bytes);
    if (before !== null) await before;
  }

  /** Completes the file, makes it durable, marks it read-only and closes it. Returns its length in bytes. */
  async finish(): Promise<number> {
    await this.#flushRun();
    for (const piece of this.#map.pieces()) await this.#append(piece);
    await this.#drain();
    await this.#writing;
    await completeChunkFile(this.#file, this.#md5, { physicalBytes: this.#dataBytes, logicalBytes: this.logicalBytes, mapBytes: this.#map.sizeBytes });
    await this.#file.seal();
    const fileBytes = this.#file.size;
    await this.#file.close();
    return fileBytes;
  }

  /** Gives up: closes and removes the file. What can't be removed now goes at the next start. */
  async discard(): Promise<void> {
    await Promise.allSettled([this.#writing]);
    await this.#file.close().catch(() => {});
    await this.#storage.remove(this.#file.path).catch(() => {});
  }
}

/** Of an entry of the position map. */
export const MAP_ENTRY_BYTES = 12;
/** Entries of one page: a chunk of a few hundred thousand records takes a handful. */
const PAGE_ENTRIES = 65_536;
const FIRST_PAGE_ENTRIES = 1_024;

/** The position map of a chunk that is being written, in the bytes of the file; disk-format.md section 2.5. */
class PositionMap {
  readonly #full: Uint8Array[] = [];
  #page = new Uint8Array(FIRST_PAGE_ENTRIES * MAP_ENTRY_BYTES);
  #used = 0;
  count = 0;

  get sizeBytes(): number { return this.count * MAP_ENTRY_BYTES; }

  /** `actual`: data offset of the record; `logical`: its position relative to the start of the first chunk. Both ascend. */
  add(actual: number, logical: number): void {
    if (this.#used === this.#page.length) this.#turn();
    const page = this.#page;
    const at = this.#used;
    putI32(page, at, actual);
    putI64(page, at + 4, logical);
    this.#used = at + MAP_ENTRY_BYTES;
    this.count++;
  }

  #turn(): void {
    this.#full.push(this.#page);
    this.#page = new Uint8Array(PAGE_ENTRIES * MAP_ENTRY_BYTES);
    this.#used = 0;
  }

  /** All entries, in pieces. */
  pieces(): readonly Uint8Array[] {
    return [...this.#full, this.#page.subarray(0, this.#used)];
  }
}
