import { describe, expect, test } from 'vitest';
import { simulate } from './auto-scavenge/simulate.ts';
import type { SimOptions, SimResult } from './auto-scavenge/simulate.ts';
import { IS_LONG_RUN, bySize, seedsFrom } from '../support/run-size.ts';

/** A short run of the simulation; `node test/simulation/long.ts auto-scavenge` is the long one. */

const SEEDS = bySize(15, 80, 1_000);
/** What goes wrong is found within these. */
const SEEDS_WRONG = 250;

async function run(seeds: readonly number[]): Promise<SimResult[]> {
  const results: SimResult[] = [];
  for (const seed of seeds) results.push(await simulate(seed));
  return results;
}

const problemsOf = (results: readonly SimResult[]) => results.flatMap(({ problems }) => problems);

describe('the simulated cluster', () => {
  test('keeps all rules whatever happens, and everything that may happen does', async () => {
    const results = await run(seedsFrom(1, SEEDS));
    expect(problemsOf(results)).toEqual([]);
    const sum = (name: string) => results.reduce((total, { counts }) => total + counts[name]!, 0);
    expect(sum('cycles')).toBeGreaterThan(2 * SEEDS);
    for (const name of ['errored', 'pauses', 'resumes', 'changes', 'restarts'])
      expect(sum(name), name).toBeGreaterThan(SEEDS / 10);
  });

  test('the same seed gives the same trace, another one another', async () => {
    const options = { keepTrace: true };
    const [first, again, other] = [await simulate(5, options), await simulate(5, options), await simulate(6, options)];
    expect(again).toEqual(first);
    expect(first.trace.length).toBeGreaterThan(50);
    expect(other.hash).not.toBe(first.hash);
  });
});

if (IS_LONG_RUN)
  describe('the judge sees what goes wrong', () => {
    test.each<[string, SimOptions, number, string]>([
      ['nodes carry out late orders', { withoutOrders: true }, 1, 'is being scavenged for the same cycle'],
      // These are rarer: the seeds begin shortly before one in which it happens.
      ['runs go on that nobody asks for', { withoutLease: true }, 300, 'is being scavenged for the same cycle'],
      ['a new leader carries out what its predecessor ordered', { withoutRefusal: true }, 1, 'the leader'],
    ])('when %s', async (_, options, from, expected) => {
      for (let seed = from; seed < from + SEEDS_WRONG; seed++) {
        const { problems } = await simulate(seed, options);
        if (problems.some((problem) => problem.includes(expected))) return;
      }
      expect.fail('Nothing was found.');
    });
  });
