import { describe, expect, test } from 'vitest';
import { checkRow, nameOf } from './notation-check.ts';
import type { Row } from './notation-check.ts';

/** One run for the scavenge point of the log. */

const TOMBSTONES: readonly Row[] = [
  { row: 1, log: 'a0, T(a) | SP', left: 'T(a) | SP' },
  { row: 2, log: 'T(a) | SP', left: '=' },
  { row: 3, log: 'M0(a){mc=1}, a0, a1, T(a) | SP', left: 'T(a) | SP', rows: { a: 'archived', $$a: 'gone' } },
  {
    row: 4,
    log: 'M0(x){mc=1}, x0, x1 | y0, y1, T(y) | SP',
    collide: { y: 'x', $$y: '$$x' },
    left: 'M0(x), x1 | T(y) | SP',
  },
  { row: 5, log: 'T($$a) | SP', fails: 'Found Tombstone in metadata stream', left: '=' },
  { row: 6, log: 'tb#0, T(a)+#0 | SP', fails: 'Found Tombstone in transaction', left: '=' },
  {
    row: 7,
    log: 'a0, tb#1, tp#1, te#1, c#1, a2, M0(a){mc=1}, T(a) | SP',
    left: 'tb#1, c#1, T(a) | SP',
    idx: 'T(a), SP',
  },
  { row: 8, log: 'a0, tb#1, tp#1, te#1, c#1, a2, M0(a){mc=1}, T(a) | SP', unsafe: true, left: 'c#1 | SP', idx: 'SP' },
  {
    row: 9,
    log: 'a0, a1, T32(a), a2147483648, a2147483649 | SP',
    left: 'T32(a), a2147483648, a2147483649 | SP',
    rows: { a: 'archived' },
  },
  { row: 10, log: 'b0, b1 | T(b) | SP', left: '∅ | T(b) | SP' },
  { row: 10, when: 'unsafe', log: 'b0, b1 | T(b) | SP', unsafe: true, left: '∅ | ∅ | SP' },
  { row: 11, log: 'b0..b8, T(b) | SP', left: 'T(b) | SP' },
  { row: 11, when: 'unsafe', log: 'b0..b8, T(b) | SP', unsafe: true, left: '∅ | SP' },
  { row: 12, log: 'M0(b){mc=10}, M1(b){mc=2}, T(b) | SP', left: 'T(b) | SP' },
  {
    row: 13,
    log: 'tp#0(begin), c#0, tp#1(begin), 3×tp#1 | 3×tp#1, c#1, T(a)#2, c#2 | SP',
    left: 'tp#0(begin), c#0, tp#1(begin) | c#1, T(a)#2, c#2 | SP',
    idx: 'T(a)#2, SP',
  },
  {
    row: 14,
    log: 'tp#0(begin), c#0, tb#1, 4×tp#1 | 5×tp#1, te#1, c#1 | T(a)#2, c#2 | SP',
    left: 'tp#0(begin), c#0, tb#1 | c#1 | T(a)#2, c#2 | SP',
    idx: 'T(a)#2, SP',
  },
];

