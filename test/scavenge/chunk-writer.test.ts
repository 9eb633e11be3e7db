import { expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage, StorageFile } from '../../core/ports/storage.ts';
import { ChunkWriter } from '../../core/scavenge/chunk-writer.ts';
import { nodeDigests } from '../../infra/node-digests.ts';

/** A storage that takes the bytes of a write over only later, as a thread pool does. */
function lateStorage(inner: Storage, release: Promise<void>): Storage {
  return Object.assign(Object.create(inner) as Storage, {
    create: async (path: string): Promise<StorageFile> => {
      const file = await inner.create(path);
      return {
        path,
        get size() {
          return file.size;
        },
        read: (position, length) => file.read(position, length),
        writeAt: async (position, bytes) => {
          await release;
          await file.writeAt(position, bytes);
        },
        truncate: (size) => file.truncate(size),
        sync: () => file.sync(),
        seal: () => file.seal(),
        close: () => file.close(),
      };
    },
  });
}

it('memory that was lent may be used again once the writer has settled, and not before', async () => {
  const memory = new MemoryStorage();
  const { promise, resolve } = Promise.withResolvers<void>();
  const writer = await ChunkWriter.create(lateStorage(memory, promise), nodeDigests, {
    path: 'a.tmp',
    chunkSize: 8_388_608,
    startNumber: 0,
    endNumber: 0,
    chunkId: new Uint8Array(16),
  });
  const large = new Uint8Array(1_048_576).fill(7);
  const adding = Promise.resolve(writer.addData(large)).then(() => writer.settle());
  let hasSettled = false;
  void adding.then(() => {
    hasSettled = true;
  });
  await new Promise((done) => {
    setImmediate(done);
  });
  expect(hasSettled).toBe(false);
  resolve();
  await adding;
  large.fill(9);
  await writer.finish();
  const file = await memory.open('a.tmp', 'read');
  const data = await file.read(128, large.length);
  expect(data.every((byte) => byte === 7)).toBe(true);
});
