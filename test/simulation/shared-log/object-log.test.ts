import { describe, expect, test } from 'vitest';
import { simulate, type SimOptions, type SimResult } from './simulate.ts';
import { bySize, IS_LONG_RUN, seedsFrom } from '../../support/run-size.ts';

/** A short run of the simulation; `node test/simulation/long.ts object-log` is the long one. */

const SEEDS = bySize(8, 40, 1_000);
/** What goes wrong is found within these. */
const SEEDS_WRONG = 70;

async function run(seeds: readonly number[]): Promise<SimResult[]> {
  const results: SimResult[] = [];
  for (const seed of seeds) results.push(await simulate(seed));
  return results;
}

describe('writers, readers and ticks on one bucket', () => {
  test('have one log, whatever happens, and everything that may happen does', async () => {
    const results = await run(seedsFrom(1, SEEDS));
    expect(results.flatMap(({ problems }) => problems)).toEqual([]);
    const sum = (name: string) => results.reduce((total, { counts }) => total + counts[name]!, 0);
    expect(sum('commits')).toBeGreaterThan(20 * SEEDS);
    expect(sum('compactions')).toBeGreaterThan(4 * SEEDS);
    for (const name of ['acknowledged', 'refused', 'reads', 'queries', 'removed', 'freezes', 'crashes'])
      expect(sum(name), name).toBeGreaterThan(SEEDS);
    // A few seeds do not meet what is rare.
    if (IS_LONG_RUN)
      for (const name of ['ghosts', 'unknown', 'repeats', 'lateTakeovers']) expect(sum(name), name).toBeGreaterThan(0);
  });

  test('the same seed gives the same log, another one another', async () => {
    const [first, again, other] = [await simulate(5), await simulate(5), await simulate(6)];
    expect(again).toEqual(first);
    expect(other.hash).not.toBe(first.hash);
  });
});

describe('the judge sees what goes wrong', () => {
  test.each<[string, SimOptions, RegExp]>([
    [
      'replies count however old the knowledge behind them is',
      { withoutFreshness: true },
      /acknowledged and is not in the log|saw \d+ events when/,
    ],
    [
      'objects go as soon as a manifest drops them',
      { withoutRemovalAge: true },
      /acknowledged and is not in the log|saw \d+ events when/,
    ],
    [
      'a writer takes any commit at its number for its own',
      { withoutNonce: true },
      /acknowledged and is not in the log/,
    ],
    ['reads do not ask for what others have committed', { withoutRefresh: true }, /saw \d+ events when/],
  ])('when %s', async (_, options, expected) => {
    for (let seed = 1; seed <= SEEDS_WRONG; seed++) {
      const { problems } = await simulate(seed, options);
      if (problems.some((problem) => expected.test(problem))) return;
    }
    expect.fail('Nothing was found.');
  });
});
