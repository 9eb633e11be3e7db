import { stat } from 'node:fs/promises';
import * as path from 'node:path';
import { REPOSITORY_KEY } from '../../core/backup/repository-file.ts';

/** Whether a directory holds a repository rather than a copy of files. */
export async function isRepositoryFolder(directory: string): Promise<boolean> {
  const isThere = async (name: string) => (await stat(path.join(directory, name)).catch(() => null)) !== null;
  if (await isThere(REPOSITORY_KEY)) return true;
  // Where its first object was lost, the refusal should be the repository's.
  return await isThere('manifests') && !await isThere('writer.chk');
}
