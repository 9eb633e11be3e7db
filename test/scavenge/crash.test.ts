import { describe, expect, it } from 'vitest';
import { crashAndGoOn, prepare } from './crash-kit.ts';
import { inLongRun } from '../support/long-run.ts';

const SEED = 5;
/** Every how many crash points one is tried: an odd number, since modes change with them. */
const EVERY = inLongRun(1, 11);
const MODES = ['drop', 'keep', 'partial', 'clean'] as const;
const COMMITS_LOST = [0, 1, 3];

/** The power fails in a scavenge; afterwards the store is opened and scavenged again. `crash-long.ts` tries everything with everything. */
describe('a scavenge that a power loss cuts off', () => {
  it('ends like an uninterrupted one after a crash at any storage operation, and leaves no file behind', async () => {
    const prepared = await prepare(SEED);
    expect(prepared.operations).toBeGreaterThan(100);
    for (let n = 1; n <= prepared.operations; n += EVERY) {
      expect(await crashAndGoOn(prepared, { operation: n, mode: MODES[n % 4]!, commitsLost: COMMITS_LOST[Math.floor(n / 3) % 3]!, seed: n })).toEqual([]);
    }
  });

  it('ends like an uninterrupted one after a crash behind any commit of the scavenge database, of which the newest may be lost', async () => {
    const prepared = await prepare(SEED + 1);
    expect(prepared.commits).toBeGreaterThan(12);
    for (let n = 1; n <= prepared.commits; n += EVERY) {
      for (const commitsLost of new Set([0, 1, 2, n])) expect(await crashAndGoOn(prepared, { commit: n, mode: MODES[n % 4]!, commitsLost, seed: n })).toEqual([]);
    }
  });
});
