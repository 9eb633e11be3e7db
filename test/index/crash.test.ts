import { describe, expect, it } from 'vitest';
import type { StreamIndex } from '../../core/index/index.ts';
import { isCrash } from '../support/crash.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { keyOf, openIndex, rangeOf } from './world.ts';
import { bySize } from '../support/run-size.ts';

/** Every how many operations one is tried. */
const EVERY = bySize(3, 1);
const BULKS = 4;
const KEY = keyOf('order-42');

async function work(storage: FaultyStorage): Promise<StreamIndex> {
  const index = await openIndex(storage, { memTableEntriesMax: 2 });
  for (let bulk = 0; bulk < BULKS; bulk++) {
    index.add(...KEY, bulk * 2, bulk * 100);
    index.add(...KEY, bulk * 2 + 1, bulk * 100 + 10);
    index.endBulk(bulk * 100 + 10, bulk * 100 + 10);
    await index.flush();
  }
  return index;
}

/** Every entry up to the checkpoint, and nothing beyond it. */
async function expectWhole(index: StreamIndex): Promise<void> {
  const bulks = index.commitCheckpoint < 0 ? 0 : (index.commitCheckpoint - 10) / 100 + 1;
  const expected = Array.from({ length: bulks * 2 }, (_, n): [number, number] => [
    n,
    Math.floor(n / 2) * 100 + (n % 2) * 10,
  ]);
  expect(await rangeOf(index, KEY, 0, 100)).toEqual(expected);
}

describe('an index whose disk loses power', () => {
  it('is the old one or the new one after a crash at any call, and leaves no file behind', async () => {
    const dry = new FaultyStorage();
    await (await work(dry)).close();
    const operations = dry.operations;
    let best = -1;
    // The last operation is always tried, behind which everything is there.
    for (let n = 1 + ((operations - 1) % EVERY); n <= operations; n += EVERY) {
      const storage = new FaultyStorage({ seed: n });
      storage.crashAt(n);
      try {
        await (await work(storage)).close();
      } catch (error) {
        expect(isCrash(error)).toBe(true);
      }
      for (const mode of ['drop', 'partial', 'clean'] as const) {
        const after = storage.restart(mode, n);
        const index = await openIndex(after);
        expect(index.wasReset).toBeNull();
        expect(index.commitCheckpoint).toBeGreaterThanOrEqual(best);
        if (mode === 'partial') best = index.commitCheckpoint;
        await expectWhole(index);
        expect((await after.list('index')).length).toBe(
          index.tables().length * 2 + (index.commitCheckpoint < 0 ? 0 : 1),
        );
        await index.close();
        expect(after.violations).toEqual([]);
      }
    }
    expect(best).toBe((BULKS - 1) * 100 + 10);
  });

  it('tries a failed flush or merge again under new names', async () => {
    for (const op of ['create', 'writeAt', 'sync', 'rename', 'seal'] as const) {
      const storage = new FaultyStorage();
      const index = await openIndex(storage, { memTableEntriesMax: 2 });
      let failures = 3;
      storage.failWhen((what, path) =>
        what === op && path.startsWith('index/') && failures-- > 0
          ? op === 'sync'
            ? 'sync_failed'
            : 'io_error'
          : undefined,
      );
      for (let bulk = 0; bulk < BULKS; bulk++) {
        index.add(...KEY, bulk * 2, bulk * 100);
        index.add(...KEY, bulk * 2 + 1, bulk * 100 + 10);
        index.endBulk(bulk * 100 + 10, bulk * 100 + 10);
        for (let attempt = 0; attempt < 9; attempt++)
          if (
            await index.flush().then(
              () => true,
              () => false,
            )
          )
            break;
      }
      await index.flush();
      expect(index.commitCheckpoint).toBe((BULKS - 1) * 100 + 10);
      await expectWhole(index);
      await index.close();
      expect(failures).toBeLessThanOrEqual(0);
      expect(storage.violations).toEqual([]);
      const again = await openIndex(storage.restart('drop'));
      await expectWhole(again);
      await again.close();
    }
  });
});
