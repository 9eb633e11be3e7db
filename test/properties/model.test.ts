import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { collidingHasher } from '../support/colliding-hasher.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { agreesWithModel } from '../support/model-run.ts';
import type { Subject } from '../support/model-run.ts';
import { bySize } from '../support/run-size.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import type { TestStoreOptions } from '../support/test-store.ts';

/** Small, so that chunks are completed, tables flushed and merged, and blocks dropped from the cache. */
const SMALL = { chunkSizeBytes: 65_536, memTableEntriesMax: 8, cacheBytes: 131_072 };

function on(storage: Storage, options: Partial<TestStoreOptions> = {}): Subject {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  // Each opening goes on with the ids of the one before: they name files, of which some are there.
  const ids = new SeededIds(4);
  return { clock, isOnObjects: false, open: () => openTestStore({ storage, clock, ids, ...SMALL, ...options }) };
}

describe('the store and the model agree', () => {
  it('on memory storage', () =>
    agreesWithModel({ runs: bySize(10, 60, 300), seed: 101 }, () => on(new MemoryStorage())));
  it('on memory storage when all streams have the same hash', () =>
    agreesWithModel({ runs: bySize(8, 15, 80), seed: 102 }, () =>
      on(new MemoryStorage(), { hasher: collidingHasher }),
    ));
  it('on the file system', () =>
    agreesWithModel({ runs: bySize(3, 6, 30), seed: 103 }, () => {
      const root = mkdtempSync(join(tmpdir(), 'skua-model-'));
      return { ...on(new FilesystemStorage({ root })), done: () => rmSync(root, { recursive: true, force: true }) };
    }));
});

it('a store that answers otherwise once in a while is found', async () => {
  const forgetful = (): Subject => {
    const subject = on(new MemoryStorage());
    return {
      ...subject,
      open: async () => {
        const opened = await subject.open();
        const { streamInfo } = opened.store;
        opened.store.streamInfo = async (stream) => {
          const info = await streamInfo.call(opened.store, stream);
          return info.lastEventNumber < 3 ? info : { ...info, lastEventNumber: 2 };
        };
        return opened;
      },
    };
  };
  await expect(agreesWithModel({ runs: 20, seed: 104 }, forgetful)).rejects.toThrow(/Property failed/);
});
