import { i32 } from '../../base/bytes.ts';
import { BLOCK_BYTES, type BlockCache, type CachedFile } from '../../cache/cache.ts';
import { END, HIT, isMiss, type Miss, type Outcome } from '../../base/step.ts';
import { SkuaError } from '../../base/errors.ts';
import type { Storage } from '../../ports/storage.ts';
import { checkHeaderRange, checkOldLength, type ChunkRange } from '../format/chunk-files.ts';
import {
  decodeFooter,
  decodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  mapActual,
  mapLogical,
  type ChunkFooter,
  type ChunkHeader,
} from '../format/chunk-format.ts';
import { RecordCutter } from '../format/record-cutter.ts';
import type { Scrubbed } from '../format/scrubbed-file.ts';
import type { ReadFor } from '../log-reader.ts';
import {
  FRAME_BYTES,
  FRAME_LENGTHS_DIFFER,
  FRAME_SOUND,
  isRecordLength,
  takeFrame,
  type RecordFrame,
} from '../format/records.ts';

/** Bytes read for a record whose length is not known yet: most records lie within, and more would cost little. */
const ALONE_BYTES = 4_096;

/**
 * One chunk file, complete or ongoing, as readers see it. Positions are global; "local" is the offset from the
 * chunk's start, "actual" the offset in the file's data region (the same unless the chunk was scavenged).
 */
export class Chunk {
  readonly name: string;
  readonly file: CachedFile;
  readonly startNumber: number;
  readonly endNumber: number;
  readonly isScavenged: boolean;
  readonly startPosition: number;
  /** Start of the chunk after it. */
  readonly endPosition: number;
  readonly mapCount: number;
  /** Bytes of an entry of the position map: 12, or 8 in old files. */
  readonly mapEntryBytes: number;
  readonly #mapAt: number;
  isCompleted: boolean;
  /** Bytes of data that may be read: for the ongoing chunk, those that are durable. */
  physicalBytes: number;
  /**
   * Of the content that was found to fit its MD5; null where nothing has looked yet, or a reader has found damage
   * (`scrub.ts`).
   */
  scrubbed: Scrubbed | null = null;
  /** Local end of the last record that the chunk had when it was completed. */
  logicalBytes: number;
  /**
   * After a forward read in a scavenged chunk: the next position and where its record lies, so that a scan needs no
   * search.
   */
  #scanPosition = -1;
  #scanActual = 0;

  constructor(name: string, file: CachedFile, header: ChunkHeader, footer: ChunkFooter | null, ongoingBytes: number) {
    this.name = name;
    this.file = file;
    this.startNumber = header.startNumber;
    this.endNumber = header.endNumber;
    this.isScavenged = header.isScavenged;
    this.startPosition = header.startNumber * header.chunkSize;
    this.endPosition = (header.endNumber + 1) * header.chunkSize;
    this.isCompleted = footer !== null;
    this.physicalBytes = footer?.physicalBytes ?? ongoingBytes;
    this.logicalBytes = footer?.logicalBytes ?? ongoingBytes;
    this.mapEntryBytes = footer?.mapEntryBytes ?? 12;
    this.mapCount = footer ? footer.mapBytes / footer.mapEntryBytes : 0;
    this.#mapAt = HEADER_BYTES + this.physicalBytes;
  }

  /** The data of an ongoing chunk end here now. */
  setDataBytes(bytes: number): void {
    this.physicalBytes = bytes;
    this.logicalBytes = bytes;
  }

