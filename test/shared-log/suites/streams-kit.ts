import { afterAll, afterEach, expect, TestRunner } from 'vitest';
import type { ObjectLogOptions } from '../../../core/shared-log/api.ts';
import { LOG_IN_MEMORY, withoutFeature } from '../../streams/features.ts';
import { elsewhere, type Setup, type SetupOptions } from '../../streams/setup.ts';
import type { MemoryLog } from '../../streams/doubles.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { HookedObjects } from '../setup.ts';
import type { Place } from './place.ts';
import { StoreClock, TickingStore } from './ticking-store.ts';

/** The least that a chunk may have; where tests want smaller ones their events only lie in fewer. */
const CHUNK_BYTES_MIN = 65_536;

/**
 * What comes of them depends on what one instance remembers: which event an id that a stream has twice is the repeat
 * of, and which expired events were looked at.
 */
const ONE_INSTANCE: readonly string[] = [
  'by id are known for a while, in this stream only',
  'costs a page no more than its limit: the page leads on, and what was found out is remembered',
];

interface Bucket {
  readonly objects: Promise<HookedObjects>;
  readonly clock: StoreClock;
  readonly stores: TickingStore[];
}

export interface StreamsOptions {
  readonly seed: number;
}

/** Opens the stores of the suites of the streams, imported afterwards, on objects. */
export function streamsOn(place: Place, { seed }: StreamsOptions): void {
  const buckets = new WeakMap<Setup, Bucket>();
  const open: TickingStore[] = [];
  let seeds = seed;

  const skipped = withoutFeature(LOG_IN_MEMORY, 'It looks into a log in memory, which there is not on objects.');
  elsewhere.setUp = (options: SetupOptions): Setup => {
    const clock = options.from?.clock ?? new ManualClock(1_700_000_000_000);
    const bucket = (options.from && buckets.get(options.from)) ?? {
      objects: place.fresh().then((objects) => new HookedObjects(objects)),
      clock: new StoreClock(clock),
      stores: [],
    };
    const store = new TickingStore({
      objects: bucket.objects,
      clock: bucket.clock,
      seed: seeds++,
      options: optionsOf(options),
      // Where a step may miss, most are made by an instance that knows nothing yet.
      tickChance: (options.misses ?? 0) > 0 ? 0.6 : 0.15,
      isOneInstance: ONE_INSTANCE.includes(TestRunner.getCurrentTest()!.name),
    });
    bucket.stores.push(store);
    open.push(store);
    const setup: Setup = { store: store.store, clock, log: logOf(bucket), index: INSIDE_OF as Setup['index'] };
    buckets.set(setup, bucket);
    return setup;
  };

  afterEach(async () => {
    for (const store of open.splice(0)) await store.close();
  });
  afterAll(async () => {
    elsewhere.setUp = null;
    await place.close();
    expect(TickingStore.ticks).toBeGreaterThan(10);
    expect([...skipped].toSorted()).toEqual(LOG_IN_MEMORY.toSorted());
  });
}

/** Throws at whatever is asked of it. */
const INSIDE_OF: object = new Proxy(
  {},
  {
    get: () => {
      throw new Error(
        `"${TestRunner.getCurrentTest()!.name}" looks into the log in memory: name it among those that do.`,
      );
    },
  },
);

/** What objects have of the log in memory: its end, and a moment before a commit is durable. */
function logOf({ objects, stores }: Bucket): MemoryLog {
  return Object.create(INSIDE_OF, {
    end: { get: () => Math.max(...stores.map(({ store }) => store.end)) },
    beforeAppend: {
      set: (wait: () => Promise<void>) => {
        void objects.then((hooked) => {
          hooked.onCreate = async (key, create) => {
            if (key.startsWith('log/')) await wait();
            return create();
          };
        });
      },
    },
  }) as MemoryLog;
}

function optionsOf({ capacity, misses = 0, options }: SetupOptions): ObjectLogOptions {
  return {
    chunkSizeBytes: Math.max(capacity ?? 0, CHUNK_BYTES_MIN),
    cacheBytes: misses > 0 ? 65_536 : 1_048_576,
    streams: { recentIds: 1_024, ...options },
  };
}
