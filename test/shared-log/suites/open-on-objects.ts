import { afterAll, beforeEach, expect } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { ObjectWorld } from '../../../core/shared-log/api.ts';
import { scavengeStatus } from '../../../core/shared-log/control/control.ts';
import type { ObjectStore } from '../../../core/ports/object-store.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import { layer } from '../../../core/streams/layer/layer.ts';
import type { Store } from '../../../core/store/store.ts';
import { TickedScavenger } from '../../../infra/runtime/scavengers.ts';
import { FakeScavenger } from '../../support/fake-scavenger.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { elsewhere, TEST_NOW_MS } from '../../support/test-store.ts';
import { runTick } from '../tick-kit.ts';
import type { Place } from './place.ts';
import { StoreClock, TickingStore } from './ticking-store.ts';

/** As large as the largest write of the suites wants it. */
const CHUNK_BYTES = 262_144;
const OPTIONS = { chunkSizeBytes: CHUNK_BYTES, cacheBytes: 4_194_304, streams: { recentIds: 1_024 } };
/** Ticks that a scavenge of a test may need. */
const SCAVENGE_TICKS_MAX = 20;

export interface StoresOptions {
  readonly seed: number;
  readonly tickChance?: number;
  /** Names of tests that are to run, with those of their groups before them; the others are skipped. Default: all. */
  readonly only?: (test: string) => boolean;
}

/** Stores that the suites imported afterwards open through `openTestStore` are on objects, one store a storage. */
export function storesOn(place: Place, { seed, tickChance = 0.1, only = () => true }: StoresOptions): void {
  const places = new WeakMap<Storage, Promise<ObjectStore>>();
  const open: TickingStore[] = [];
  let seeds = seed;
  beforeEach(({ task, skip }) => {
    if (!only(task.fullTestName)) skip('It is not about the store, and runs on a node.');
  });
  elsewhere.open = async (options) => {
    const objects = places.get(options.storage) ?? place.fresh();
    places.set(options.storage, objects);
    const clock = new StoreClock(options.clock ?? new ManualClock(TEST_NOW_MS, 'microtask'));
    const store = new TickingStore({
      objects,
      clock,
      seed: seeds++,
      options: OPTIONS,
      tickChance,
      tick: (world, ownBytesMax) => runTick(world, ownBytesMax === undefined ? {} : { settings: { ownBytesMax } }),
    });
    open.push(store);
    await store.opened();
    return openStoreOf(store);
  };
  afterAll(async () => {
    elsewhere.open = null;
    for (const store of open) await store.close();
    await place.close();
    expect(TickingStore.ticks).toBeGreaterThan(10);
  });
}

/** As much of an open store as there is on objects, where most of the work of a node is that of ticks. */
export function openStoreOf(store: TickingStore): Store {
  const notHere = (): never => {
    throw new SkuaError('bad_request', 'There is none of this on objects.');
  };
  return {
    // What a node's store has, and nothing that is for parts of the node itself.
    store: layer(store.store, {}),
    scavenger: scavengerOf(store.world()),
    chunkSizeBytes: CHUNK_BYTES,
    status: notHere,
    chunkMap: notHere,
    mergeIndexes: notHere,
    hold: notHere,
    close: () => store.close(),
  };
}

/**
 * Scavenges by ticks, one after the other, as soon as somebody waits for the end. Dry runs are those of a node, which
 * can be made on the same objects.
 */
function scavengerOf(world: ObjectWorld): Store['scavenger'] {
  const ticked = new TickedScavenger(world, { leftMs: () => 0 });
  const node = new FakeScavenger();
  return Object.assign(ticked, {
    startDryRun: () => node.startDryRun(),
    dryRun: (id: string) => node.dryRun(id),
    explain: (stream: string) => node.explain(stream),
    idle: async (): Promise<void> => {
      for (let ticks = 0; ticks < SCAVENGE_TICKS_MAX; ticks++) {
        await ticked.refresh();
        const status = await scavengeStatus(world);
        if (status === null || status.state === 'ended') return;
        await runTick(world);
      }
      throw new Error('The scavenge does not end.');
    },
  });
}
