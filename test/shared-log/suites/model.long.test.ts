import { afterAll, expect, test } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { agreesWithModel } from '../../support/model-run.ts';
import { bySize } from '../../support/run-size.ts';
import { TEST_NOW_MS } from '../../support/test-store.ts';
import { inMemory, onS3 } from './place.ts';
import type { Place } from './place.ts';
import { StoreClock, TickingStore } from './ticking-store.ts';

/** Small, so that chunks are completed and blocks dropped from the cache. */
const SMALL = { chunkSizeBytes: 65_536, cacheBytes: 131_072, streams: { recentIds: 1_024 } };

const server = onS3();
afterAll(async () => {
  await server.close();
  expect(TickingStore.ticks).toBeGreaterThan(bySize(15, 60, 100));
});

function agrees(place: Place, { runs, seed }: { readonly runs: number; readonly seed: number }): Promise<void> {
  let seeds = 100 * seed;
  return agreesWithModel({ runs, seed }, () => {
    const clock = new ManualClock(TEST_NOW_MS, 'microtask');
    const storeClock = new StoreClock(clock);
    const objects = place.fresh();
    return {
      clock,
      isOnObjects: true,
      open: async () => {
        const store = new TickingStore({ objects, clock: storeClock, seed: seeds++, options: SMALL, tickChance: 0.15 });
        await store.opened();
        return store;
      },
    };
  });
}

test('streams in memory and the model agree, with ticks at random places', () =>
  agrees(inMemory(), { runs: bySize(8, 25, 100), seed: 301 }));
test('streams on a server and the model agree, with ticks at random places', () =>
  agrees(server, { runs: bySize(1, 3, 20), seed: 302 }));