const COUNTS: readonly Row[] = [
  { row: 15, log: 'a0..a3, M0(a){mc=1} | SP', left: 'a3, M0 | SP' },
  { row: 16, log: 'M0(a){mc=1} | SP', left: '=' },
  { row: 17, log: 'a0..a3, M0(a){mc=50} | SP', left: '=' },
  { row: 18, log: 'M0(a){mc=1}, a0..a3 | SP', left: 'M0, a3 | SP' },
  { row: 19, log: 'a0, b0, a1, b1, M0(a){mc=1}, M0(b){mc=1} | SP', left: 'a1, b1, M0(a), M0(b) | SP' },
  { row: 20, log: 'a0..a3, M0(a){tb=3} | SP', left: 'a3, M0 | SP' },
  { row: 21, log: 'a0, a1, M0(a){tb=4} | SP', left: 'a1, M0 | SP' },
  { row: 22, log: 'M0(a){tb=7}, a0..a9 | SP', left: 'M0, a7, a8, a9 | SP' },
  { row: 23, log: 'a0..a2, M0(a){tb=MAX} | SP', left: 'a2, M0 | SP', rows: { a: 'gone', $$a: 'gone' } },
  { row: 24, log: 'a0..a2, M0(a){tb=MAX}, a3, M1(a){tb=3} | SP', left: 'a3, M1 | SP' },
  { row: 25, log: 'a0..a2, M0(a){tb=MAX}, a3 | M1(a){tb=3}, SP', left: 'a3 | M1, SP' },
  { row: 27, log: 'a0..a2, M0(a){tb=MAX}, T(a) | SP', left: 'T(a) | SP' },
  { row: 28, log: 'a0..a2, M0(a){tb=MAX}, a3, M1(a){tb=3}, T(a) | SP', left: 'T(a) | SP' },
  { row: 29, log: 'M0(a){tb=4}, SP | a0, a1', left: '=' },
  // What lies behind the scavenge point does not exist for the run, even where its stream is to vanish.
  { row: 29, when: 'of a stream that vanishes', log: "a0, a1, T(a) | SP | a0'", unsafe: true, left: "∅ | SP | a0'" },
  { row: 29, when: 'in the same chunk', log: "a0, a1, T(a), SP, a0'", unsafe: true, left: "SP, a0'" },
];

const AGES: readonly Row[] = [
  {
    row: 30,
    log: 'a0@old, a1@old, a2@fresh, a3@fresh, M0(a){age} | SP',
    left: 'a2, a3, M0 | SP',
    idx: 'a0, a1, a2, a3, M0, SP',
  },
  { row: 31, log: 'a0@old, a1@old, a2@old, M0(a){age} | SP', left: 'a2, M0 | SP', idx: 'a0, a1, a2, M0, SP' },
  { row: 32, log: 'a0..a2@old | a3@fresh, M0(a){age} | SP', left: '∅ | a3, M0 | SP' },
  { row: 33, log: 'a0..a2@old | M0(a){age} | SP', left: 'a2 | M0 | SP' },
  { row: 34, log: 'a0..a2@fresh | M0(a){age} | SP', left: '=' },
  {
    row: 35,
    log: 'M0(a){age=1 min}, a0@25m, a1@20m, a2@10m, a3@5m, a4@3m | SP',
    left: 'M0, a4 | SP',
    idx: 'M0, a0..a4, SP',
  },
  {
    row: 36,
    log: 'M0(a){age=5 min}, a0@110m, a1@100m, a2@90m, a3@60m, a4@40m, a5@30m, a6@20m, a7@3m, a8@2m, a9@1m | SP',
    left: 'M0, a7, a8, a9 | SP',
    idx: 'M0, a0..a9, SP',
  },
  {
    row: 37,
    log: 'a0@old, a1@old, a2@fresh, a3@fresh, M0(a){age}, b0 | SP',
    collide: { b: 'a' },
    left: 'a2, a3, M0, b0 | SP',
  },
  {
    row: 38,
    log: 'a0@cutoff-1ms, a1@cutoff, a2@fresh, M0(a){age} | SP',
    left: 'a1, a2, M0 | SP',
    idx: 'a0, a1, a2, M0, SP',
  },
];

