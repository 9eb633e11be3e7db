import { BlockCache } from '../cache/block-cache.ts';
import { SkuaError } from '../errors.ts';
import type { Digests } from '../ports/digests.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';
import { Chunk } from './chunk.ts';
import { decodeFooter, decodeHeader, FOOTER_BYTES, HEADER_BYTES, type ChunkHeader } from './chunk-format.ts';
import { decodeSlot, SLOT_BYTES, slotOffset, type CommitSlot } from './commit-slot.ts';
import { RecordFrame } from './records.ts';
import { END, MISS } from './log-reader.ts';

/** Opening single chunk files; disk-format.md section 1.2. */

export async function readHeader(storage: Storage, name: string): Promise<ChunkHeader> {
  const file = await storage.open(name, 'read');
  try {
    return decodeHeader(name, await file.read(0, HEADER_BYTES));
  } finally {
    await file.close();
  }
}

/** Opens a chunk that must be complete. Throws `log_corrupt` with file and offset when it is not. */
export async function openCompleted(storage: Storage, cache: BlockCache, name: string): Promise<Chunk> {
  const file = await storage.open(name, 'read');
  try {
    const header = decodeHeader(name, await file.read(0, HEADER_BYTES));
    const footer = decodeFooter(name, await file.read(file.size - FOOTER_BYTES, FOOTER_BYTES), file.size);
    return new Chunk(name, cache.attach(file), header, footer, 0);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** True when the file ends in the footer of a completed chunk. */
export async function hasFooter(storage: Storage, name: string): Promise<boolean> {
  const file = await storage.open(name, 'read');
  try {
    decodeHeader(name, await file.read(0, HEADER_BYTES));
    decodeFooter(name, await file.read(Math.max(0, file.size - FOOTER_BYTES), FOOTER_BYTES), file.size);
    return true;
  } catch (error) {
    if (error instanceof SkuaError && error.code === 'log_corrupt') return false;
    throw error;
  } finally {
    await file.close();
  }
}

/** A chunk file without any data: what a crash between two steps of a chunk's creation leaves. */
export async function isEmptyChunk(storage: Storage, name: string): Promise<boolean> {
  const file = await storage.open(name, 'read');
  try {
    const header = decodeHeader(name, await file.read(0, HEADER_BYTES));
    if (header.isScavenged || header.startNumber !== header.endNumber) return false;
    const start = await file.read(HEADER_BYTES, 4096);
    return start.every((byte) => byte === 0);
  } finally {
    await file.close();
  }
}

/** What was found at the end of the log. */
export interface LogEnd {
  /** Local end of the data that counts. */
  readonly localEnd: number;
  /** Sequence number for the next commit slot. */
  readonly nextSequence: number;
}

/**
 * Finds how far the ongoing chunk's data can be trusted: to the writer checkpoint, or beyond it to the end that the
 * newest commit slot names whose checksum holds. The records in between are walked, so that a log that does not add
 * up is refused and never cut short in silence.
 */
export async function findLogEnd(file: StorageFile, header: ChunkHeader, writerLocal: number, digests: Digests, checkpointMissing: boolean): Promise<LogEnd> {
  const start = header.startNumber * header.chunkSize;
  const slots: CommitSlot[] = [];
  for (const parity of [0, 1]) {
    const at = slotOffset(header.chunkSize, parity);
    if (at + SLOT_BYTES > file.size) continue;
    const slot = decodeSlot(await file.read(at, SLOT_BYTES), digests);
    if (slot && slot.start >= start && slot.end > slot.start && slot.end - start <= header.chunkSize) slots.push(slot);
  }
  slots.sort((a, b) => b.sequence - a.sequence);
  const nextSequence = slots.length === 0 ? 1 : slots[0]!.sequence + 1;
  for (const slot of slots) {
    const localEnd = slot.end - start;
    if (localEnd <= writerLocal) break;
    const bytes = await file.read(HEADER_BYTES + slot.start - start, slot.end - slot.start);
    if (bytes.length !== slot.end - slot.start || digests.crc32(bytes) !== slot.checksum) continue;
    const reached = await walk(file, header, writerLocal, localEnd);
    if (reached !== localEnd) throw damaged(file, reached, `ends before position ${slot.end}, up to which writes were acknowledged`);
    return { localEnd, nextSequence };
  }
  // Without a checkpoint and without a slot the records themselves are all there is to go by.
  if (checkpointMissing && slots.length === 0) return { localEnd: await walk(file, header, writerLocal, header.chunkSize), nextSequence };
  await checkRecordEndsAt(file, header, writerLocal);
  return { localEnd: writerLocal, nextSequence };
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
      const outcome = chunk.readForward(chunk.startPosition + at, frame);
      if (outcome === END) break;
      if (outcome === MISS) {
        await cache.fill();
        continue;
      }
      at = frame.next - chunk.startPosition;
    }
  } catch (error) {
    if (!(error instanceof SkuaError) || error.code !== 'log_corrupt') throw error;
  }
  return at;
}

/** A record must end where the log is said to end. */
async function checkRecordEndsAt(file: StorageFile, header: ChunkHeader, local: number): Promise<void> {
  if (local === 0) return;
  const cache = new BlockCache(0);
  const chunk = new Chunk(file.path, cache.attach(file), header, null, local);
  const frame = new RecordFrame();
  try {
    while (chunk.readBackward(chunk.startPosition + local, frame) === MISS) await cache.fill();
  } catch (error) {
    if (!(error instanceof SkuaError) || error.code !== 'log_corrupt') throw error;
    throw damaged(file, local, 'has no record that ends where writer.chk says the log ends');
  }
}

function damaged(file: StorageFile, local: number, what: string): SkuaError {
  const offset = HEADER_BYTES + local;
  return new SkuaError('log_corrupt', `Chunk file ${file.path} ${what} (offset ${offset}). The directory is damaged, or its files are of different age: restore a backup.`, { file: file.path, offset });
}

