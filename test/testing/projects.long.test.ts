import { mkdir, readFile, writeFile } from 'node:fs/promises';
import * as path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { programOf } from '../local/guide-blocks.ts';
import { declaredMembers } from '../local/packed.ts';
import { ROOT, Spawned } from '../local/spawn.ts';
import type { Ended } from '../local/spawn.ts';
import { bySize } from '../support/run-size.ts';
import { workplace } from './package.ts';
import type { Workplace } from './package.ts';

let place: Workplace;
beforeAll(async () => {
  place = await workplace();
});
afterAll(() => place.remove());

/** A runner by its module, with this Node.js and none of what the runner of these tests has told its processes. */
function run(at: string, words: readonly string[]): Promise<Ended> {
  const env = Object.fromEntries(
    Object.keys(process.env)
      .filter((name) =>
        /^(?:VITEST|TEST|NODE_ENV|NODE_OPTIONS|NODE_V8_COVERAGE|npm_|DEV|PROD|MODE|SSR|BASE_URL)/.test(name),
      )
      .map((name) => [name, undefined]),
  );
  return new Spawned(process.execPath, words, env, { cwd: at }).ended;
}

test('the suite runs in Vitest, in processes and in threads, and so does the example of the guide', async () => {
  const at = await place.project('vitest');
  await writeFile(path.join(at, 'guide.test.js'), programOf('local/guide/testing.md', 'skua/testing').code);
  for (const pool of bySize(['threads'], ['threads'], ['forks', 'threads'])) {
    const { code, out, err } = await run(at, [
      path.join(place.folder, 'node_modules/vitest/vitest.mjs'),
      'run',
      `--pool=${pool}`,
      '--maxWorkers=2',
    ]);
    expect(`${out}\n${err}`).toMatch(/Test Files +3 passed \(3\)/);
    expect(code).toBe(0);
  }
});

test('the suite runs in node:test, by import, and in a context of its own as Jest has them, by require', async () => {
  const at = await place.project('node-test');
  const { code, out, err } = await run(at, ['--test', '--test-reporter=tap']);
  expect(`${out}\n${err}`).toMatch(/^# fail 0$/m);
  expect(out).toMatch(/^# pass (?:[5-9]\d|1\d\d)$/m);
  expect(code).toBe(0);
});

const FILES = bySize(8, 8, 100);

test(`${FILES} files side by side have a node each`, async () => {
  const at = path.join(place.folder, 'many');
  await mkdir(at);
  for (let i = 0; i < FILES; i++) {
    await writeFile(
      path.join(at, `file-${i}.test.mjs`),
      `
import { expect, test } from 'vitest';
import { startTestNode } from 'skua/testing';
test('has its own', async () => {
  await using node = await startTestNode({ seed: { own: [{ type: 'of-${i}' }] } });
  await node.store.append('own', { type: 'more' });
  const found = await Array.fromAsync(node.store.readAll(), ({ type }) => type);
  expect(found).toEqual(['of-${i}', 'more']);
});
`,
    );
  }
  const { code, out, err } = await run(at, [
    path.join(place.folder, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--pool=threads',
    '--maxWorkers=8',
    '--testTimeout=600000',
  ]);
  expect(`${out}\n${err}`).toMatch(new RegExp(`Test Files +${FILES} passed \\(${FILES}\\)`));
  expect(code).toBe(0);
});

test('each member that the declarations promise occurs in the suite', async () => {
  const declared = await readFile(
    path.join(place.folder, 'node_modules/skua/dist/types/local/testing/api.d.ts'),
    'utf8',
  );
  const suite = await readFile(path.join(ROOT, 'test/testing/suite.ts'), 'utf8');
  const members = declaredMembers(declared);
  expect(members.length).toBeGreaterThan(25);
  expect(members.filter((name) => !new RegExp(`\\b${name}\\b`).test(suite))).toEqual([]);
});
