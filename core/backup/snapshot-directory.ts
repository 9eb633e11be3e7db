import { BlockCache } from '../cache/block-cache.ts';
import { SkuaError } from '../errors.ts';
import { parseChunkFileNames } from '../log/chunk-format.ts';
import { openLog } from '../log/open-log.ts';
import type { Clock } from '../ports/clock.ts';
import type { Digests } from '../ports/digests.ts';
import type { Ids } from '../ports/ids.ts';
import type { Log } from '../ports/log.ts';
import type { Storage } from '../ports/storage.ts';
import { ensureNodeId } from './node-id.ts';
import { chunksUpTo, takeSnapshot, type LogState } from './snapshot.ts';
import type { BackupSource } from './source.ts';
import { StorageSource } from './storage-source.ts';

export interface DirectoryWorld {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digests: Digests;
  readonly log: Log;
}

/**
 * The files of a data directory that no node has open. Its lock is held until `release`. The log is recovered first, as a
 * start does it, so that everything acknowledged lies before the end that the checkpoints name. Errors: `directory_locked`,
 * `file_not_found` where there is no log, and those of `openLog`.
 */
export async function snapshotOfDirectory(world: DirectoryWorld): Promise<BackupSource> {
  const { storage, digests, ids } = world;
  if (parseChunkFileNames(await storage.list('')).length === 0) {
    throw new SkuaError('file_not_found', 'There is no chunk file in this directory, so it is no data directory. Check the path given with --db.', { path: '' });
  }
  const lock = await storage.lock();
  try {
    const { chunkSizeBytes, ...state } = await recovered(world);
    const nodeId = await ensureNodeId(storage, ids);
    const snapshot = await takeSnapshot({ storage, digests, nodeId, chunkSizeBytes, log: () => Promise.resolve(state) });
    return new StorageSource(storage, snapshot, { release: () => lock.release() });
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Opens the log, which recovers it, and closes it again, which leaves the checkpoints at its end. */
async function recovered({ storage, clock, ids, digests, log }: DirectoryWorld): Promise<LogState & { readonly chunkSizeBytes: number }> {
  const opened = await openLog({ storage, clock, ids, digests, log, cache: new BlockCache(0) });
  try {
    const { end, table, checkpoints, chunkSize } = opened;
    return {
      takenMs: clock.nowMs(), chunkSizeBytes: chunkSize, chunks: chunksUpTo(table, end),
      checkpoints: { writer: end, chaser: end, epoch: checkpoints.epoch.value, proposal: checkpoints.proposal.value },
    };
  } finally {
    await opened.close();
  }
}