const COMBINATIONS: readonly Row[] = [
  { row: 39, log: 'M0(a){mc=2}, a0, a1, T(a) | SP', left: 'T(a) | SP' },
  { row: 40, log: 'a0..a1@old, a2..a4@fresh, M0(a){age, mc=1} | SP', left: 'a4, M0 | SP' },
  { row: 41, log: 'a0..a4, M0(a){tb=2, mc=1} | SP', left: 'a4, M0 | SP' },
  { row: 42, log: 'a0..a1@old, a2..a6@fresh, M0(a){age, tb=4, mc=1} | SP', left: 'a6, M0 | SP' },
  { row: 43, log: 'a0..a4, M0(a){mc=3, tb=4} | SP', left: 'a4, M0 | SP' },
  { row: 44, log: 'a0..a1@old, a2..a4@fresh, M0(a){age, tb=4} | SP', left: 'a4, M0 | SP' },
  { row: 45, log: 'a0..a1@old, a2..a6@fresh, M0(a){age, mc=3, tb=6} | SP', left: 'a6, M0 | SP' },
  { row: 46, log: 'a0..a3@old, a4@fresh, M0(a){mc=3, age} | SP', left: 'a4, M0 | SP', idx: 'a2, a3, a4, M0, SP' },
  { row: 47, log: 'a0..a3@old, a4@fresh, M0(a){tb=2, age} | SP', left: 'a4, M0 | SP', idx: 'a2, a3, a4, M0, SP' },
  { row: 48, log: 'a0..a5@old, a6@fresh, M0(a){mc=5, tb=4, age} | SP', left: 'a6, M0 | SP', idx: 'a4, a5, a6, M0, SP' },
  {
    row: 49,
    log: 'M0(a){mc=5, age=5 min}, a0, a1@100m, a2@90m, a3@60m, a4@40m, a5@30m, a6@20m, a7@3m, a8@2m, a9@1m | SP',
    left: 'M0, a7, a8, a9 | SP',
    idx: 'M0, a5..a9, SP',
  },
  {
    row: 50,
    log: 'M0(a){mc=3, age=50 min}, a0, a1@100m, a2@90m, a3@60m, a4@40m, a5@30m, a6@20m, a7@3m, a8@2m, a9@1m | SP',
    left: 'M0, a7, a8, a9 | SP',
  },
];

