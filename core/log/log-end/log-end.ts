import { BlockCache } from '../../cache/cache.ts';
import { END, untilHit } from '../../base/step.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import { Chunk } from '../chunk/chunk.ts';
import {
  decodeFooter,
  encodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  ongoingFileBytes,
  type ChunkHeader,
} from '../format/chunk-format.ts';
import { decodeSlot, SLOT_BYTES, slotOffset, type CommitSlot } from '../format/commit-slot.ts';
import { rewrite, syncFile, trySeal } from '../../ports/durability.ts';
import { RecordFrame } from '../format/records.ts';

/**
 * Where the log ends in the chunk that is being written: how an opening finds that position, and makes it one from
 * which appends go on.
 */

/** Bytes of a group that are read at once: what a slot names may be as long as the chunk. */
const GROUP_READ_BYTES = 16_777_216;

/** What was found at the end of the log. */
export interface LogEnd {
  /** Local end of the data that counts. */
  readonly localEnd: number;
  /** Sequence number for the next commit slot. */
  readonly nextSequence: number;
}

/**
 * Finds how far the ongoing chunk's data can be trusted: to the writer checkpoint, or beyond it to the end that the
 * newest commit slot names whose checksum holds, or that a footer names, which is only written behind durable data.
 * The records in between are walked, so that a log that does not add up is refused and never cut short in silence.
 */
export async function findLogEnd(
  file: StorageFile,
  header: ChunkHeader,
  writerLocal: number,
  digests: Digests,
  checkpointMissing: boolean,
): Promise<LogEnd> {
  const start = header.startNumber * header.chunkSize;
  const slots = await readSlots(file, header, digests);
  const nextSequence = slots.length === 0 ? 1 : slots[0]!.sequence + 1;
  for (const slot of slots) {
    const localEnd = slot.end - start;
    if (localEnd <= writerLocal) break;
    if (!(await isSlotWhole(file, header, slot, digests))) continue;
    await walkExactly(file, header, writerLocal, localEnd);
    return { localEnd, nextSequence };
  }
  const completedBytes = await footerBytes(file);
  if (completedBytes > writerLocal) {
    await walkExactly(file, header, writerLocal, completedBytes);
    return { localEnd: completedBytes, nextSequence };
  }
  await checkRecordEndsAt(file, header, writerLocal);
  // Without a checkpoint and a slot that confirms the position, the records themselves are all there is to go by.
  const isConfirmed = !checkpointMissing || slots.some((slot) => slot.end - start === writerLocal);
  return {
    localEnd: isConfirmed ? writerLocal : await walk(file, header, writerLocal, header.chunkSize),
    nextSequence,
  };
}

/** The commit slots of a chunk file that are as they were written, the newest first. */
export async function readSlots(
  file: StorageFile,
  { startNumber, chunkSize }: ChunkHeader,
  digests: Digests,
): Promise<CommitSlot[]> {
  const start = startNumber * chunkSize;
  const slots: CommitSlot[] = [];
  for (const parity of [0, 1]) {
    const at = slotOffset(chunkSize, parity);
    if (at + SLOT_BYTES > file.size) continue;
    const slot = decodeSlot(await file.read(at, SLOT_BYTES), digests);
    if (slot && slot.start >= start && slot.end > slot.start && slot.end - start <= chunkSize) slots.push(slot);
  }
  return slots.sort((a, b) => b.sequence - a.sequence);
}

/** Whether the group that a slot names is there as it was written. */
export async function isSlotWhole(
  file: StorageFile,
  { startNumber, chunkSize }: ChunkHeader,
  { start, end, checksum }: CommitSlot,
  digests: Digests,
): Promise<boolean> {
  let sum = 0;
  for (let at = start; at < end;) {
    const bytes = await file.read(HEADER_BYTES + at - startNumber * chunkSize, Math.min(GROUP_READ_BYTES, end - at));
    if (bytes.length === 0) return false;
    sum = digests.crc32(bytes, sum);
    at += bytes.length;
  }
  return sum === checksum;
}

/**
 * Makes durable what the log goes on from: the data in [from, to), local offsets, that writer.chk does not vouch for,
 * the header, and the tail behind the data with its commit slots. A slot of an older life that came back from the disk
 * would outvote newer ones.
 */
