import { i64, putI64 } from '../base/bytes.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobProgress } from '../ports/jobs.ts';
import type { Log } from '../ports/log.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';
import {
  BloomFilter,
  isTooCorrupt,
  LINE_BYTES,
  PROBES,
  readBloomHeader,
  readLines,
  sealLines,
  bloomFileBytes,
} from './format/bloom.ts';
import { EXISTENCE_CHECKPOINT_PATH, EXISTENCE_DATA_PATH, PAGE_BYTES } from './format/existence-files.ts';
import type { MemTable } from './mem-table/mem-table.ts';
import { type EntryBatch, readBatches } from './format/table-scan.ts';
import type { TableReader } from './tables/tables.ts';

/** Bytes read or written before other work gets to run. */
const SLICE_BYTES = 1_048_576;
const SLICE_PAGES = SLICE_BYTES / PAGE_BYTES;
const PAGE_WORDS = PAGE_BYTES / 4;

export interface ExistenceOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly log: Log;
  /** Bytes of bits: 10 000 to 4 000 000 000. */
  readonly logicalBytes: number;
  readonly logEnd: number;
  /** Whatever there is may be of another log, as the index was. Default false. */
  readonly isAnew?: boolean;
}

/**
 * The stream existence filter: whether a stream may have events, answered without the index. It is held in memory;
 * `flush` writes the changed pages, syncs them, and only then moves the checkpoint on disk. Every stream with a
 * record below the checkpoint is in the filter.
 */
export class ExistenceFilter {
  readonly #options: ExistenceOptions;
  #filter: BloomFilter;
  #dirty: Uint8Array;
  #file: StorageFile | null = null;
  /** The checkpoint in memory; -1 until the filter is complete. */
  #checkpoint = -1;
  /** The checkpoint that this process has made durable; null where that is not known. */
  #stored: number | null = null;
  /** A write of the checkpoint failed. */
  #isCheckpointBroken = false;
  #lastFlush: Promise<void> = Promise.resolve();
  readonly #copy = new Uint8Array(SLICE_BYTES);

  private constructor(options: ExistenceOptions) {
    this.#options = options;
    this.#filter = BloomFilter.empty(options.logicalBytes);
    this.#dirty = new Uint8Array(Math.ceil(this.#filter.bytes.length / PAGE_BYTES)).fill(1, 0, 1);
  }

  get checkpoint(): number {
    return this.#checkpoint;
  }

  static async open(options: ExistenceOptions): Promise<ExistenceFilter> {
    const filter = new ExistenceFilter(options);
    if (options.isAnew === true) return filter;
    const shown = await filter.#readCheckpoint();
    if (shown < 0) return filter;
    const wrong = await filter.#load();
    if (wrong === null) {
      // The checkpoint may have been lowered because the log was shortened, now or by a process that could not make it
      // durable. A higher one would come back with a power loss, and new streams will stand where that checkpoint
      // claims that all have been added.
      filter.#checkpoint = Math.min(shown, options.logEnd);
      await filter.#writeCheckpoint(filter.#checkpoint);
    } else
      options.log.warn('The stream existence filter on disk is discarded and rebuilt.', {
        path: EXISTENCE_DATA_PATH,
        reason: wrong,
      });
    return filter;
  }

