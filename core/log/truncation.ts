import { isSkuaError, SkuaError } from '../errors.ts';
import type { Storage } from '../ports/storage.ts';
import { chunkNumberAt, HEADER_BYTES, ongoingFileBytes, parseChunkFileNames, takeInventory, type ChunkFileName, type ChunkHeader } from './chunk-format.ts';
import type { Checkpoints } from './checkpoint.ts';
import { checkHeaderPlace, checkRecordEndsAt, readHeader } from './open-chunks.ts';

/** Default of the largest truncation in bytes. */
export const TRUNCATION_BYTES_MAX = 268_435_456;

/** The scavenge database (disk-format.md section 8), in an order in which no crash leaves a log of changes without what they change. */
const SCAVENGE_FILES = ['index/scavenging/scavenging.db-wal', 'index/scavenging/scavenging.db-shm', 'index/scavenging/scavenging.db'];

const ADVICE = 'It must hold -1 or the position after a record. Delete it to start without a truncation.';

/**
 * Cuts the log back to `truncate.chk` if it names a position; disk-format.md section 4.3. Nothing is changed before the
 * position has proved to be a place where the log can end. `truncate.chk` is reset last, so that a crash anywhere in
 * between starts the truncation again. Returns the position, or null.
 */
export async function truncateIfAsked(storage: Storage, checkpoints: Checkpoints, bytesMax: number): Promise<number | null> {
  const asked = checkpoints.truncate.value;
  if (asked === -1) return null;
  if (asked < 0) throw wrong(asked, 'which is no log position');
  const files = parseChunkFileNames(await storage.list(''));
  if (files.length > 0 && checkpoints.writer.wasMissing) throw wrong(asked, 'but writer.chk is missing, so it can\'t be told what lies behind');
  const writer = checkpoints.writer.value;
  const cut = files.length === 0 || asked > writer ? null : await planCut(storage, files, writer, asked);
  const target = cut?.target ?? asked;
  if (bytesMax !== -1 && writer - target > bytesMax) throw new SkuaError('truncation_too_large', `truncate.chk asks to cut ${writer - target} bytes off the log, more than the ${bytesMax} allowed. Raise the limit if this is meant, or delete truncate.chk.`, { limit: bytesMax, bytes: writer - target });
  if (cut) {
    // A whole scavenged chunk goes: should a crash interrupt that, the chunk can't be asked again where it began.
    await checkpoints.truncate.flush(target);
    // What a scavenge has learnt may come from records that go now. It is a cache: the next one reads the log anew.
    if (target < writer) for (const path of SCAVENGE_FILES) await storage.remove(path);
    await cutChunks(storage, files, cut);
  }
  if (checkpoints.epoch.value >= target) await checkpoints.epoch.flush(-1);
  if (checkpoints.chaser.value > target) await checkpoints.chaser.flush(target);
  if (checkpoints.writer.value > target) await checkpoints.writer.flush(target);
  await checkpoints.truncate.flush(-1);
  return target;
}

interface Cut {
  readonly target: number;
  /** Files of chunks from this number on are removed. */
  readonly firstRemoved: number;
  /** The file that is cut, unless it goes as a whole. */
  readonly name: string | null;
  readonly header: ChunkHeader | null;
}

async function planCut(storage: Storage, files: readonly ChunkFileName[], writer: number, asked: number): Promise<Cut> {
  const { chunkSize } = await readHeader(storage, files[0]!.name);
  const oldLast = chunkNumberAt(writer, chunkSize, 'writer.chk', 'Restore the file from a backup.');
  const newLast = chunkNumberAt(asked, chunkSize, 'truncate.chk', ADVICE);
  const beyond = files.find((file) => file.number === oldLast + 1);
  if (beyond) throw new SkuaError('chunk_unexpected', `${beyond.name} lies beyond the log's end at ${writer}. Remove it if it was copied by mistake, then start again.`, { file: beyond.name });
  const inventory = await takeInventory(files, oldLast, async (file) => (await readHeader(storage, file.name)).endNumber);
  const isBoundary = asked === newLast * chunkSize;
  const gap = inventory.missing.find((number) => number < newLast || (number === newLast && !isBoundary));
  if (gap !== undefined) throw new SkuaError('chunk_missing', `Chunk ${gap} is missing: the log can't be cut back to ${asked}. Restore all chunk files.`, { chunk: gap });

  const found = inventory.latest.find((latest) => latest.endNumber >= newLast);
  if (!found || found.file.number > newLast) return { target: asked, firstRemoved: newLast, name: null, header: null };
  const header = await readHeader(storage, found.file.name);
  checkHeaderPlace(found.file.name, header, { number: found.file.number, endNumber: found.endNumber, chunkSize });
  if (header.isScavenged) return { target: header.startNumber * chunkSize, firstRemoved: header.startNumber, name: null, header };
  await checkEndsAt(storage, found.file.name, header, asked);
  return { target: asked, firstRemoved: newLast + 1, name: found.file.name, header };
}

async function checkEndsAt(storage: Storage, name: string, header: ChunkHeader, asked: number): Promise<void> {
  const file = await storage.open(name, 'read');
  try {
    await checkRecordEndsAt(file, header, asked - header.startNumber * header.chunkSize);
  } catch (error) {
    throw isSkuaError(error, 'log_corrupt') ? wrong(asked, `where no record of ${name} ends`) : error;
  } finally {
    await file.close();
  }
}

async function cutChunks(storage: Storage, files: readonly ChunkFileName[], { target, firstRemoved, name, header }: Cut): Promise<void> {
  // From the highest number down, so that a crash leaves a log without gaps.
  for (const file of [...files].reverse()) if (file.number >= firstRemoved) await storage.remove(file.name);
  if (name === null || header === null) return;
  const file = await storage.open(name, 'write');
  try {
    // Cutting and growing again leaves zeros behind the target, and none of the old footer or commit slots.
    await file.truncate(HEADER_BYTES + target - header.startNumber * header.chunkSize);
    await file.truncate(ongoingFileBytes(header.chunkSize));
    await file.sync();
  } finally {
    await file.close();
  }
}

function wrong(value: number, what: string): SkuaError {
  return new SkuaError('checkpoint_corrupt', `truncate.chk holds ${value}, ${what}. ${ADVICE}`, { file: 'truncate.chk', offset: 0 });
}
