import { test } from 'vitest';
import { openOn, OUTCOMES } from '../../support/crash-run.ts';
import { FaultyStorage } from '../../support/faulty-storage.ts';
import { type Crashing, crashWhileDelivering } from './deduplication-crash-kit.ts';
import { bySize, seedsFrom } from '../../support/run-size.ts';

const SEEDS = seedsFrom(1, bySize(5, 12, 100));

function onDisk(storage: FaultyStorage): Crashing {
  return {
    open: (seed, clock) => openOn(storage, seed, clock),
    crashSoon: (random) => {
      storage.crashAt(storage.operations + random.int(1, 160));
    },
    get isCrashed() {
      return storage.isCrashed;
    },
    afterwards: () => OUTCOMES.map(([mode, outcome]) => onDisk(storage.restart(mode, outcome))),
  };
}

test.each(SEEDS)('a crash anywhere loses no event that was confirmed and writes none twice, seed %i', async (seed) => {
  await crashWhileDelivering(seed, onDisk(new FaultyStorage({ seed, reads: 'async' })));
});