  async #readCheckpoint(): Promise<number> {
    const size = await this.#options.storage.size(EXISTENCE_CHECKPOINT_PATH);
    if (size === null || size < 8) return -1;
    const file = await this.#options.storage.open(EXISTENCE_CHECKPOINT_PATH, 'read');
    try {
      return i64(await file.read(0, 8), 0);
    } finally {
      await file.close();
    }
  }

  /** Loads the file; null, or why it can't be used. */
  async #load(): Promise<string | null> {
    const { storage, clock, logicalBytes } = this.#options;
    const size = await storage.size(EXISTENCE_DATA_PATH);
    if (size === null) return 'it is missing';
    if (size !== bloomFileBytes(logicalBytes))
      return `it has ${size} bytes where ${bloomFileBytes(logicalBytes)} are configured`;
    const file = await storage.open(EXISTENCE_DATA_PATH, 'write');
    const header = readBloomHeader(await file.read(0, LINE_BYTES), size);
    const bytes = this.#filter.bytes;
    const corrupt = header === null ? 0 : await readLines(file, bytes, () => clock.yield());
    if (header !== null && !isTooCorrupt(corrupt, size)) {
      this.#filter = new BloomFilter(bytes);
      this.#dirty.fill(0);
      this.#file = file;
      return null;
    }
    await file.close();
    this.#filter = BloomFilter.empty(logicalBytes, header === null ? 0 : header.rebuilds + 1);
    return header === null ? 'its header is damaged' : `${corrupt} of its lines are damaged`;
  }

  /** False only when the stream has no events. While the filter is incomplete every stream may have some. */
  mightContain(hi: number, lo: number): boolean {
    return this.#checkpoint < 0 || this.#filter.mayContain(hi, lo);
  }

  add(hi: number, lo: number): void {
    this.#filter.add(hi, lo);
    const { touched } = this.#filter;
    for (let i = 0; i < PROBES; i++) this.#dirty[Math.floor(touched[i]! / PAGE_BYTES)] = 1;
  }

  /**
   * All streams below `position`, which is a boundary of the log, have been added. Ignored while the filter is
   * incomplete.
   */
  note(position: number): void {
    if (this.#checkpoint >= 0 && position > this.#checkpoint) this.#checkpoint = position;
  }

  /** Ends the building of an incomplete filter: all streams below `position` are in it. */
  complete(position: number): void {
    if (this.#checkpoint < 0) this.#checkpoint = position;
  }

  /** Writes what has changed, then the checkpoint. Calls follow one another. */
  flush(): Promise<void> {
    const flush = this.#lastFlush.then(() => this.#flush());
    this.#lastFlush = flush.catch(() => {});
    return flush;
  }

  async #flush(): Promise<void> {
    const checkpoint = this.#checkpoint;
    if (checkpoint < 0) return;
    const taken: number[] = [];
    try {
      this.#file ??= await this.#createFile();
      const file = this.#file;
      await this.#writePages(file, taken);
      if (taken.length > 0) await file.sync();
    } catch (error) {
      // After a failed sync the file's content is not known: the next flush writes a new file.
      for (const page of taken) this.#dirty[page] = 1;
      await this.#giveUpFile();
      throw error;
    }
    await this.#writeCheckpoint(checkpoint);
  }

  /** A new file of zeros, every used page of which has to be written. The checkpoint is withdrawn before. */
  async #createFile(): Promise<StorageFile> {
    const { storage } = this.#options;
    await this.#writeCheckpoint(-1);
    await storage.remove(EXISTENCE_DATA_PATH);
    const file = await storage.create(EXISTENCE_DATA_PATH);
    const { bytes } = this.#filter;
    // A slice at a time: at once, requests would wait for a tenth of a second. What changes meanwhile is dirty.
    for (let page = 0; page < this.#dirty.length; page += SLICE_PAGES) {
      this.#noteUsed(page, Math.min(page + SLICE_PAGES, this.#dirty.length));
      await this.#options.clock.yield();
    }
    await file.truncate(bytes.length);
    return file;
  }

  /**
   * Makes the pages from one to another dirty that hold anything: by whole numbers, as bytes would take four times as
   * long.
   */
  #noteUsed(from: number, to: number): void {
    const { bytes } = this.#filter;
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    for (let page = from; page < to; page++) {
      const end = Math.min((page + 1) * PAGE_WORDS, words.length);
      for (let i = page * PAGE_WORDS; i < end && this.#dirty[page] === 0; i++)
        if (words[i] !== 0) this.#dirty[page] = 1;
    }
  }

  async #giveUpFile(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }

  /** Writes runs of changed pages; their numbers are added to `taken`. Later changes make a page dirty again. */
  async #writePages(file: StorageFile, taken: number[]): Promise<void> {
    let sinceYield = 0;
    for (let page = 0; page < this.#dirty.length; page++) {
      if (this.#dirty[page] === 0) continue;
      const start = page * PAGE_BYTES;
      const { bytes } = this.#filter;
      for (
        ;
        page < this.#dirty.length && this.#dirty[page] === 1 && (page + 1) * PAGE_BYTES - start <= SLICE_BYTES;
        page++
      ) {
        this.#dirty[page] = 0;
        taken.push(page);
      }
      const end = Math.min(page * PAGE_BYTES, bytes.length);
      page--;
      sealLines(bytes, Math.max(start, LINE_BYTES), end);
      this.#copy.set(bytes.subarray(start, end));
      await file.writeAt(start, this.#copy.subarray(0, end - start));
      sinceYield += end - start;
      if (sinceYield < SLICE_BYTES) continue;
      sinceYield = 0;
      await this.#options.clock.yield();
    }
  }

  async #writeCheckpoint(value: number): Promise<void> {
    if (this.#stored === value) return;
    const { storage } = this.#options;
    // A checkpoint whose write failed is replaced, not synced again; none at all means that the filter has to be
    // rebuilt.
    if (this.#isCheckpointBroken) await storage.remove(EXISTENCE_CHECKPOINT_PATH);
    this.#stored = null;
    this.#isCheckpointBroken = true;
    const exists = (await storage.size(EXISTENCE_CHECKPOINT_PATH)) !== null;
    const file = exists
      ? await storage.open(EXISTENCE_CHECKPOINT_PATH, 'write')
      : await storage.create(EXISTENCE_CHECKPOINT_PATH);
    try {
      const bytes = new Uint8Array(8);
      putI64(bytes, 0, value);
      await file.writeAt(0, bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    this.#stored = value;
    this.#isCheckpointBroken = false;
  }

  async close(): Promise<void> {
    await this.#lastFlush;
    await this.#giveUpFile();
  }
}

export interface ExistenceBuild {
  readonly filter: ExistenceFilter;
  readonly memTables: readonly MemTable[];
  readonly tables: readonly TableReader[];
  readonly storage: Storage;
  readonly clock: Clock;
  readonly onProgress: ((progress: JobProgress) => void) | undefined;
}

/** Entries after which other work gets to run. */
const SLICE_ENTRIES = 16_384;

/**
 * Adds the hashes of all entries to an existence filter and sets its checkpoint to the greatest position among them.
 */
export async function buildExistence(build: ExistenceBuild): Promise<void> {
  let last = 0;
  let done = 0;
  const total = build.tables.reduce((sum, table) => sum + table.shape.entries, 0);
  for (const table of build.tables) {
    for await (const batch of readBatches(build.storage, table.path)) {
      last = Math.max(last, addBatch(build.filter, batch));
      done += batch.count;
      build.onProgress?.({ done, total, unit: 'entries' });
      await build.clock.yield();
    }
  }
  for (const table of build.memTables) {
    for (let from = 0; from < table.count; from += SLICE_ENTRIES) {
      last = Math.max(last, addColumns(build.filter, table, from, Math.min(from + SLICE_ENTRIES, table.count)));
      await build.clock.yield();
    }
  }
  build.filter.complete(last);
}

function addBatch(filter: ExistenceFilter, batch: EntryBatch): number {
  let last = 0;
  for (let i = 0; i < batch.count; i++) {
    // Entries of one hash are neighbours.
    if (i === 0 || batch.lo[i] !== batch.lo[i - 1] || batch.hi[i] !== batch.hi[i - 1])
      filter.add(batch.hi[i]!, batch.lo[i]!);
    last = Math.max(last, batch.positions[i]!);
  }
  return last;
}

function addColumns(filter: ExistenceFilter, table: MemTable, from: number, to: number): number {
  const { hashHi, hashLo, positions } = table.columns();
  let last = 0;
  for (let i = from; i < to; i++) {
    filter.add(hashHi[i]!, hashLo[i]!);
    last = Math.max(last, positions[i]!);
  }
  return last;
}
