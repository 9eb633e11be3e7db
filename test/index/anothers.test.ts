import { describe, expect, test } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { append, CHUNK_BYTES } from '../backup/copy-kit.ts';
import { contentOf, putFile } from '../log/kit.ts';
import { verifyErrors } from '../support/backup/restore-kit.ts';
import { openTestStore } from '../support/test-store.ts';

const FOLDERS = ['index', 'index/stream-existence'];
const open = (storage: Storage): Promise<DirectoryStore> =>
  openTestStore({ storage, chunkSizeBytes: CHUNK_BYTES, memTableEntriesMax: 60 });

async function nodeWith(stream: string, events: number): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const node = await open(storage);
  await append(node, stream, events);
  await node.close();
  return storage;
}

/** As where two nodes were given one folder for the index, and the other one stopped last. */
async function takeIndex(storage: Storage, from: Storage): Promise<void> {
  for (const folder of FOLDERS) {
    for (const name of await storage.list(folder)) await storage.remove(`${folder}/${name}`);
    for (const name of await from.list(folder))
      await putFile(storage, `${folder}/${name}`, await contentOf(from, `${folder}/${name}`));
  }
}

describe('the index of another log, which ends before this one', () => {
  test.each([
    ['has records where this one has them', 'theirs'],
    ['has them elsewhere', 'the-others'],
  ])('is discarded where that %s', async (_what, stream) => {
    const storage = await nodeWith('orders', 200);
    await takeIndex(storage, await nodeWith(stream, 100));
    const node = await open(storage);
    expect((await node.store.readEvent('orders', 0)).number).toBe(0);
    expect((await node.store.readEvent('orders', 'last')).number).toBe(199);
    await expect(node.store.streamInfo(stream)).resolves.toMatchObject({ lastEventNumber: -1 });
    await append(node, 'orders', 1);
    expect((await node.store.readEvent('orders', 'last')).number).toBe(200);
    await node.close();
    expect(await verifyErrors(storage)).toEqual([]);
  });

  test('is kept where it is of this log', async () => {
    const storage = await nodeWith('orders', 200);
    const before = await storage.list('index');
    const node = await open(storage);
    expect(await storage.list('index')).toEqual(expect.arrayContaining(before));
    await node.close();
  });
});