export async function settleLogEnd(file: StorageFile, header: ChunkHeader, from: number, to: number): Promise<void> {
  await rewrite(file, 0, HEADER_BYTES);
  await rewrite(file, HEADER_BYTES + from, HEADER_BYTES + to);
  await rewrite(file, HEADER_BYTES + header.chunkSize, ongoingFileBytes(header.chunkSize));
  await syncFile(file);
}

/**
 * The last chunk of a log that ends at a boundary. writer.chk named the boundary already when the last record filled
 * the chunk to its end, so it does not vouch for what completed the file: that is made durable before another chunk is
 * begun behind it.
 */
export async function settleCompletion(storage: Storage, name: string): Promise<void> {
  const file = await storage.open(name, 'write');
  try {
    const footer = decodeFooter(name, await file.read(file.size - FOOTER_BYTES, FOOTER_BYTES), file.size);
    await rewrite(file, HEADER_BYTES + footer.physicalBytes + footer.mapBytes, file.size);
    await syncFile(file);
    await trySeal(file);
  } finally {
    await file.close();
  }
}

/**
 * Makes a file whose data ends at `localEnd` one that can be appended to. A footer, a completion that was interrupted,
 * an unaligned truncation, version 2: the data stays, the rest is made anew.
 */
export async function makeWritable(file: StorageFile, header: ChunkHeader, localEnd: number): Promise<void> {
  const full = ongoingFileBytes(header.chunkSize);
  const footer = await file.read(full - FOOTER_BYTES, FOOTER_BYTES);
  if (file.size === full && header.version === 3 && footer.every((byte) => byte === 0)) return;
  await file.truncate(HEADER_BYTES + localEnd);
  await file.truncate(full);
  if (header.version !== 3) await file.writeAt(0, encodeHeader({ ...header, version: 3, isScavenged: false }));
  await syncFile(file);
}

/** Bytes of data that a footer at the end of the file names; -1 without one. */
async function footerBytes(file: StorageFile): Promise<number> {
  const offset = Math.max(0, file.size - FOOTER_BYTES);
  try {
    const footer = decodeFooter(file.path, await file.read(offset, FOOTER_BYTES), file.size);
    return footer.mapBytes === 0 ? footer.physicalBytes : -1;
  } catch (error) {
    if (isSkuaError(error, 'log_corrupt')) return -1;
    throw error;
  }
}

async function walkExactly(file: StorageFile, header: ChunkHeader, from: number, to: number): Promise<void> {
  const reached = await walk(file, header, from, to);
  if (reached !== to)
    throw damaged(
      file,
      reached,
      `ends before position ${header.startNumber * header.chunkSize + to}, up to which writes were acknowledged`,
    );
}

/** Walks whole records from one local offset towards another; returns where the last whole one ends. */
async function walk(file: StorageFile, header: ChunkHeader, from: number, to: number): Promise<number> {
  const frame = new RecordFrame();
  // A cache of its own, since blocks beyond the end of the log may still change.
  const cache = new BlockCache(0);
  const chunk = new Chunk(file.path, cache.attach(file), header, null, to);
  let at = from;
  try {
    while (at < to) {
      const from = chunk.startPosition + at;
      if ((await untilHit(() => chunk.readForward(from, frame))) === END) break;
      at = frame.next - chunk.startPosition;
    }
  } catch (error) {
    if (!(error instanceof SkuaError) || error.code !== 'log_corrupt') throw error;
  }
  return at;
}

/** A record must end at `local`, where the log is to end. Throws `log_corrupt`. */
export async function checkRecordEndsAt(file: StorageFile, header: ChunkHeader, local: number): Promise<void> {
  if (local === 0) return;
  const cache = new BlockCache(0);
  const chunk = new Chunk(file.path, cache.attach(file), header, null, local);
  const frame = new RecordFrame();
  try {
    await untilHit(() => chunk.readBackward(chunk.startPosition + local, frame));
  } catch (error) {
    if (!(error instanceof SkuaError) || error.code !== 'log_corrupt') throw error;
    throw damaged(file, local, 'has no record that ends where the checkpoints say the log ends');
  }
}

function damaged(file: StorageFile, local: number, what: string): SkuaError {
  const offset = HEADER_BYTES + local;
  return new SkuaError(
    'log_corrupt',
    `Chunk file ${file.path} ${what} (offset ${offset}). The directory is damaged, or its files are from different times: restore a backup.`,
    { file: file.path, offset },
  );
}
