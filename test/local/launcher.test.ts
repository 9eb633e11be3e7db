import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ROOT, Spawned } from './spawn.ts';

/** Makes a process believe that it is an older Node.js. */
const OLDER = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.1.0'}})`;
const LAUNCHER = `${ROOT}/local/skua.mjs`;

function launch(nodeOptions: readonly string[], words: readonly string[]): Spawned {
  return new Spawned(process.execPath, [...nodeOptions, LAUNCHER, ...words]);
}

test.each([
  ['a Node.js that runs TypeScript', []],
  ['an older one', ['--import', OLDER]],
])('under %s: output, exit code and signals pass through', async (_, nodeOptions) => {
  expect(await launch(nodeOptions, ['--version']).ended).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    err: '',
  });
  expect(await launch(nodeOptions, ['start', '--wrong']).ended).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining('Unknown option --wrong.'),
  });
  const node = launch(nodeOptions, ['start', '--insecure', '--mem-db', '--node-port', '0']);
  await node.seen(/is listening on/);
  node.child.kill('SIGTERM');
  const { code, err } = await node.ended;
  expect(code).toBe(0);
  expect(err).toContain('"stopped"');
});

test('everywhere a node is started, Node.js has the same flags, and where it can be said as many heaps', () => {
  const lines = (file: string): string[] =>
    readFileSync(`${ROOT}/${file}`, 'utf8')
      .replaceAll(/',\s*'--/g, ' --')
      .replaceAll("'", '')
      .split('\n');
  const flags = Object.fromEntries(
    [
      'package.json',
      'local/skua.mjs',
      'local/cluster/try-out.ts',
      'infra/packaging/archive.sh',
      'test/bench/child.ts',
    ].map((file) => [
      file,
      lines(file).flatMap((line) => /--max-semi-space-size=\d+( --[\w-]+=\d+)*/.exec(line)?.[0] ?? []),
    ]),
  );
  const both = '--max-semi-space-size=16 --initial-old-space-size=64';
  expect(flags).toEqual({
    // The last one is the bench, which measures what a node's process would do.
    'package.json': [both, both, both, both, both],
    'local/skua.mjs': [both, both],
    'local/cluster/try-out.ts': [both],
    'infra/packaging/archive.sh': [both],
    'test/bench/child.ts': [both],
  });
  for (const file of ['local/skua.mjs', 'infra/packaging/archive.sh', 'test/bench/child.ts'])
    expect(readFileSync(`${ROOT}/${file}`, 'utf8'), file).toMatch(/MALLOC_ARENA_MAX(: '|:-)2/);
  // Scripts that package managers make of the first line begin with the word behind `env -S`.
  expect(readFileSync(LAUNCHER, 'utf8')).toMatch(/^#!\/usr\/bin\/env -S node --/);
});
