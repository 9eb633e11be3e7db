import { expect, test } from 'vitest';
import { parkedStreamOf } from '../../../core/persistent/api.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { ANY } from '../../../core/streams/api.ts';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { subscriptionMetrics } from '../../../local/metrics/subscription-metrics.ts';
import { CONNECT, drain, engineOver, events, settings } from '../../persistent/support.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestStore, TEST_NOW_MS } from '../../support/test-store.ts';
import { parseExposition } from './exposition.ts';

test('the age of the oldest parked message is told, and how often parked ones were forgotten, by one read for each message that becomes the oldest', async () => {
  const clock = new ManualClock(TEST_NOW_MS);
  const { store } = await openTestStore({ storage: new MemoryStorage(), clock });
  const parked = parkedStreamOf('s', 'g');
  let reads = 0;
  let isRefused = false;
  const watched = new Proxy(store, {
    get(target, name: keyof typeof store) {
      if (name === 'redactions') return target.redactions;
      if (name !== 'readStream') return (...args: never[]) => (target[name] as (...all: never[]) => unknown)(...args);
      return (...args: Parameters<typeof store.readStream>) => {
        if (args[0] === parked) {
          reads++;
          if (isRefused) return Promise.reject(new SkuaError('too_busy', 'Chosen by the test.'));
        }
        return store.readStream(...args);
      };
    },
  });
  const { engine } = engineOver(watched, { clock });
  const metrics = createMetrics(clock);
  metrics.collect(subscriptionMetrics(() => engine.figures(), clock));
  const told = async () => {
    const { values } = parseExposition((await metrics.render(null)).body);
    return ['parked_messages', 'oldest_parked_message_seconds', 'parked_message_truncations_total'].map((name) =>
      values.get(`eventstore_persistent_sub_${name}{event_stream_id="s",group_name="g"}`),
    );
  };
  await store.append('s', ANY, events(3));
  engine.start();
  await engine.create('s', 'g', { settings: settings({ messageTimeoutMs: 0 }), from: 'start' }, 'ada');
  expect(await told()).toEqual([0, 0, 0]);
  // One is parked now, and two when half a minute has passed.
  const consumer = await engine.connect('s', 'g', CONNECT);
  const later: string[] = [];
  await drain(consumer, clock, ({ event }) => {
    if (event.number === 0) consumer.nack([event.id], 'Park', '');
    else later.push(event.id);
  });
  await clock.advance(30_000);
  consumer.nack(later, 'Park', '');
  await clock.advance(10_000);
  expect(await told()).toEqual([3, 40, 0]);
  await clock.advance(5_000);
  expect(await told()).toEqual([3, 45, 0]);
  expect(reads).toBe(1);
  await engine.truncateParked('s', 'g', 1);
  isRefused = true;
  // What can't be read is left out, and keeps nothing else from being told.
  expect(await told()).toEqual([2, undefined, 1]);
  isRefused = false;
  expect(await told()).toEqual([2, 15, 1]);
  await engine.truncateParked('s', 'g', null);
  expect(await told()).toEqual([0, 0, 2]);
  await engine.stop();
});