const FOUR = 'M0(x){mc=1}, M0(y){mc=2}, M1(x){mc=3}, M1(y){mc=4} | SP';
const METADATA: readonly Row[] = [
  { row: 51, log: 'M0(a){mc=10}, M1(a){mc=5}, M2(a){mc=3}, M3(a){mc=2} | SP', left: 'M3 | SP' },
  { row: 52, log: 'M0(x){mc=1}, y0, y1 | SP', collide: { y: 'x' }, left: '=' },
  { row: 53, when: 'no shared hash', log: FOUR, left: 'M1(x), M1(y) | SP' },
  { row: 53, when: 'all share one', log: FOUR, collide: { y: 'x', $$x: 'x', $$y: 'x' }, left: 'M1(x), M1(y) | SP' },
  { row: 53, when: 'x and y', log: FOUR, collide: { y: 'x' }, left: 'M1(x), M1(y) | SP' },
  { row: 53, when: '$$x and $$y', log: FOUR, collide: { $$y: '$$x' }, left: 'M1(x), M1(y) | SP' },
  { row: 53, when: 'both pairs', log: FOUR, collide: { y: 'x', $$y: '$$x' }, left: 'M1(x), M1(y) | SP' },
  { row: 53, when: 'crosswise', log: FOUR, collide: { $$x: 'y', $$y: 'x' }, left: 'M1(x), M1(y) | SP' },
  { row: 54, log: 'x0, M0(x){mc=1} | SP', collide: { $$x: 'x' }, left: '=' },
  { row: 55, log: 'a0, b0, a1, a2, M0(a){mc=2} | SP', collide: { b: 'a' }, left: 'b0, a1, a2, M0 | SP' },
  { row: 56, log: 'M0($$a){mc=1}, M1($$a){mc=2}, SP{th=-1}', left: 'M1($$a), SP' },
  { row: 57, log: 'M0($$a){mc=3}, M0(a), M1(a), M2(a), M3(a), SP', left: 'M0($$a), M3(a), SP' },
  { row: 58, log: 'M0(a){mc=1}, a0, a1, N1($$a) | SP', left: 'a0, a1, N1($$a) | SP' },
  { row: 59, log: 'D0(a){mc=1}, a1, a2, SP', left: '=' },
  { row: 60, log: 'tb#0($$a), tm#0($$a){mc=1} | SP', fails: 'Found metadata in transaction', left: '=' },
  {
    row: 61,
    log: 'a0, tb#1, tp#1, te#1, c#1, a2, M0(a){mc=1} | SP',
    left: 'tb#1, tp#1, te#1, c#1, a2, M0 | SP',
    idx: 'a2, M0, SP',
  },
  { row: 62, log: 'a0 | a1 | M5(a){mc=2} | M0(a){mc=1} | SP', left: 'a0 | a1 | M5 | ∅ | SP' },
  { row: 63, log: 'a0 | a1 | M5(a){mc=1} | M0(a){mc=3} | M6(a){mc=2} | SP', left: 'a0 | a1 | ∅ | ∅ | M6 | SP' },
  {
    row: 64,
    log: 'a0 | a1 | M0(a){mc=2} | M0(a){mc=1} | M0(a){mc=1} | SP{th=1000}',
    left: '=',
    weights: [0, 0, 0, 2, 2, 0],
    rows: { $$a: 'gone' },
    dp: { a: 0 },
  },
  {
    row: 65,
    log: 'a0 | a1 | M3(a){mc=1} | M4(a){mc=2} | M4(a){mc=1} | SP{th=1000}',
    left: '=',
    idx: 'a0, a1, M4, M4, SP',
    weights: [0, 0, 2, 0, 2, 0],
    dp: { a: 0, $$a: 4 },
  },
  {
    row: 66,
    log: 'a0 | a1 | M3(a){mc=1} | M4(a){mc=2} | M0(a){mc=1} | SP{th=1000}',
    left: '=',
    idx: 'a0, a1, M4, SP',
    weights: [0, 0, 2, 0, 2, 0],
    dp: { a: 0, $$a: 4 },
  },
  {
    row: 67,
    log: 'a0 | a1 | M4(a){mc=2} | M2(a){mc=1} | M0(a){mc=1} | SP{th=1000}',
    left: '=',
    idx: 'a0, a1, M4, SP',
    weights: [0, 0, 0, 2, 2, 0],
    dp: { a: 0, $$a: 4 },
  },
  {
    row: 67,
    when: 'M3 as last',
    log: 'a0 | a1 | M4(a){mc=2} | M2(a){mc=1} | M3(a){mc=1} | SP{th=1000}',
    left: '=',
    idx: 'a0, a1, M4, SP',
    weights: [0, 0, 0, 2, 2, 0],
    dp: { a: 0, $$a: 4 },
  },
  { row: 68, log: "a0, a1, a2, a0', M0(a){mc=1} | SP", left: 'a2, M0 | SP' },
  // Only the earliest record of a number counts for weights, as it does for readers.
  {
    row: 68,
    when: 'weights',
    log: "a0 | a1, a2 | a0' | M0(a){mc=1} | SP{th=1000}",
    left: '=',
    idx: 'a2, M0, SP',
    weights: [2, 2, 0, 0, 0],
    dp: { a: 2 },
  },
  { row: 69, log: "a0, a0', a0'', M0(a){mc=1} | SP", left: '=', idx: 'a0, M0, SP', idxAsRead: true },
];

