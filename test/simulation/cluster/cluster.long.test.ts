import { describe, expect, test } from 'vitest';
import { bySize, seedsFrom } from '../../support/run-size.ts';
import { simulateWithout } from '../without.ts';
import { FAULTS } from './faults.ts';
import { simulate, type SimResult } from './simulate.ts';

/** A short run of the simulation of members; `node test/simulation/long.ts cluster` is the long one. */

const SEEDS = bySize(1, 12, 300);
/** Where to look for it: shortly before a seed that finds it, where the first ones don't. */
const FROM: Readonly<Record<string, number>> = {
  'no-comparison-at-opening': 82,
  'no-patience': 184,
  'no-age-at-leader': 900,
  'patience-by-monotonic-clock': 58,
};

const done = new Map<number, Promise<SimResult>>();

/** Once for each seed: a simulation takes a second. */
function simulated(seed: number): Promise<SimResult> {
  const result = done.get(seed) ?? simulate(seed);
  done.set(seed, result);
  return result;
}

describe('members of a cluster over one bucket', () => {
  test('have one log and serve it, whatever happens, and everything that may happen does', async () => {
    const results: SimResult[] = [];
    // From here on the first few have all that may happen.
    for (const seed of seedsFrom(17, SEEDS)) results.push(await simulated(seed));
    const bad = results.find(({ problems }) => problems.length > 0);
    expect(bad?.problems ?? [], bad?.history.slice(-60).join('\n')).toEqual([]);
    const sum = (name: string) => results.reduce((total, { counts }) => total + counts[name]!, 0);
    expect(sum('commits')).toBeGreaterThan(40 * SEEDS);
    for (const name of [
      'acknowledged',
      'refused',
      'reads',
      'messages',
      'forwarded',
      'epochs',
      'holds',
      'crashes',
      'powerLosses',
      'openings',
      'compactions',
      'pushed',
    ])
      expect(sum(name), name).toBeGreaterThan(SEEDS);
    for (const name of [
      'unknown',
      'repeats',
      'expired',
      'hungUp',
      'fenced',
      'anew',
      'late',
      'freezes',
      'cuts',
      'fullDisks',
      'failedSyncs',
      'restored',
      'emptied',
      'scavenges',
      'scavenged',
      'sharedScavenges',
    ])
      expect(sum(name), name).toBeGreaterThan(0);
  });

  test('show nothing of what is redacted, wherever its mark came by, and scavenge it at whatever time', async () => {
    const sums = { redacted: 0, blackened: 0, powerLosses: 0, sharedScavenges: 0, restored: 0, pushed: 0 };
    for (const seed of seedsFrom(3_006, bySize(1, 6, 100))) {
      const { problems, counts, history } = await simulate(seed, 'redacting');
      expect(problems, history.slice(-60).join('\n')).toEqual([]);
      for (const name of Object.keys(sums) as (keyof typeof sums)[]) sums[name] += counts[name]!;
    }
    for (const [name, sum] of Object.entries(sums)) expect(sum, name).toBeGreaterThan(0);
  });

  test('the same seed gives the same log, another one another', async () => {
    const [first, again, other] = [await simulated(4), await simulate(4), await simulated(5)];
    expect(again).toEqual(first);
    expect(other.hash).not.toBe(first.hash);
  });
});

describe('the judge sees what goes wrong', () => {
  // Each in a process of its own, which reads the sources without the rule.
  test.each(Object.keys(FAULTS))('without the rule: %s', async (rule) => {
    const ended = await simulateWithout(rule, 'cluster', FROM[rule] ?? 1);
    expect(ended.said).toMatch(/^seed \d+, at [\d.]+ ms: /m);
    expect(ended.code, ended.said).toBe(1);
  });
});
