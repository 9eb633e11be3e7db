import { CommandHandler } from 'emmett-current';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { SkuaError } from '../../core/base/errors.ts';
import { openStore } from '../../local/embedded/index.ts';
import { getSkuaConsumer, getSkuaEventStore, SkuaEventStoreError } from '../../local/emmett/index.ts';
import type { ProjectedEventStore } from '../../local/emmett/index.ts';
import { defineEvents, type, versions } from '../../local/events/index.ts';
import type { NewEventOf } from '../../local/events/index.ts';

const parcels = defineEvents({
  Weighed: versions(type<{ pounds: number }>()).next(z.object({ grams: z.int() }), ({ pounds }) => ({
    grams: Math.round(pounds * 453.6),
  })),
});
type ParcelEvent = NewEventOf<typeof parcels>;

test('an application of Emmett over a typed store has its events in their newest form, and checked', async () => {
  await using store = await openStore({ memory: true });
  await store.append('parcel-1', { type: 'Weighed', data: { pounds: 2 } });
  const events = getSkuaEventStore(parcels.over(store));
  const handle = CommandHandler<number, ParcelEvent>({
    evolve: (sum, { data }) => sum + data.grams,
    initialState: () => 0,
    mapToStreamId: (id) => `parcel-${id}`,
  });
  const weigh = (grams: number) => handle(events, '1', () => ({ type: 'Weighed', data: { grams } }));
  expect((await weigh(93)).newState).toBe(1_000);
  const refused = await weigh(0.5).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(SkuaEventStoreError);
  expect(refused).toMatchObject({ code: 'event_invalid', errorCode: 400, cause: { data: { index: 0 } } });
  await store.append('parcel-1', { type: 'Opened' });
  expect(await events.readStream('parcel-1').catch((error: unknown) => error)).toMatchObject({
    code: 'event_unknown',
    errorCode: 500,
  });
});

test('what an application throws while it reads stays what it is, whatever its code', async () => {
  await using store = await openStore({ memory: true });
  await store.append('parcel-1', { type: 'Weighed', data: {} });
  const error = new SkuaError('stream_not_found', 'Of another store.', { stream: 'x' });
  const work = getSkuaEventStore(store).aggregateStream('parcel-1', {
    initialState: () => null,
    evolve: () => {
      throw error;
    },
  });
  await expect(work).rejects.toBe(error);
});

test('a consumer refuses events that share a position, since Emmett would take the second for handled', async () => {
  await using store = await openStore({ memory: true });
  await store.append('parcel-1', { type: 'Weighed', data: {} });
  const old: ProjectedEventStore = {
    checkpoint: () => store.checkpoint(),
    async *subscribe(options) {
      for await (const event of store.subscribe(options))
        yield { ...event, position: { commit: event.position.commit, prepare: event.position.commit - 1 } };
    },
  };
  const consumer = getSkuaConsumer(old);
  consumer.reactor({ processorId: 'one', eachMessage: () => {} });
  await expect(consumer.start()).rejects.toMatchObject({ code: 'not_consumable', errorCode: 500 });
});