  /**
   * The record at exactly `position`; END when a scavenge removed it. Throws `log_corrupt` when there is none in an
   * unscavenged chunk.
   */
  readAt(position: number, frame: RecordFrame, what: ReadFor = 'run'): Outcome {
    const local = position - this.startPosition;
    if (!this.isScavenged) return this.#readFrame(local, position, frame, what);
    if (position === this.#scanPosition) {
      if (this.#scanActual + FRAME_BYTES > this.physicalBytes) return END;
      const outcome = this.#readFrame(this.#scanActual, -1, frame);
      return outcome === HIT && frame.position !== position ? END : outcome;
    }
    const index = this.#mapSearch(local);
    if (isMiss(index)) return index;
    const entry = index >= this.mapCount ? null : this.#mapEntry(index);
    if (entry instanceof Promise) return entry;
    if (entry === null || mapLogical(entry, 0, this.mapEntryBytes) !== local) return END;
    const actual = mapActual(entry, 0);
    const outcome = this.#readFrame(actual, -1, frame, what);
    if (outcome === HIT && frame.position !== position)
      throw this.corrupt(
        actual,
        `a record that names position ${frame.position} where the position map names ${position}`,
      );
    return outcome;
  }

  /**
   * Begins to load the block in which the record at `position` starts, unless the position map must be loaded first.
   */
  prefetch(position: number): void {
    const block = this.#blockOf(position);
    if (block >= 0) this.file.prefetch(block);
  }

  /** As `prefetch`, for the records of this chunk that start in [from, to]. */
  prefetchRun(from: number, to: number): void {
    const first = this.#blockOf(from);
    if (first < 0) return;
    const last = to < this.endPosition ? this.#blockOf(to) : -1;
    this.file.prefetchRun(
      first,
      last >= first ? last : Math.floor((HEADER_BYTES + this.physicalBytes - 1) / BLOCK_BYTES),
    );
  }

  /** The block in which the record at `position` starts; -1 when that is not known. */
  #blockOf(position: number): number {
    const actual = this.isScavenged ? this.#actualFrom(position - this.startPosition) : position - this.startPosition;
    if (isMiss(actual) || actual < 0) return -1;
    return Math.floor((HEADER_BYTES + actual) / BLOCK_BYTES);
  }

  /** The first record at or after `position`; END when the chunk holds none. */
  readForward(position: number, frame: RecordFrame, what: ReadFor = 'run'): Outcome {
    let actual = position - this.startPosition;
    if (this.isScavenged && position !== this.#scanPosition) {
      const found = this.#actualFrom(actual);
      if (isMiss(found)) return found;
      if (found < 0) return END;
      actual = found;
    } else if (this.isScavenged) actual = this.#scanActual;
    if (actual + FRAME_BYTES > this.physicalBytes) return END;
    const outcome = this.#readFrame(actual, this.isScavenged ? -1 : position, frame, what);
    if (this.isScavenged && outcome === HIT) {
      // A damaged map must not send a reader round in circles.
      if (frame.position < position)
        throw this.corrupt(
          actual,
          `a record that names position ${frame.position} where one at or after ${position} must be`,
        );
      this.#scanPosition = frame.next;
      this.#scanActual = actual + frame.length + FRAME_BYTES;
    }
    return outcome;
  }

  /** The last record that ends at or before `position`; END when the chunk holds none. */
  readBackward(position: number, frame: RecordFrame): Outcome {
    let actual = position - this.startPosition;
    if (this.isScavenged) {
      const found = this.#actualFrom(actual);
      if (isMiss(found)) return found;
      actual = found < 0 ? this.physicalBytes : found;
    } else if (actual > this.physicalBytes) actual = this.physicalBytes;
    if (actual === 0) return END;
    if (actual < FRAME_BYTES) throw this.corrupt(actual, 'no room for a record');
    const suffix = this.file.bytes(HEADER_BYTES + actual - 4, 4);
    if (suffix instanceof Promise) return suffix;
    const length = i32(suffix, 0);
    if (!isRecordLength(length) || length + FRAME_BYTES > actual)
      throw this.corrupt(actual - 4, `a record length of ${length}`);
    const start = actual - length - FRAME_BYTES;
    const outcome = this.#readFrame(start, this.isScavenged ? -1 : this.startPosition + start, frame);
    if (!this.isScavenged || outcome !== HIT || frame.next <= position) return outcome;
    if (frame.position >= position)
      throw this.corrupt(start, `a record that names position ${frame.position} where one before ${position} must be`);
    // The position lies inside this record, which therefore does not end before it.
    return this.readBackward(frame.position, frame);
  }

  /** HIT when a forward read may start at `position`, END when it points into a record. */
  isBoundary(position: number, frame: RecordFrame): Outcome {
    const local = position - this.startPosition;
    // Which records a scavenged chunk once had is not known: any position in it leads to the next record.
    if (this.isScavenged || local === 0 || local >= this.physicalBytes)
      return local <= this.physicalBytes || this.isScavenged ? HIT : END;
    try {
      return this.#readFrame(local, position, frame);
    } catch (error) {
      if (error instanceof SkuaError && error.code === 'log_corrupt') return END;
      throw error;
    }
  }

