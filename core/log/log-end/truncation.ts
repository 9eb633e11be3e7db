import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Log } from '../../ports/log.ts';
import type { Storage } from '../../ports/storage.ts';
import { BLOCK_SUMS_FILE } from '../format/block-sums-file.ts';
import {
  chunkNumberAt,
  HEADER_BYTES,
  ongoingFileBytes,
  parseChunkFileNames,
  takeInventory,
  type ChunkFileName,
  type ChunkHeader,
} from '../format/chunk-format.ts';
import type { Checkpoints } from '../format/checkpoint.ts';
import { syncFile } from '../../ports/durability.ts';
import { checkRecordEndsAt, findLogEnd, settleLogEnd } from './log-end.ts';
import { checkHeaderRange, readHeader } from '../format/chunk-files.ts';

/** Default of the largest truncation in bytes. */
export const TRUNCATION_BYTES_MAX = 268_435_456;

/** The scavenge database, in an order in which no crash leaves a log of changes without what they change. */
const SCAVENGE_FILES = [
  'index/scavenging/scavenging.db-wal',
  'index/scavenging/scavenging.db-shm',
  'index/scavenging/scavenging.db',
];

const WRITER_ADVICE = 'Restore the file from a backup.';
const ADVICE = 'It must hold -1 or the position after a record. Delete it to start without truncating.';

/**
 * Cuts the log back to `truncate.chk` if it names a position. Nothing is cut before the position has proved to be a
 * position where the log can end. `truncate.chk` is reset last, so that a crash anywhere in between starts the
 * truncation again.
 */
export async function truncateIfAsked(
  { storage, digests, log }: { readonly storage: Storage; readonly digests: Digests; readonly log: Log },
  checkpoints: Checkpoints,
  bytesMax: number,
): Promise<void> {
  const asked = checkpoints.truncate.value;
  if (asked === -1) return;
  if (asked < 0) throw wrong(asked, 'which is not a log position');
  const files = parseChunkFileNames(await storage.list(''));
  if (files.length > 0 && checkpoints.writer.wasMissing)
    throw wrong(asked, 'but writer.chk is missing, so it is unknown what comes after');
  const recorded = checkpoints.writer.value;
  const end = await settledEnd(storage, checkpoints, files, digests);
  if (asked > end) {
    log.warn('truncate.chk names a position beyond the end of the log: nothing is truncated', { position: asked, end });
    return checkpoints.truncate.flush(-1);
  }
  const cut = files.length === 0 ? null : await planCut(storage, files, recorded, asked);
  const target = cut?.target ?? asked;
  if (bytesMax !== -1 && end - target > bytesMax)
    throw new SkuaError(
      'truncation_too_large',
      `truncate.chk asks to truncate the log by ${end - target} bytes, more than the ${bytesMax} allowed. Raise the limit if this is intended, or delete truncate.chk.`,
      { limit: bytesMax, bytes: end - target },
    );
  if (cut) {
    // A whole scavenged chunk goes: should a crash interrupt that, the chunk can't be asked again where it began.
    await checkpoints.truncate.flush(target);
    // What a scavenge has learnt may come from records that go now, and so may checksums. They are caches: the next one
    // reads the log anew.
    if (target < end) for (const path of [...SCAVENGE_FILES, BLOCK_SUMS_FILE]) await storage.remove(path);
    await cutChunks(storage, files, cut);
  }
  // Written even where they hold their value already: that value may be on no disk, and behind the last flush nothing
  // looks at it again.
  const { epoch, chaser, writer, truncate } = checkpoints;
  await epoch.flush(epoch.value >= target ? -1 : epoch.value);
  await chaser.flush(Math.min(chaser.value, target));
  await writer.flush(Math.min(writer.value, target));
  await truncate.flush(-1);
  if (target < end) log.warn('log truncated as truncate.chk asked', { position: target, end });
}

