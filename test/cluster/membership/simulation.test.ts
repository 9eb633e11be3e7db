import { expect, test } from 'vitest';
import { bySize, seedsFrom } from '../../support/run-size.ts';
import { simulate } from './simulate.ts';

const SEEDS = seedsFrom(1, bySize(3, 15, 400));
const ROUNDS = bySize(2, 4);

test(
  'over lost and late messages, cuts, pauses, kills and clocks that differ there is a leader when a majority is in touch, and it stays',
  { timeout: 1_800_000 },
  async () => {
    const all = { epochs: 0, kills: 0, pauses: 0, cuts: 0, resigns: 0, slowestLeaderMs: 0 };
    for (const seed of SEEDS) {
      const report = await simulate(seed, ROUNDS).catch((error: unknown) => {
        throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
      });
      for (const name of ['epochs', 'kills', 'pauses', 'cuts', 'resigns'] as const) all[name] += report[name];
      all.slowestLeaderMs = Math.max(all.slowestLeaderMs, report.slowestLeaderMs);
    }
    // What it found nothing in was there.
    for (const name of ['epochs', 'kills', 'pauses', 'cuts', 'resigns'] as const)
      expect(all[name], name).toBeGreaterThan(0);
  },
);
