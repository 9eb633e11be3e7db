import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { expect, test } from 'vitest';
import { COMMANDS } from '../../local/commands/all-commands.ts';
import { run } from './run.ts';
import { ROOT } from './spawn.ts';

/** What commands make in the folder that they run in. */

test.each([
  ['cluster try', '--db'],
  ['functions serve', '--storage'],
])('%s begins nothing in the data directory of a node', async (command, option) => {
  const data = mkdtempSync(path.join(tmpdir(), 'skua-beside-'));
  try {
    writeFileSync(path.join(data, 'writer.chk'), new Uint8Array(8));
    expect(await run(...command.split(' '), option, data)).toEqual({
      code: 4,
      out: '',
      err: `error directory_not_empty: ${data} is the data directory of a node (it holds writer.chk). Name another directory. Nothing was changed.\n`,
    });
    expect(readdirSync(data)).toEqual(['writer.chk']);
  } finally {
    rmSync(data, { recursive: true });
  }
});

test('each has a folder of its own, which git ignores in a checkout', () => {
  const ignored = readFileSync(path.join(ROOT, '.gitignore'), 'utf8').split('\n');
  const folders = new Set(
    COMMANDS.flatMap(({ options }) => Object.values(options ?? {}))
      .map(({ fallbackText }) => fallbackText)
      .filter((value) => value.startsWith('./')),
  );
  expect([...folders].sort()).toEqual(['./data', './data-cluster', './data-functions']);
  for (const folder of folders)
    expect(ignored.filter((line) => line.replaceAll('/', '') === folder.slice(2))).toHaveLength(1);
});