/**
 * The end of the log that a start would find: commit slots may name one beyond writer.chk. It is made durable, and
 * writer.chk with it, because the cut takes the slots away. Damage behind writer.chk is no hindrance where the cut
 * takes it away as well.
 */
async function settledEnd(
  storage: Storage,
  { writer, truncate }: Checkpoints,
  files: readonly ChunkFileName[],
  digests: Digests,
): Promise<number> {
  if (files.length === 0) return writer.value;
  const { chunkSize } = await readHeader(storage, files[0]!.name);
  const number = chunkNumberAt(writer.value, chunkSize, 'writer.chk', WRITER_ADVICE);
  const last = files.findLast((file) => file.number === number);
  if (last === undefined) return writer.value;
  const header = await readHeader(storage, last.name);
  if (header.isScavenged) return writer.value;
  checkHeaderRange(last.name, header, { number, endNumber: number, chunkSize });
  const file = await storage.open(last.name, 'write');
  try {
    const local = writer.value - number * chunkSize;
    const { localEnd } = await findLogEnd(file, header, local, digests, false);
    if (localEnd === local) return writer.value;
    await settleLogEnd(file, header, local, localEnd);
    await writer.flush(number * chunkSize + localEnd);
    return writer.value;
  } catch (error) {
    if (isSkuaError(error, 'log_corrupt') && truncate.value <= writer.value) return writer.value;
    throw error;
  } finally {
    await file.close();
  }
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
  const oldLast = chunkNumberAt(writer, chunkSize, 'writer.chk', WRITER_ADVICE);
  const newLast = chunkNumberAt(asked, chunkSize, 'truncate.chk', ADVICE);
  const beyond = files.find((file) => file.number === oldLast + 1);
  if (beyond)
    throw new SkuaError(
      'chunk_unexpected',
      `${beyond.name} is beyond the log's end at ${writer}. Remove it if it was copied by mistake, then start again.`,
      { file: beyond.name },
    );
  const inventory = await takeInventory(
    files,
    oldLast,
    async (file) => (await readHeader(storage, file.name)).endNumber,
  );
  const isBoundary = asked === newLast * chunkSize;
  const gap = inventory.missing.find((number) => number < newLast || (number === newLast && !isBoundary));
  if (gap !== undefined)
    throw new SkuaError(
      'chunk_missing',
      `Chunk ${gap} is missing: the log can't be truncated to ${asked}. Restore all chunk files.`,
      { chunk: gap },
    );

  const found = inventory.latest.find((latest) => latest.endNumber >= newLast);
  if (!found || found.file.number > newLast) return { target: asked, firstRemoved: newLast, name: null, header: null };
  const header = await readHeader(storage, found.file.name);
  checkHeaderRange(found.file.name, header, { number: found.file.number, endNumber: found.endNumber, chunkSize });
  if (header.isScavenged)
    return { target: header.startNumber * chunkSize, firstRemoved: header.startNumber, name: null, header };
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

async function cutChunks(
  storage: Storage,
  files: readonly ChunkFileName[],
  { target, firstRemoved, name, header }: Cut,
): Promise<void> {
  // From the highest number down, so that a crash leaves a log without gaps.
  for (const file of [...files].reverse()) if (file.number >= firstRemoved) await storage.remove(file.name);
  if (name === null || header === null) return;
  const file = await storage.open(name, 'write');
  try {
    // Cutting and growing again leaves zeros behind the target, and none of the old footer or commit slots.
    await file.truncate(HEADER_BYTES + target - header.startNumber * header.chunkSize);
    await file.truncate(ongoingFileBytes(header.chunkSize));
    await syncFile(file);
  } finally {
    await file.close();
  }
}

function wrong(value: number, what: string): SkuaError {
  return new SkuaError('checkpoint_corrupt', `truncate.chk holds ${value}, ${what}. ${ADVICE}`, {
    file: 'truncate.chk',
    offset: 0,
  });
}
