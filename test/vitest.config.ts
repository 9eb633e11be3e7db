import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import type { TestProjectConfiguration, ViteUserConfig } from 'vitest/config';
import SummaryReporter from './support/summary-reporter.ts';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

// The processes of the runner, and programs that tests start, find sources stripped of types and compiled.
process.env['NODE_COMPILE_CACHE'] = join(ROOT, 'node_modules/.cache/skua');

// Buffers of more bytes go back to the system when they are let go. By default glibc keeps more and more of them, and a
// process that runs files one after another comes to hold gigabytes, which each `spawn` has to map again.
process.env['MALLOC_MMAP_THRESHOLD_'] ??= '131072';

/** A test that hangs ends after this time; none depends on it, however busy the machine is. */
const HANG_MS = 600_000;

/**
 * What a test looks for again and again comes within this time, however busy the machine is: only a test that fails
 * waits so long.
 */
const POLL_MS = 300_000;

/**
 * What files have in them that leave something behind in the modules that they share with others or in what is global,
 * as functions do, which open their store once a process by its environment, or run the tests of another file.
 */
const KEEPS_TO_ITSELF =
  /vi\.mock\(|World\.elsewhere =|import\(?\s*'[^']*\.test\.ts'|from '@(eventstore|kurrent|event-driven-io)\/|^import \{[^}]*\bfunctions\b[^}]*\} from/m;

/**
 * What the tests import: loaded by Node.js as a node does it. Rewritten by the runner, as test files are, each use of
 * an import would be a look-up, which takes a third more of the processor in the whole. What is mocked (`vi.mock`) has
 * to be rewritten.
 */
const NOT_A_TEST = /(?<!\.test)\.ts$/;

/**
 * The files in two groups. Most share a process with others, one after another, and what it has loaded: a process of
 * its own, with all that a file imports, costs more than most files. The rest have one for themselves.
 */
export function inGroups(files: readonly string[]): TestProjectConfiguration[] {
  const alone = files.filter((file) => KEEPS_TO_ITSELF.test(readFileSync(join(ROOT, file), 'utf8')));
  return [
    {
      extends: true,
      test: {
        name: 'together',
        include: files.filter((file) => !alone.includes(file)),
        isolate: false,
        server: { deps: { external: [NOT_A_TEST] } },
      },
    },
    { extends: true, test: { name: 'alone', include: alone } },
  ];
}

/** Three files at a time, on two processors: tests wait for threads, timers and disks for a third of their time. */
export const tests: ViteUserConfig['test'] = {
  environment: 'node',
  // Ends the S3 server that tests have started, if any.
  globalSetup: ['test/support/s3/global-setup.ts'],
  // Fails the run where a guard of the product has caught something.
  setupFiles: ['test/support/caught.ts'],
  testTimeout: HANG_MS,
  hookTimeout: HANG_MS,
  expect: { poll: { timeout: POLL_MS } },
  pool: 'forks',
  maxWorkers: 3,
  // What tests make lives longer than a young generation of the usual 16 MiB has room for.
  execArgv: ['--max-semi-space-size=64', '--min-semi-space-size=64'],
  env: {
    // The long run looks for a server of its own (`support/s3`), which takes its time.
    SKUA_TEST_S3:
      process.env['SKUA_TEST_S3'] ?? (process.env['S3_ENDPOINT'] === undefined ? 'in-process' : 'environment'),
    // Those of that server: tests put others in their place.
    SKUA_TEST_S3_KEY: process.env['AWS_ACCESS_KEY_ID'] ?? '',
    SKUA_TEST_S3_SECRET: process.env['AWS_SECRET_ACCESS_KEY'] ?? '',
  },
  reporters: ['default', new SummaryReporter()],
};

export const TEST_FILES = globSync('test/**/*.test.ts', { cwd: ROOT, exclude: ['**/node_modules'] }).sort();

export const isLong = (file: string): boolean => file.endsWith('.long.test.ts');

export default defineConfig({
  root: ROOT,
  test: { ...tests, projects: inGroups(TEST_FILES.filter((file) => !isLong(file))) },
});
