import { test } from 'vitest';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { FaultyObjects } from '../../support/faulty-objects.ts';
import { type Crashing, crashWhileDelivering } from '../../webhook/ingest/deduplication-crash-kit.ts';
import { openStoreOf } from './open-on-objects.ts';
import { StoreClock, TickingStore } from './ticking-store.ts';

const SEEDS = 4;
const OPTIONS = { chunkSizeBytes: 65_536, cacheBytes: 1_048_576, streams: { recentIds: 1_024 } };

/**
 * A function that dies at one of its requests, whose effect may or may not have come about, and another one that goes
 * on.
 */
function onObjects(shared: MemoryObjects, seed: number, isFirst: boolean): Crashing {
  const objects = new FaultyObjects(shared, { seed });
  return {
    open: async (storeSeed, clock) => {
      const store = new TickingStore({
        objects: Promise.resolve(objects),
        clock: new StoreClock(clock),
        seed: storeSeed,
        options: OPTIONS,
        tickChance: isFirst ? 0 : 0.2,
      });
      await store.opened();
      return openStoreOf(store);
    },
    crashSoon: (random) => objects.crashAfter(random.int(1, 80)),
    get isCrashed() {
      return objects.isCrashed;
    },
    afterwards: () => [onObjects(shared, seed + 50, false)],
  };
}

test.each(Array.from({ length: SEEDS }, (_, i) => i + 1))(
  'a crash at any request loses no event that was confirmed and writes none twice, seed %i',
  async (seed) => {
    await crashWhileDelivering(seed, onObjects(new MemoryObjects(), seed, true));
  },
);
