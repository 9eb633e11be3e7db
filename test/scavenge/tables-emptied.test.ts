import { describe, expect, test } from 'vitest';
import { checkRow, nameOf } from './notation-check.ts';
import type { Row } from './notation-check.ts';
import { parseLog } from './notation.ts';

/** Chunks that an earlier scavenge emptied while their index entries stayed. */

const ROWS: readonly Row[] = [
  { row: 106, log: '!a0, a1 | SP', left: '=', idx: 'a0, a1, SP', rows: { a: 'gone' } },
  {
    row: 107,
    log: '!a0, a1 | a2, a3 | !a4, a5 | a6@cutoff-1s, a7@cutoff, a8@cutoff+1s | !a9, a10 | a11..a13@fresh | !a14, a15 | a16@fresh, M0(a){age, tb=4} | SP',
    left: '∅ | ∅ | ∅ | a7, a8 | ∅ | a11..a13 | ∅ | a16, M0 | SP',
    idx: 'a6..a16, M0, SP',
    dp: { a: 6 },
    mdp: { a: 9 },
  },
  { row: 108, log: '!a0, a1, a2 | M0(a){age} | SP', left: '=', idx: 'a2, M0, SP', dp: { a: 2 } },
  {
    row: 109,
    log: 'a0, a1 | !a2, a3 | a4, a5, a6 | M0(a){tb=2} | SP',
    left: '∅ | ∅ | a4, a5, a6 | M0 | SP',
    idx: 'a2..a6, M0, SP',
    rows: { a: 'gone' },
  },
  {
    row: 110,
    log: 'a0@old, a1@old | !a2, a3 | a4..a6@fresh | M0(a){age} | SP',
    left: '∅ | ∅ | a4..a6 | M0 | SP',
    idx: 'a4..a6, M0, SP',
    dp: { a: 4 },
  },
];

describe('16.10 chunks emptied earlier', () => {
  for (const row of ROWS) {
    test(nameOf(row), async () => {
      const labels = parseLog(row.log).flatMap((chunk) => chunk.records.map((record) => record.label));
      const { run } = await checkRow({ ...row, tables: [labels] });
      expect(run.last.result).toBe('Success');
    });
  }
});
