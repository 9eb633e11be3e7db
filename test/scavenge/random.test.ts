import { describe, expect, it } from 'vitest';
import { newTally, playHistory } from './random-run.ts';
import { IS_LONG_RUN, bySize, seedsFrom } from '../support/run-size.ts';

const SEEDS = bySize(2, 10, 40);

describe('random histories against a naive model', () => {
  it('leave exactly what must stay, whatever stops them, and readers see nothing else', async () => {
    const tally = newTally();
    for (const seed of seedsFrom(1, SEEDS)) expect(await playHistory({ seed }, tally)).toEqual([]);
    expect(tally.runs).toBeGreaterThanOrEqual(SEEDS * 2);
    // Three histories do not meet everything.
    if (IS_LONG_RUN) for (const [what, count] of Object.entries(tally)) expect(count, what).toBeGreaterThan(0);
  });

  it('leave exactly what must stay where a clock is set back by hours: each event goes by its own time', async () => {
    const tally = newTally();
    for (const seed of seedsFrom(701, bySize(1, 4, 20)))
      expect(await playHistory({ seed, stepsBack: true }, tally)).toEqual([]);
    expect(tally.removed).toBeGreaterThan(0);
  });
});
