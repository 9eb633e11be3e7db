import { equalBytes, i32, i64, putI32, putI64, u32 } from '../bytes.ts';
import type { Digests } from '../ports/digests.ts';
import { encodeText } from '../text.ts';

/**
 * Layout of a blob (ARCHITECTURE.md, "Backups"). The header with the table of frames comes first, so that any range of the
 * content is found with one read of the header. All integers little-endian:
 *
 * | Offset | Size | Field |
 * |---|---|---|
 * | 0 | 8 | `SkuaBlob` |
 * | 8 | 1 | version, 1 |
 * | 9 | 1 | 1 where the frames are sealed |
 * | 10 | 2 | 0 |
 * | 12 | 4 | plain bytes of every frame but the last |
 * | 16 | 8 | plain bytes in all |
 * | 24 | 8 a frame | stored bytes, with bit 31 for zstd; CRC-32 of what is stored, 0 where it is sealed |
 * | behind | 4 | CRC-32 of all before |
 */
const MAGIC = encodeText('SkuaBlob');
const VERSION = 1;
const FIXED_BYTES = 24;
const ENTRY_BYTES = 8;
const CRC_BYTES = 4;
const ZSTD_BIT = 0x8000_0000;

/** Plain bytes of a frame. */
export const BLOB_FRAME_BYTES = 4_194_304;
/** A file can't be longer in a blob: 64 TiB at the usual size of a frame would need a header that no memory should hold. */
export const BLOB_FRAMES_MAX = 1_048_576;
/** Read at once for the header: enough for frames of 500 chunks, and small blobs come whole with it. */
export const HEADER_READ_BYTES = 65_536;

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
  readonly frames: readonly BlobFrame[];
}

export function frameCount(sizeBytes: number, frameBytes: number): number {
  return Math.ceil(sizeBytes / frameBytes);
}

export function headerBytes(frames: number): number {
  return FIXED_BYTES + frames * ENTRY_BYTES + CRC_BYTES;
}

export function encodeBlobHeader(header: BlobHeader, digests: Digests): Uint8Array {
  const out = new Uint8Array(headerBytes(header.frames.length));
  out.set(MAGIC);
  out[8] = VERSION;
  out[9] = header.isSealed ? 1 : 0;
  putI32(out, 12, header.frameBytes);
  putI64(out, 16, header.sizeBytes);
  header.frames.forEach((frame, i) => {
    const at = FIXED_BYTES + i * ENTRY_BYTES;
    putI32(out, at, frame.storedBytes + (frame.isCompressed ? ZSTD_BIT : 0) | 0);
    putI32(out, at + 4, frame.crc | 0);
  });
  const end = out.length - CRC_BYTES;
  putI32(out, end, digests.crc32(out.subarray(0, end)) | 0);
  return out;
}

/** How long the header is, by its beginning (at least 24 bytes); null when this begins no blob. */
export function headerBytesOf(b: Uint8Array): number | null {
  if (b.length < FIXED_BYTES || !equalBytes(b, 0, MAGIC, 0, MAGIC.length) || b[8] !== VERSION || b[9]! > 1 || b[10] !== 0 || b[11] !== 0) return null;
  const frameBytes = i32(b, 12);
  const sizeBytes = i64(b, 16);
  if (frameBytes <= 0 || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0) return null;
  const frames = frameCount(sizeBytes, frameBytes);
  return frames > BLOB_FRAMES_MAX ? null : headerBytes(frames);
}

/** Null when the header is not what was written. `b` holds at least all of it. */
export function decodeBlobHeader(b: Uint8Array, digests: Digests): BlobHeader | null {
  const length = headerBytesOf(b);
  if (length === null || b.length < length) return null;
  const end = length - CRC_BYTES;
  if (digests.crc32(b.subarray(0, end)) !== u32(b, end)) return null;
  const frames: BlobFrame[] = [];
  for (let at = FIXED_BYTES; at < end; at += ENTRY_BYTES) {
    const stored = u32(b, at);
    frames.push({ storedBytes: stored % ZSTD_BIT, isCompressed: stored >= ZSTD_BIT, crc: u32(b, at + 4) });
  }
  return { isSealed: b[9] === 1, frameBytes: i32(b, 12), sizeBytes: i64(b, 16), frames };
}

/** Bytes of the whole object. */
export function storedBytes(header: BlobHeader): number {
  return header.frames.reduce((sum, frame) => sum + frame.storedBytes, headerBytes(header.frames.length));
}

/** Plain bytes of one frame. */
export function plainBytes(header: Pick<BlobHeader, 'frameBytes' | 'sizeBytes'>, frame: number): number {
  return Math.min(header.frameBytes, header.sizeBytes - frame * header.frameBytes);
}

/** What a sealed frame is bound to: its blob, its place in it, its form and the blob's length. Frames can't be swapped or left out. */
export function frameContext(blobId: string, frame: number, isCompressed: boolean, header: Pick<BlobHeader, 'frameBytes' | 'sizeBytes'>): Uint8Array {
  return encodeText(`blob ${blobId} ${frame} ${isCompressed ? 'zstd' : 'raw'} ${header.frameBytes} ${header.sizeBytes}`);
}
