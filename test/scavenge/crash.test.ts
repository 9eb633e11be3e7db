import { describe, expect, it } from 'vitest';
import { crashAndGoOn, prepare } from './crash-kit.ts';
import { bySize } from '../support/run-size.ts';

const SEED = 5;
/** Every how many crash points one is tried: an odd number, since modes change with them. */
const EVERY = bySize(51, 11, 1);
const MODES = ['drop', 'keep', 'partial', 'clean'] as const;
const COMMITS_LOST = [0, 1, 3];

/**
 * As the reference does it, all phases one after the other: it executes chunk by chunk, and merges behind that or not
 * at all.
 */
const ONE_BY_ONE = [{ mergesWhileExecuting: false }, { disableMerging: true }];

/**
 * The power fails in a scavenge; afterwards the store is opened and scavenged again. `node test/simulation/long.ts
 * scavenge-crash` tries everything with everything.
 */
describe.each([true, false])(
  'a scavenge that a power loss cuts off (neighbours are merged while they are executed: %s)',
  (mergesWhileExecuting) => {
    it('ends like an uninterrupted one after a crash at any storage operation, and leaves no file behind', async () => {
      const prepared = await prepare(SEED, { mergesWhileExecuting });
      expect(prepared.operations).toBeGreaterThan(100);
      for (let n = 1; n <= prepared.operations; n += EVERY) {
        expect(
          await crashAndGoOn(prepared, {
            operation: n,
            mode: MODES[n % 4]!,
            commitsLost: COMMITS_LOST[Math.floor(n / 3) % 3]!,
            seed: n,
          }),
        ).toEqual([]);
      }
    });

    it('ends like an uninterrupted one after a crash behind any commit of the scavenge database, of which the newest may be lost', async () => {
      const prepared = await prepare(SEED + 1, { mergesWhileExecuting });
      expect(prepared.commits).toBeGreaterThan(9);
      for (let n = 1; n <= prepared.commits; n += EVERY) {
        for (const commitsLost of new Set([0, 1, 2, n]))
          expect(await crashAndGoOn(prepared, { commit: n, mode: MODES[n % 4]!, commitsLost, seed: n })).toEqual([]);
      }
    });
  },
);

describe('a scavenge that is begun in one way and ended in the other', () => {
  it.each([
    ['neighbours at once', {}, ONE_BY_ONE],
    ['chunk by chunk', { mergesWhileExecuting: false }, [{}]],
  ] as const)('leaves the same log (begun %s)', async (_, begunWith, others) => {
    const prepared = await prepare(SEED + 2, begunWith);
    for (let n = 1; n <= prepared.commits; n += bySize(7, 2, 1)) {
      for (const commitsLost of [0, 1])
        expect(
          await crashAndGoOn(prepared, {
            commit: n,
            mode: MODES[n % 4]!,
            commitsLost,
            seed: n,
            goesOnWith: others[n % others.length]!,
          }),
        ).toEqual([]);
    }
    for (let n = 5; n <= prepared.operations; n += bySize(67, 9, 1))
      expect(
        await crashAndGoOn(prepared, {
          operation: n,
          mode: MODES[n % 4]!,
          commitsLost: n % 2,
          seed: n,
          goesOnWith: others[n % others.length]!,
        }),
      ).toEqual([]);
  });
});
