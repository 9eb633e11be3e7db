import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { inGroups, ROOT, TEST_FILES, tests } from './vitest.config.ts';

/** What files have in them that do more in the long run: seeds, rounds and crash points, or a bucket, which then is one of a real server where there is one. */
const DOES_MORE = /support\/long-run\.ts|s3ForTests\(|onS3\(|onBucket\(/;

const files = TEST_FILES.filter((file) => file.endsWith('.long.test.ts') || DOES_MORE.test(readFileSync(join(ROOT, file), 'utf8')));

const { SKUA_TEST_S3: _, ...env } = tests?.env ?? {};

/** A test that hangs ends after this time: with all seeds, and beside much load, one takes many minutes. */
const HANG_MS = 1_800_000;

/** `npm run test:long`: the files that `npm test` runs in part, as a whole, and those that it does not run. */
export default defineConfig({
  root: ROOT,
  test: { ...tests, projects: inGroups(files), testTimeout: HANG_MS, hookTimeout: HANG_MS, env: { ...env, SKUA_TEST_LONG: 'true' } },
});
