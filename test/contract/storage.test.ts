import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BaseFile } from '../../core/shared-log/tick/storage-base.ts';
import { ObjectStorage } from '../../core/shared-log/tick/tick-storage.ts';
import { OverStorage } from '../../core/memory/over-storage.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { OpenFiles } from '../../infra/fs/open-files.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { describeStorage } from './storage.contract.ts';

async function filesystem(withIndex: boolean, openFilesMax?: number) {
  const folder = await mkdtemp(join(tmpdir(), 'skua-storage-'));
  // Made by the lock, which not every test takes.
  for (const name of ['data', 'elsewhere']) await mkdir(join(folder, name));
  const storage = new FilesystemStorage({
    root: join(folder, 'data'),
    ...(withIndex ? { indexRoot: join(folder, 'elsewhere') } : {}),
    ...(openFilesMax === undefined ? {} : { openFiles: new OpenFiles(openFilesMax) }),
  });
  return { storage, dispose: () => rm(folder, { recursive: true, force: true }) };
}

const dispose = async () => {};
describeStorage('memory', async () => ({ storage: new MemoryStorage(), dispose }));
describeStorage('filesystem', () => filesystem(false));
describeStorage('filesystem with its index elsewhere', () => filesystem(true));
describeStorage('filesystem with one descriptor for all that is only read', () => filesystem(false, 1), true);
describeStorage('faulty, reading at once', async () => ({ storage: new FaultyStorage({ reads: 'sync' }), dispose }));
describeStorage('faulty, reading later', async () => ({ storage: new FaultyStorage({ reads: 'async' }), dispose }));
describeStorage('over a directory that nothing is written to', async () => ({
  storage: new OverStorage(new MemoryStorage(), new MemoryStorage()),
  dispose,
}));
describeStorage('objects, of an empty manifest', async () => ({
  storage: new ObjectStorage(new Map(), new MemoryStorage()),
  dispose,
}));
describeStorage('objects, of a manifest with files', async () => {
  const objects = new MemoryObjects();
  await objects.put('files/1', new Uint8Array(100_000).fill(7));
  const base = new Map([
    ['kept/object', BaseFile.ofObject(objects, 'files/1', 100_000)],
    ['kept/inline', BaseFile.ofBytes(objects, Uint8Array.of(1, 2, 3))],
  ]);
  return { storage: new ObjectStorage(base, new MemoryStorage()), dispose };
});
