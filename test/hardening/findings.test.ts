import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { ROOT } from '../local/spawn.ts';

/**
 * A finding of the security review: what shows it, what that did before, what it does now, and the file that tests it.
 */
interface Finding {
  readonly finding: string;
  readonly request: string;
  readonly before: string;
  readonly now: string;
  readonly test: string;
}

/** The tables of findings lie beside this file, one for each part of the node. */
const files = globSync('*.ts', { cwd: import.meta.dirname })
  .filter((file) => !file.endsWith('.test.ts'))
  .sort();
const tables = await Promise.all(
  files.map(
    async (file) =>
      [
        file,
        Object.values(await import(pathToFileURL(join(import.meta.dirname, file)).href))
          .filter(Array.isArray)
          .flat() as Finding[],
      ] as const,
  ),
);
const findings = tables.flatMap(([, rows]) => rows);

test.each(tables)('every row of %s is whole, and names a file of tests that exists', (_, rows) => {
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) {
    expect(Object.keys(row).sort(), row.request).toEqual(['before', 'finding', 'now', 'request', 'test']);
    expect(existsSync(join(ROOT, row.test.split(' > ')[0]!)), row.test).toBe(true);
  }
});

test('no finding of the review is left out', () => {
  const numbers = new Set(findings.map(({ finding }) => finding));
  expect(Array.from({ length: 13 }, (_, i) => String(i + 1)).filter((number) => !numbers.has(number))).toEqual([]);
});