  /** `expected` is the record's global position, or -1 where only the record itself knows it. */
  #readFrame(actual: number, expected: number, frame: RecordFrame, what: ReadFor = 'run'): Outcome {
    if (actual + FRAME_BYTES > this.physicalBytes) {
      if (expected < 0 || actual < 0 || !this.isCompleted) throw this.corrupt(actual, 'no room for a record');
      return END;
    }
    const raw = HEADER_BYTES + actual;
    const alone = what !== 'run' ? this.file.alone(raw, Math.min(ALONE_BYTES, this.physicalBytes - actual)) : null;
    const index = Math.floor(raw / BLOCK_BYTES);
    const block = alone ?? this.file.block(index, what === 'sparse');
    if (block instanceof Promise) return block;
    const offset = alone === null ? raw - index * BLOCK_BYTES : 0;
    let length: number;
    if (offset + 4 <= block.length) length = i32(block, offset);
    else {
      const prefix = this.file.bytes(raw, 4);
      if (prefix instanceof Promise) return prefix;
      length = i32(prefix, 0);
    }
    if (!isRecordLength(length) || actual + length + FRAME_BYTES > this.physicalBytes)
      throw this.corrupt(actual, `a record length of ${length}`);
    let bytes = block;
    let at = offset;
    if (offset + length + FRAME_BYTES > block.length) {
      const whole =
        (alone === null ? null : this.file.readNow(raw, length + FRAME_BYTES)) ??
        this.file.bytes(raw, length + FRAME_BYTES);
      if (whole instanceof Promise) return whole;
      bytes = whole;
      at = 0;
    }
    if (alone !== null) this.file.keepAlone(length + FRAME_BYTES);
    const found = takeFrame(frame, bytes, at, length, expected);
    if (found === FRAME_LENGTHS_DIFFER) throw this.corrupt(actual, 'a record whose two lengths differ');
    if (
      found !== FRAME_SOUND ||
      (expected < 0 && !(frame.position >= this.startPosition && frame.position < this.endPosition))
    )
      throw this.corrupt(actual, `a record that names position ${frame.position}`);
    return HIT;
  }

  /**
   * Where the first record at or after the logical position `local` lies in a scavenged chunk's data; -1 when there is
   * none.
   */
  #actualFrom(local: number): number | Miss {
    const index = this.#mapSearch(local);
    if (isMiss(index)) return index;
    if (index >= this.mapCount) return -1;
    const entry = this.#mapEntry(index);
    return entry instanceof Promise ? entry : mapActual(entry, 0);
  }

  /** Offset in the file at which the first record at or after `position` lies; -1 where there is none. */
  offsetFrom(position: number): number | Miss {
    const local = position - this.startPosition;
    const actual = this.isScavenged ? this.#actualFrom(local) : local < this.physicalBytes ? local : -1;
    return isMiss(actual) || actual < 0 ? actual : HEADER_BYTES + actual;
  }

  /** Index of the first map entry with a logical position at or after `local`; `mapCount` when there is none. */
  #mapSearch(local: number): number | Miss {
    let low = 0;
    let high = this.mapCount;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = this.#mapEntry(middle);
      if (entry instanceof Promise) return entry;
      if (mapLogical(entry, 0, this.mapEntryBytes) >= local) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #mapEntry(index: number): Uint8Array | Miss {
    return this.file.bytes(this.#mapAt + index * this.mapEntryBytes, this.mapEntryBytes);
  }

  corrupt(actual: number, what: string): SkuaError {
    const offset = HEADER_BYTES + actual;
    return new SkuaError(
      'log_corrupt',
      `Chunk file ${this.name} holds ${what} at offset ${offset}. Run \`skua verify\` on the stopped directory; if it confirms the damage, restore the file from a backup.`,
      { file: this.name, offset },
    );
  }
}

/** Bytes read at once. */
const SCAN_READ_BYTES = 1_048_576;

/** Sees every record once; a promise is waited for before the next record. */
export type RecordVisitor = (frame: RecordFrame) => void | Promise<void>;
/**
 * Called when all records of a block were seen that end in it: its length, and its bytes as they lie in the file. A
 * promise is waited for.
 */
export type BlockVisitor = (bytes: number, block: Uint8Array) => void | Promise<void>;

