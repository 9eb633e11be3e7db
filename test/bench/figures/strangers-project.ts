import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { programOf } from '../../local/guide-blocks.ts';
import { ok, packed } from '../../local/packed.ts';
import type { Packed } from '../../local/packed.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';

/** The goal: from an empty folder to a test that has passed. */
const PROJECT_MS = 2_000;

export const strangersProject: Figure = {
  name: 'strangers-project',
  isLong: true,
  how: 'From an empty folder to a test that has passed: `npm install` of the packed file, and `node --test` of the project that the guide\'s page "Test against it" shows: typed events, an append on a condition, a read model in SQLite, a test node. The package is made before, and nothing is fetched. The limit is the goal.',
  async run(settings) {
    const all = await packed();
    try {
      const windows: Times[] = [];
      for (let i = 0; i < settings.windows; i++) windows.push(await measure(all, settings.folder));
      const list = (of: (times: Times) => number) => windows.map((times) => of(times).toFixed(0)).join(', ');
      return [
        row(
          "a stranger's project, from nothing",
          'ms',
          { limit: [PROJECT_MS], ours: windows.map(({ installMs, testMs }) => installMs + testMs) },
          { kind: 'below', value: 1 },
          [
            `of it \`npm install\` ${list(({ installMs }) => installMs)} ms, the test ${list(({ testMs }) => testMs)} ms`,
          ],
        ),
      ];
    } finally {
      await all.remove();
    }
  },
};

interface Times {
  readonly installMs: number;
  readonly testMs: number;
}

async function measure(all: Packed, within: string): Promise<Times> {
  // It stays until the run ends: ext4 looks through all files that were removed in the last seconds for each new one.
  const cwd = await mkdtemp(join(within, 'stranger-'));
  await writeFile(join(cwd, 'package.json'), '{ "private": true }');
  await writeFile(join(cwd, 'courses.test.mts'), programOf('local/guide/testing.md', 'skua/project').code);
  const begunMs = performance.now();
  await ok(all.shell(`npm install '${join(all.clone, all.told.filename)}'`, { cwd }).ended);
  const installedMs = performance.now();
  const { out } = await ok(all.shell('node --test --test-reporter=tap', { cwd }).ended);
  if (!/^# pass 1$/m.test(out)) throw new Error('The project of the guide does not pass.');
  return { installMs: installedMs - begunMs, testMs: performance.now() - installedMs };
}
