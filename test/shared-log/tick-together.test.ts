import { expect, test } from 'vitest';
import { isSkuaError } from '../../core/base/errors.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { readRawLog } from '../scavenge/raw-log.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { readWholeStream } from '../support/oracle.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { expectNamedFiles, expectScavenged, OPTIONS, scavengeable } from './scavenge-kit.ts';
import { eventsOf, exportDirectory, manifestOf, runTick, uuid, worldOf } from './tick-kit.ts';

const TICKS = 4;
const APPENDS = 25;
const FAULTS = { before: 0.01, after: 0.01, throttle: 0.01, delay: 0.4 };
/** What a tick may meet on a network that fails; everything else is a defect. */
const EXPECTED = ['storage_unreachable', 'storage_throttled', 'outcome_unknown'] as const;

test.each([1, 2, 3, 4, 5, 6])(
  'two ticks at once, beside a writer and a reader, on a network that fails (%i)',
  async (seed) => {
    const clock = new AutoClock();
    const random = new Random(seed);
    const { base: objects, scavengeId, universe } = await scavengeable(clock);
    let isOver = false;

    const ticks = async (name: number): Promise<void> => {
      const faulty = new FaultyObjects(objects, { seed: 10 * seed + name, clock, chances: FAULTS, delayMsMax: 2_000 });
      for (let i = 0; i < TICKS; i++) {
        await runTick(worldOf(faulty, clock, 100 * seed + 10 * name + i), {
          settings: { ownBytesMax: random.pick([1, 100_000, 10_000_000]) },
        }).catch((error: unknown) => {
          if (!EXPECTED.some((code) => isSkuaError(error, code))) throw error;
        });
        if (random.chance(0.3)) clock.advance(2_400_000);
      }
    };

    const acknowledged: string[] = [];
    const write = async (): Promise<void> => {
      const slow = new FaultyObjects(objects, { seed, clock, chances: { delay: 0.3 }, delayMsMax: 500 });
      const writer = await openObjectStore(worldOf(slow, clock, seed + 50), OPTIONS);
      const ids = new SeededIds(seed + 60);
      for (let i = 0; i < APPENDS; i++) {
        const events = eventsOf(ids, 1, 3_000);
        await writer.store.append('live', ANY, events);
        acknowledged.push(events[0]!.id);
      }
      await writer.close();
    };

    const read = async (): Promise<void> => {
      const reader = await openObjectStore(worldOf(objects, clock, seed + 70), OPTIONS);
      while (!isOver) {
        const known = [...acknowledged];
        const events = await readWholeStream(reader.store, 'live', 'forward', 7);
        const seen = 'error' in events ? [] : events.map(({ id }) => id);
        expect(seen.slice(0, known.length)).toEqual(known);
        await clock.yield();
      }
      await reader.close();
    };

    const reading = read();
    try {
      await Promise.all([ticks(1), ticks(2), write()]);
    } finally {
      isOver = true;
    }
    await reading;
    await expectNamedFiles(objects);
    for (const record of await readRawLog(await exportDirectory(objects)))
      if (!universe.has(record.position)) universe.set(record.position, record);
    await expectScavenged(objects, clock, scavengeId, universe, 5_000 + seed);
    const fresh = await openObjectStore(worldOf(objects, clock, 6_000 + seed), OPTIONS);
    const events = await readWholeStream(fresh.store, 'live', 'forward', 100);
    expect('error' in events ? events : events.map(({ id }) => id)).toEqual(acknowledged);
    await fresh.close();
  },
);

test('a scavenge point of another one comes first while the tail grows: what a tick puts in force is whole', async () => {
  const clock = new AutoClock();
  const { base: objects } = await scavengeable(clock, true);
  const writer = await openObjectStore(worldOf(objects, clock, 50), OPTIONS);
  const ids = new SeededIds(60);
  const live: string[] = [];
  let isGrown = false;
  const grow = async (): Promise<void> => {
    await writer.store.append('$scavengePoints', ANY, [
      { id: uuid(ids), type: '$scavengePoint', isJson: true, data: encodeText('{}'), metadata: new Uint8Array(0) },
    ]);
    for (let i = 0; i < APPENDS; i++) {
      const events = eventsOf(ids, 1, 3_000);
      await writer.store.append('live', ANY, events);
      live.push(events[0]!.id);
    }
    isGrown = true;
  };
  // The run has ended long before the tail is read.
  const slow = new Proxy(objects, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]): Promise<unknown> => {
        if (name === 'create' && !isGrown) await grow();
        if (name === 'get' && isGrown) for (let i = 0; i < 50; i++) await clock.yield();
        return Reflect.apply(value, target, args) as unknown;
      };
    },
  });
  for (let i = 0; i < 3; i++) {
    await runTick(worldOf(slow, clock, 70 + i), { settings: { compactCommitsMin: 1 } });
    await manifestOf(objects);
    const reader = await openObjectStore(worldOf(objects, clock, 80 + i), OPTIONS);
    const events = await readWholeStream(reader.store, 'live', 'forward', 7);
    expect('error' in events ? events : events.map(({ id }) => id)).toEqual(live);
    await reader.close();
  }
  await writer.close();
});
