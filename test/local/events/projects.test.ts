import { expect, expectTypeOf, test } from 'vitest';
import { openStore } from '../../../local/embedded/index.ts';
import { defineEvents, type, versions } from '../../../local/events/index.ts';
import { memory, project } from '../../../local/project/index.ts';

const orders = defineEvents(
  {
    OrderPlaced: versions(type<{ pieces: number }>()).next(type<{ pieces: number; currency: string }>(), (data) => ({
      ...data,
      currency: 'EUR',
    })),
    OrderClosed: type<undefined>(),
  },
  { renamed: { 'order-placed': 'OrderPlaced' } },
);

test('a projection of a typed store has handlers that know their data, in the newest form', async () => {
  await using store = await openStore({ memory: true });
  const typed = orders.over(store);
  await store.append('order-1', { type: 'order-placed', data: { pieces: 1 } });
  await typed.append('order-1', [
    { type: 'OrderPlaced', data: { pieces: 2, currency: 'NOK' } },
    { type: 'OrderPlaced', data: { pieces: 4, currency: 'NOK' } },
    { type: 'OrderClosed' },
  ]);
  await store.append('other', { type: 'Other' });
  await store.redact('order-1', { events: [2], reason: 'asked for' });
  const totals = memory(() => ({ EUR: 0, NOK: 0, erased: 0 }) as Record<string, number>);
  const projection = project(typed, {
    name: 'totals',
    store: totals,
    on: {
      OrderPlaced: (state, event) => {
        expectTypeOf(event.data).toEqualTypeOf<{ pieces: number; currency: string }>();
        state[event.data.currency] = (state[event.data.currency] ?? 0) + event.data.pieces;
      },
    },
    onErased: (state) => void state['erased']!++,
  });
  expect(await projection.catchUp()).toMatchObject({ isCaughtUp: true });
  expect(totals.state).toEqual({ EUR: 1, NOK: 2, erased: 1 });
  const wrong = () =>
    project(typed, {
      name: 'wrong',
      store: totals,
      // @ts-expect-error no such type
      on: { OrderPlcaed: () => {} },
    });
  expectTypeOf(wrong).toBeFunction();
});

test('a projection stops at an event that is newer than its program', async () => {
  await using store = await openStore({ memory: true });
  await store.append('order-1', { type: 'OrderPlaced', data: {}, metadata: { $schemaVersion: 3 } });
  const projection = project(orders.over(store), {
    name: 'none',
    store: memory(() => ({})),
    on: { OrderPlaced: () => {} },
  });
  await expect(projection.catchUp()).rejects.toMatchObject({
    code: 'event_unknown',
    data: { stream: 'order-1', version: 0 },
  });
});
