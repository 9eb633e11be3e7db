import { i32 } from '../bytes.ts';
import { BlockCache } from '../cache/block-cache.ts';
import { Chunk } from '../log/chunk.ts';
import { decodeHeader, HEADER_BYTES } from '../log/chunk-format.ts';
import { openCompleted } from '../log/open-chunks.ts';
import { FRAME_BYTES, FRAME_LENGTHS_DIFFER, FRAME_SOUND, isRecordLength, RecordFrame, takeFrame } from '../log/records.ts';
import type { Storage } from '../ports/storage.ts';

/** Opens a chunk file past every cache: a completed one, or the data that one which is being written is known to have. Close it with `file.retire`. */
export async function openChunkFile(storage: Storage, name: string, ongoingBytes: number | null): Promise<Chunk> {
  if (ongoingBytes === null) return openCompleted(storage, new BlockCache(0), name);
  const file = await storage.open(name, 'read');
  try {
    return new Chunk(name, new BlockCache(0).attach(file), decodeHeader(name, await file.read(0, HEADER_BYTES)), null, ongoingBytes);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** A record on its own: its position, and the bytes of its leaf, from its length to the end of its payload. */
export interface LooseRecord {
  readonly position: number;
  readonly bytes: Uint8Array;
}

/** Bytes read at once. */
const READ_BYTES = 1_048_576;

/**
 * The records of a file in its order, in runs of about a MiB, from the one at `from` on, which must be in the file unless it was never scavenged. `onPassed` is
 * told the bytes that were read. Throws `log_corrupt` for what is no sequence of records.
 */
export async function* recordRuns(chunk: Chunk, from: number, onPassed: (bytes: number) => Promise<void>): AsyncGenerator<readonly LooseRecord[], void, undefined> {
  const { file } = chunk.file;
  const end = HEADER_BYTES + chunk.physicalBytes;
  const frame = new RecordFrame();
  let at = HEADER_BYTES + (chunk.isScavenged ? 0 : Math.max(0, from - chunk.startPosition));
  let rest: Uint8Array = new Uint8Array(0);
  while (at + rest.length < end) {
    const wanted = Math.min(Math.max(READ_BYTES, rest.length), end - at - rest.length);
    const bytes = new Uint8Array(rest.length + wanted);
    bytes.set(rest, 0);
    const piece = await file.read(at + rest.length, wanted, bytes.subarray(rest.length));
    if (piece.length !== wanted) throw chunk.corrupt(at + rest.length + piece.length - HEADER_BYTES, 'the end of the file before the end of its data');
    if (piece.buffer !== bytes.buffer) bytes.set(piece, rest.length);
    await onPassed(wanted);
    const run: LooseRecord[] = [];
    let offset = 0;
    while (offset + 4 <= bytes.length) {
      const length = i32(bytes, offset);
      const size = length + FRAME_BYTES;
      if (!isRecordLength(length) || at + size > end) throw chunk.corrupt(at - HEADER_BYTES, `a record length of ${length}`);
      if (offset + size > bytes.length) break;
      const found = takeFrame(frame, bytes, offset, length, chunk.isScavenged ? -1 : chunk.startPosition + at - HEADER_BYTES);
      if (found === FRAME_LENGTHS_DIFFER) throw chunk.corrupt(at - HEADER_BYTES, 'a record whose two lengths differ');
      if (found !== FRAME_SOUND || frame.position < chunk.startPosition || frame.position >= chunk.endPosition) throw chunk.corrupt(at - HEADER_BYTES, `a record that names position ${frame.position}`);
      if (frame.position >= from) run.push({ position: frame.position, bytes: bytes.subarray(offset, offset + 4 + length) });
      offset += size;
      at += size;
    }
    rest = bytes.subarray(offset);
    if (run.length > 0) yield run;
  }
  if (rest.length > 0) throw chunk.corrupt(at - HEADER_BYTES, 'a record that reaches beyond the data');
}
