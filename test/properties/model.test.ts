import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { collidingHasher } from '../support/colliding-hasher.ts';
import { commands } from '../support/commands.ts';
import type { Command } from '../support/commands.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ModelStore } from '../support/model-store.ts';
import { Player } from '../support/player.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS, openTestStore } from '../support/test-store.ts';
import type { TestStoreOptions } from '../support/test-store.ts';
import { bySize } from '../support/run-size.ts';

/** Random commands on the store and on a naive model in memory: each gives the same result, and so does all that can be read afterwards. */

/** Small, so that chunks are completed, tables flushed and merged, and blocks dropped from the cache. */
const SMALL = { chunkSizeBytes: 65_536, memTableEntriesMax: 8, cacheBytes: 131_072 };

async function expectSame(script: readonly Command[], storage: Storage, options: Partial<TestStoreOptions>): Promise<void> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const model = new ModelStore(clock, new SeededIds(3));
  const modelled = new Player(async () => ({ store: model, close: async () => {} }), async () => {});
  // Each opening goes on with the ids of the one before: they name files, of which some are there.
  const ids = new SeededIds(4);
  const real = new Player(async () => openTestStore({ storage, clock, ids, ...SMALL, ...options }), (ms) => clock.advance(ms), (ms) => clock.setNow(clock.nowMs() - ms));
  await modelled.start();
  await real.start();
  for (const [i, command] of script.entries()) {
    const said = await modelled.play(command);
    const done = await real.play(command);
    expect(done, `command ${i}: ${JSON.stringify(command)}`).toBe(said);
  }
  expect(await real.everything()).toBe(await modelled.everything());
  await real.stop();
}

function check(runs: number, seed: number, make: () => { storage: Storage; options?: Partial<TestStoreOptions>; done?: () => void }): Promise<void> {
  return fc.assert(fc.asyncProperty(commands, async (script) => {
    const { storage, options = {}, done } = make();
    try {
      await expectSame(script, storage, options);
    } finally {
      done?.();
    }
  }), { seed, numRuns: runs, endOnFailure: false });
}

describe('the store and the model agree', () => {
  it('on memory storage', () => check(bySize(10, 60, 300), 101, () => ({ storage: new MemoryStorage() })));
  it('on memory storage when all streams have the same hash', () => check(bySize(8, 15, 80), 102, () => ({ storage: new MemoryStorage(), options: { hasher: collidingHasher } })));
  it('on the file system', () => check(bySize(3, 6, 30), 103, () => {
    const root = mkdtempSync(join(tmpdir(), 'skua-model-'));
    return { storage: new FilesystemStorage({ root }), done: () => rmSync(root, { recursive: true, force: true }) };
  }));
});
