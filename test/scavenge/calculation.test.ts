import { describe, expect, it } from 'vitest';
import { expectWorld } from './notation-check.ts';
import type { Expectation } from './notation-check.ts';
import { learn, Learner } from './learn-kit.ts';

/** Rows of scavenge.md section 16 whose outcome is what is stored, before any file is changed. */
const ROWS: readonly (Expectation & { row: number; log: string })[] = [
  { row: 64, log: 'a0 | a1 | M0(a){mc=2} | M0(a){mc=1} | M0(a){mc=1} | SP', weights: [0, 0, 0, 2, 2], rows: { $$a: 'gone' }, dp: { a: 0 } },
  { row: 65, log: 'a0 | a1 | M3{mc=1} | M4{mc=2} | M4{mc=1} | SP', weights: [0, 0, 2, 0, 2], dp: { $$a: 4, a: 0 } },
  { row: 66, log: 'a0 | a1 | M3{mc=1} | M4{mc=2} | M0{mc=1} | SP', weights: [0, 0, 2, 0, 2], dp: { $$a: 4, a: 0 } },
  { row: 67, log: 'a0 | a1 | M4{mc=2} | M2{mc=1} | M0{mc=1} | SP', weights: [0, 0, 0, 2, 2], dp: { $$a: 4, a: 0 } },
  { row: 67, log: 'a0 | a1 | M4{mc=2} | M2{mc=1} | M3{mc=1} | SP', weights: [0, 0, 0, 2, 2], dp: { $$a: 4, a: 0 } },
  { row: 70, log: "a0 | a1, a2 | a3, M0(a){mc=1}, SP", weights: [2, 4, 0], dp: { a: 3 }, mdp: { a: 3 } },
  { row: 73, log: 'M0(a){mc=1}, a0, a1, a2 | SP', weights: [4, 0], dp: { a: 2 } },
  { row: 74, log: 'a0@old, a1@old, a2@fresh, a3@fresh, M0(a){age} | SP', weights: [3, 0], dp: { a: 0 }, mdp: { a: 3 } },
  { row: 75, log: 'a0, a1, a5, a6, a7, M0(a){mc=1} | SP', weights: [8, 0], dp: { a: 7 }, mdp: { a: 7 } },
  { row: 76, log: 'a0..a259 | a260, M0(a){mc=1}, SP', weights: [520, 0], dp: { a: 260 } },
  { row: 77, log: 'M0(a) | M1(a), SP', weights: [2, 0] },
  { row: 78, log: 'M0(a) | T(a), SP', weights: [2, 0] },
  { row: 79, log: 'M0(a) | M1(a), M2(a) | M3(a), T(a), SP', weights: [2, 4, 2] },
  { row: 107, log: '!a0, a1 | a2, a3 | !a4, a5 | a6@cutoff-1s, a7@cutoff, a8@cutoff+1s | !a9, a10 | a11@fresh, a12@fresh, a13@fresh | !a14, a15 | a16@fresh, M0(a){age, tb=4} | SP', dp: { a: 6 }, mdp: { a: 9 } },
  { row: 108, log: '!a0, a1, a2 | M0(a){age} | SP', dp: { a: 2 } },
  { row: 109, log: 'a0, a1 | !a2, a3 | a4, a5, a6 | M0(a){tb=2} | SP', dp: { a: 2 }, rows: { a: 'spent' } },
  { row: 110, log: 'a0@old, a1@old | !a2, a3 | a4@fresh, a5@fresh, a6@fresh | M0(a){age} | SP', dp: { a: 4 } },
  { row: 81, log: 'M0(a){age} | a0 | b0 | SP', rows: { a: 'active' } },
  { row: 82, log: 'M0(a){mc=1} | a0 | b0 | SP', rows: { a: 'active' } },
  { row: 83, log: 'M0(a){tb=5} | a0..a4 | b0 | SP', rows: { a: 'active' } },
  { row: 84, log: 'M0(a){tb=5} | a0..a5 | b0 | SP', rows: { a: 'spent' } },
  { row: 85, log: 'M0(a){tb=MAX} | a0..a5 | b0 | SP', rows: { a: 'spent' }, dp: { a: 5 } },
  { row: 86, log: 'M0(a){} | a0 | b0 | SP', rows: { a: 'spent' } },
  { row: 87, log: 'M0(a){age} | a0 | T(a) | SP', rows: { a: 'archived' } },
  { row: 9, log: 'a0, a1, T32(a), a2147483648, a2147483649 | SP', weights: [4], dp: { a: 2 }, mdp: { a: 2 }, rows: { a: 'archived' } },
  { row: 38, log: 'a0@cutoff, a1, M0(a){age} | SP', weights: [0], dp: { a: 0 }, mdp: { a: 0 } },
];

describe('calculation', () => {
  for (const tablesCount of [0, 1, 3]) {
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

  it('never moves a discard point back', async () => {
    const state: Parameters<typeof Learner.create>[1] = { point: 'SP1', state: (given, world) => {
      const { hi, lo } = world.hash('a');
      given.begin();
      given.register('a', hi, lo);
      given.setOriginal('a', hi, lo, { isTombstoned: false, maxAge: null, maxCount: 1, truncateBefore: null, discardPoint: 2, maybeDiscardPoint: 2, status: 1 });
      given.commit({ point: { position: 1, eventNumber: 0, effectiveNowMs: 0, threshold: 0 }, stage: 'Done' });
    } };
    const learner = await Learner.create('M0(a){mc=1}, a0, a1, a2 | SP0 | M1(a){mc=4}, a3, a4 | SP1', state);
    await learner.accumulate(2);
    await learner.calculate();
    await expectWorld(learner.world, { dp: { a: 2 }, mdp: { a: 2 } });
  });

  it('rolls a batch back when it is stopped, and starts it again', async () => {
    const ending = new AbortController();
    // The second checkpoint comes within the stream.
    const onCheckpoint = (job: string, count: number): void => { if (job === 'scavenge.calculate' && count === 2) ending.abort(); };
    const learner = await Learner.create('a0..a1100, b0, b1, M0(a){mc=1}, M0(b){mc=1} | SP', { point: 'SP', chunkSize: 262_144, onCheckpoint });
    await learner.accumulate();
    await expect(learner.calculate({ signal: ending.signal })).rejects.toMatchObject({ code: 'aborted' });
    const state = learner.world.state();
    expect(state.checkpoint()).toMatchObject({ stage: 'Accumulating', doneChunk: 1 });
    state.close();
    await expectWorld(learner.world, { weights: [0, 0], dp: { a: 0, b: 0 } });
    expect(await learner.calculate()).toMatchObject({ streams: 2 });
    await expectWorld(learner.world, { weights: [2_202, 0], dp: { a: 1_100, b: 1 } });
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
