import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';

/** Folders of nodes that run. */
const folders = new Set<string>();

/** A folder that is removed when the process ends, if not before. */
export async function createFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-test-node-'));
  if (folders.size === 0) process.on('exit', removeAll);
  folders.add(folder);
  return folder;
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  folders.delete(folder);
  if (folders.size === 0) process.off('exit', removeAll);
}

function removeAll(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
