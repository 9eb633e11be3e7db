import { expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { ANY } from '../../core/streams/api.ts';
import { answerId, checkpointStreamOf } from '../../core/persistent/api.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { CONNECT, drain, engineOver, events, numberOf, readWhole, settings } from './support.ts';

/** A group of the stream `s`, whose ten events are done and checkpointed. */
async function done() {
  const clock = new ManualClock(TEST_NOW_MS);
  const { store } = await openTestStore({ storage: new MemoryStorage(), clock });
  await store.append('s', ANY, events(10));
  const failing = { next: null as string | null };
  const failsAt = (stream: string) => {
    if (failing.next === stream) throw new SkuaError('disk_full', 'No space.');
  };
  const writes: Pick<typeof store, 'append' | 'deleteStream'> = {
    append: async (stream, ...more) => {
      failsAt(stream);
      return store.append(stream, ...more);
    },
    deleteStream: async (stream, ...more) => {
      failsAt(stream);
      return store.deleteStream(stream, ...more);
    },
  };
  const { engine } = engineOver(store, { clock, writes });
  engine.start();
  await engine.create(
    's',
    'g',
    { settings: settings({ maxCheckpointCount: 1, minCheckpointCount: 1 }), from: 'start' },
    'ada',
  );
  const take = async (from = engine) => {
    const consumer = await from.connect('s', 'g', { ...CONNECT, bufferSize: 100 });
    const got = await drain(consumer, clock, ({ event }) => consumer.ack([answerId(event)]));
    return { consumer, numbers: got.map(numberOf) };
  };
  const first = await take();
  expect(first.numbers).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  await clock.advance(1_000);
  return { clock, store, engine, first, take, failing };
}

const CHECKPOINTS = checkpointStreamOf('s', 'g');

test.each([
  ['start', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
  [7, [7, 8, 9]],
  ['end', []],
] as const)(
  'a group that is reset to %s begins there, also after a restart, and its consumers are dropped',
  async (from, numbers) => {
    for (const isRestarted of [false, true]) {
      const { engine, first, take, store } = await done();
      await engine.reset('s', 'g', from, 'ada');
      await expect(first.consumer.next()).rejects.toMatchObject({ code: 'persistent_subscription_dropped' });
      if (isRestarted) await engine.restart();
      expect((await take()).numbers).toEqual(numbers);
      if (from === 'end') {
        await store.append('s', ANY, events(1, 10));
        const { numbers: later } = await take();
        expect(later.length).toBeLessThanOrEqual(1);
      }
      await engine.stop();
    }
  },
);

test('one that is cut short leaves the group where it was, and can be asked for again', async () => {
  const { engine, take, failing } = await done();
  for (const stream of ['$persistentSubscriptionConfig', CHECKPOINTS]) {
    failing.next = stream;
    await expect(engine.reset('s', 'g', 'start', 'ada')).rejects.toMatchObject({ code: 'disk_full' });
    failing.next = null;
    expect((await take()).numbers).toEqual([]);
  }
  await engine.reset('s', 'g', 'start', 'ada');
  expect((await take()).numbers).toHaveLength(10);
  await engine.stop();
});

test('the checkpoints of before are gone', async () => {
  const { engine, store } = await done();
  expect(await readWhole(store, CHECKPOINTS)).not.toEqual([]);
  await engine.reset('s', 'g', 'start', 'ada');
  expect(await readWhole(store, CHECKPOINTS)).toEqual([]);
  await expect(engine.reset('s', 'nobody', 'start', 'ada')).rejects.toMatchObject({
    code: 'persistent_subscription_not_found',
  });
  await engine.stop();
});
