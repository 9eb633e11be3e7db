import { BLOCK_BYTES, BlockCache } from '../../cache/cache.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import { Chunk, scanChunk } from '../chunk/chunk.ts';
import { onlyByteOf } from './only-byte.ts';
import { BLOCK_SUMS_FILE, readBlockSums, type ChecksummedBlocks } from '../format/block-sums-file.ts';
import { type ChunkHeader, decodeHeader, HEADER_BYTES } from '../format/chunk-format.ts';
import type { LogEnd } from '../log-end/log-end.ts';
import { SYSTEM } from '../format/records.ts';

/** The file is written again so often while the chunk grows. */
export const BLOCK_SUMS_INTERVAL_MS = 5_000;

/** Nothing unusual: a process that ends soon after it has completed a chunk leaves that one's. */
const OTHER_CHUNK = 'they belong to another chunk file';
/** Bytes in which an epoch record may differ and still be taken for the same one. */
const EPOCH_DAMAGED_BYTES_MAX = 4;
/** Bytes of the chunk that are read at once: whole blocks. */
const READ_BYTES = 16 * BLOCK_BYTES;

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

  /** The sums of the first `blocks` blocks, and `last` behind them unless it is null. */
  upTo(blocks: number, last: number | null): Uint32Array {
    const out = new Uint32Array(blocks + (last === null ? 0 : 1));
    out.set(this.#sums.subarray(0, blocks));
    if (last !== null) out[blocks] = last;
    return out;
  }
}

/** What the blocks of the chunk being written are, beside what was written down of them. */
export interface BlockFindings {
  /** Of the bytes as they are. */
  readonly sums: BlockSums;
  /** File offset up to which all is as it was written, or is not (`wrong`); 0 where nothing is vouched for. */
  readonly checksummedTo: number;
  /** Blocks that are not as they were written, though no other program can have written them since. */
  readonly wrong: readonly number[];
  /** Why what was written down no longer fits and is built again; null where it fits, or there is none. */
  readonly outdated: string | null;
  /** The file is there, whatever it holds. */
  readonly isThere: boolean;
}

/** The end of the log in the chunk, as `findLogEnd` found it. */
export interface OngoingEnd extends Pick<LogEnd, 'localEnd' | 'nextSequence'> {
  readonly header: ChunkHeader;
}

/**
 * Reads the chunk being written up to the log's end and compares its blocks with the file of their checksums. What a
 * crash, a truncation, a restore or another program has changed since is no damage: the table in core/log/README.md,
 * "What a crash leaves", says by what each is known. Without `compares` the checksums count as they are for the bytes
 * that they vouch for.
 */
export async function checkBlocks(
  storage: Storage,
  file: StorageFile,
  { header, localEnd, nextSequence }: OngoingEnd,
  digests: Digests,
  compares = true,
): Promise<BlockFindings> {
  const end = HEADER_BYTES + localEnd;
  const kept = await readBlockSums(storage, digests, header.chunkSize);
  const isThere = kept !== null;
  const outdated =
    kept === null ? null : kept === 'not-ours' ? 'their file was changed or damaged' : outdatedBy(kept, header, end);
  const checksummed = outdated === null && kept !== 'not-ours' ? kept : null;
  const { sums, wrong: differing } = await sumBlocks(file, end, digests, compares ? checksummed : null);
  const wrong = differing.map(({ block }) => block);
  if (checksummed === null) return { sums, checksummedTo: 0, wrong: [], outdated, isThere };
  if (wrong.length > 0) {
    const changed =
      nextSequence - 1 < checksummed.sequence
        ? 'the log was truncated since'
        : await otherWriter(file, header, checksummed, wrong);
    if (changed !== null) return { sums, checksummedTo: 0, wrong: [], outdated: changed, isThere };
  }
  return { sums, checksummedTo: checksummed.end, wrong, outdated: null, isThere };
}

/** A block that is not as it was written, and the file offset of the one byte that may be all of it; null for none. */
export interface ChangedBlock {
  readonly block: number;
  readonly byteAt: number | null;
}

/**
 * Blocks of a chunk file that are not as the file of checksums of this directory has them; the caller has the
 * directory's lock. None where that file is of another chunk by now. `between` gets the bytes passed.
 */
export async function compareBlocks(
  storage: Storage,
  name: string,
  digests: Digests,
  between: (bytes: number) => Promise<void>,
): Promise<readonly ChangedBlock[]> {
  const file = await storage.open(name, 'read');
  try {
    const header = decodeHeader(name, await file.read(0, HEADER_BYTES));
    const kept = await readBlockSums(storage, digests, header.chunkSize);
    if (kept === null || kept === 'not-ours' || outdatedBy(kept, header, kept.end) !== null) return [];
    const { wrong } = await sumBlocks(file, kept.end, digests, kept, between);
    return wrong.map(({ block, difference, length }) => {
      const index = onlyByteOf(digests, difference, length);
      return { block, byteAt: index === null ? null : block * BLOCK_BYTES + index };
    });
  } finally {
    await file.close();
  }
}

function outdatedBy(kept: ChecksummedBlocks, header: ChunkHeader, end: number): string | null {
  if (kept.chunkNumber !== header.startNumber || kept.chunkId.some((byte, i) => byte !== header.chunkId[i]))
    return OTHER_CHUNK;
  return kept.end > end ? 'the log ends before the position that they cover' : null;
}

