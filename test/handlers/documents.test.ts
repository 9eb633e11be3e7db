import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const FOLDER = new URL('../../handlers/documents/', import.meta.url);

test('documents are types alone, so that the command line and the page may have them', () => {
  for (const name of readdirSync(FOLDER)) {
    const statements = readFileSync(new URL(name, FOLDER), 'utf8')
      .split('\n')
      .filter((line) => /^(?:import|export|const|let|function|class|async)\b/.test(line));
    expect([name, statements.filter((line) => !/^(?:import type|export type|export interface) /.test(line))]).toEqual([
      name,
      [],
    ]);
  }
});
