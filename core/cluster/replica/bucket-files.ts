import type { BlockCache } from '../../cache/cache.ts';
import { SkuaError } from '../../base/errors.ts';
import { fromHex } from '../../base/hex.ts';
import { type ChunkHeader, decodeHeader, encodeHeader, MD5_BYTES } from '../../log/format/chunk-format.ts';
import { RecordCutter } from '../../log/format/record-cutter.ts';
import { Chunk } from '../../log/chunk/chunk.ts';
import { ObjectFileReader, OngoingFile } from '../../shared-log/files/files.ts';
import type { ObjectChunk, ObjectManifest, ObjectOngoing } from '../../shared-log/format/manifest.ts';
import type { GetOptions, ObjectStore } from '../../ports/object-store.ts';

/** The log's files in the bucket, as a manifest names them, and how they are read. */

const NO_ID = new Uint8Array(16);

/** The completed file that covers a chunk, or undefined where that chunk is not complete in the bucket. */
export function bucketChunk({ chunks }: ObjectManifest, number: number): ObjectChunk | undefined {
  let low = 0;
  let high = chunks.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (chunks[middle]!.endNumber < number) low = middle + 1;
    else high = middle;
  }
  return chunks[low];
}

/** Position at which the next commit behind the manifest's files starts, unless it does not fit the chunk. */
export function manifestEnd({ logEnd, endsChunk, chunkSizeBytes }: ObjectManifest): number {
  return endsChunk ? Math.ceil(logEnd / chunkSizeBytes) * chunkSizeBytes : logEnd;
}

/**
 * The chunk of a manifest that holds `position`, which lies below its log's end, for reading single records. Costs no
 * request.
 */
export function openBucketChunk(
  manifest: ObjectManifest,
  position: number,
  objects: ObjectStore,
  cache: BlockCache,
): Chunk {
  const { chunkSizeBytes: chunkSize, ongoing, logEnd } = manifest;
  const stored = bucketChunk(manifest, Math.floor(position / chunkSize));
  if (stored === undefined) {
    const { name, number, segments } = ongoing!;
    const header = ongoingHeader(ongoing!, chunkSize);
    return new Chunk(
      name,
      cache.attach(new OngoingFile(objects, name, number * chunkSize, encodeHeader(header), segments)),
      header,
      null,
      logEnd - number * chunkSize,
    );
  }
  const {
    name,
    key,
    sizeBytes,
    startNumber,
    endNumber,
    isScavenged,
    mapEntryBytes,
    physicalBytes,
    logicalBytes,
    mapBytes,
  } = stored;
  const header: ChunkHeader = { version: 3, chunkSize, startNumber, endNumber, isScavenged, chunkId: NO_ID };
  const footer = {
    isCompleted: true,
    mapEntryBytes,
    physicalBytes,
    logicalBytes,
    mapBytes,
    md5: new Uint8Array(MD5_BYTES),
  };
  return new Chunk(name, cache.attach(new ObjectFileReader(objects, name, key, sizeBytes)), header, footer, 0);
}

/** The header of the chunk that is being filled. Throws `manifest_invalid` when the manifest has another chunk's. */
export function ongoingHeader({ name, number, header }: ObjectOngoing, chunkSize: number): ChunkHeader {
  const decoded = decodeHeader(name, fromHex(header.toLowerCase()) ?? new Uint8Array(0));
  if (
    decoded.chunkSize === chunkSize &&
    decoded.startNumber === number &&
    decoded.endNumber === number &&
    !decoded.isScavenged
  )
    return decoded;
  throw new SkuaError(
    'manifest_invalid',
    `The manifest has the header of another chunk for chunk ${number}, which is being filled: restore the manifest from a version or a backup of the bucket.`,
    { chunk: number },
  );
}

/**
 * Bytes [from, from + length) of an object. Throws `file_not_found`, with its key, when there is none, and
 * `log_corrupt` when it is too short.
 */
export async function readObject(
  objects: ObjectStore,
  key: string,
  options: GetOptions & { readonly from: number; readonly length: number },
): Promise<Uint8Array> {
  const bytes = await objects.get(key, options);
  if (bytes === null)
    throw new SkuaError(
      'file_not_found',
      `The object ${key}, which a manifest names, no longer exists: the newest manifest names its replacement.`,
      { path: key, key },
    );
  if (bytes.length === options.length) return bytes;
  throw new SkuaError(
    'log_corrupt',
    `The object ${key} gave ${bytes.length} of ${options.length} bytes at offset ${options.from}: it is shorter than its manifest says. Restore it from a version or a backup of the bucket.`,
    { key, offset: options.from },
  );
}

/** The log went on from a manifest: what it names may be gone, and another manifest names what has taken its place. */
export function isOutdated(error: unknown): boolean {
  if (!(error instanceof SkuaError)) return false;
  return (error.code === 'file_not_found' && error.data.key !== undefined) || error.code === 'commit_lost';
}

/** Bytes of one request. Two of them are in memory for each file that is being read. */
export const PIECE_BYTES = 4_194_304;

/** Memory that pieces are read into, in turns; kept from file to file. */
export type PieceBuffers = readonly [Uint8Array, Uint8Array];

export function newPieceBuffers(): PieceBuffers {
  return [new Uint8Array(PIECE_BYTES), new Uint8Array(PIECE_BYTES)];
}

/**
 * Bytes [from, to) of an object, piece by piece. While one piece is looked at the next one is on its way; a piece may
 * be used again after the next one was asked for. Throws as `readObject` does, and `aborted`.
 */
export async function* piecesOf(
  objects: ObjectStore,
  key: string,
  from: number,
  to: number,
  buffers: PieceBuffers,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  let turn = 0;
  const read = (at: number): Promise<Uint8Array> => {
    turn ^= 1;
    const reading = readObject(objects, key, {
      from: at,
      length: Math.min(PIECE_BYTES, to - at),
      into: buffers[turn]!,
      signal,
    });
    // A reader that ends early meets what it came to all the same.
    reading.catch(() => {});
    return reading;
  };
  let ahead = from < to ? read(from) : null;
  try {
    for (let at = from; ahead !== null;) {
      throwIfEnded(signal);
      const piece: Uint8Array = await ahead;
      at += piece.length;
      ahead = at < to ? read(at) : null;
      yield piece;
    }
  } finally {
    // The memory belongs to the next reader from here on.
    await ahead?.catch(() => {});
  }
}

export function throwIfEnded(signal: AbortSignal): void {
  if (signal.aborted) throw new SkuaError('aborted', 'Catching up was interrupted; the next opening continues it.');
}

/**
 * Proves that a stretch of log that comes in pieces, from `position` on, holds records and nothing else; `key`: of the
 * object, for messages.
 */
export function objectCutter(position: number, key: string): RecordCutter {
  return new RecordCutter({
    position,
    fail: (at) =>
      new SkuaError(
        'log_corrupt',
        `The object ${key} holds no valid record at position ${position + at} of the log. None of it was used: restore it from a version or a backup of the bucket.`,
        { key, position: position + at },
      ),
  });
}

/**
 * The records that are whole with this piece: what lies one behind the other is one group, and what two pieces share
 * another.
 */
export function* groupsIn(piece: Uint8Array, cutter: RecordCutter): Generator<Uint8Array, void, undefined> {
  const { frame } = cutter;
  let from = piece.length;
  let to = 0;
  cutter.take(piece);
  while (cutter.next()) {
    if (frame.bytes !== piece) yield frame.bytes;
    else {
      from = Math.min(from, frame.at - 4);
      to = frame.at + frame.length + 4;
    }
  }
  if (from < to) yield piece.subarray(from, to);
}