/** A block whose checksum is another: the bits in which it differs, over so many bytes. */
interface WrongBlock {
  readonly block: number;
  readonly difference: number;
  readonly length: number;
}

/** CRC-32 of all whole blocks in [0, end), and those that differ from what is vouched for. */
async function sumBlocks(
  file: StorageFile,
  end: number,
  digests: Digests,
  checksummed: ChecksummedBlocks | null,
  between?: (bytes: number) => Promise<void>,
): Promise<{ sums: BlockSums; wrong: WrongBlock[] }> {
  const sums = new BlockSums();
  const wrong: WrongBlock[] = [];
  const buffers = [0, 1].map(() => new Uint8Array(Math.min(READ_BYTES, Math.ceil(end / BLOCK_BYTES) * BLOCK_BYTES)));
  /** The next piece is read while this one is summed. */
  const read = async (from: number): Promise<Uint8Array> =>
    file.read(from, Math.min(READ_BYTES, end - from), buffers[(from / READ_BYTES) % 2]);
  for (let from = 0, reading = read(0); from < end; from += READ_BYTES) {
    const length = Math.min(READ_BYTES, end - from);
    const bytes = await reading;
    if (from + length < end) reading = read(from + length);
    // Whatever ends the walk before it is waited for.
    reading.catch(() => {});
    if (bytes.length !== length)
      throw new SkuaError(
        'log_corrupt',
        `Chunk file ${file.path} has fewer bytes than its data: ${from + bytes.length} of ${end}. Restore it from a backup.`,
        { file: file.path, offset: from + bytes.length },
      );
    for (let at = 0; at < length; at += BLOCK_BYTES) {
      const block = bytes.subarray(at, at + BLOCK_BYTES);
      const sum = digests.crc32(block);
      if (block.length === BLOCK_BYTES) sums.add(sum);
      const index = (from + at) / BLOCK_BYTES;
      if (checksummed === null || index >= checksummed.sums.length) continue;
      const part = Math.min(block.length, checksummed.end - from - at);
      const found = part === block.length ? sum : digests.crc32(block.subarray(0, part));
      const difference = found ^ checksummed.sums[index]!;
      if (difference !== 0) wrong.push({ block: index, difference, length: part });
    }
    await between?.(length);
  }
  return { sums, wrong };
}

/**
 * Which other program has written what is there now instead of what was vouched for; null where none has, so that it is
 * damage. A writer that starts on a log that was cut back, or restored, begins with an epoch record, where this log had
 * none; and where the files of another log were copied over it, the epoch that this log had is not among the other's
 * records.
 */
async function otherWriter(
  file: StorageFile,
  header: ChunkHeader,
  { end, epoch }: ChecksummedBlocks,
  wrong: readonly number[],
): Promise<string | null> {
  const chunk = new Chunk(file.path, new BlockCache(0).attach(file), header, null, end - HEADER_BYTES);
  const differs = new Set(wrong);
  let found = -1;
  let hasOwn = epoch.bytes.length === 0;
  let isPassed = false;
  try {
    await scanChunk(chunk, chunk.startPosition, (frame) => {
      if (frame.position > epoch.position) isPassed = true;
      if (frame.type !== SYSTEM) return;
      if (frame.position === epoch.position)
        hasOwn = isSame(epoch.bytes, frame.bytes.subarray(frame.at, frame.at + frame.length));
      if (
        found < 0 &&
        frame.position > epoch.position &&
        differs.has(Math.floor((HEADER_BYTES + frame.position - chunk.startPosition) / BLOCK_BYTES))
      )
        found = frame.position;
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

/** A block that a checksum vouches for and that is not as it was written. */
export function blockDamaged(name: string, block: number, count: number): SkuaError {
  const offset = block * BLOCK_BYTES;
  const others = count > 1 ? `, and ${count - 1} more like it` : '';
  return new SkuaError(
    'log_corrupt',
    `Chunk file ${name} is damaged between the offsets ${offset} and ${offset + BLOCK_BYTES}${others}: its bytes differ from the checksum in ${BLOCK_SUMS_FILE}, and no other program has written there since. Run \`skua verify\` to find all damage, and restore the directory from a backup. To accept the bytes as they are, delete ${BLOCK_SUMS_FILE}.`,
    { file: name, offset, blocks: count },
  );
}

/**
 * Throws `log_corrupt` for a block that differs, and changes nothing then. Removes what no longer fits, and tells the
 * log that it is built again.
 */
export async function settleBlocks(
  storage: Storage,
  log: Log,
  name: string,
  { wrong, outdated }: BlockFindings,
): Promise<void> {
  if (wrong.length > 0) throw blockDamaged(name, wrong[0]!, wrong.length);
  if (outdated === null) return;
  // Before anything is appended: what it vouches for must not come to be taken for damage when the log has grown past
  // it again.
  await storage.remove(BLOCK_SUMS_FILE);
  const details = { file: BLOCK_SUMS_FILE, chunk: name, reason: outdated };
  const message = 'the checksums of the chunk being written no longer match and are rebuilt';
  if (outdated === OTHER_CHUNK) log.info(message, details);
  else log.warn(message, details);
}
