import { describe, expect, it } from 'vitest';
import { expectWorld } from './notation-check.ts';
import type { Expectation } from './notation-check.ts';
import { learn, Learner } from './learn-kit.ts';

/** Rows of the tables (tables-coverage.test.ts) whose outcome is what is stored, before any file is changed. */
const ROWS: readonly (Expectation & { row: number; log: string })[] = [
  { row: 74, log: 'a0@old, a1@old, a2@fresh, a3@fresh, M0(a){age} | SP', weights: [3, 0], dp: { a: 0 }, mdp: { a: 3 } },
  { row: 76, log: 'a0..a259 | a260, M0(a){mc=1}, SP', weights: [520, 0], dp: { a: 260 } },
  { row: 109, log: 'a0, a1 | !a2, a3 | a4, a5, a6 | M0(a){tb=2} | SP', dp: { a: 2 }, rows: { a: 'spent' } },
  { row: 110, log: 'a0@old, a1@old | !a2, a3 | a4@fresh, a5@fresh, a6@fresh | M0(a){age} | SP', dp: { a: 4 } },
  {
    row: 9,
    log: 'a0, a1, T32(a), a2147483648, a2147483649 | SP',
    weights: [4],
    dp: { a: 2 },
    mdp: { a: 2 },
    rows: { a: 'archived' },
  },
  { row: 38, log: 'a0@cutoff, a1, M0(a){age} | SP', weights: [0], dp: { a: 0 }, mdp: { a: 0 } },
];

describe('calculation', () => {
  for (const tablesCount of [0, 3]) {
    it.each(ROWS)(`row $row with the index in ${tablesCount} tables: $log`, async (row) => {
      const learner = await learn(row.log, { point: 'SP', tablesCount });
      await expectWorld(learner.world, row);
    });
  }

  it('pages through streams that are longer than a slice, and with large gaps', async () => {
    const learner = await learn('a0, a9000, a9001 | a20000, a500000, M0(a){mc=1} | SP', { point: 'SP' });
    await expectWorld(learner.world, { weights: [6, 2], dp: { a: 20_001 }, mdp: { a: 20_001 } });
  });

  it('does not see what lies behind the point', async () => {
    const learner = await learn('a0, a1, M0(a){mc=1} | SP0 | a2, a3 | SP1', { point: 'SP0' });
    await expectWorld(learner.world, { weights: [2, 0, 0, 0], dp: { a: 1 } });
  });

  it('goes on behind the stream that was done last', async () => {
    const learner = await Learner.create('a0, a1, b0, b1, M0(a){mc=1}, M0(b){mc=1} | SP', { point: 'SP' });
    await learner.accumulate();
    const state = learner.world.state();
    const [first] = state.activeOriginals(null, 10);
    state.close();
    expect(await learner.calculate({}, first!.handle)).toMatchObject({ streams: 1 });
    await expectWorld(learner.world, { weights: [2, 0] });
  });

  it('says `file_not_found` for a table that was merged meanwhile', async () => {
    const learner = await Learner.create('a0, M0(a){mc=1} | SP', { point: 'SP' });
    await learner.world.storage.remove(learner.files.tables[0]!);
    await expect(learner.calculate()).rejects.toMatchObject({ code: 'file_not_found' });
  });
});
