import { equalBytes, putI32, putI64 } from '../base/bytes.ts';
import { BlockCache } from '../cache/cache.ts';
import { SkuaError } from '../base/errors.ts';
import type { Chunk } from '../log/api.ts';
import {
  align4096,
  type ChunkHeader,
  completeChunkFile,
  encodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  MD5_BYTES,
} from '../log/format/chunk-format.ts';
import { openCompleted } from '../log/chunk/chunk.ts';
import type { Digest, Digests } from '../ports/digests.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';

/** Bytes collected before they are written. */
const BUFFER_BYTES = 1_048_576;
/** As many bytes or more are written from where they lie. */
const DIRECT_BYTES_MIN = 262_144;

/** Read at once of a file that has to be digested once more. */
const REREAD_BYTES = 1_048_576;

/**
 * Opens a complete chunk that is to be rewritten, past every cache. Throws `log_corrupt` when it belongs to another
 * log.
 */
export async function openSource(storage: Storage, name: string, chunkSize: number): Promise<Chunk> {
  const source = await openCompleted(storage, new BlockCache(0), name);
  if (source.endPosition === (source.endNumber + 1) * chunkSize) return source;
  await source.file.retire();
  throw new SkuaError(
    'log_corrupt',
    `${name} belongs to a log with a chunk size other than ${chunkSize} bytes: restore the file from a backup.`,
    { file: name, offset: 2 },
  );
}

interface ChunkTarget {
  /** Temporary path; only the switch gives the file its name. */
  readonly path: string;
  readonly chunkSize: number;
  readonly startNumber: number;
  /** As far as it is expected to reach: `finish` may be told another. */
  readonly endNumber: number;
  /** 16 on-disk bytes. */
  readonly chunkId: Uint8Array;
}

/** A position between two records at which a file may be made to end. */
export interface WriterMark {
  readonly dataBytes: number;
  readonly records: number;
  readonly logicalBytes: number;
}

/**
 * Where a file ends when that is not behind what was added last, or not with the chunk that was expected to be its
 * last.
 */
export interface EarlierEnd {
  readonly endNumber: number;
  readonly mark: WriterMark;
}

/**
 * Writes one scavenged chunk file from its first byte to its last: header, records, position map, padding and footer.
 * Every byte is hashed once, while the disk writes it; a piece is waited for only when the next one is ready. After
 * an error the file is worth nothing: `discard` it.
 */
export class ChunkWriter {
  readonly #storage: Storage;
  readonly #file: StorageFile;
  readonly #digests: Digests;
  readonly #header: ChunkHeader;
  #md5: Digest;
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

  private constructor(storage: Storage, digests: Digests, file: StorageFile, header: ChunkHeader) {
    this.#storage = storage;
    this.#file = file;
    this.#digests = digests;
    this.#header = header;
    this.#md5 = digests.md5();
    this.#buffer.set(encodeHeader(header), 0);
    this.#used = HEADER_BYTES;
  }

  static async create(storage: Storage, digests: Digests, target: ChunkTarget): Promise<ChunkWriter> {
    const { path, chunkSize, startNumber, endNumber, chunkId } = target;
    return new ChunkWriter(storage, digests, await storage.create(path), {
      version: 3,
      chunkSize,
      startNumber,
      endNumber,
      isScavenged: true,
      chunkId,
    });
  }

