import { ATTRIBUTE_FOLDERS } from '../../attributes/format/attribute-folders.ts';
import { isSkuaError } from '../../base/errors.ts';
import { INDEX_FOLDER, loadIndexMap, mapPathOf } from '../../index/format/index-map.ts';
import { Checkpoint } from '../../log/format/checkpoint.ts';
import type { ObjectManifest } from '../../shared-log/format/manifest.ts';
import type { Digests } from '../../ports/digests.ts';
import type { Storage } from '../../ports/storage.ts';
import { bucketChunk } from './bucket-files.ts';
import type { ReplicaInspection } from './inspect-replica.ts';

/**
 * Where a copy has to end so that it can go on with the bucket's files: at its end, where that lies in a chunk that the
 * bucket has unscavenged or between two of its files; else at the nearest position before that begins a file in both,
 * since what of a scavenged file a half chunk would have lacked can't be told.
 */
export function commonEnd({ end, files }: ReplicaInspection, manifest: ObjectManifest): number {
  const size = manifest.chunkSizeBytes;
  // It has all that there is, and at most lacks the end of its chunk.
  if (end >= manifest.logEnd) return end;
  for (let at = end; ;) {
    const stored = bucketChunk(manifest, Math.floor(at / size));
    if (stored === undefined) return at;
    const start = stored.startNumber * size;
    // In the midst of a chunk that is as it was written, the copy's own chunk goes on.
    if (start === at || (at % size !== 0 && !stored.isScavenged && stored.startNumber === stored.endNumber)) return at;
    const own = files.find(
      ({ startNumber, endNumber }) => startNumber * size < start && (endNumber + 1) * size > start,
    );
    at = own === undefined ? start : own.startNumber * size;
  }
}

/**
 * Asks the next opening to cut the log back to a position, durably. That removes the scavenge database too, which has
 * learnt from what goes.
 */
export async function requestTruncation(storage: Storage, position: number): Promise<void> {
  const truncate = await Checkpoint.open(storage, 'truncate.chk', -1);
  try {
    await truncate.flush(position);
  } finally {
    await truncate.close();
  }
}

/**
 * Lets the indexes be built anew that know more than the log, before the log grows past what they know: of records
 * that the bucket's scavenge has removed meanwhile they would keep entries for good. Returns whether the stream index
 * is one of them.
 */
export async function dropIndexBeyond(storage: Storage, digests: Digests, end: number): Promise<boolean> {
  for (const folder of ATTRIBUTE_FOLDERS) await dropBeyond(storage, digests, end, folder);
  return dropBeyond(storage, digests, end, INDEX_FOLDER);
}

async function dropBeyond(storage: Storage, digests: Digests, end: number, folder: string): Promise<boolean> {
  try {
    const map = await loadIndexMap(storage, digests, folder);
    if (map === null || map.commitCheckpoint < end) return false;
  } catch (error) {
    // The process that opens a damaged index builds it anew by itself.
    if (isSkuaError(error, 'index_corrupt')) return false;
    throw error;
  }
  // Without its map the tables are leftovers, which an opening removes.
  await storage.remove(mapPathOf(folder));
  return true;
}

/**
 * Makes the next opening by a single node look for the last epoch: `epoch.chk` names one of before what is caught up.
 */
export async function forgetEpoch(storage: Storage): Promise<void> {
  const epoch = await Checkpoint.open(storage, 'epoch.chk', -1);
  try {
    if (epoch.value !== -1) await epoch.flush(-1);
  } finally {
    await epoch.close();
  }
}
