import type { StorageFile } from '../ports/storage.ts';
import { type PassedLoad, PassedLoads } from './passed-loads.ts';
import { RandomReads } from './random-reads.ts';
import type { Miss } from '../base/step.ts';

/** Unit of caching in bytes. */
export const BLOCK_BYTES = 65_536;
/** Blocks fetched at once when a file is read sequentially: 1 MiB. */
const READ_AHEAD_BLOCKS = 16;
/**
 * Blocks of a remote file before and behind the one that is wanted, which are fetched with it: what is wanted next
 * often lies there.
 */
const REMOTE_BLOCKS_BEFORE = 2;
const REMOTE_BLOCKS_BEHIND = 1;
/**
 * Blocks of a remote file that are fetched at once at most, 4 MiB, where one run follows another, each twice as long as
 * the last.
 */
const REMOTE_RUN_BLOCKS_MAX = 64;
/** A miss so many blocks before what was fetched last goes on downwards. */
const REMOTE_GAP_BLOCKS_MAX = 4;
/** A range over more blocks than this is read as one span instead of being put together from blocks. */
const ASSEMBLED_BLOCKS_MAX = 4;
/** Memory of blocks that have gone, kept for the next ones: 4 MiB. */
const SPARE_BLOCKS_MAX = 64;
/** Spans (large records) kept at once. */
const SPANS_MAX = 4;
const NO_BYTES = new Uint8Array(0);
/** Keys are file number * FILE_STRIDE + block number: files up to 4 TiB. */
const FILE_STRIDE = 2 ** 26;

/** What one read brought. Its blocks are views of the same memory, and are therefore forgotten together. */
interface Load extends PassedLoad {
  readonly count: number;
  /** The memory of its one block, where it may be used again once it has gone. */
  readonly reusable: Uint8Array | null;
  used: boolean;
  /** It came back soon after it had gone as passed, and leaves the cache as all else does. */
  isKept: boolean;
}
interface Entry {
  bytes: Uint8Array;
  readonly load: Load;
  /** A reader that asks for this block will want those from `readOnFrom` on, too: they are loaded then; -1 for none. */
  readOnFrom: number;
}
/** `length` is what was asked for; at the end of a file `bytes` may be shorter. */
interface Span {
  readonly file: number;
  readonly offset: number;
  readonly length: number;
  readonly bytes: Uint8Array;
}

/**
 * The one cache of file content, for reading in steps (step.ts): `CachedFile.bytes` gives the bytes, or a miss with the
 * promise of them.
 *
 * Only ranges that never change may be read through it: completed files, and the committed part of the ongoing chunk.
 */
export class BlockCache {
  readonly #capacityBytes: number;
  readonly #entries = new Map<number, Entry>();
  readonly #ring: Load[] = [];
  #hand = 0;
  readonly #passed: PassedLoads<Load>;
  #usedBytes = 0;
  #nextFile = 0;
  #lastKey = -1;
  #lastBytes: Uint8Array = NO_BYTES;
  readonly #inFlight = new Map<number, Miss>();
  #spans: Span[] = [];
  readonly #spareBlocks: Uint8Array[] = [];
  /** @internal */ readonly lone: RandomReads;
  /**
   * Looks for a block, other than for the one that was asked for last, that were in the cache; and reads of storage.
   */
  hits = 0;
  misses = 0;

