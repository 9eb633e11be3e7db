import { expect, test } from 'vitest';
import { inLongRun } from '../../support/long-run.ts';
import { simulate } from './simulate.ts';

const SEEDS = inLongRun(400, 3);
const ROUNDS = inLongRun(4, 2);

test('over lost and late messages, cuts, pauses, kills and clocks that differ there is a leader when a majority is in touch, and it stays', { timeout: 1_800_000 }, async () => {
  const all = { epochs: 0, kills: 0, pauses: 0, cuts: 0, resigns: 0, slowestLeaderMs: 0 };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const report = await simulate(seed, ROUNDS).catch((error: unknown) => { throw new Error(`seed ${seed}: ${String(error)}`, { cause: error }); });
    for (const name of ['epochs', 'kills', 'pauses', 'cuts', 'resigns'] as const) all[name] += report[name];
    all.slowestLeaderMs = Math.max(all.slowestLeaderMs, report.slowestLeaderMs);
  }
  // What it found nothing in was there.
  for (const name of ['epochs', 'kills', 'pauses', 'cuts', 'resigns'] as const) expect(all[name], name).toBeGreaterThan(0);
});
