import { SkuaError } from '../errors.ts';
import type { Storage } from '../ports/storage.ts';
import { openStore } from '../store/open-store.ts';
import { endWhenAborted, type RestoreWorld } from './restore-world.ts';

/**
 * Opens what was restored as a node does, without writing to its log: that does what `truncate.chk` asks, builds the index or brings it up
 * to the log, and proves that the directory can be opened; `verifyIndex` for tables whose checksums nobody has compared. The caller holds
 * the lock. Throws `backup_failed` when the log ends
 * somewhere else than at `position`, and what opening a store throws.
 */
export async function dryStart(world: RestoreWorld, position: number, verifyIndex = false): Promise<void> {
  const { ids, digests, clock, start: { jobs, log, meter, scavengeStates, cacheBytes, ...index }, onProgress, signal } = world;
  endWhenAborted(signal);
  const open = await openStore({
    world: { storage: underLock(world.target), ids, digests, clock, jobs, log, meter },
    // What comes from a repository was verified on its way.
    log: { isRestoring: true, writeEpoch: false, verifyChunks: false, truncationBytesMax: -1 },
    index: { ...index, verify: verifyIndex },
    scavenge: { config: { repairHistory: false }, ...(scavengeStates !== undefined && { states: scavengeStates }) },
    ...(cacheBytes !== undefined && { cacheBytes }),
    onProgress: ({ bytesDone, bytesTotal }) => {
      onProgress?.({ phase: 'opening', bytesDone, bytesTotal });
      endWhenAborted(signal);
    },
  });
  const end = open.status().checkpoints.writer;
  await open.close();
  if (end !== position) throw new SkuaError('backup_failed', `The restored log ends at ${end} instead of ${position}: the backup is not whole. Restore from another backup, and run \`skua backup verify\` on this one.`, { expected: position, actual: end });
}

/** The same storage for somebody who works while its lock is held for him. */
function underLock(storage: Storage): Storage {
  return {
    list: (folder) => storage.list(folder),
    size: (path) => storage.size(path),
    modifiedMs: (path) => storage.modifiedMs(path),
    open: (path, access) => storage.open(path, access),
    create: (path) => storage.create(path),
    rename: (from, to) => storage.rename(from, to),
    remove: (path) => storage.remove(path),
    freeBytes: () => storage.freeBytes(),
    lock: async () => ({ release: async () => {} }),
  };
}
