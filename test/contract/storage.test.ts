import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { describeStorage } from './storage.contract.ts';

async function filesystem(withIndex: boolean) {
  const folder = await mkdtemp(join(tmpdir(), 'skua-storage-'));
  const storage = new FilesystemStorage({ root: join(folder, 'data'), ...(withIndex ? { indexRoot: join(folder, 'elsewhere') } : {}) });
  return { storage, dispose: () => rm(folder, { recursive: true, force: true }) };
}

const dispose = async () => {};
describeStorage('memory', async () => ({ storage: new MemoryStorage(), dispose }));
describeStorage('filesystem', () => filesystem(false));
describeStorage('filesystem with its index elsewhere', () => filesystem(true));
describeStorage('faulty, reading at once', async () => ({ storage: new FaultyStorage({ reads: 'sync' }), dispose }));
describeStorage('faulty, reading later', async () => ({ storage: new FaultyStorage({ reads: 'async' }), dispose }));
