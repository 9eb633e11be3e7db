import { describe, it } from 'vitest';
import type { ObjectInstance } from '../../core/shared-log/api.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { layer, performWrite } from '../../core/streams/layer/layer.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { agreesWithModel } from '../support/model-run.ts';
import type { Subject } from '../support/model-run.ts';
import { bySize } from '../support/run-size.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { compact } from './compact.ts';
import { SMALL, worldOf } from './setup.ts';

/** On a bucket each command goes to another instance, and a tick comes between them now and then. */

/** Waits end at once, and the time is the test's. */
class EagerClock extends ManualClock {
  override sleep(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

function onBucket(instances: number): Subject {
  const clock = new EagerClock(TEST_NOW_MS, 'microtask');
  const objects = new MemoryObjects();
  let seed = 10;
  const world = () => worldOf(objects, { clock, seed: seed++ });
  const open = async () => {
    const opened: ObjectInstance[] = [];
    for (let i = 0; i < instances; i++) opened.push(await openObjectStore(world(), SMALL));
    let turn = 0;
    const next = () => opened[turn++ % instances]!.store;
    // An instance that has read nothing since does not know of the others' writes.
    const ends = {
      get end() {
        return Math.max(...opened.map((instance) => instance.store.end));
      },
      redactions: opened[0]!.store.redactions,
    };
    const store = layer(ends, {
      write: (write) => performWrite(next(), write),
      read: (call) => call(next()),
      follow: (call) => call(next()),
      wait: (call) => call(next()),
    });
    return {
      store,
      close: async () => {
        for (const instance of opened) await instance.close();
      },
    };
  };
  const after = async (i: number) => {
    if (i % 4 === 3) await compact(world(), { commitsMax: 1 + (i % 7), bloomFilters: i % 8 === 3 });
  };
  return { clock, open, isOnObjects: true, after };
}

describe('the log on object storage and the model agree', () => {
  it.each([
    [1, bySize(10, 20, 200), 201],
    [3, bySize(25, 60, 500), 202],
  ])('with %i instances', (instances, runs, seed) => agreesWithModel({ runs, seed }, () => onBucket(instances)));
});