  /** Data so far: where the next record will lie in the data region. */
  get dataBytes(): number {
    return this.#dataBytes;
  }
  get records(): number {
    return this.#map.count;
  }
  /** The end of what was added so far, which must have been settled. */
  get mark(): WriterMark {
    return { dataBytes: this.#dataBytes, records: this.records, logicalBytes: this.logicalBytes };
  }

  /**
   * Appends the framed record of `size` bytes at `at` of `bytes`, which must stay as they are until `settle` or
   * `finish`. `logical` is its position relative to the start of the first chunk. A promise must be waited for.
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
    // The error of this write is met by the code that waits for the write.
    this.#writing?.catch(() => {});
    this.#written += bytes.length;
    this.#md5.update(bytes);
    if (before !== null) await before;
  }

  /** Completes the file, makes it durable, marks it read-only and closes it. Returns its length in bytes. */
  async finish(earlier?: EarlierEnd): Promise<number> {
    await this.#flushRun();
    if (earlier !== undefined) await this.#endAt(earlier);
    for (const piece of this.#map.pieces()) await this.#append(piece);
    await this.#drain();
    await this.#writing;
    await completeChunkFile(this.#file, this.#md5, {
      physicalBytes: this.#dataBytes,
      logicalBytes: this.logicalBytes,
      mapBytes: this.#map.sizeBytes,
    });
    await this.#file.seal();
    const fileBytes = this.#file.size;
    await this.#file.close();
    return fileBytes;
  }

  /**
   * Goes back to a mark. The header, with which the checksum begins, names the last chunk, so that a file whose end was
   * not foreseen is read and digested once more: together with what was foreseen, so that nothing gets a checksum that
   * fits but what was written.
   */
  async #endAt({ endNumber, mark }: EarlierEnd): Promise<void> {
    if (endNumber === this.#header.endNumber && mark.dataBytes === this.#dataBytes) return;
    await this.#drain();
    await this.#writing;
    const foreseen = this.#digests.md5();
    const actual = this.#digests.md5();
    const header = encodeHeader({ ...this.#header, endNumber });
    const end = HEADER_BYTES + mark.dataBytes;
    foreseen.update(encodeHeader(this.#header));
    actual.update(header);
    const buffer = new Uint8Array(REREAD_BYTES);
    for (let at = HEADER_BYTES; at < this.#written;) {
      const bytes = await this.#file.read(at, Math.min(REREAD_BYTES, this.#written - at), buffer);
      if (bytes.length === 0) break;
      foreseen.update(bytes);
      if (at < end) actual.update(bytes.subarray(0, Math.min(bytes.length, end - at)));
      at += bytes.length;
    }
    if (!equalBytes(foreseen.finish(), 0, this.#md5.finish(), 0, MD5_BYTES))
      throw new SkuaError(
        'io_error',
        `${this.#file.path} differs from what was just written: the disk or memory of this machine is faulty. The old files stay.`,
        { path: this.#file.path },
      );
    await this.#file.writeAt(0, header);
    this.#md5 = actual;
    this.#written = end;
    this.#dataBytes = mark.dataBytes;
    this.logicalBytes = mark.logicalBytes;
    this.#map.cutTo(mark.records);
  }

  /** Gives up: closes and removes the file. What can't be removed now goes at the next start. */
  async discard(): Promise<void> {
    await Promise.allSettled([this.#writing]);
    await this.#file.close().catch(() => {});
    await this.#storage.remove(this.#file.path).catch(() => {});
  }
}

/** Of an entry of the position map. */
const MAP_ENTRY_BYTES = 12;

/** Length of the file of a scavenged chunk with so many bytes of records. */
export function scavengedFileBytes(dataBytes: number, records: number): number {
  return align4096(HEADER_BYTES + dataBytes + records * MAP_ENTRY_BYTES + FOOTER_BYTES);
}

/** Entries of one page: a chunk of a few hundred thousand records takes a handful. */
const PAGE_ENTRIES = 65_536;
const FIRST_PAGE_ENTRIES = 1_024;

/** The position map of a chunk that is being written, in the bytes of the file. */
class PositionMap {
  readonly #full: Uint8Array[] = [];
  #page = new Uint8Array(FIRST_PAGE_ENTRIES * MAP_ENTRY_BYTES);
  #used = 0;
  count = 0;

  get sizeBytes(): number {
    return this.count * MAP_ENTRY_BYTES;
  }

  /**
   * `actual`: data offset of the record; `logical`: its position relative to the start of the first chunk. Both ascend.
   */
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

  /** Forgets all but the first `count` entries. None may be added any more. */
  cutTo(count: number): void {
    this.count = count;
  }

  /** All entries, in pieces. */
  pieces(): readonly Uint8Array[] {
    let left = this.sizeBytes;
    return [...this.#full, this.#page].map((page) => {
      const piece = page.subarray(0, Math.min(left, page.length));
      left -= piece.length;
      return piece;
    });
  }
}
