import { createFile } from '../../ports/durability.ts';
import type { Storage } from '../../ports/storage.ts';

/**
 * A copy that was cut back has taken files of the bucket for what was cut off, and these may hold what its own
 * scavenges had removed: the shared files are scavenged later than the copies. The mark says so until a scavenge of the
 * copy has succeeded, over crashes too.
 */
const SCAVENGE_DUE_FILE = 'scavenge-due';

/** To be called before the copy is cut back. Durable on return. */
export async function markScavengeDue(storage: Storage): Promise<void> {
  if (!(await isScavengeDue(storage))) await createFile(storage, SCAVENGE_DUE_FILE, new Uint8Array(0));
}

export async function isScavengeDue(storage: Storage): Promise<boolean> {
  return (await storage.size(SCAVENGE_DUE_FILE)) !== null;
}

export async function clearScavengeDue(storage: Storage): Promise<void> {
  await storage.remove(SCAVENGE_DUE_FILE);
}
