import { i32, i64, putI32, putI64, u32 } from '../base/bytes.ts';
import { BLOCK_BYTES, BlockCache } from '../cache/cache.ts';
import { isSkuaError, SkuaError } from '../base/errors.ts';
import type { Digests } from '../ports/digests.ts';
import type { Log } from '../ports/log.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';
import { Chunk } from './chunk.ts';
import { type ChunkHeader, decodeHeader, HEADER_BYTES } from './format/chunk-format.ts';
import { replaceFile } from '../ports/durability.ts';
import type { LogEnd } from './open-chunks.ts';
import { SYSTEM } from './format/records.ts';
import { scanChunk } from './scan.ts';

/**
 * Checksums of the blocks of the chunk that is being written, in a file of their own: that chunk has no MD5 yet
 * (core/log/FORMAT.md, "Files of Skua alone"). The file names the end up to which it vouches, and may lag behind. Other programs ignore it.
 */
export const BLOCK_SUMS_FILE = 'block-sums';
/** The file is written again so often while the chunk grows. */
export const BLOCK_SUMS_INTERVAL_MS = 5_000;

/** Nothing unusual: a process that ends soon after it has completed a chunk leaves that one's. */
const OTHER_CHUNK = 'they are of another chunk file';
const MAGIC = [0x53, 0x6b, 0x75, 0x61, 0x53, 0x75, 0x6d, 0x73]; // "SkuaSums"
const VERSION = 1;
const FIXED_BYTES = 64;
const SHA256_BYTES = 32;
/** What is kept of an epoch record; others have some 300 bytes. */
export const EPOCH_BYTES_MAX = 1_024;
/** Bytes in which an epoch record may differ and still be taken for the same one. */
const EPOCH_DAMAGED_BYTES_MAX = 4;
/** Bytes of the chunk that are read at once: whole blocks. */
const READ_BYTES = 16 * BLOCK_BYTES;

/** Up to where the blocks of a chunk file are known, and what they were. */
export interface VouchedBlocks {
  readonly chunkNumber: number;
  readonly chunkId: Uint8Array;
  /** File offset up to which the checksums vouch. At or below writer.chk, durably, when the file was written. */
  readonly end: number;
  /** Of the newest commit slot then; 0 without one. A truncation by whoever takes the slots away. */
  readonly sequence: number;
  /** The newest epoch record then. Whoever starts to write to a log writes another one. */
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

/** The checksums of the whole blocks of one chunk file, from its beginning on without a gap. */
export class BlockSums {
  #sums = new Uint32Array(64);
  #count = 0;

