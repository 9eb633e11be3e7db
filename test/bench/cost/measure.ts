import { MemoryObjects } from '../../support/memory-objects.ts';
import type { ObjectCounts } from '../../support/counting-objects.ts';
import { CountingObjects } from '../../support/counting-objects.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { createScheduler } from '../../../core/shared-log/scheduler/scheduler.ts';
import { createSchedule } from '../../../infra/cron-schedule.ts';
import { startScavenge } from '../../../core/shared-log/control/control.ts';
import { ANY } from '../../../core/streams/api.ts';
import { events, openCounted, tickOnce, worldOver } from '../object-stores.ts';
import type { CountedInstance } from '../object-stores.ts';
import { requestsOf } from './model.ts';
import type { Measured } from './model.ts';

/** Data of the events that are counted with. */
const EVENT_BYTES = 1_000;
const CHUNK_BYTES = 16_777_216;
const TICK_COMMITS = 200;
const APPENDS = 50;
/** What the first writes to a stream have to read is not counted with the later ones. */
const WARM_UPS = 3;
const WEBHOOKS = 20;
/** Ticks that a scavenge may take here. */
const TICKS_MAX = 50;

/** Counts the calls of each kind of work on a store that has been used for a while. */
export async function measure(): Promise<Measured> {
  const objects = new MemoryObjects();
  await fill(objects);
  const instance = await openCounted(objects);
  const begin = instance.store.end;
  for (let i = 0; i < WARM_UPS; i++) await instance.store.append('known', ANY, events(1, EVENT_BYTES));
  const recordBytes = (instance.store.end - begin) / WARM_UPS;
  const append = requestsOf(
    await counts(instance, async () => {
      for (let i = 0; i < APPENDS; i++) await instance.store.append('known', ANY, events(1, EVENT_BYTES));
    }),
    APPENDS,
  );
  const read = requestsOf(await counts(instance, () => instance.store.readEvent('known', 'last')));
  const webhook = requestsOf(
    await counts(instance, async () => {
      for (let i = 0; i < WEBHOOKS; i++) {
        // As core/webhook/ingest/delivery-notes.ts writes them.
        await instance.store.appendToStreams([
          { stream: 'known', expectedVersion: ANY, events: events(1, EVENT_BYTES) },
          { stream: '$webhook-shop-deliveries', expectedVersion: i - 1, events: events(1, 120) },
        ]);
      }
    }),
    WEBHOOKS,
  );
  const appendUnknown = await unknown(objects);
  await tickOnce(objects);
  const idleTick = requestsOf(await idleTickCounts(objects));
  for (let i = 0; i < TICK_COMMITS; i++) await instance.store.append('known', ANY, events(1, EVENT_BYTES));
  const busyTick = requestsOf(await tickCounts(objects));
  const { chunk, chunks } = await scavenge(objects, instance);
  await instance.close();
  return {
    eventBytes: EVENT_BYTES,
    recordBytes,
    append,
    appendUnknown,
    read,
    webhook,
    idleTick,
    busyTick,
    tickCommits: TICK_COMMITS,
    scavengedChunk: requestsOf(chunk, chunks),
    chunkBytes: CHUNK_BYTES,
  };
}

/** Five chunks of a stream that is then deleted and one that stays. */
async function fill(objects: MemoryObjects): Promise<void> {
  const { store, close } = await openedFor(objects);
  const batch = 1_000;
  for (let written = 0; written < 5 * CHUNK_BYTES; written += 2 * batch * EVENT_BYTES) {
    await store.append('doomed', ANY, events(batch, EVENT_BYTES));
    await store.append('kept', ANY, events(batch, EVENT_BYTES));
  }
  await close();
  await tickOnce(objects);
}

async function openedFor(objects: MemoryObjects) {
  const instance = await openCounted(objects, { chunkSizeBytes: CHUNK_BYTES });
  return { store: instance.store, close: () => instance.close() };
}

async function counts({ counting }: CountedInstance, work: () => Promise<unknown>): Promise<ObjectCounts> {
  counting.reset();
  await work();
  return counting.counts();
}

/** An instance that has just been opened, and is warm but for this stream. */
async function unknown(objects: MemoryObjects) {
  const instance = await openCounted(objects);
  await instance.store.append('another', ANY, events(1, EVENT_BYTES));
  const { lastEventNumber } = await (await openCounted(objects)).store.streamInfo('kept');
  const counted = requestsOf(
    await counts(instance, () => instance.store.append('kept', lastEventNumber, events(1, EVENT_BYTES))),
  );
  await instance.close();
  return counted;
}

async function tickCounts(objects: MemoryObjects): Promise<ObjectCounts> {
  const counting = new CountingObjects(objects);
  await tickOnce(counting);
  return counting.counts();
}

/** With the schedule that every tick of a function asks, in a process that has done one before. */
async function idleTickCounts(objects: MemoryObjects): Promise<ObjectCounts> {
  const counting = new CountingObjects(objects);
  const world = worldOver(counting);
  const autoScavenge = createScheduler({
    world,
    schedule: createSchedule(),
    self: { address: 'functions', port: 1 },
    config: { isOff: null, zone: 'UTC', nodeLostAfterMs: 1 },
    open: () => openObjectStore(world),
  });
  await tickOnce(counting, {}, autoScavenge);
  counting.reset();
  const { outcome } = await tickOnce(counting, {}, autoScavenge);
  if (outcome !== 'idle') throw new Error(`The tick was to have nothing to do, and ended as ${outcome}.`);
  return counting.counts();
}

/** What scavenging adds to ticks, by the number of chunks that are rewritten. */
async function scavenge(
  objects: MemoryObjects,
  instance: CountedInstance,
): Promise<{ chunk: ObjectCounts; chunks: number }> {
  await instance.store.deleteStream('doomed', ANY, 'hard');
  await startScavenge(worldOver(objects));
  const counting = new CountingObjects(objects);
  for (let ticks = 0; ticks < TICKS_MAX; ticks++) {
    const { scavenge: run } = await tickOnce(counting);
    if (run !== null && run.state === 'ended') {
      if (run.result !== 'Success') throw new Error(`The scavenge ended as ${run.result}: ${run.error}`);
      return { chunk: counting.counts(), chunks: 5 };
    }
  }
  throw new Error('The scavenge did not end.');
}
