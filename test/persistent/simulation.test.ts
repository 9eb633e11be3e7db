import { expect, test } from 'vitest';
import { bySize, seedsFrom } from '../support/run-size.ts';
import { simulate } from './simulation.ts';

/** A group that is told to begin anew still parks what was in the hands of those who have left. */
const PARKS_BEFORE_IT_ENDS = 790_511_013;

test('every message is answered, parked or sent again as the rules say, whatever consumers and the node do; nothing is left out', async () => {
  const sum = { delivered: 0, parked: 0, crashes: 0, replayed: 0, resets: 0, resetsCutShort: 0 };
  for (const seed of [...seedsFrom(1, bySize(60, 600, 10_000)), PARKS_BEFORE_IT_ENDS]) {
    const figures = await simulate(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
    });
    for (const key of Object.keys(sum) as (keyof typeof sum)[]) sum[key] += figures[key];
  }
  // It has seen what it is about.
  expect(sum.delivered).toBeGreaterThan(2_000);
  expect(Math.min(sum.parked, sum.crashes, sum.replayed, sum.resets, sum.resetsCutShort)).toBeGreaterThan(40);
});
