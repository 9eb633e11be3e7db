import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { ROOT, tests } from './vitest.config.ts';

/** Of those that `npm test` runs in part, and those that it does not run. */
const files = globSync('test/**/*.test.ts', { cwd: ROOT, exclude: ['**/node_modules'] })
  .filter((file) => file.endsWith('.long.test.ts') || readFileSync(join(ROOT, file), 'utf8').includes('support/long-run.ts'));

/** `npm run test:long`: files with all their seeds, rounds and crash points. */
export default defineConfig({
  root: ROOT,
  test: { ...tests, include: files.sort(), exclude: ['**/node_modules/**'], env: { ...tests?.env, SKUA_TEST_LONG: 'true' } },
});