  /** The next one. */
  add(sum: number): void {
    if (this.#count === this.#sums.length) {
      const wider = new Uint32Array(2 * this.#count);
      wider.set(this.#sums);
      this.#sums = wider;
    }
    this.#sums[this.#count++] = sum;
  }

  /** Those of the first `blocks` blocks, and `last` behind them unless it is null. */
  upTo(blocks: number, last: number | null): Uint32Array {
    const out = new Uint32Array(blocks + (last === null ? 0 : 1));
    out.set(this.#sums.subarray(0, blocks));
    if (last !== null) out[blocks] = last;
    return out;
  }
}

export async function writeBlockSums(storage: Storage, vouched: VouchedBlocks, digests: Digests): Promise<void> {
  const { chunkNumber, chunkId, end, sequence, epoch, sums } = vouched;
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

/** What the file says; null where there is none; `not-ours` where it is not as it was written. */
export async function readBlockSums(storage: Storage, digests: Digests, chunkSize: number): Promise<VouchedBlocks | null | 'not-ours'> {
  const size = await storage.size(BLOCK_SUMS_FILE);
  if (size === null) return null;
  if (size < FIXED_BYTES + SHA256_BYTES || size > FIXED_BYTES + SHA256_BYTES + EPOCH_BYTES_MAX + 4 * Math.ceil((HEADER_BYTES + chunkSize) / BLOCK_BYTES)) return 'not-ours';
  const file = await storage.open(BLOCK_SUMS_FILE, 'read');
  try {
    const bytes = (await file.read(0, size)).slice();
    return bytes.length === size ? decodeBlockSums(bytes, digests) : 'not-ours';
  } finally {
    await file.close();
  }
}

/** What the bytes of the file say; `not-ours` where they are not as they were written. */
export function decodeBlockSums(b: Uint8Array, digests: Digests): VouchedBlocks | 'not-ours' {
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
  return { chunkNumber: i32(b, 32), chunkId: b.slice(16, 32), end, sequence: i64(b, 48), epoch, sums: Uint32Array.from({ length: count }, (_, i) => u32(b, sumsAt + 4 * i)) };
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

/** What the blocks of the chunk being written are, beside what was written down of them. */
export interface BlockFindings {
  /** Of the bytes as they are. */
  readonly sums: BlockSums;
  /** File offset up to which all is as it was written, or is not (`wrong`); 0 where nothing is vouched for. */
  readonly vouchedTo: number;
  /** Blocks that are not as they were written, though nobody else can have written them since. */
  readonly wrong: readonly number[];
  /** Why what was written down no longer fits and is built again; null where it fits, or there is none. */
  readonly outdated: string | null;
  /** The file is there, whatever it says. */
  readonly isThere: boolean;
}

/** The end of the log in the chunk, as `findLogEnd` found it. */
export interface OngoingEnd extends Pick<LogEnd, 'localEnd' | 'nextSequence'> { readonly header: ChunkHeader }

/**
 * Reads the chunk being written up to the log's end and compares its blocks with the file of their checksums. What a crash, a truncation, a restore or
 * another program has changed since is no damage: the table in core/log/README.md, "What a crash leaves", says by what each is known. Without `compares` the
 * checksums count as they are for the bytes that they vouch for.
 */
export async function checkBlocks(storage: Storage, file: StorageFile, { header, localEnd, nextSequence }: OngoingEnd, digests: Digests, compares = true): Promise<BlockFindings> {
  const end = HEADER_BYTES + localEnd;
  const kept = await readBlockSums(storage, digests, header.chunkSize);
  const isThere = kept !== null;
  const outdated = kept === null ? null : kept === 'not-ours' ? 'their file is not as it was written' : outdatedBy(kept, header, end);
  const vouched = outdated === null && kept !== 'not-ours' ? kept : null;
  const { sums, wrong } = await sumBlocks(file, end, digests, compares ? vouched : null);
  if (vouched === null) return { sums, vouchedTo: 0, wrong: [], outdated, isThere };
  if (wrong.length > 0) {
    const changed = nextSequence - 1 < vouched.sequence ? 'the log was cut back since' : await otherWriter(file, header, vouched, wrong);
    if (changed !== null) return { sums, vouchedTo: 0, wrong: [], outdated: changed, isThere };
  }
  return { sums, vouchedTo: vouched.end, wrong, outdated: null, isThere };
}

/** Blocks of a chunk file that are not as the file of checksums of this directory has them, for who has its lock; none where that is of another chunk by now. `between` is told the bytes passed. */
export async function compareBlocks(storage: Storage, name: string, digests: Digests, between: (bytes: number) => Promise<void>): Promise<readonly number[]> {
  const file = await storage.open(name, 'read');
  try {
    const header = decodeHeader(name, await file.read(0, HEADER_BYTES));
    const kept = await readBlockSums(storage, digests, header.chunkSize);
    if (kept === null || kept === 'not-ours' || outdatedBy(kept, header, kept.end) !== null) return [];
    return (await sumBlocks(file, kept.end, digests, kept, between)).wrong;
  } finally {
    await file.close();
  }
}

function outdatedBy(kept: VouchedBlocks, header: ChunkHeader, end: number): string | null {
  if (kept.chunkNumber !== header.startNumber || kept.chunkId.some((byte, i) => byte !== header.chunkId[i])) return OTHER_CHUNK;
  return kept.end > end ? 'the log ends before the place up to which they vouch' : null;
}

/** CRC-32 of all whole blocks in [0, end), and the numbers of those that differ from what is vouched for. */
async function sumBlocks(file: StorageFile, end: number, digests: Digests, vouched: VouchedBlocks | null, between?: (bytes: number) => Promise<void>): Promise<{ sums: BlockSums; wrong: number[] }> {
  const sums = new BlockSums();
  const wrong: number[] = [];
  const buffers = [0, 1].map(() => new Uint8Array(Math.min(READ_BYTES, Math.ceil(end / BLOCK_BYTES) * BLOCK_BYTES)));
  /** The next piece is read while this one is summed. */
  const read = async (from: number): Promise<Uint8Array> => file.read(from, Math.min(READ_BYTES, end - from), buffers[(from / READ_BYTES) % 2]);
  for (let from = 0, reading = read(0); from < end; from += READ_BYTES) {
    const length = Math.min(READ_BYTES, end - from);
    const bytes = await reading;
    if (from + length < end) reading = read(from + length);
    // Whatever ends the walk before it is waited for.
    reading.catch(() => {});
    if (bytes.length !== length) throw new SkuaError('log_corrupt', `Chunk file ${file.path} has fewer bytes than its data: ${from + bytes.length} of ${end}. Restore it from a backup.`, { file: file.path, offset: from + bytes.length });
    for (let at = 0; at < length; at += BLOCK_BYTES) {
      const block = bytes.subarray(at, at + BLOCK_BYTES);
      const sum = digests.crc32(block);
      if (block.length === BLOCK_BYTES) sums.add(sum);
      const index = (from + at) / BLOCK_BYTES;
      if (vouched === null || index >= vouched.sums.length) continue;
      const part = Math.min(block.length, vouched.end - from - at);
      if ((part === block.length ? sum : digests.crc32(block.subarray(0, part))) !== vouched.sums[index]) wrong.push(index);
    }
    await between?.(length);
  }
  return { sums, wrong };
}

/**
 * Who has written what is there now in place of what was vouched for; null where nobody else has, so that it is damage. A writer that starts in a place
 * that was cut back, or restored, begins with an epoch record, where this log had none; and where the files of another log were
 * copied over it, the epoch that this one had is not among its records.
 */
async function otherWriter(file: StorageFile, header: ChunkHeader, { end, epoch }: VouchedBlocks, wrong: readonly number[]): Promise<string | null> {
  const chunk = new Chunk(file.path, new BlockCache(0).attach(file), header, null, end - HEADER_BYTES);
  const differs = new Set(wrong);
  let found = -1;
  let hasOwn = epoch.bytes.length === 0;
  let isPassed = false;
  try {
    await scanChunk(chunk, chunk.startPosition, (frame) => {
      if (frame.position > epoch.position) isPassed = true;
      if (frame.type !== SYSTEM) return;
      if (frame.position === epoch.position) hasOwn = isSame(epoch.bytes, frame.bytes.subarray(frame.at, frame.at + frame.length));
      if (found < 0 && frame.position > epoch.position && differs.has(Math.floor((HEADER_BYTES + frame.position - chunk.startPosition) / BLOCK_BYTES))) found = frame.position;
    });
  } catch (error) {
    // Another log's record may lie across the end, and damage ends the walk: what was found before counts.
    if (!isSkuaError(error, 'log_corrupt')) throw error;
  }
  if (found >= 0) return `another process has written since, whose epoch begins at position ${found}`;
  return isPassed && !hasOwn ? 'other files were copied here since' : null;
}

/** Two epochs have different ids, which are random; a few bytes that differ are damage to the same one. */
function isSame(known: Uint8Array, found: Uint8Array): boolean {
  let different = 0;
  for (let i = 0; i < known.length; i++) if (known[i] !== found[i]) different++;
  return different <= EPOCH_DAMAGED_BYTES_MAX;
}

/** A block that somebody vouches for and that is not as it was written. */
export function blockDamaged(name: string, block: number, count: number): SkuaError {
  const offset = block * BLOCK_BYTES;
  const others = count > 1 ? `, and ${count - 1} more like it` : '';
  return new SkuaError('log_corrupt', `Chunk file ${name} is damaged between the offsets ${offset} and ${offset + BLOCK_BYTES}${others}: its bytes differ from the checksum in ${BLOCK_SUMS_FILE}, and no other program has written there since. Run \`skua verify\` for all damage, and restore the directory from a backup. To go on with the bytes as they are, delete ${BLOCK_SUMS_FILE}.`, { file: name, offset, blocks: count });
}

/** Throws `log_corrupt` for a block that differs, and changes nothing then. Removes what no longer fits, and tells the log that it is built again. */
export async function settleBlocks(storage: Storage, log: Log, name: string, { wrong, outdated }: BlockFindings): Promise<void> {
  if (wrong.length > 0) throw blockDamaged(name, wrong[0]!, wrong.length);
  if (outdated === null) return;
  // Before anything is appended: what it vouches for must not come to be taken for damage when the log has grown past it again.
  await storage.remove(BLOCK_SUMS_FILE);
  const details = { file: BLOCK_SUMS_FILE, chunk: name, reason: outdated };
  const message = 'the checksums of the chunk being written no longer fit and are built again';
  if (outdated === OTHER_CHUNK) log.info(message, details);
  else log.warn(message, details);
}
