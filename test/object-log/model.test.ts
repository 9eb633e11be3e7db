import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ObjectInstance } from '../../core/object-log/api.ts';
import { openObjectStore } from '../../core/object-log/instance/instance.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { commands } from '../support/commands.ts';
import type { Command } from '../support/commands.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ModelStore } from '../support/model-store.ts';
import { Player } from '../support/player.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { bySize } from '../support/run-size.ts';
import { compact } from './compact.ts';
import { SMALL, worldOf } from './setup.ts';

/** Random commands on a naive model and on a bucket: each command goes to another instance, and a tick comes between them now and then. */

/** Waits end at once, and the time is the test's. */
class EagerClock extends ManualClock {
  override sleep(): Promise<void> { return new Promise((resolve) => { setImmediate(resolve); }); }
}

async function expectSame(script: readonly Command[], instances: number): Promise<void> {
  const clock = new EagerClock(TEST_NOW_MS, 'microtask');
  const objects = new MemoryObjects();
  let seed = 10;
  const world = () => worldOf(objects, { clock, seed: seed++ });
  const open = async () => {
    const opened: ObjectInstance[] = [];
    for (let i = 0; i < instances; i++) opened.push(await openObjectStore(world(), SMALL));
    let turn = 0;
    const store = new Proxy({} as EventStore, {
      get: (_, name) => {
        // An instance that has read nothing since does not know of the others' writes.
        if (name === 'end') return Math.max(...opened.map((instance) => instance.store.end));
        const next = opened[turn++ % instances]!.store;
        const value = next[name as keyof EventStore] as unknown;
        return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(next) : value;
      },
    });
    return { store, close: async () => { for (const instance of opened) await instance.close(); } };
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
    if (i % 4 === 3) await compact(world(), { commitsMax: 1 + (i % 7), bloomFilters: i % 8 === 3 });
  }
  expect(await real.everything()).toBe(await modelled.everything());
  await real.stop();
}

/** Of an id that a stream has twice, since its writers expected versions, either event is the one that is repeated: how far back is known differs. */
function repeatOf(answer: string): string {
  return `${answer}`.includes('"isRepeat":true') ? 'repeat' : answer;
}

describe('the log on object storage and the model agree', () => {
  it.each([[1, bySize(10, 20, 200), 201], [3, bySize(25, 60, 500), 202]])('with %i instances', (instances, runs, seed) => (
    fc.assert(fc.asyncProperty(commands, (script) => expectSame(script, instances)), { seed, numRuns: runs, endOnFailure: false })));
});
