import { SkuaError } from '../../base/errors.ts';
import type { Storage } from '../../ports/storage.ts';
import { encodeText } from '../../base/text.ts';

/**
 * Stands in a data directory from before the first file of a restore until its dry start has succeeded. Where it stands
 * no log is opened, so that a directory with a part of the data is never taken for the whole.
 */
export const RESTORE_MARKER = 'restoring';
/**
 * Stands in a copy from before its first change until after its last one, so that what a crash leaves is known for what
 * it is.
 */
export const COPY_MARKER = 'copy-unfinished';

/** Puts the marker there, durably; one that is there already stays. The marker's text is for people. */
export async function putRestoreMarker(storage: Storage, from: string): Promise<void> {
  if ((await storage.size(RESTORE_MARKER)) !== null) return;
  const file = await storage.create(RESTORE_MARKER);
  try {
    await file.writeAt(
      0,
      encodeText(
        `A restore from ${from} was begun here and has not ended. Until it is repeated to its end this directory holds a part of the data only.\n`,
      ),
    );
    await file.sync();
  } finally {
    await file.close();
  }
}

export async function removeRestoreMarker(storage: Storage): Promise<void> {
  await storage.remove(RESTORE_MARKER);
}

/** Throws `backup_failed` where a restore, or a copy of files, was begun and not ended. */
export async function refuseUnfinishedRestore(storage: Storage): Promise<void> {
  if ((await storage.size(COPY_MARKER)) !== null)
    throw new SkuaError(
      'backup_failed',
      'This directory holds an unfinished file copy: repeat `skua backup copy` into it, then restore the copy with `skua restore`.',
      { path: COPY_MARKER },
    );
  if ((await storage.size(RESTORE_MARKER)) === null) return;
  throw new SkuaError(
    'backup_failed',
    `A restore into this directory is unfinished, so it holds only part of the data. Run \`skua restore\` again, with --force.`,
    { path: RESTORE_MARKER },
  );
}

/**
 * Names the log, in the bucket, of which the directory holds a replica: text of the UUID of its store and a line end
 * (core/cluster/replica/README.md, rule 3).
 */
export const LOG_ID_FILE = 'log-id';

/**
 * Throws `copy_attached` where the directory is the replica of a cluster's member. A program that opens the replica
 * alone may write what other members do not have, and the replica could never follow them again; so an opening without
 * `isReplica` is refused.
 */
export async function refuseAttached(storage: Storage): Promise<void> {
  if ((await storage.size(LOG_ID_FILE)) === null) return;
  throw new SkuaError(
    'copy_attached',
    `This directory is a member's replica of a cluster's log (see ${LOG_ID_FILE}): start it with --storage, as a member. To turn it into a single node for good, with the data it has now, start it with --detach; it can't rejoin with this data afterwards.`,
    { path: LOG_ID_FILE },
  );
}
