import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import type { ViteUserConfig } from 'vitest/config';
import SummaryReporter from './support/summary-reporter.ts';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** A test that hangs ends after this time; none depends on it, however busy the machine is. */
const HANG_MS = 600_000;

/** Two files at a time, each in a process of its own: tests bind ports, start workers and hold directory locks. */
export const tests: ViteUserConfig['test'] = {
  environment: 'node',
  include: ['test/**/*.test.ts'],
  // Those belong to `npm run test:long`.
  exclude: ['**/node_modules/**', 'test/**/*.long.test.ts'],
  // Ends the S3 server that tests have started, if any.
  globalSetup: ['test/support/s3/global-setup.ts'],
  testTimeout: HANG_MS,
  hookTimeout: HANG_MS,
  pool: 'forks',
  maxWorkers: 2,
  env: {
    // Programs that tests start find their sources stripped of types and compiled.
    NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/skua', import.meta.url)),
    // The long run looks for a server of its own (`support/s3`), which takes its time.
    SKUA_TEST_S3: process.env['SKUA_TEST_S3'] ?? (process.env['S3_ENDPOINT'] === undefined ? 'in-process' : 'environment'),
  },
  reporters: ['default', new SummaryReporter()],
};

export default defineConfig({ root: ROOT, test: tests });