  constructor(capacityBytes: number) {
    this.#capacityBytes = Math.max(capacityBytes, 64 * BLOCK_BYTES);
    this.#passed = new PassedLoads(this.#capacityBytes, BLOCK_BYTES);
    this.lone = new RandomReads(Math.floor(this.#capacityBytes / BLOCK_BYTES));
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }
  get capacityBytes(): number {
    return this.#capacityBytes;
  }

  /**
   * `isSearched`: it is looked into here and there, and views of its bytes are used in the step that asked for them and
   * not kept. So, unless it is remote, blocks are loaded one at a time, into memory that others have left: new memory
   * for each would set off a marking of the whole heap every few dozen megabytes.
   */
  attach(file: StorageFile, isSearched = false): CachedFile {
    return new CachedFile(this, file, this.#nextFile++, isSearched);
  }

  /** @internal */
  block(file: CachedFile, index: number, isSparse: boolean, wanted = 1): Uint8Array | Miss {
    const key = file.id * FILE_STRIDE + index;
    // Records come by the hundred from one block: the last one needs no search.
    if (key === this.#lastKey) return this.#lastBytes;
    const entry = this.#entries.get(key);
    if (entry === undefined) return this.#miss(file, index, key, isSparse, wanted);
    const { load } = entry;
    load.used = true;
    if (load.isPassed) this.#passed.remove(load);
    this.hits++;
    if (entry.readOnFrom >= 0 && !isSparse) {
      const from = entry.readOnFrom;
      entry.readOnFrom = -1;
      this.#readAhead(file, from);
      if (file.file.isRemote !== true) this.#pass(key - 1);
    }
    this.#lastKey = key;
    this.#lastBytes = entry.bytes;
    return entry.bytes;
  }

  /** `wanted`: blocks from this one on that are needed together. */
  #miss(file: CachedFile, index: number, key: number, isSparse: boolean, wanted: number): Uint8Array | Miss {
    const already = this.#inFlight.get(key);
    if (already !== undefined) return already;
    const isRemote = file.file.isRemote === true;
    const isSearched = file.isSearched && !isRemote;
    const isSequential = !isSparse && !isSearched && index === file.expectedMiss && !file.answersAtOnce;
    // A block that still grows must not be part of a longer read.
    if (isRemote && !isSequential && !isSparse && index < file.wholeBlocks())
      return this.#missAround(file, index, wanted);
    const count = isSequential ? Math.max(1, this.#nextRun(file, index)) : 1;
    file.expectedMiss = index + count;
    const into =
      isSearched && !file.answersAtOnce ? (this.#spareBlocks.pop() ?? new Uint8Array(BLOCK_BYTES)) : undefined;
    const got = file.file.read(index * BLOCK_BYTES, count * BLOCK_BYTES, into);
    if (got instanceof Uint8Array) {
      file.answersAtOnce = true;
      return got.length > BLOCK_BYTES ? got.subarray(0, BLOCK_BYTES) : got;
    }
    this.misses++;
    // Of a remote file more is asked for only when half of this has been read: the reading may end before.
    const loading = this.#load(file, index, count, got, isSequential && isRemote ? count >> 1 : -1, into);
    if (isSequential && !isRemote) this.#readAhead(file, index + count);
    return loading;
  }

  /**
   * Where every read is a request, some blocks cost little more than one. A reader that goes downwards, as one of index
   * entries does that ascend, gets longer and longer runs.
   */
  #missAround(file: CachedFile, index: number, wanted: number): Miss {
    const isDownwards = index < file.lastFrom && file.lastFrom - index <= REMOTE_GAP_BLOCKS_MAX;
    const before = isDownwards ? Math.min(file.runBefore * 2, this.#runMax) : REMOTE_BLOCKS_BEFORE;
    let from = index;
    while (index - from < before && from > 0 && !this.holds(file, from - 1)) from--;
    const to = index + Math.max(1, Math.min(this.#runLength(file, index), Math.max(wanted, 1 + REMOTE_BLOCKS_BEHIND)));
    file.expectedMiss = to;
    file.lastFrom = from;
    file.runBefore = before;
    this.misses++;
    return this.#load(
      file,
      from,
      to - from,
      Promise.resolve(file.file.read(from * BLOCK_BYTES, (to - from) * BLOCK_BYTES)),
      -1,
    );
  }

  /**
   * Loads the run of blocks from `index`, so that a sequential reader finds it there after working through the run
   * before.
   */
  #readAhead(file: CachedFile, index: number): void {
    let from = index;
    // A block that is there already must not end the reading ahead: each of those behind it would be waited for.
    if (file.file.isRemote !== true) {
      const end = index + READ_AHEAD_BLOCKS;
      while (from < end && this.holds(file, from)) from++;
      if (from === end) return;
    }
    const count = this.#nextRun(file, from);
    if (count === 0) return;
    file.expectedMiss = from + count;
    const readOnAt = file.file.isRemote !== true ? 0 : count === 1 ? -1 : count >> 1;
    this.#loadAhead(file, from, count, readOnAt);
  }

  /** @internal */
  prefetch(file: CachedFile, index: number): void {
    if (!file.answersAtOnce && index < file.wholeBlocks() && !this.holds(file, index))
      this.#loadAhead(file, index, 1, -1);
  }

  /**
   * @internal Begins to load what is missing of the blocks [from, to] of a remote file, of which all will be wanted,
   * with as few reads as can be.
   */
  prefetchRun(file: CachedFile, from: number, to: number): void {
    const end = Math.min(to + 1, file.wholeBlocks());
    // What would push out what was just loaded is left for later.
    for (let index = from; index < end && this.#inFlight.size * BLOCK_BYTES < this.#capacityBytes / 2;) {
      const count = Math.min(this.#runLength(file, index), end - index);
      if (count > 0)
        this.#load(
          file,
          index,
          count,
          Promise.resolve(file.file.read(index * BLOCK_BYTES, count * BLOCK_BYTES)),
          -1,
        ).catch(mayFail);
      index += Math.max(1, count);
    }
  }

  #loadAhead(file: CachedFile, index: number, count: number, readOnAt: number): void {
    const got = file.file.read(index * BLOCK_BYTES, count * BLOCK_BYTES);
    if (!(got instanceof Uint8Array)) this.#load(file, index, count, got, readOnAt).catch(mayFail);
  }

  /** @internal Whether the block is there or on its way. */
  holds(file: CachedFile, index: number): boolean {
    const key = file.id * FILE_STRIDE + index;
    return this.#entries.has(key) || this.#inFlight.has(key);
  }

  /** As `#runLength`, for a run that goes on from the one before it. */
  #nextRun(file: CachedFile, index: number): number {
    if (file.file.isRemote !== true) return this.#runLength(file, index);
    const goesOn = index === file.runEnd;
    file.runAhead = goesOn ? Math.min(file.runAhead * 2, this.#runMax) : READ_AHEAD_BLOCKS;
    const count = this.#runLength(file, index, file.runAhead);
    file.runEnd = index + count;
    return count;
  }

  /** Blocks of the longest run: an eighth of the cache. */
  get #runMax(): number {
    return Math.min(REMOTE_RUN_BLOCKS_MAX, Math.floor(this.#capacityBytes / BLOCK_BYTES / 8));
  }

  /**
   * Blocks from `index` that may be read at once: up to `wanted`, an eighth of the cache, and the first that is known.
   */
  #runLength(file: CachedFile, index: number, wanted = READ_AHEAD_BLOCKS): number {
    const key = file.id * FILE_STRIDE + index;
    const limit = Math.min(wanted, Math.floor(this.#capacityBytes / BLOCK_BYTES / 8), file.wholeBlocks() - index);
    let count = 0;
    while (count < limit && !this.#entries.has(key + count) && !this.#inFlight.has(key + count)) count++;
    return count;
  }

  /**
   * `readOnAt`: the block of it whose use lets what lies behind it be loaded; -1 for none. `into`: memory that the one
   * block may have got.
   */
  #load(
    file: CachedFile,
    index: number,
    count: number,
    reading: Promise<Uint8Array>,
    readOnAt: number,
    into?: Uint8Array,
  ): Miss {
    const key = file.id * FILE_STRIDE + index;
    const ended = () => {
      for (let i = 0; i < count; i++) this.#inFlight.delete(key + i);
      file.leave();
    };
    file.enter();
    const loading = reading.then(
      (bytes) => {
        ended();
        const reusable = into !== undefined && bytes.buffer === into.buffer ? into : null;
        if (!file.detached) this.#keep(key, index, count, bytes, readOnAt, reusable);
      },
      (error: unknown) => {
        ended();
        throw error;
      },
    );
    for (let i = 0; i < count; i++) this.#inFlight.set(key + i, loading);
    return loading;
  }

  #keep(
    firstKey: number,
    firstIndex: number,
    count: number,
    bytes: Uint8Array,
    readOnAt: number,
    reusable: Uint8Array | null,
  ): void {
    // The load counts as used, so that it is not the first to go before the reader that waits has seen it.
    const isKept = this.#passed.isBack(firstKey, this.hits);
    const load: Load = { firstKey, count, sizeBytes: bytes.length, reusable, used: true, isKept, isPassed: false };
    let kept = 0;
    for (let i = 0; i < count && (i === 0 || i * BLOCK_BYTES < bytes.length); i++) {
      if (this.#entries.has(firstKey + i)) continue;
      kept++;
      const from = i * BLOCK_BYTES;
      this.#entries.set(firstKey + i, {
        bytes: count === 1 ? bytes : bytes.subarray(from, from + BLOCK_BYTES),
        load,
        readOnFrom: i === readOnAt ? firstIndex + count : -1,
      });
    }
    if (kept === 0) return;
    this.#usedBytes += load.sizeBytes;
    while (this.#usedBytes > this.#capacityBytes && this.#ring.length > 0) this.#evictOne();
    this.#ring.push(load);
  }

  #evictOne(): void {
    // Two turns of the clock hand at most: the first clears the marks.
    for (let turns = 2 * this.#ring.length; turns >= 0; turns--) {
      if (this.#hand >= this.#ring.length) this.#hand = 0;
      const load = this.#ring[this.#hand]!;
      if (load.used) {
        load.used = false;
        this.#hand++;
        continue;
      }
      this.#drop(this.#hand);
      return;
    }
  }

  /** A sequential reader goes on behind this block. Of a remote file all is kept: reading it again is a request. */
  #pass(key: number): void {
    const load = this.#entries.get(key)?.load;
    if (load === undefined || load.isKept || load.isPassed || load.count === 1) return;
    this.#passed.add(load);
    for (let oldest = this.#passed.surplus; oldest !== null; oldest = this.#passed.surplus) {
      this.#drop(this.#ring.indexOf(oldest));
      this.#passed.gone(oldest, this.hits);
    }
  }

  /** Forgets the load at a place of the ring; the last one takes its place. */
  #drop(at: number): void {
    const load = this.#ring[at]!;
    if (load.isPassed) this.#passed.remove(load);
    for (let key = load.firstKey; key < load.firstKey + load.count; key++) {
      const entry = this.#entries.get(key);
      if (entry?.load === load) {
        this.#entries.delete(key);
        // An entry that has grown old is not collected for long, and would have young bytes grow old with it.
        entry.bytes = NO_BYTES;
      }
      if (key === this.#lastKey) this.#lastKey = -1;
    }
    this.#usedBytes -= load.sizeBytes;
    if (load.reusable !== null && this.#spareBlocks.length < SPARE_BLOCKS_MAX) this.#spareBlocks.push(load.reusable);
    const last = this.#ring.pop()!;
    if (last !== load) this.#ring[at] = last;
  }

  /** @internal */
  span(file: CachedFile, offset: number, length: number): Uint8Array | Miss {
    for (const span of this.#spans) {
      if (span.file === file.id && span.offset === offset && span.length >= length)
        return span.bytes.subarray(0, length);
    }
    const got = file.file.read(offset, length);
    if (got instanceof Uint8Array) return got;
    this.misses++;
    file.enter();
    const loading = got
      .finally(() => {
        file.leave();
      })
      .then((bytes) => {
        if (file.detached) return;
        if (this.#spans.length >= SPANS_MAX) this.#spans = this.#spans.slice(1);
        this.#spans.push({ file: file.id, offset, length, bytes });
      });
    // A reader that missed may have gone before it awaited the load.
    loading.catch(() => {});
    return loading;
  }

  /** @internal */
  forget(file: CachedFile): void {
    const low = file.id * FILE_STRIDE;
    const high = low + FILE_STRIDE;
    for (let i = this.#ring.length - 1; i >= 0; i--) {
      const { firstKey } = this.#ring[i]!;
      if (firstKey >= low && firstKey < high) this.#drop(i);
    }
    this.#spans = this.#spans.filter((span) => span.file !== file.id);
  }
}

/** A file as seen through the cache. */
export class CachedFile {
  readonly #cache: BlockCache;
  readonly file: StorageFile;
  /** @internal */ readonly id: number;
  /** @internal As `BlockCache.attach` has it. */ readonly isSearched: boolean;
  /** @internal The block whose miss would continue a sequential read. */ expectedMiss = -1;
  /** @internal Of a remote file: where the last run upwards ended, and how many blocks it was to have. */ runEnd = -1;
  /** @internal */ runAhead = 0;
  /** @internal The first block of what was fetched last for a reader downwards, and how many before it. */ lastFrom =
    -1;
  /** @internal */ runBefore = 0;
  /** @internal */ detached = false;
  /** @internal The storage holds the file in memory: reading ahead would only copy. */ answersAtOnce = false;
  /** The last, still growing block of the ongoing chunk, which its writer keeps; -1 when there is none. */
  #tailIndex = -1;
  #tail: Uint8Array = new Uint8Array(0);
  /** Reads under way. */
  #readers = 0;
  #whenUnread: (() => void) | null = null;

  /** @internal Use BlockCache.attach. */
  constructor(cache: BlockCache, file: StorageFile, id: number, isSearched: boolean) {
    this.#cache = cache;
    this.file = file;
    this.id = id;
    this.isSearched = isSearched;
  }

  /**
   * Block `index` (shorter at the end of the file). Nothing is read ahead of a sparse reader. `wanted` blocks from it
   * on will be needed together.
   */
  block(index: number, isSparse = false, wanted = 1): Uint8Array | Miss {
    return index === this.#tailIndex ? this.#tail : this.#cache.block(this, index, isSparse, wanted);
  }

  /** Begins to load block `index`, unless it is there. */
  prefetch(index: number): void {
    this.#cache.prefetch(this, index);
  }

  /**
   * Begins to load the blocks [from, to] where each read is a request of its own, and leaves it to `block` elsewhere.
   */
  prefetchRun(from: number, to: number): void {
    if (this.file.isRemote === true) this.#cache.prefetchRun(this, from, to);
  }

  /**
   * Up to `length` bytes from `offset`, past the cache, for a record that is wanted without its neighbours; null when
   * its block is in the cache, belongs there as this record is wanted again and again, or the storage would have to
   * wait: then `block` is the way. The bytes stay valid if `keepAlone` follows; else until the next call.
   */
  alone(offset: number, length: number): Uint8Array | null {
    return this.#isAlone(offset) ? this.#cache.lone.read(this.file, offset, length) : null;
  }

  /** As `alone`, into memory of the caller's, where they stay: their count, or -1. */
  aloneInto(offset: number, length: number, into: Uint8Array): number {
    return this.#isAlone(offset) ? this.file.readNow!(offset, length, into, 0) : -1;
  }

  #isAlone(offset: number): boolean {
    const index = Math.floor(offset / BLOCK_BYTES);
    return (
      this.file.readNow !== undefined &&
      index !== this.#tailIndex &&
      !this.#cache.holds(this, index) &&
      !this.#cache.lone.isRepeated(this.id, offset)
    );
  }

  /** More bytes after `alone` gave too few of them. */
  readNow(offset: number, length: number): Uint8Array | null {
    return this.#cache.lone.read(this.file, offset, length);
  }

  /** Keeps the first `length` of the bytes that `alone` or `readNow` just gave. */
  keepAlone(length: number): void {
    this.#cache.lone.keep(length);
  }

  /**
   * Exactly the bytes [offset, offset + length), fewer only at the end of the file. The result is a view: never write
   * to it.
   */
  bytes(offset: number, length: number): Uint8Array | Miss {
    const first = Math.floor(offset / BLOCK_BYTES);
    const start = offset - first * BLOCK_BYTES;
    if (start + length <= BLOCK_BYTES) {
      const block = this.block(first);
      return block instanceof Promise ? block : block.subarray(start, start + length);
    }
    const last = Math.floor((offset + length - 1) / BLOCK_BYTES);
    if (last - first >= ASSEMBLED_BLOCKS_MAX) return this.#cache.span(this, offset, length);
    const parts: Uint8Array[] = [];
    for (let i = first; i <= last; i++) {
      const block = this.block(i, false, last - i + 1);
      if (block instanceof Promise) return block;
      parts.push(block);
    }
    const out = new Uint8Array(length);
    let filled = 0;
    for (let i = 0; i < parts.length && filled < length; i++) {
      const part = parts[i]!.subarray(i === 0 ? start : 0, (i === 0 ? start : 0) + length - filled);
      out.set(part, filled);
      filled += part.length;
    }
    return filled < length ? out.subarray(0, filled) : out;
  }

  /** Shows `bytes` as block `index`, the growing last block of a file that is still written; -1 ends that. */
  setTail(index: number, bytes: Uint8Array): void {
    this.#tailIndex = index;
    this.#tail = bytes;
  }

  /** @internal Blocks that may be read ahead. */
  wholeBlocks(): number {
    return this.#tailIndex >= 0 ? this.#tailIndex : Math.ceil(this.file.size / BLOCK_BYTES);
  }

  /** Notes that a reader reads the file, past the cache too, until `leave`: `retire` waits for it. */
  enter(): void {
    this.#readers++;
  }

  leave(): void {
    this.#readers--;
    if (this.#readers === 0) this.#whenUnread?.();
  }

  /** Forgets all its blocks; the file itself stays open. */
  detach(): void {
    this.detached = true;
    this.#cache.forget(this);
  }

  /**
   * Closes a file that nothing leads to any more, when the last read under way has ended. A reader that waits for such
   * a read gets no error: it takes its step again and finds the file's successor.
   */
  async retire(): Promise<void> {
    this.detach();
    if (this.#readers > 0)
      await new Promise<void>((resolve) => {
        this.#whenUnread = resolve;
      });
    await this.file.close();
  }
}

/** A read-ahead that is not awaited may fail; a reader that needs the block meets the error on its own read. */
function mayFail(): void {}
