import { describe, expect, test } from 'vitest';
import { Learner } from './learn-kit.ts';
import { checkRow, nameOf } from './notation-check.ts';
import type { Row } from './notation-check.ts';

/**
 * Logs in which a clock was set back by hours: an event goes with `$maxAge` by its own time only, whatever became of
 * its neighbours. The reference database removes live events of the first three rows.
 */
const ROWS: readonly Row[] = [
  {
    row: 1,
    when: 'a chunk behind has wholly expired',
    log: 'a0@old, a1@fresh | a2@old, a3@old | a4@fresh, M0(a){age} | SP',
    left: 'a1 | ∅ | a4, M0 | SP',
    idx: 'a0..a4, M0, SP',
    dp: { a: 0 },
    mdp: { a: 4 },
  },
  {
    row: 2,
    when: 'the same, with a tail of expired events',
    log: 'a0@old | a1@old, a2@fresh, a3@old | a4@old | M0(a){age} | SP',
    left: '∅ | a2 | a4 | M0 | SP',
    idx: 'a1..a4, M0, SP',
    dp: { a: 1 },
    mdp: { a: 4 },
  },
  {
    row: 3,
    when: 'behind what an earlier scavenge took',
    log: 'a0@old, a1@fresh | !a2 | a3@old | a4@fresh, M0(a){age} | SP',
    left: 'a1 | ∅ | ∅ | a4, M0 | SP',
    idx: 'a0..a4, M0, SP',
    dp: { a: 0 },
    mdp: { a: 4 },
  },
  {
    row: 4,
    when: 'a chunk that is wholly alive lies before',
    log: 'a0@old | a1@fresh, a2@fresh | a3@old, a4@old | a5@fresh, M0(a){age} | SP',
    left: '∅ | a1, a2 | ∅ | a5, M0 | SP',
    idx: 'a1..a5, M0, SP',
    dp: { a: 1 },
    mdp: { a: 5 },
  },
  {
    row: 5,
    when: 'alive, then mixed',
    log: 'a0@fresh | a1@old, a2@fresh | a3@fresh, M0(a){age} | SP',
    left: 'a0 | a2 | a3, M0 | SP',
    idx: 'a0..a3, M0, SP',
    dp: { a: 0 },
    mdp: { a: 3 },
  },
  {
    row: 6,
    when: 'count and truncation go first',
    log: 'a0@fresh, a1@fresh | a2@old, a3@fresh | a4@old | a5@fresh, M0(a){age, mc=4, tb=1} | SP',
    left: '∅ | a3 | ∅ | a5, M0 | SP',
    idx: 'a2..a5, M0, SP',
    dp: { a: 2 },
    mdp: { a: 5 },
  },
  {
    row: 7,
    when: 'of two streams each by itself',
    log: 'a0@old, b0@fresh | a1@old, b1@old | a2@fresh, b2@fresh, M0(a){age}, M0(b){age} | SP',
    left: 'b0 | ∅ | a2, b2, M0(a), M0(b) | SP',
    dp: { b: 0 },
    mdp: { b: 2 },
    idx: 'a0, b0, a1, b1, a2, b2, M0(a), M0(b), SP',
  },
];

describe('a clock that was set back by hours', () => {
  for (const row of ROWS) {
    test(nameOf(row), async () => {
      const labels = [...row.log.matchAll(/[ab]\d/g)].map(([label]) => label);
      await checkRow({ ...row, ...(row.log.includes('!') && { tables: [[...labels, 'M0(a)', 'SP']] }) });
    });

    test(`explain promises what goes: ${nameOf(row)}`, async () => {
      const learner = await Learner.create(row.log, { point: 'SP' });
      const { removed, kept } = await learner.explain('a');
      const left = row.left!.match(/a\d/g)!.map((label) => Number(label.slice(1)));
      const numbers = (ranges: readonly { readonly from: number; readonly to: number }[]) =>
        ranges
          .flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i))
          .sort((a, b) => a - b);
      expect(numbers(kept)).toEqual(left);
      expect(removed.every(({ rule }) => rule.startsWith('$'))).toBe(true);
      expect(numbers(removed).some((number) => left.includes(number))).toBe(false);
    });
  }

  test('a second run at a later time takes what has expired since', async () => {
    const row: Row = {
      row: 8,
      log: 'a0@old, a1@fresh | a2@old | a3@fresh, M0(a){age} | SP',
      left: 'a1 | ∅ | a3, M0 | SP',
    };
    const { world } = await checkRow({ ...row, idx: 'a0..a3, M0, SP' });
    const open = await world.open();
    expect(
      (await open.store.readStream('a', { direction: 'forward', from: 0, count: 10 })).events.map(
        (event) => event.number,
      ),
    ).toEqual([1, 3]);
    expect((await open.store.readStream('a', { direction: 'backward', from: 'end', count: 2 })).nextEventNumber).toBe(
      1,
    );
    await open.close();
  });
});

test('redacted metadata count for a scavenge and for explain as for readers: not at all', async () => {
  const row: Row = {
    row: 9,
    log: 'M0(a){mc=2}, a0, a1, a2 | M1(a){mc=1, redacted} | SP',
    left: 'a0, a1, a2 | M1 | SP',
  };
  const { world } = await checkRow(row);
  const open = await world.open();
  expect(
    (await open.store.readStream('a', { direction: 'forward', from: 0, count: 10 })).events.map(
      (event) => event.number,
    ),
  ).toEqual([0, 1, 2]);
  await open.close();
  const learner = await Learner.create(row.log, { point: 'SP' });
  expect(await learner.explain('a')).toMatchObject({ metadata: null, rules: [], removed: [] });
});
