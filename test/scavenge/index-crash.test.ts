import { describe, expect, it } from 'vitest';
import { isCrash } from '../support/crash.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { rangeOf } from '../index/world.ts';
import { type Entry, IndexWorld } from './index-kit.ts';
import { IS_LONG_RUN, bySize } from '../support/run-size.ts';

const GROUPS: readonly (readonly Entry[])[] = [0, 1, 2].map((group) =>
  [0, 1].map((n) => ({ stream: 'a', number: group * 2 + n, position: (group * 2 + n) * 100 })),
);
const DISCARD_POINT = 5;

async function prepared(seed: number): Promise<{ world: IndexWorld; storage: FaultyStorage }> {
  const storage = new FaultyStorage({ seed });
  const world = new IndexWorld(storage);
  world.original('a', { discardPoint: DISCARD_POINT });
  const index = await world.open();
  await world.tables(index, GROUPS);
  await index.close();
  return { world, storage };
}

describe('an index that is scavenged when the power fails', () => {
  it('is loadable after a crash at any operation, has every entry that stays, and leaves no file behind', async () => {
    const dry = await prepared(1);
    const first = dry.storage.operations;
    const dryIndex = await dry.world.open();
    expect((await dry.world.run(dryIndex)).error).toBeNull();
    await dryIndex.close();
    const last = dry.storage.operations;
    expect(last - first).toBeGreaterThan(25);
    let fewest = 6;
    for (let n = first + 1; n <= last; n += bySize(4, 1)) {
      const { world, storage } = await prepared(n);
      storage.crashAt(n);
      try {
        const index = await world.open();
        await world.run(index);
        await index.close();
      } catch (error) {
        expect(isCrash(error)).toBe(true);
      }
      for (const mode of ['drop', 'keep', 'partial', 'clean'] as const) {
        const after = storage.restart(mode, n);
        const again = new IndexWorld(after, world.hasher, world.states, 1_000 + n);
        const index = await again.open();
        expect(index.wasReset, `operation ${n}, ${mode}`).toBeNull();
        const { hi, lo } = again.hashOf('a');
        const left = await rangeOf(index, [hi, lo], 0, 99);
        expect(left.at(-1)).toEqual([5, 500]);
        expect(left.every(([number, position]) => position === number * 100)).toBe(true);
        if (mode === 'drop') {
          expect(left.length).toBeLessThanOrEqual(fewest);
          fewest = left.length;
        }
        expect(await after.list('index')).toHaveLength(index.tables().length * 2 + 1);
        expect((await again.run(index)).error).toBeNull();
        expect(await rangeOf(index, [hi, lo], 0, 99)).toEqual([[5, 500]]);
        expect(await after.list('index')).toHaveLength(index.tables().length * 2 + 1);
        await index.close();
        expect([...after.violations, ...storage.violations]).toEqual([]);
      }
    }
    if (IS_LONG_RUN) expect(fewest).toBe(1);
  });
});
