import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CONDITION_FAULTS } from '../../streams/conditions-faults.ts';
import { FAULTS, holds } from './faults.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

test('what each fault of the simulation leaves out stands in the sources', () => {
  const edits = Object.entries({ ...FAULTS, ...CONDITION_FAULTS }).flatMap(([rule, all]) =>
    all.map((edit) => ({ rule, ...edit })),
  );
  const gone = edits.filter(({ file, is }) => !holds(readFileSync(ROOT + file, 'utf8'), is));
  expect(gone.map(({ rule, file, is }) => `${rule}: ${file} does not hold "${is}"`)).toEqual([]);
});
