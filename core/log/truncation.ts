import { SkuaError } from '../errors.ts';
import type { Storage } from '../ports/storage.ts';
import { HEADER_BYTES, ongoingFileBytes, parseChunkFileNames, takeInventory } from './chunk-format.ts';
import type { Checkpoints } from './checkpoint.ts';
import { readHeader } from './open-chunks.ts';

/** Default of the largest truncation in bytes. */
export const TRUNCATION_BYTES_MAX = 268_435_456;

/**
 * Cuts the log back to `truncate.chk` if it names a position; disk-format.md section 4.3. `truncate.chk` is reset
 * last, so that a crash anywhere in between starts the truncation again. Returns the position, or null.
 */
export async function truncateIfAsked(storage: Storage, checkpoints: Checkpoints, bytesMax: number): Promise<number | null> {
  let target = checkpoints.truncate.value;
  if (target === -1) return null;
  const writer = checkpoints.writer.value;
  if (target < 0) throw new SkuaError('checkpoint_corrupt', `truncate.chk holds ${target}; it must hold -1 or a log position. Delete it to start without a truncation.`, { file: 'truncate.chk', offset: 0 });
  if (bytesMax !== -1 && writer - target > bytesMax) throw new SkuaError('truncation_too_large', `truncate.chk asks to cut ${writer - target} bytes off the log, more than the ${bytesMax} allowed. Raise the limit if this is meant, or delete truncate.chk.`, { limit: bytesMax, bytes: writer - target });

  const files = parseChunkFileNames(await storage.list(''));
  const chunkSize = files.length === 0 ? 0 : (await readHeader(storage, files[0]!.name)).chunkSize;
  if (chunkSize > 0) target = await cutChunks(storage, files, chunkSize, writer, target);

  if (checkpoints.epoch.value >= target) await checkpoints.epoch.flush(-1);
  if (checkpoints.chaser.value > target) await checkpoints.chaser.flush(target);
  if (checkpoints.writer.value > target) await checkpoints.writer.flush(target);
  await checkpoints.truncate.flush(-1);
  return target;
}

async function cutChunks(storage: Storage, files: ReturnType<typeof parseChunkFileNames>, chunkSize: number, writer: number, target: number): Promise<number> {
  const oldLast = Math.floor(writer / chunkSize);
  const newLast = Math.floor(target / chunkSize);
  const beyond = files.find((file) => file.number === oldLast + 1);
  if (beyond) throw new SkuaError('chunk_unexpected', `${beyond.name} lies beyond the log's end at ${writer}. Remove it if it was copied by mistake, then start again.`, { file: beyond.name });
  const inventory = await takeInventory(files, oldLast, async (file) => (await readHeader(storage, file.name)).endNumber);
  const gap = inventory.missing.find((number) => number < newLast);
  if (gap !== undefined) throw new SkuaError('chunk_missing', `Chunk ${gap} is missing: the log can't be cut back to ${target}. Restore all chunk files.`, { chunk: gap });

  const found = inventory.latest.find((latest) => latest.endNumber >= newLast);
  if (!found) return target;
  const header = await readHeader(storage, found.file.name);
  const firstRemoved = header.isScavenged ? header.startNumber : newLast + 1;
  // From the highest number down, so that a crash leaves a log without gaps.
  for (const file of [...files].reverse()) if (file.number >= firstRemoved) await storage.remove(file.name);
  if (header.isScavenged) return header.startNumber * chunkSize;

  const file = await storage.open(found.file.name, 'write');
  try {
    // Cutting and growing again leaves zeros behind the target, and none of the old footer or commit slots.
    await file.truncate(HEADER_BYTES + target - header.startNumber * chunkSize);
    await file.truncate(ongoingFileBytes(chunkSize));
    await file.sync();
  } finally {
    await file.close();
  }
  return target;
}
