import { mappedBytes } from '../../base/mapped-memory.ts';
import { putI32 } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import type { Digest } from '../../ports/digests.ts';
import type { JobContext } from '../../ports/jobs.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import { BloomFilter, LINE_BYTES, sealLines, tableFilterBytes } from './bloom.ts';
import {
  bloomPathOf,
  entryBytesOf,
  FILE_TYPE_TABLE,
  FOOTER_BYTES,
  HEADER_BYTES,
  MIDPOINT_BYTES,
  midpointCount,
  midpointIndex,
  POSITION_TABLE_VERSION,
  readEntry,
  TABLE_VERSION,
  TableEntry,
  writeEntry,
  writePositionEntry,
} from './table-format.ts';

/** Bytes collected before they are written. */
const WRITE_BYTES = 1_048_576;
/** A filter is built in memory; a table that would need a larger one (2 thousand million entries) gets none. */
const BLOOM_BUILD_BYTES_MAX = 536_870_912;

/** Where a table goes and what it will hold. */
export interface TableTarget {
  readonly path: string;
  /** Where its bloom filter goes; null: none is written. */
  readonly bloomPath: string | null;
  /** Number of entries that will be added, exactly. */
  readonly entries: number;
  readonly cacheDepth: number;
  /** Default: the version of the stream index. */
  readonly version?: number | undefined;
}

/**
 * Writes one table: `add` while there is `room`, then `drain`, and at last `finish`. The filter is durable
 * before the table is, since a filter without all of its items would hide data.
 */
export class TableWriter {
  readonly #target: TableTarget;
  readonly #storage: Storage;
  readonly #checkpoint: () => Promise<void>;
  readonly #file: StorageFile;
  readonly #digest: Digest;
  readonly #bloom: BloomFilter | null;
  /** Version of the entries that are written. */
  readonly version: number;
  readonly #entryBytes: number;
  readonly #midpoint = new TableEntry();
  readonly #buffer = mappedBytes(WRITE_BYTES);
  readonly #midpoints: Uint8Array;
  readonly #midpointCount: number;
  #used = HEADER_BYTES;
  #written = 0;
  #added = 0;
  #nextMidpoint = 0;
  #nextMidpointAt = 0;
  #lastHi = -1;
  #lastLo = -1;

  private constructor(target: TableTarget, context: JobContext, file: StorageFile) {
    this.#target = target;
    this.#storage = context.storage;
    this.#checkpoint = () => context.checkpoint();
    this.#file = file;
    this.#digest = context.digests.md5();
    this.#midpointCount = midpointCount(target.entries, target.cacheDepth);
    this.#midpoints = new Uint8Array(this.#midpointCount * MIDPOINT_BYTES);
    const filterBytes = tableFilterBytes(target.entries);
    this.#bloom =
      target.bloomPath === null || filterBytes > BLOOM_BUILD_BYTES_MAX ? null : BloomFilter.empty(filterBytes);
    this.version = target.version ?? TABLE_VERSION;
    this.#entryBytes = entryBytesOf(this.version);
    this.#buffer[0] = FILE_TYPE_TABLE;
    this.#buffer[1] = this.version;
  }

  static async create(target: TableTarget, context: JobContext): Promise<TableWriter> {
    return new TableWriter(target, context, await context.storage.create(target.path));
  }

