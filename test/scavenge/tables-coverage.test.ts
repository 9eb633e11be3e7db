import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** Rows of the tables that are tested elsewhere, and where. */
const ELSEWHERE: readonly { readonly from: number; readonly to: number; readonly why: string }[] = [
  { from: 132, to: 142, why: 'about HTTP: test/handlers has the requests of these rows' },
];
const ROWS = 142;

test('every row of the tables has a test', () => {
  const folder = fileURLToPath(new URL('.', import.meta.url));
  const covered = new Set<number>();
  for (const name of readdirSync(folder).filter(
    (one) => /^(tables-.*|index|history)\.test\.ts$/.test(one) && one !== 'tables-coverage.test.ts',
  )) {
    // A row is the member `row` of a literal, or stands at the beginning of a test's name.
    for (const match of readFileSync(folder + name, 'utf8').matchAll(/\brow: (\d+)|['"]row (\d+)[: (]/g))
      covered.add(Number(match[1] ?? match[2]));
  }
  for (const { from, to } of ELSEWHERE) for (let row = from; row <= to; row++) covered.add(row);
  const missing = Array.from({ length: ROWS }, (_, i) => i + 1).filter((row) => !covered.has(row));
  expect(missing).toEqual([]);
});
