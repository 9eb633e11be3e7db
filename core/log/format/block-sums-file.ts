import { i32, i64, putI32, putI64, u32 } from '../../base/bytes.ts';
import { BLOCK_BYTES } from '../../cache/cache.ts';
import type { Digests } from '../../ports/digests.ts';
import { replaceFile } from '../../ports/durability.ts';
import type { Storage } from '../../ports/storage.ts';
import { HEADER_BYTES } from './chunk-format.ts';

/**
 * Checksums of the blocks of the chunk that is being written, in a file of their own: that chunk has no MD5 yet
 * (core/log/FORMAT.md, "Files of Skua alone"). The file names the end up to which it vouches, and may lag behind. Other
 * programs ignore it.
 */
export const BLOCK_SUMS_FILE = 'block-sums';
/** What is kept of an epoch record; others have some 300 bytes. */
export const EPOCH_BYTES_MAX = 1_024;
const MAGIC = [0x53, 0x6b, 0x75, 0x61, 0x53, 0x75, 0x6d, 0x73]; // "SkuaSums"
const VERSION = 1;
const FIXED_BYTES = 64;
const SHA256_BYTES = 32;

/** Up to where the blocks of a chunk file are known, and what they were. */
export interface ChecksummedBlocks {
  readonly chunkNumber: number;
  readonly chunkId: Uint8Array;
  /** File offset up to which the checksums vouch. At or below writer.chk, durably, when the file was written. */
  readonly end: number;
  /** Of the newest commit slot then; 0 without one. A truncation, by any program, takes the slots away. */
  readonly sequence: number;
  /** The newest epoch record then. A writer that starts on a log writes another one. */
  readonly epoch: KnownEpoch;
  /** CRC-32 of each block of the file, of the last one up to `end`. */
  readonly sums: Uint32Array;
}

/** An epoch record; where there is none in the chunk a position before it, and no bytes. */
export interface KnownEpoch {
  readonly position: number;
  /** As it lies in the log, without its frame: it has a random id. At most EPOCH_BYTES_MAX. */
  readonly bytes: Uint8Array;
}

export async function writeBlockSums(
  storage: Storage,
  checksummed: ChecksummedBlocks,
  digests: Digests,
): Promise<void> {
  const { chunkNumber, chunkId, end, sequence, epoch, sums } = checksummed;
  const out = new Uint8Array(FIXED_BYTES + epoch.bytes.length + 4 * sums.length + SHA256_BYTES);
  out.set(MAGIC, 0);
  putI32(out, 8, VERSION);
  putI32(out, 12, BLOCK_BYTES);
  out.set(chunkId, 16);
  putI32(out, 32, chunkNumber);
  putI64(out, 40, end);
  putI64(out, 48, sequence);
  putI32(out, 36, epoch.bytes.length);
  putI64(out, 56, epoch.position);
  out.set(epoch.bytes, FIXED_BYTES);
  for (let i = 0; i < sums.length; i++) putI32(out, FIXED_BYTES + epoch.bytes.length + 4 * i, sums[i]! | 0);
  out.set(sha256(out.subarray(0, out.length - SHA256_BYTES), digests), out.length - SHA256_BYTES);
  await replaceFile(storage, BLOCK_SUMS_FILE, out);
}

/** What the file holds; null where there is none; `not-ours` where it is not as it was written. */
export async function readBlockSums(
  storage: Storage,
  digests: Digests,
  chunkSize: number,
): Promise<ChecksummedBlocks | null | 'not-ours'> {
  const size = await storage.size(BLOCK_SUMS_FILE);
  if (size === null) return null;
  if (
    size < FIXED_BYTES + SHA256_BYTES ||
    size > FIXED_BYTES + SHA256_BYTES + EPOCH_BYTES_MAX + 4 * Math.ceil((HEADER_BYTES + chunkSize) / BLOCK_BYTES)
  )
    return 'not-ours';
  const file = await storage.open(BLOCK_SUMS_FILE, 'read');
  try {
    const bytes = (await file.read(0, size)).slice();
    return bytes.length === size ? decodeBlockSums(bytes, digests) : 'not-ours';
  } finally {
    await file.close();
  }
}

/** What the bytes of the file say; `not-ours` where they are not as they were written. */
export function decodeBlockSums(b: Uint8Array, digests: Digests): ChecksummedBlocks | 'not-ours' {
  if (b.length < FIXED_BYTES + SHA256_BYTES) return 'not-ours';
  const content = b.subarray(0, b.length - SHA256_BYTES);
  if (MAGIC.some((byte, i) => b[i] !== byte) || i32(b, 8) !== VERSION || i32(b, 12) !== BLOCK_BYTES) return 'not-ours';
  const digest = sha256(content, digests);
  if (digest.some((byte, i) => byte !== b[content.length + i])) return 'not-ours';
  const end = i64(b, 40);
  const sumsAt = FIXED_BYTES + i32(b, 36);
  const count = (content.length - sumsAt) / 4;
  if (end < HEADER_BYTES || Math.ceil(end / BLOCK_BYTES) !== count) return 'not-ours';
  const epoch = { position: i64(b, 56), bytes: b.slice(FIXED_BYTES, sumsAt) };
  return {
    chunkNumber: i32(b, 32),
    chunkId: b.slice(16, 32),
    end,
    sequence: i64(b, 48),
    epoch,
    sums: Uint32Array.from({ length: count }, (_, i) => u32(b, sumsAt + 4 * i)),
  };
}

/** Whether a file begins as one of checksums of blocks does. */
export function beginsAsBlockSums(head: Uint8Array): boolean {
  return MAGIC.every((byte, i) => head[i] === byte);
}

function sha256(bytes: Uint8Array, digests: Digests): Uint8Array {
  const sha = digests.sha256();
  sha.update(bytes);
  return sha.finish();
}
