import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ROOT } from '../local/spawn.ts';

/** The sources stand for the package. */
test('the program of "With Emmett" runs, and says what it did', async () => {
  const [, section] = readFileSync(join(ROOT, 'README.md'), 'utf8').split('\n## With Emmett\n');
  const [, program] = /```js\n([^]*?)\n```/.exec(section!)!;
  const folder = mkdtempSync(join(tmpdir(), 'skua-emmett-readme-'));
  try {
    const modules = join(folder, 'node_modules');
    mkdirSync(join(modules, 'skua'), { recursive: true });
    mkdirSync(join(modules, '@event-driven-io'));
    symlinkSync(join(ROOT, 'node_modules/emmett-current'), join(modules, '@event-driven-io/emmett'));
    writeFileSync(
      join(modules, 'skua/package.json'),
      JSON.stringify({
        name: 'skua',
        type: 'module',
        exports: { './embedded': './embedded.js', './emmett': './emmett.js' },
      }),
    );
    for (const name of ['embedded', 'emmett'])
      writeFileSync(
        join(modules, `skua/${name}.js`),
        `export * from '${pathToFileURL(join(ROOT, `local/${name}/index.ts`)).href}';\n`,
      );
    writeFileSync(join(folder, 'library.mjs'), program!);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['library.mjs'], { cwd: folder });
    expect(stdout).toContain("newState: { reader: 'kim' }");
    expect(stdout).toContain('createdNewStream: true');
    expect(stdout).toMatch(/\nkim has it\.\n0n\n$/);
    expect(stderr).toBe('');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
