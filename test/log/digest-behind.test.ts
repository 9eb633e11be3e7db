import { expect, test } from 'vitest';
import { BLOCK_BYTES, BlockCache } from '../../core/cache/cache.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import { OngoingChunk } from '../../core/log/chunk/ongoing-chunk.ts';
import type { Digest } from '../../core/ports/digests.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { StorageFile } from '../../core/ports/storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { contentOf } from './kit.ts';

const CHUNK = 64 * BLOCK_BYTES;
const GROUP = 20_000;
const GROUPS = 40;
const MD5_BYTES = 16;

/** A chunk whose digest `behind` takes, if anybody does. */
function chunkOf(storage: MemoryStorage, behind: () => Digest | null): Promise<OngoingChunk> {
  return OngoingChunk.create(
    {
      storage,
      cache: new BlockCache(0),
      digests: { ...nodeDigests, md5Behind: behind },
      ids: new SeededIds(1),
      chunkSize: CHUNK,
      zeroAheadBytes: 2 * BLOCK_BYTES,
    },
    0,
    1,
  );
}

async function fill(ongoing: OngoingChunk): Promise<void> {
  for (let i = 0; i < GROUPS; i++) await ongoing.append(new Uint8Array(GROUP).fill(i + 1));
}

async function expectSound(storage: MemoryStorage, ongoing: OngoingChunk): Promise<void> {
  const file = await contentOf(storage, ongoing.chunk.name);
  const md5 = nodeDigests.md5();
  md5.update(file.subarray(0, file.length - MD5_BYTES));
  expect([...file.subarray(file.length - MD5_BYTES)]).toEqual([...md5.finish()]);
}

function gone(): never {
  throw new SkuaError('io_error', 'The thread is gone.');
}

test.each([0, 1, 3])(
  'the digest of a chunk goes on behind its writer from the beginning on, where somebody is there to take it when asked for the %d. time again',
  async (times) => {
    const storage = new MemoryStorage();
    const taken = nodeDigests.md5();
    let asked = 0;
    let bytes = 0;
    const ongoing = await chunkOf(storage, () =>
      asked++ < times
        ? null
        : {
            update: (more) => {
              bytes += more.length;
              taken.update(more);
            },
            finish: () => taken.finish(),
          },
    );
    await fill(ongoing);
    await ongoing.complete();
    expect(asked).toBe(times + 1);
    expect(bytes).toBeGreaterThan(GROUP * GROUPS);
    await expectSound(storage, ongoing);
  },
);

test.each([1, 2, 9])(
  'where the one behind fails at piece %d the writer takes the digest, and no append knows of it',
  async (pieces) => {
    const storage = new MemoryStorage();
    let left = pieces;
    let asked = 0;
    const ongoing = await chunkOf(storage, () => {
      asked++;
      return {
        update: () => {
          if (--left === 0) gone();
        },
        finish: gone,
      };
    });
    await fill(ongoing);
    await ongoing.complete();
    expect({ asked, left }).toEqual({ asked: 1, left: 0 });
    await expectSound(storage, ongoing);
  },
);

test('where it fails at the end the chunk is an ongoing one again, which is appended to and completed', async () => {
  const storage = new MemoryStorage();
  const ongoing = await chunkOf(storage, () => ({ update() {}, finish: gone }));
  await fill(ongoing);
  await expect(ongoing.complete()).rejects.toMatchObject({ code: 'io_error' });
  await ongoing.append(new Uint8Array(GROUP));
  await ongoing.complete();
  await expectSound(storage, ongoing);
});

/** Files that can be read on the spot; all other reads take a turn of the loop. */
class SlowReads extends MemoryStorage {
  reads = 0;

  override async open(path: string, mode: 'read' | 'write'): Promise<StorageFile> {
    const file = await super.open(path, mode);
    const written = new Uint8Array(2 * CHUNK);
    written.set(await file.read(0, HEADER_BYTES));
    const changed: Partial<StorageFile> = {
      writeAt: (position, bytes) => {
        written.set(bytes, position);
        return file.writeAt(position, bytes);
      },
      read: async (position, length) => {
        this.reads++;
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
        return file.read(position, length);
      },
      readNow: (position, length, into, at) => {
        into.set(written.subarray(position, position + length), at);
        return length;
      },
    };
    return new Proxy(file, {
      get: (target, name) => {
        const own = changed[name as keyof StorageFile] ?? target[name as keyof StorageFile];
        return typeof own === 'function' ? own.bind(target) : own;
      },
    });
  }
}

test('it catches up with a writer that never rests', async () => {
  const storage = new SlowReads();
  const taken = nodeDigests.md5();
  const ongoing = await chunkOf(storage, () => taken);
  await fill(ongoing);
  expect(storage.reads).toBe(0);
  await ongoing.complete();
  await expectSound(storage, ongoing);
});