/**
 * Reads the records of one chunk at or after `from`, in the order in which they lie in the file, past the block cache,
 * and one block ahead of the one that is looked at. `onBlock` gets the bytes passed. Records that lie whole in one
 * block are given as views of it, one behind the other; only one that two blocks share is put together. With
 * `reusesBlocks` the views are good only until `onBlock` was called with their block and what it returned has been
 * waited for.
 */
export async function scanChunk(
  chunk: Chunk,
  from: number,
  visit: RecordVisitor,
  onBlock?: BlockVisitor,
  reusesBlocks = false,
): Promise<void> {
  chunk.file.enter();
  try {
    await new ChunkScan(chunk, from, reusesBlocks).run(visit, onBlock);
  } finally {
    chunk.file.leave();
  }
}

/** Cuts the data of a chunk into records, from so many bytes behind its header on. */
export function chunkCutter(chunk: Chunk, fromBytes: number): RecordCutter {
  return new RecordCutter({
    position: chunk.isScavenged ? -1 : chunk.startPosition + fromBytes,
    bytes: chunk.physicalBytes - fromBytes,
    between: [chunk.startPosition, chunk.endPosition],
    fail: (at, what) => chunk.corrupt(fromBytes + at, what),
  });
}

class ChunkScan {
  readonly #chunk: Chunk;
  readonly #from: number;
  readonly #end: number;
  /** Where blocks are read into, in turns: while one is looked at the next comes into the other. */
  readonly #buffers: readonly [Uint8Array, Uint8Array] | null;
  #turn = 0;

  constructor(chunk: Chunk, from: number, reusesBlocks: boolean) {
    this.#chunk = chunk;
    this.#from = from;
    this.#end = HEADER_BYTES + chunk.physicalBytes;
    this.#buffers =
      reusesBlocks && chunk.physicalBytes > SCAN_READ_BYTES
        ? [new Uint8Array(SCAN_READ_BYTES), new Uint8Array(SCAN_READ_BYTES)]
        : null;
  }

  async run(visit: RecordVisitor, onBlock?: BlockVisitor): Promise<void> {
    const end = this.#end;
    const fromBytes = this.#chunk.isScavenged ? 0 : Math.max(0, this.#from - this.#chunk.startPosition);
    const cutter = chunkCutter(this.#chunk, fromBytes);
    const { frame } = cutter;
    let blockAt = HEADER_BYTES + fromBytes;
    let ahead = blockAt < end ? this.#read(blockAt) : null;
    while (ahead !== null) {
      const block: Uint8Array = await ahead;
      blockAt += block.length;
      ahead = blockAt < end ? this.#read(blockAt) : null;
      cutter.take(block);
      while (cutter.next()) {
        if (frame.position < this.#from) continue;
        const waiting = visit(frame);
        if (waiting !== undefined) await waiting;
      }
      const waiting = onBlock?.(block.length, block);
      if (waiting !== undefined) await waiting;
    }
    cutter.finish();
  }

  #read(start: number): Promise<Uint8Array> {
    const reading = this.#readBlock(start, Math.min(start + SCAN_READ_BYTES, this.#end));
    // A visitor's error ends the scan before what was read ahead is waited for.
    reading.catch(() => {});
    return reading;
  }

  async #readBlock(start: number, stop: number): Promise<Uint8Array> {
    this.#turn ^= 1;
    const bytes = await this.#chunk.file.file.read(start, stop - start, this.#buffers?.[this.#turn]);
    if (bytes.length !== stop - start)
      throw this.#chunk.corrupt(start + bytes.length - HEADER_BYTES, 'the end of the file before the end of its data');
    return bytes;
  }
}

/** Opens a chunk that must be complete and in its place. Throws `log_corrupt` with file and offset when it is not. */
export async function openCompleted(
  storage: Storage,
  cache: BlockCache,
  name: string,
  place?: ChunkRange,
): Promise<Chunk> {
  const file = await storage.open(name, 'read');
  try {
    const header = decodeHeader(name, await file.read(0, HEADER_BYTES));
    if (place) checkHeaderRange(name, header, place);
    const footer = decodeFooter(name, await file.read(file.size - FOOTER_BYTES, FOOTER_BYTES), file.size);
    checkOldLength(name, header, footer, file.size);
    return new Chunk(name, cache.attach(file), header, footer, 0);
  } catch (error) {
    await file.close();
    throw error;
  }
}
