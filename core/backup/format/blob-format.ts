import { equalBytes, i32, i64, putI32, putI64, u32 } from '../../base/bytes.ts';
import type { Digests } from '../../ports/digests.ts';
import { encodeText } from '../../base/text.ts';

/**
 * Layout of a blob (core/backup/FORMAT.md, "Blob"): header, frames, table of frames. The header says where the table
 * is, so that any range of the content is found; the table comes last, so that content whose stored length is known can
 * be stored while it is read for the first time. All integers little-endian:
 *
 * | Offset | Size | Field |
 * |---|---|---|
 * | 0 | 8 | `SkuaBlob` |
 * | 8 | 1 | version, 1 |
 * | 9 | 1 | 1 where the frames are sealed |
 * | 10 | 2 | 0 |
 * | 12 | 4 | plain bytes of every frame but the last |
 * | 16 | 8 | plain bytes in all |
 * | 24 | 8 | where the table is |
 * | 32 | 4 | CRC-32 of all before |
 * | 36 | | the frames, one behind the other |
 *
 * The table: for each frame 4 bytes with its stored length, bit 31 for zstd, and 4 bytes with the CRC-32 of what is
 * stored, 0 where it is sealed; then the CRC-32 of the header and the table. The object ends there.
 */
const MAGIC = encodeText('SkuaBlob');
const VERSION = 1;
export const HEADER_BYTES = 36;
const ENTRY_BYTES = 8;
const CRC_BYTES = 4;
const ZSTD_BIT = 0x8000_0000;

/**
 * Plain bytes of a frame: large where every frame that is read is a request, and few enough for the processor's cache
 * in a directory of this machine.
 */
export const BLOB_FRAME_BYTES = 4_194_304;
export const BLOB_FRAME_LOCAL_BYTES = 262_144;
/** A file can't be longer in a blob, 256 GiB in a directory: a table of more frames is nothing to hold in memory. */
export const BLOB_FRAMES_MAX = 1_048_576;
/** Read at once for the header: small blobs come whole with it. */
export const HEAD_READ_BYTES = 65_536;

export interface BlobFrame {
  /** Stored, with what sealing adds. */
  readonly storedBytes: number;
  readonly isCompressed: boolean;
  /** CRC-32 of the frame as it is stored; 0 where it is sealed. */
  readonly crc: number;
}

export interface BlobHeader {
  readonly isSealed: boolean;
  readonly frameBytes: number;
  readonly sizeBytes: number;
  readonly tableAt: number;
}

export function frameCount({ sizeBytes, frameBytes }: Pick<BlobHeader, 'sizeBytes' | 'frameBytes'>): number {
  return Math.ceil(sizeBytes / frameBytes);
}

function tableBytes(frames: number): number {
  return frames * ENTRY_BYTES + CRC_BYTES;
}

/** Bytes of the whole object. */
export function objectBytesOf(header: BlobHeader): number {
  return header.tableAt + tableBytes(frameCount(header));
}

export function encodeBlobHeader(header: BlobHeader, digests: Digests): Uint8Array {
  const out = new Uint8Array(HEADER_BYTES);
  out.set(MAGIC);
  out[8] = VERSION;
  out[9] = header.isSealed ? 1 : 0;
  putI32(out, 12, header.frameBytes);
  putI64(out, 16, header.sizeBytes);
  putI64(out, 24, header.tableAt);
  putI32(out, 32, digests.crc32(out.subarray(0, 32)) | 0);
  return out;
}

/** Null when this does not begin as a blob does. */
export function decodeBlobHeader(b: Uint8Array, digests: Digests): BlobHeader | null {
  if (
    b.length < HEADER_BYTES ||
    !equalBytes(b, 0, MAGIC, 0, MAGIC.length) ||
    b[8] !== VERSION ||
    b[9]! > 1 ||
    b[10] !== 0 ||
    b[11] !== 0
  )
    return null;
  if (digests.crc32(b.subarray(0, 32)) !== u32(b, 32)) return null;
  const header = { isSealed: b[9] === 1, frameBytes: i32(b, 12), sizeBytes: i64(b, 16), tableAt: i64(b, 24) };
  return header.frameBytes > 0 && header.sizeBytes >= 0 && frameCount(header) <= BLOB_FRAMES_MAX ? header : null;
}

/** `header`: its bytes, to which the table is bound. */
export function encodeTable(header: Uint8Array, frames: readonly BlobFrame[], digests: Digests): Uint8Array {
  const out = new Uint8Array(tableBytes(frames.length));
  frames.forEach((frame, i) => {
    putI32(out, i * ENTRY_BYTES, (frame.storedBytes + (frame.isCompressed ? ZSTD_BIT : 0)) | 0);
    putI32(out, i * ENTRY_BYTES + 4, frame.crc | 0);
  });
  const end = out.length - CRC_BYTES;
  putI32(out, end, digests.crc32(out.subarray(0, end), digests.crc32(header)) | 0);
  return out;
}

/** Null when the table is not what was written, or does not fill the place between header and itself. */
export function decodeTable(
  headerBytes: Uint8Array,
  header: BlobHeader,
  table: Uint8Array,
  digests: Digests,
): BlobFrame[] | null {
  const end = table.length - CRC_BYTES;
  if (
    table.length !== tableBytes(frameCount(header)) ||
    digests.crc32(table.subarray(0, end), digests.crc32(headerBytes)) !== u32(table, end)
  )
    return null;
  const frames: BlobFrame[] = [];
  let at = HEADER_BYTES;
  for (let i = 0; i < end; i += ENTRY_BYTES) {
    const stored = u32(table, i);
    frames.push({ storedBytes: stored % ZSTD_BIT, isCompressed: stored >= ZSTD_BIT, crc: u32(table, i + 4) });
    at += stored % ZSTD_BIT;
  }
  return at === header.tableAt ? frames : null;
}

/** Plain bytes of one frame. */
export function plainBytes(header: Pick<BlobHeader, 'frameBytes' | 'sizeBytes'>, frame: number): number {
  return Math.min(header.frameBytes, header.sizeBytes - frame * header.frameBytes);
}

/**
 * What a sealed frame is bound to: its blob, its place in it, its form and the blob's length. Frames can't be swapped
 * or left out.
 */
export function frameContext(
  blobId: string,
  frame: number,
  isCompressed: boolean,
  header: Pick<BlobHeader, 'frameBytes' | 'sizeBytes'>,
): Uint8Array {
  return encodeText(
    `blob ${blobId} ${frame} ${isCompressed ? 'zstd' : 'raw'} ${header.frameBytes} ${header.sizeBytes}`,
  );
}
