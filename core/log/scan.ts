import { i32 } from '../bytes.ts';
import type { Chunk } from './chunk.ts';
import { HEADER_BYTES } from './chunk-format.ts';
import type { ChunkTable } from './chunk-table.ts';
import { FRAME_BYTES, FRAME_LENGTHS_DIFFER, FRAME_SOUND, isRecordLength, RecordFrame, takeFrame } from './records.ts';

/** Bytes read at once. */
const SCAN_READ_BYTES = 1_048_576;
/** Bytes that tell how long a record is. */
const PREFIX_BYTES = 4;

/** Sees every record once; a promise is waited for before the next record. */
export type RecordVisitor = (frame: RecordFrame) => void | Promise<void>;
/** Is told when all records of a block were seen that end in it: its length, and its bytes as they lie in the file. A promise is waited for. */
export type BlockVisitor = (bytes: number, block: Uint8Array) => void | Promise<void>;

/**
 * Reads the records from `from` (a record's start or a chunk boundary) to the log's end in large sequential blocks,
 * past the block cache, and reads one block ahead while the last is looked at. `onBlock` is told the bytes passed.
 * `reusesBlocks` as in `scanChunk`.
 */
export async function scanLog(table: ChunkTable, from: number, visit: RecordVisitor, onBlock?: BlockVisitor, reusesBlocks = false): Promise<void> {
  // By position, since a scavenge may replace chunks meanwhile, several by one.
  let at = from;
  for (let chunk = table.chunkFrom(at); chunk !== undefined; chunk = table.chunkFrom(at)) {
    await scanChunk(chunk, at, visit, onBlock, reusesBlocks);
    at = chunk.endPosition;
  }
}

/**
 * The same for one chunk: records at or after `from`, in the order in which they lie in the file. Records that lie
 * whole in one block are given as views of it, one behind the other; only one that two blocks share is put together.
 * With `reusesBlocks` the views are good only until `onBlock` has been told of their block and what it returned has
 * been waited for.
 */
export async function scanChunk(chunk: Chunk, from: number, visit: RecordVisitor, onBlock?: BlockVisitor, reusesBlocks = false): Promise<void> {
  chunk.file.enter();
  try {
    await new ChunkScan(chunk, from, reusesBlocks).run(visit, onBlock);
  } finally {
    chunk.file.leave();
  }
}

class ChunkScan {
  readonly #chunk: Chunk;
  readonly #from: number;
  readonly #end: number;
  readonly #frame = new RecordFrame();
  /** File offset of the next record. */
  #at: number;
  /** A record of which a part lay in the blocks so far; only its length at first, when not even that was whole. */
  #split: Uint8Array | null = null;
  #splitFilled = 0;
  /** Where blocks are read into, in turns: while one is looked at the next comes into the other. */
  readonly #buffers: readonly [Uint8Array, Uint8Array] | null;
  #turn = 0;

  constructor(chunk: Chunk, from: number, reusesBlocks: boolean) {
    this.#chunk = chunk;
    this.#from = from;
    this.#end = HEADER_BYTES + chunk.physicalBytes;
    this.#buffers = reusesBlocks && chunk.physicalBytes > SCAN_READ_BYTES ? [new Uint8Array(SCAN_READ_BYTES), new Uint8Array(SCAN_READ_BYTES)] : null;
    this.#at = HEADER_BYTES + (chunk.isScavenged ? 0 : Math.max(0, from - chunk.startPosition));
  }

  async run(visit: RecordVisitor, onBlock?: BlockVisitor): Promise<void> {
    const end = this.#end;
    const frame = this.#frame;
    let blockAt = this.#at;
    let ahead = blockAt < end ? this.#read(blockAt) : null;
    while (ahead !== null) {
      const block: Uint8Array = await ahead;
      blockAt += block.length;
      ahead = blockAt < end ? this.#read(blockAt) : null;
      let offset = this.#split === null ? 0 : this.#fillSplit(block);
      for (let size = this.#nextBytes(block, offset); size > 0; size = this.#nextBytes(block, offset)) {
        if (this.#split !== null) {
          this.#take(this.#split, 0, size);
          this.#split = null;
        } else {
          this.#take(block, offset, size);
          offset += size;
        }
        if (frame.position < this.#from) continue;
        const waiting = visit(frame);
        if (waiting !== undefined) await waiting;
      }
      if (this.#split === null && offset < block.length) this.#startSplit(block, offset);
      const waiting = onBlock?.(block.length, block);
      if (waiting !== undefined) await waiting;
    }
    if (this.#split !== null) throw this.#chunk.corrupt(this.#at - HEADER_BYTES, 'a record that reaches beyond the data');
  }

  /** Bytes of the next record with its frame; 0 when it is not whole yet. */
  #nextBytes(block: Uint8Array, offset: number): number {
    if (this.#split !== null) return this.#splitFilled === this.#split.length && this.#splitFilled > PREFIX_BYTES ? this.#splitFilled : 0;
    if (offset + PREFIX_BYTES > block.length) return 0;
    const size = this.#sizeOf(i32(block, offset));
    return offset + size > block.length ? 0 : size;
  }

  #sizeOf(length: number): number {
    if (!isRecordLength(length) || this.#at + length + FRAME_BYTES > this.#end) throw this.#chunk.corrupt(this.#at - HEADER_BYTES, `a record length of ${length}`);
    return length + FRAME_BYTES;
  }

  #take(bytes: Uint8Array, offset: number, size: number): void {
    const chunk = this.#chunk;
    const frame = this.#frame;
    const found = takeFrame(frame, bytes, offset, size - FRAME_BYTES, chunk.isScavenged ? -1 : chunk.startPosition + this.#at - HEADER_BYTES);
    if (found === FRAME_LENGTHS_DIFFER) throw chunk.corrupt(this.#at - HEADER_BYTES, 'a record whose two lengths differ');
    if (found !== FRAME_SOUND || !(frame.position >= chunk.startPosition && frame.position < chunk.endPosition)) throw chunk.corrupt(this.#at - HEADER_BYTES, `a record that names position ${frame.position}`);
    this.#at += size;
  }

  /** Keeps the beginning of a record that goes on in the next block. */
  #startSplit(block: Uint8Array, offset: number): void {
    const part = block.subarray(offset);
    this.#split = new Uint8Array(part.length < PREFIX_BYTES ? PREFIX_BYTES : this.#sizeOf(i32(part, 0)));
    this.#split.set(part, 0);
    this.#splitFilled = part.length;
  }

  /** Adds to the record that was begun, and returns how much of the block went into it. */
  #fillSplit(block: Uint8Array): number {
    let used = 0;
    let split = this.#split!;
    if (this.#splitFilled < PREFIX_BYTES) {
      used = Math.min(PREFIX_BYTES - this.#splitFilled, block.length);
      split.set(block.subarray(0, used), this.#splitFilled);
      this.#splitFilled += used;
      if (this.#splitFilled < PREFIX_BYTES) return used;
      const whole = new Uint8Array(this.#sizeOf(i32(split, 0)));
      whole.set(split, 0);
      this.#split = split = whole;
    }
    const more = Math.min(split.length - this.#splitFilled, block.length - used);
    split.set(block.subarray(used, used + more), this.#splitFilled);
    this.#splitFilled += more;
    return used + more;
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
    if (bytes.length !== stop - start) throw this.#chunk.corrupt(start + bytes.length - HEADER_BYTES, 'the end of the file before the end of its data');
    return bytes;
  }
}
