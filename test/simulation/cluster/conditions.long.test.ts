import { expect, test } from 'vitest';
import { bySize, seedsFrom } from '../../support/run-size.ts';
import { simulate } from './simulate.ts';

test('members of a cluster decide appends on conditions rightly, whoever leads', { timeout: 600_000 }, async () => {
  const sums = { conditional: 0, conditionFailed: 0, repeats: 0, epochs: 0, fenced: 0, powerLosses: 0 };
  for (const seed of seedsFrom(1, bySize(2, 200, 300))) {
    const { problems, counts, history } = await simulate(seed, 'deciding');
    expect(problems, history.slice(-60).join('\n')).toEqual([]);
    for (const name of Object.keys(sums) as (keyof typeof sums)[]) sums[name] += counts[name]!;
  }
  for (const [name, sum] of Object.entries(sums)) expect(sum, name).toBeGreaterThan(0);
});