  /** Entries that may be added before the next `drain`. */
  get room(): number {
    return Math.floor((this.#buffer.length - this.#used) / this.#entryBytes);
  }

  add(hi: number, lo: number, version: number, position: number): void {
    if (this.version === POSITION_TABLE_VERSION) writePositionEntry(this.#buffer, this.#used, hi, lo, position);
    else writeEntry(this.#buffer, this.#used, hi, lo, version, position);
    this.#used += this.#entryBytes;
    // A table of one entry has two midpoints, both of which are that entry.
    while (this.#added === this.#nextMidpointAt && this.#nextMidpoint < this.#midpointCount)
      this.#putMidpoint(hi, lo, version);
    this.#added++;
    this.#note(hi, lo);
  }

  /** Adds entries of one hash as they lie in a table of this version. */
  addRun(hi: number, lo: number, entries: Uint8Array): void {
    this.#buffer.set(entries, this.#used);
    this.#used += entries.length;
    const before = this.#added;
    this.#added += entries.length / this.#entryBytes;
    while (this.#nextMidpointAt < this.#added && this.#nextMidpoint < this.#midpointCount) {
      readEntry(entries, (this.#nextMidpointAt - before) * this.#entryBytes, this.version, this.#midpoint);
      this.#putMidpoint(hi, lo, this.#midpoint.version);
    }
    this.#note(hi, lo);
  }

  #putMidpoint(hi: number, lo: number, version: number): void {
    writeEntry(this.#midpoints, this.#nextMidpoint * MIDPOINT_BYTES, hi, lo, version, this.#nextMidpointAt);
    this.#nextMidpoint++;
    this.#nextMidpointAt = midpointIndex(this.#nextMidpoint, this.#midpointCount, this.#target.entries);
  }

  #note(hi: number, lo: number): void {
    if (this.#bloom !== null && (hi !== this.#lastHi || lo !== this.#lastLo)) this.#bloom.add(hi, lo);
    this.#lastHi = hi;
    this.#lastLo = lo;
  }

  /** Writes what has been collected. */
  async drain(): Promise<void> {
    await this.#write(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#digest.update(bytes);
    await this.#file.writeAt(this.#written, bytes);
    this.#written += bytes.length;
  }

  /** Completes the files and makes them durable. */
  async finish(): Promise<void> {
    if (this.#added !== this.#target.entries) {
      throw new SkuaError(
        'index_corrupt',
        `The index table ${this.#target.path} was announced with ${this.#target.entries} entries and got ${this.#added}: this is a defect.`,
        { path: this.#target.path },
      );
    }
    await this.drain();
    await this.#write(this.#midpoints);
    const footer = new Uint8Array(FOOTER_BYTES);
    footer[0] = FILE_TYPE_TABLE;
    footer[1] = this.version;
    putI32(footer, 2, this.#midpointCount);
    await this.#write(footer);
    await this.#file.writeAt(this.#written, this.#digest.finish());
    await this.#finishBloom();
    await this.#file.sync();
    await this.#file.seal();
    await this.#file.close();
  }

  async #finishBloom(): Promise<void> {
    if (this.#bloom === null) return;
    const bytes = this.#bloom.bytes;
    const file = await this.#storage.create(this.#target.bloomPath!);
    try {
      for (let at = 0; at < bytes.length; at += WRITE_BYTES) {
        const end = Math.min(at + WRITE_BYTES, bytes.length);
        sealLines(bytes, Math.max(at, LINE_BYTES), end);
        await file.writeAt(at, bytes.subarray(at, end));
        // The filter of a large table takes seconds, which a stop does not wait for.
        await this.#checkpoint();
      }
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Gives up: closes and removes the files. */
  async discard(): Promise<void> {
    await this.#file.close();
    await removeTable(this.#storage, this.#target.path);
  }
}

/** Removes a table and its filter; the filter last, so that there is never a table beside a filter of another. */
export async function removeTable(storage: Storage, path: string): Promise<void> {
  await storage.remove(path);
  await storage.remove(bloomPathOf(path));
}

/** Runs `write` over a new table, which is completed when it succeeds and removed when it throws. */
export async function withWriter(
  args: Omit<TableTarget, 'entries'>,
  entries: number,
  context: JobContext,
  write: (writer: TableWriter) => Promise<void>,
): Promise<void> {
  const writer = await TableWriter.create(
    { path: args.path, bloomPath: args.bloomPath, entries, cacheDepth: args.cacheDepth, version: args.version },
    context,
  );
  try {
    await write(writer);
    await writer.finish();
  } catch (error) {
    // What can't be removed now is not in the index map and goes at the next start.
    await writer.discard().catch(() => {});
    throw error;
  }
}
