import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import SummaryReporter from './support/summary-reporter.ts';

/** Two files at a time, each in a process of its own: tests bind ports, start workers and hold directory locks. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    environment: 'node',
    include: ['test/**/*.test.ts'],
    // Ends the S3 server that tests have started, if any.
    globalSetup: ['test/support/s3/global-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
    // Programs that tests start find their sources stripped of types and compiled.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/skua', import.meta.url)) },
    reporters: ['default', new SummaryReporter()],
  },
});
