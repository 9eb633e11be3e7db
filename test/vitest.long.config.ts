import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import type { ViteUserConfig } from 'vitest/config';
import type { RunSize } from './support/run-size.ts';
import { inGroups, isLong, ROOT, TEST_FILES, tests } from './vitest.config.ts';

/**
 * What files have in them that do more in the long run: seeds, rounds and crash points, or a bucket, which then is one
 * of a real server where there is one.
 */
const DOES_MORE = /support\/run-size\.ts|s3ForTests\(|onS3\(|onBucket\(/;

/** A test that hangs ends after this time: with all seeds, and beside much load, one takes many minutes. */
const HANG_MS = 1_800_000;

/** Files at a size above that of `npm test`, which looks for a real S3 server. */
export function runOf(
  size: RunSize,
  files: readonly string[],
  more: Readonly<Record<string, string>> = {},
): ViteUserConfig {
  const { SKUA_TEST_S3: _, ...env } = tests?.env ?? {};
  return defineConfig({
    root: ROOT,
    test: {
      ...tests,
      projects: inGroups(files),
      testTimeout: HANG_MS,
      hookTimeout: HANG_MS,
      env: { ...env, ...more, SKUA_TEST_SIZE: size },
    },
  });
}

/** `npm run test:long`: the files that `npm test` runs in part, with more, and those that it does not run. */
export default runOf(
  'long',
  TEST_FILES.filter((file) => isLong(file) || DOES_MORE.test(readFileSync(join(ROOT, file), 'utf8'))),
);
