/**
 * Whether this is `npm run test:long`, which runs again, with all their seeds, rounds and crash points, the files that import this (its
 * configuration finds them), and those named `*.long.test.ts`. `npm test` takes a few of them, spread over all.
 */
export const IS_LONG_RUN = process.env['SKUA_TEST_LONG'] === 'true';

/** All of it in the long run, and else this many. */
export function inLongRun<T>(all: T, else_: T): T {
  return IS_LONG_RUN ? all : else_;
}
