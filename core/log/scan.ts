import { i32 } from '../bytes.ts';
import type { Chunk } from './chunk.ts';
import { HEADER_BYTES } from './chunk-format.ts';
import type { ChunkTable } from './chunk-table.ts';
import { FRAME_BYTES, RECORD_BYTES_MAX, RecordFrame } from './records.ts';

/** Bytes read at once. */
const SCAN_READ_BYTES = 1_048_576;

/** Sees every record once; a promise is waited for before the next record. */
export type RecordVisitor = (frame: RecordFrame) => void | Promise<void>;

/**
 * Reads the records from `from` (a record's start or a chunk boundary) to the log's end in large sequential blocks,
 * past the block cache, and reads one block ahead while the last is looked at. `onBlock` is told the bytes passed.
 */
export async function scanLog(table: ChunkTable, from: number, visit: RecordVisitor, onBlock?: (bytes: number) => void | Promise<void>): Promise<void> {
  for (const chunk of table.all()) {
    if (chunk.endPosition > from) await scanChunk(chunk, from, visit, onBlock);
  }
}

/** The same for one chunk: records at or after `from`, in the order in which they lie in the file. */
export async function scanChunk(chunk: Chunk, from: number, visit: RecordVisitor, onBlock?: (bytes: number) => void | Promise<void>): Promise<void> {
  const file = chunk.file.file;
  const end = HEADER_BYTES + chunk.physicalBytes;
  let at = HEADER_BYTES + (chunk.isScavenged ? 0 : Math.max(0, from - chunk.startPosition));
  const frame = new RecordFrame();
  let piece: Uint8Array = new Uint8Array(0);
  /** File offset of piece[0]. */
  let pieceAt = at;
  if (at >= end) return;
  let ahead = read(at, Math.min(at + SCAN_READ_BYTES, end));
  let readTo = Math.min(at + SCAN_READ_BYTES, end);
  while (at < end) {
    const got = await ahead;
    const used = at - pieceAt;
    piece = used === piece.length ? got : joined(piece.subarray(used), got);
    pieceAt = at;
    const blockEnd = readTo;
    readTo = Math.min(readTo + SCAN_READ_BYTES, end);
    if (blockEnd < end) ahead = read(blockEnd, readTo);
    let offset = 0;
    while (offset + 4 <= piece.length) {
      const length = i32(piece, offset);
      if (length <= 0 || length > RECORD_BYTES_MAX || at + length + FRAME_BYTES > end) throw chunk.corrupt(at - HEADER_BYTES, `a record length of ${length}`);
      if (offset + length + FRAME_BYTES > piece.length) break;
      if (i32(piece, offset + 4 + length) !== length) throw chunk.corrupt(at - HEADER_BYTES, 'a record whose two lengths differ');
      frame.bytes = piece;
      frame.at = offset + 4;
      frame.length = length;
      const position = frame.ownPosition;
      const expected = chunk.isScavenged ? position : chunk.startPosition + at - HEADER_BYTES;
      if (position !== expected || position < chunk.startPosition || position >= chunk.endPosition) throw chunk.corrupt(at - HEADER_BYTES, `a record that names position ${position}`);
      frame.position = position;
      frame.next = position + length + FRAME_BYTES;
      offset += length + FRAME_BYTES;
      at += length + FRAME_BYTES;
      if (position >= from) {
        const waiting = visit(frame);
        if (waiting !== undefined) await waiting;
      }
    }
    if (blockEnd >= end && at < end) throw chunk.corrupt(at - HEADER_BYTES, 'a record that reaches beyond the data');
    if (onBlock) {
      const waiting = onBlock(got.length);
      if (waiting !== undefined) await waiting;
    }
  }

  function read(start: number, stop: number): Promise<Uint8Array> {
    const reading = readPiece(start, stop);
    // A visitor's error ends the scan before what was read ahead is waited for.
    reading.catch(() => {});
    return reading;
  }

  async function readPiece(start: number, stop: number): Promise<Uint8Array> {
    const bytes = await file.read(start, stop - start);
    if (bytes.length !== stop - start) throw chunk.corrupt(start + bytes.length - HEADER_BYTES, 'the end of the file before the end of its data');
    return bytes;
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const out = new Uint8Array(a.length + b.length);
  out.set(a, 0);
  out.set(b, a.length);
  return out;
}
