import { TemporaryFolder } from '../../infra/fs/file-removal.ts';

/** Folders of nodes that run. */
const folders = new Set<TemporaryFolder>();

/** A folder that is removed when the process ends, if not before. */
export async function createFolder(): Promise<TemporaryFolder> {
  const folder = await TemporaryFolder.make('skua-test-node-');
  if (folders.size === 0) process.on('exit', removeAll);
  folders.add(folder);
  return folder;
}

export async function removeFolder(folder: TemporaryFolder): Promise<void> {
  await folder.remove();
  folders.delete(folder);
  if (folders.size === 0) process.off('exit', removeAll);
}

function removeAll(): void {
  for (const folder of folders) folder.removeNow();
}
