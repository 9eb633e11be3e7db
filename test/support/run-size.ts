import { randomInt } from 'node:crypto';

/**
 * How much of the tests this run is: `npm test` is short, `npm run test:long` and with it every landing takes fixed
 * samples, and `npm run test:all` takes every crash point and round, and seeds that nobody has tried before.
 */
export type RunSize = 'short' | 'long' | 'all';

const SIZE = (process.env['SKUA_TEST_SIZE'] ?? 'short') as RunSize;

/** Whether this is `npm run test:long` or `npm run test:all`, which run what takes long. */
export const IS_LONG_RUN = SIZE !== 'short';

/**
 * Whether tests run that take the same at every size: a landing, which has had them in `npm test`, has nothing to gain
 * from them.
 */
export const RUNS_FIXED = SIZE !== 'long';

/** What the size of this run takes. Who names no third takes in `npm run test:all` what the long run takes. */
export function bySize<T>(short: T, long: T, all: T = long): T {
  return { short, long, all }[SIZE];
}

/**
 * Where the seeds of `npm run test:all` begin: it prints this number, and finds the same seeds again where
 * `SKUA_TEST_SEED` names it. 0 in the other runs, whose seeds are fixed.
 */
export const FIRST_SEED = Number(process.env['SKUA_TEST_SEED'] ?? 0);

/** A first seed that no run is likely to have had. */
export function freshSeed(): number {
  return randomInt(1_000, 1_000_000) * 1_000;
}

/** Seeds: of a fixed sample those from `from`, and in `npm run test:all` as many behind its first seed. */
export function seedsFrom(from: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => FIRST_SEED + from + i);
}
