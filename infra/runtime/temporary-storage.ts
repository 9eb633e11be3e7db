import type { TemporaryStorage } from '../../core/shared-log/overlay/overlay.ts';
import { FilesystemStorage } from '../fs/filesystem-storage.ts';
import { TemporaryFolder } from '../fs/file-removal.ts';
import { SqliteScavengeStates } from '../sqlite/scavenge-states.ts';

/** A fresh folder among the temporary files of this machine. */
export async function newTemporaryStorage(): Promise<TemporaryStorage> {
  const folder = await TemporaryFolder.make('skua-tick-');
  const storage = new FilesystemStorage({ root: folder.path });
  return { storage, states: new SqliteScavengeStates({ indexRoot: storage.indexRoot }), remove: () => folder.remove() };
}