const THRESHOLDS: readonly Row[] = [
  { row: 70, log: 'a0 | a1, a2 | a3, M0(a){mc=1}, SP{th=-1}', left: '∅ | ∅ | a3, M0, SP', versions: [1, 1, 1] },
  { row: 71, log: 'a0 | a1, a2 | a3, M0(a){mc=1}, SP{th=0}', left: '∅ | ∅ | a3, M0, SP', versions: [1, 1, 0] },
  // The reference leaves a chunk whose weight is the threshold; here it is executed.
  { row: 72, log: 'a0 | a1, a2 | a3, M0(a){mc=1}, SP{th=2}', left: '∅ | ∅ | a3, M0, SP', versions: [1, 1, 0] },
  {
    row: 72,
    when: 'above',
    log: 'a0 | a1, a2 | a3, M0(a){mc=1}, SP{th=3}',
    left: 'a0 | ∅ | a3, M0, SP',
    idx: 'a3, M0, SP',
    versions: [0, 1, 0],
    weights: [2, 0, 0],
  },
  { row: 73, log: 'M0(a){mc=1}, a0, a1, a2 | SP{th=1000}', left: '=', idx: 'M0, a2, SP', weights: [4, 0] },
  {
    row: 74,
    log: 'a0@old, a1@old, a2@fresh, a3@fresh, M0(a){age} | SP{th=1000}',
    left: '=',
    weights: [3, 0],
    dp: { a: 0 },
    mdp: { a: 3 },
  },
  // The timestamp of the scavenge point is one of its chunk's.
  {
    row: 74,
    when: 'with the point in the chunk',
    log: 'M0(a){age}@old, a0@old, a1@old, SP{th=1000}',
    left: '=',
    weights: [1],
    dp: { a: 0 },
    mdp: { a: 1 },
  },
  {
    row: 75,
    log: 'a0, a1, a5, a6, a7, M0(a){mc=1} | SP{th=1000}',
    left: '=',
    idx: 'a7, M0, SP',
    weights: [8, 0],
    dp: { a: 7 },
    mdp: { a: 7 },
  },
  {
    row: 76,
    log: 'a0..a259 | a260, M0(a){mc=1}, SP{th=1000}',
    left: '=',
    idx: 'a260, M0, SP',
    weights: [520, 0],
    dp: { a: 260 },
  },
  { row: 77, log: 'M0(a) | M1(a), SP{th=1000}', left: '=', idx: 'M1, SP', weights: [2, 0] },
  { row: 78, log: 'M0(a) | T(a), SP{th=1000}', left: '=', idx: 'T(a), SP', weights: [2, 0] },
  { row: 79, log: 'M0(a) | M1(a), M2(a) | M3(a), T(a), SP{th=1000}', left: '=', idx: 'T(a), SP', weights: [2, 4, 2] },
  {
    row: 80,
    log: 'M0(a){mc=1}, a0, a1, T(a) | SP{th=1000}',
    unsafe: true,
    left: '∅ | SP',
    rows: { a: 'gone', $$a: 'gone' },
  },
];

const STATUSES: readonly Row[] = [
  { row: 81, log: 'M0(a){age} | a0 | b0 | SP', rows: { a: 'active' } },
  { row: 82, log: 'M0(a){mc=1} | a0 | b0 | SP', rows: { a: 'active' } },
  { row: 83, log: 'M0(a){tb=5} | a0..a4 | b0 | SP', rows: { a: 'active' } },
  { row: 84, log: 'M0(a){tb=5} | a0..a5 | b0 | SP', rows: { a: 'gone' } },
  { row: 85, log: 'M0(a){tb=MAX} | a0..a5 | b0 | SP', rows: { a: 'gone' } },
  { row: 86, log: 'M0(a) | a0 | b0 | SP', rows: { a: 'gone' } },
  ...['{age} | a0', '{mc=1} | a0', '{tb=5} | a0..a4', '{tb=5} | a0..a5', '{tb=MAX} | a0..a5', '{} | a0'].map(
    (metadata): Row => ({
      row: 87,
      log: `M0(a)${metadata} | T(a) | SP`,
      left: '∅ | ∅ | T(a) | SP',
      rows: { a: 'archived' },
    }),
  ),
];

const SECTIONS: Record<string, readonly Row[]> = {
  '16.2 tombstones': TOMBSTONES,
  '16.3 $maxCount, $tb, soft delete': COUNTS,
  '16.4 $maxAge': AGES,
  '16.5 combinations': COMBINATIONS,
  '16.6 metadata and collisions': METADATA,
  '16.7 thresholds and weights': THRESHOLDS,
  '16.8 status after a run': STATUSES,
};

for (const [section, rows] of Object.entries(SECTIONS)) {
  describe(section, () => {
    for (const row of rows)
      test(nameOf(row), async () => {
        await checkRow(row);
      });
  });
}

test('row 9: the stream counts as tombstoned', async () => {
  const { world } = await checkRow(TOMBSTONES.find(({ row }) => row === 9)!);
  const state = world.state();
  const { hi, lo } = world.hash('a');
  expect(state.original('a', hi, lo)?.isTombstoned).toBe(true);
  state.close();
});
