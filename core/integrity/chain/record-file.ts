import { BlockCache } from '../../cache/cache.ts';
import { Chunk, chunkCutter, openCompleted } from '../../log/chunk/chunk.ts';
import { decodeHeader, HEADER_BYTES } from '../../log/format/chunk-format.ts';
import type { Storage } from '../../ports/storage.ts';

/**
 * Opens a chunk file past every cache: a completed one, or the data that one which is being written is known to have.
 * Close it with `file.retire`.
 */
export async function openChunkFile(storage: Storage, name: string, ongoingBytes: number | null): Promise<Chunk> {
  if (ongoingBytes === null) return openCompleted(storage, new BlockCache(0), name);
  const file = await storage.open(name, 'read');
  try {
    return new Chunk(
      name,
      new BlockCache(0).attach(file),
      decodeHeader(name, await file.read(0, HEADER_BYTES)),
      null,
      ongoingBytes,
    );
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
 * The records of a file in its order, in runs of about a MiB, from the one at `from` on, which must be in the file
 * unless it was never scavenged. `onPassed` gets the bytes that were read. Throws `log_corrupt` for what is no sequence
 * of records.
 */
export async function* recordRuns(
  chunk: Chunk,
  from: number,
  onPassed: (bytes: number) => Promise<void>,
): AsyncGenerator<readonly LooseRecord[], void, undefined> {
  const { file } = chunk.file;
  const end = HEADER_BYTES + chunk.physicalBytes;
  let at = HEADER_BYTES + (chunk.isScavenged ? 0 : Math.max(0, from - chunk.startPosition));
  const cutter = chunkCutter(chunk, at - HEADER_BYTES);
  const { frame } = cutter;
  while (at < end) {
    const wanted = Math.min(READ_BYTES, end - at);
    const piece = await file.read(at, wanted);
    if (piece.length !== wanted)
      throw chunk.corrupt(at + piece.length - HEADER_BYTES, 'the end of the file before the end of its data');
    at += wanted;
    await onPassed(wanted);
    const run: LooseRecord[] = [];
    cutter.take(piece);
    while (cutter.next()) {
      if (frame.position >= from)
        run.push({ position: frame.position, bytes: frame.bytes.subarray(frame.at - 4, frame.at + frame.length) });
    }
    if (run.length > 0) yield run;
  }
  cutter.finish();
}
