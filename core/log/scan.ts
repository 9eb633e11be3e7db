import type { Chunk } from './chunk.ts';
import { HEADER_BYTES } from './format/chunk-format.ts';
import type { ChunkTable } from './chunk-table.ts';
import { RecordCutter } from './format/record-cutter.ts';
import type { RecordFrame } from './format/records.ts';

/** Bytes read at once. */
const SCAN_READ_BYTES = 1_048_576;

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

/** Cuts the data of a chunk into records, from so many bytes behind its header on. */
export function chunkCutter(chunk: Chunk, fromBytes: number): RecordCutter {
  return new RecordCutter({
    position: chunk.isScavenged ? -1 : chunk.startPosition + fromBytes, bytes: chunk.physicalBytes - fromBytes, between: [chunk.startPosition, chunk.endPosition],
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
    this.#buffers = reusesBlocks && chunk.physicalBytes > SCAN_READ_BYTES ? [new Uint8Array(SCAN_READ_BYTES), new Uint8Array(SCAN_READ_BYTES)] : null;
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
    if (bytes.length !== stop - start) throw this.#chunk.corrupt(start + bytes.length - HEADER_BYTES, 'the end of the file before the end of its data');
    return bytes;
  }
}
