import { afterAll, expect } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { ModelStore } from '../support/model-store.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { LOG_IN_MEMORY, withoutFeature } from './features.ts';
import { elsewhere, type Setup, type SetupOptions } from './setup.ts';

/**
 * The tests' model of a store is held to what stores are held to. What it lacks is named here by feature, with the
 * reason; a name that no test has any more fails.
 */

const LACKS: readonly { readonly why: string; readonly names: readonly string[] }[] = [
  {
    why: 'The model has events, and no log of records, groups and chunks.',
    names: [...LOG_IN_MEMORY, 'ends with the log where that has ended its chunk'],
  },
  {
    why: 'The model is there to be simple: it looks through everything at once, and has no limit of work, of what waits, or of subscriptions.',
    names: [
      'more than may wait',
      'examine a bounded number of records',
      'end where an expression has had much to do',
      'ends when it is aborted, left, or the store closed',
      'costs a page no more than its limit',
      'other work has its turn while a subscription passes over expired events',
    ],
  },
  {
    why: 'Where checkpoints of a filtered subscription stand follows from how a store reads, and the model reads nothing.',
    names: ['to a filtered $all looks at no more than', 'stand where the rule says'],
  },
];
const met = LACKS.map(({ why, names }) => withoutFeature(names, why));

/** What the tests ask of the log: where it ends. A write is there at once, so nothing can be done before. */
function logOf(store: ModelStore): object {
  return {
    get end() {
      return store.end;
    },
    beforeAppend: null,
  };
}

elsewhere.setUp = ({ from, capacity = Infinity, options }: SetupOptions): Setup => {
  const clock = from?.clock ?? new ManualClock(1_700_000_000_000);
  // The model forgets nothing, so a restart is none, and there is nothing to remember after it.
  const store =
    from?.store ??
    Object.assign(new ModelStore(clock, new SeededIds(5), { appendBytesMax: capacity, ...options }), {
      primeRecentIds: async () => {},
    });
  return { store, clock, log: logOf(store as unknown as ModelStore) } as unknown as Setup;
};

afterAll(() => {
  elsewhere.setUp = null;
  for (const [i, { names }] of LACKS.entries()) expect([...met[i]!].toSorted()).toEqual([...names].toSorted());
});

await import('./append-to-streams.test.ts');
await import('./append.test.ts');
await import('./expected-version.test.ts');
await import('./metadata.test.ts');
await import('./read-all.test.ts');
await import('./read-stream.test.ts');
await import('./repeats.test.ts');
await import('./stream-states.test.ts');
await import('./subscriptions.test.ts');
await import('./following.test.ts');
