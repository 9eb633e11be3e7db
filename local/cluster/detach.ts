import { readLogId, removeLogId } from '../../core/cluster/replica/identity/identity.ts';
import type { Log } from '../../core/ports/log.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';

/**
 * Makes the copy of a cluster's member a directory of a single node, for good (the option Detach). Rejects with
 * `directory_locked` while a node uses it.
 */
export async function detach(directory: string, log: Log): Promise<void> {
  const storage = new FilesystemStorage({ root: directory, mustExist: true });
  const lock = await storage.lock();
  try {
    const logId = await readLogId(storage);
    if (logId === null) {
      log.warn("the directory is not a replica of a cluster's log: there is nothing to detach", { directory });
      return;
    }
    await removeLogId(storage);
    log.warn(
      'the directory was detached from its cluster: the cluster will never see what is written to it from now on',
      { directory, logId },
    );
  } finally {
    await lock.release();
  }
}
