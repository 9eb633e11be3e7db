import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ROOT } from '../local/spawn.ts';

const { scripts } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as { scripts: Record<string, string> };

test.each(Object.keys(scripts).filter((name) => /^test\b/.test(name)))(
  'npm run %s begins with how long it takes',
  (name) => {
    const [first] = scripts[`pre${name}`]!.split(' && ');
    expect(first).toBe(`node test/support/how-long.mjs ${name}`);
    const [, ...words] = first!.split(' ');
    expect(execFileSync(process.execPath, words, { cwd: ROOT, encoding: 'utf8' })).toMatch(
      /takes (about \d+ minutes|hours)/,
    );
  },
);
