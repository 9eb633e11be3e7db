import fc from 'fast-check';
import { expect } from 'vitest';
import { type Command, commands } from '../../support/commands.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ModelStore } from '../../support/model-store.ts';
import { Player } from '../../support/player.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../../support/test-store.ts';
import type { Place } from './place.ts';
import { StoreClock, TickingStore } from './ticking-store.ts';

/** Small, so that chunks are completed and blocks dropped from the cache. */
const SMALL = { chunkSizeBytes: 65_536, cacheBytes: 131_072, streams: { recentIds: 1_024 } };

/** Random commands on a naive model and on objects, with ticks between them: each gives the same result, and so does all that can be read afterwards. */
export function checkModel(place: Place, { runs, seed }: { readonly runs: number; readonly seed: number }): Promise<void> {
  let seeds = seed;
  return fc.assert(fc.asyncProperty(commands, (script) => expectSame(script, place, seeds++)), { seed, numRuns: runs, endOnFailure: false });
}

async function expectSame(script: readonly Command[], place: Place, seed: number): Promise<void> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const storeClock = new StoreClock(clock);
  const objects = place.fresh();
  let opened = 0;
  const open = async (): Promise<TickingStore> => {
    const store = new TickingStore({ objects, clock: storeClock, seed: 100 * seed + opened++, options: SMALL, tickChance: 0.15 });
    await store.opened();
    return store;
  };
  const model = new ModelStore(clock, new SeededIds(3));
  const modelled = new Player(async () => ({ store: model, close: async () => {} }), async () => {}, () => {}, false);
  const real = new Player(open, (ms) => clock.advance(ms), () => {}, false);
  await modelled.start();
  await real.start();
  for (const [i, command] of script.entries()) {
    const said = await modelled.play(command);
    const done = await real.play(command);
    expect(repeatOf(done), `command ${i}: ${JSON.stringify(command)}`).toBe(repeatOf(said));
  }
  expect(await real.everything()).toBe(await modelled.everything());
  await real.stop();
}

/** Of an id that a stream has twice either event is the one that is repeated: how far back is known differs. */
function repeatOf(answer: string): string {
  return `${answer}`.includes('"isRepeat":true') ? 'repeat' : answer;
}
