import { chunksUpTo, takeSnapshot } from '../backup/source/snapshot.ts';
import type { BackupSource, Snapshot } from '../backup/source/source.ts';
import { StorageSource } from '../backup/source/source.ts';
import type { Storage } from '../ports/storage.ts';
import type { ObjectLogOptions, ObjectWorld } from './api.ts';
import type { ObjectManifest } from './manifest.ts';
import { openOverlay, type Overlay } from './tick-overlay.ts';

/** The files of a store on object storage at one moment, as a backup takes them. */
export interface ObjectSource extends BackupSource {
  /** The manifest that names them. */
  readonly manifest: ObjectManifest;
  /** In which the listed files have their names. */
  readonly storage: Storage;
}

/**
 * The newest manifest and the tail behind it as the data directory of a node whose id is that of the store. Costs what opening
 * an instance costs, and the bytes of the chunk that is being filled; the files themselves are read by large ranges when they
 * are asked for. No scavenge has to wait: what a manifest names belongs together, also in the middle of a run. The database of a run that has
 * not ended is left out, since a restored node begins anew. `scratch` is empty, and cleared by its owner after `release`.
 */
export async function objectSource(world: ObjectWorld, options: ObjectLogOptions, scratch: Storage): Promise<ObjectSource> {
  const overlay = await openOverlay(world, options, scratch);
  try {
    const snapshot = await snapshotOf(overlay, world);
    const { manifest, storage } = overlay;
    const source = new StorageSource(storage, snapshot, { release: () => overlay.close() });
    return { manifest, storage, snapshot, read: (path, position, length) => source.read(path, position, length), release: () => source.release() };
  } catch (error) {
    await overlay.close();
    throw error;
  }
}

async function snapshotOf({ manifest, storage, log, end, takenMs }: Overlay, { digests }: ObjectWorld): Promise<Snapshot> {
  const { storeId, chunkSizeBytes, scavenge } = manifest;
  const snapshot = await takeSnapshot({
    storage, digests, chunkSizeBytes, nodeId: storeId,
    // There are no epochs on object storage.
    log: () => Promise.resolve({ takenMs, checkpoints: { writer: end, chaser: end, epoch: -1, proposal: -1 }, chunks: chunksUpTo(log.table, end) }),
  });
  return scavenge?.state === 'running' ? { ...snapshot, files: snapshot.files.filter(({ kind }) => kind !== 'scavenge-database') } : snapshot;
}
