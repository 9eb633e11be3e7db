import * as v from 'valibot';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { EventStore, RecordedEvent } from '../../../local/event-store/api.ts';
import { defineEvents, type, versions } from '../../../local/events/index.ts';
import type { EventOf, KnownEvent, NewEventOf, RedactedEvent, UnknownEvent } from '../../../local/events/index.ts';

/** What the compiler knows: `npm run types` is what fails here, nothing of this runs. */

const orders = defineEvents({
  OrderPlaced: z.object({ pieces: z.int(), note: z.string().default('') }),
  OrderPaid: type<{ readonly euros: number }>(),
  OrderShipped: v.object({ carrier: v.string() }),
  OrderClosed: type<undefined>(),
});
type OrderEvent = EventOf<typeof orders>;
type NewOrderEvent = NewEventOf<typeof orders>;
declare const below: EventStore;
const store = () => orders.over(below);
const never = <T>(_: () => T): void => {};

describe('what is read', () => {
  test('is a union by type, whose data are known where they were not redacted', () => {
    never((event: OrderEvent = null!) => {
      if (event.type === 'OrderPaid')
        expectTypeOf(event).toEqualTypeOf<
          KnownEvent<'OrderPaid', { readonly euros: number }> | RedactedEvent<'OrderPaid'>
        >();
      if (event.isRedacted) {
        expectTypeOf(event.data).toEqualTypeOf<undefined>();
        return;
      }
      switch (event.type) {
        case 'OrderPlaced':
          expectTypeOf(event.data).toEqualTypeOf<{ pieces: number; note: string }>();
          break;
        case 'OrderPaid':
          expectTypeOf(event.data).toEqualTypeOf<{ readonly euros: number }>();
          break;
        case 'OrderShipped':
          expectTypeOf(event.data).toEqualTypeOf<{ carrier: string }>();
          break;
        case 'OrderClosed':
          expectTypeOf(event.data).toEqualTypeOf<undefined>();
          break;
        default:
          expectTypeOf(event).toBeNever();
      }
    });
    expectTypeOf<OrderEvent>().toExtend<RecordedEvent>();
    expectTypeOf<OrderEvent['metadata']>().toBeUnknown();
  });

  test('comes from every method that reads, of the types that are named', () => {
    never(() => {
      expectTypeOf(store().read('order-1')).toEqualTypeOf<AsyncIterable<OrderEvent>>();
      expectTypeOf(store().readAll()).toEqualTypeOf<AsyncIterable<OrderEvent>>();
      expectTypeOf(store().readAll({ category: 'order' })).toEqualTypeOf<AsyncIterable<OrderEvent>>();
      expectTypeOf(store().subscribe()).toEqualTypeOf<AsyncIterable<OrderEvent>>();
      expectTypeOf(store().subscribe({ stream: 'order-1', after: 3 })).toEqualTypeOf<AsyncIterable<OrderEvent>>();
      type Two = Extract<OrderEvent, { type: 'OrderPaid' | 'OrderClosed' }>;
      expectTypeOf(store().readAll({ types: ['OrderPaid', 'OrderClosed'], limit: 1 })).toEqualTypeOf<
        AsyncIterable<Two>
      >();
      expectTypeOf(store().subscribe({ types: ['OrderPaid', 'OrderClosed'] })).toEqualTypeOf<AsyncIterable<Two>>();
      // @ts-expect-error no such type
      store().readAll({ types: ['OrderPayed'] });
    });
  });

  test('has events of other types apart where they are kept', () => {
    const kept = defineEvents({ OrderPaid: type<{ euros: number }>() }, { unknown: 'keep' });
    never((event: EventOf<typeof kept> = null!) => {
      if (event.type === 'OrderPaid')
        expectTypeOf(event).toEqualTypeOf<KnownEvent<'OrderPaid', { euros: number }> | RedactedEvent<'OrderPaid'>>();
      else {
        expectTypeOf(event).toEqualTypeOf<UnknownEvent>();
        expectTypeOf(event.storedType).toBeString();
      }
      // Where types are named, others don't come.
      expectTypeOf(kept.over(below).readAll({ types: ['OrderPaid'] })).toEqualTypeOf<
        AsyncIterable<Exclude<typeof event, UnknownEvent>>
      >();
    });
  });

  test('is what JSON makes of what a schema gives, or what the schema gives where it is asked again', () => {
    const at = { SessionBegun: z.object({ at: z.coerce.date(), tags: z.array(z.date()).optional() }) };
    const written = defineEvents(at);
    const read = defineEvents(at, { check: 'read' });
    type Data<E> = Extract<EventOf<E>, { isRedacted: false }> extends { data: infer D } ? D : never;
    expectTypeOf<Data<typeof written>>().toEqualTypeOf<{ at: string; tags?: string[] | undefined }>();
    expectTypeOf<Data<typeof read>>().toEqualTypeOf<{ at: Date; tags?: Date[] | undefined }>();
    const bytes = defineEvents({ Scanned: z.instanceof(Uint8Array) });
    expectTypeOf<Data<typeof bytes>>().toEqualTypeOf<Uint8Array<ArrayBuffer>>();
  });

  test('has metadata of their schema', () => {
    const audited = defineEvents({ A: type<string>() }, { metadata: z.object({ by: z.string() }) });
    type Seen = Extract<EventOf<typeof audited>, { isRedacted: false }>;
    expectTypeOf<Seen['metadata']>().toEqualTypeOf<{ by: string }>();
    expectTypeOf<Extract<EventOf<typeof audited>, { isRedacted: true }>['metadata']>().toBeUnknown();
    expectTypeOf<NewEventOf<typeof audited>['metadata']>().toEqualTypeOf<{ by: string }>();
  });
});

describe('what is written', () => {
  test('is a union by type, with what the schema takes; data may be left out where they may be undefined', () => {
    expectTypeOf<{ type: 'OrderPlaced'; data: { pieces: number } }>().toExtend<NewOrderEvent>();
    expectTypeOf<{ type: 'OrderClosed' }>().toExtend<NewOrderEvent>();
    expectTypeOf<{ type: 'OrderPaid' }>().not.toExtend<NewOrderEvent>();
    expectTypeOf<{ type: 'OrderPaid'; data: { euros: string } }>().not.toExtend<NewOrderEvent>();
    expectTypeOf<NewOrderEvent['type']>().toEqualTypeOf<'OrderPlaced' | 'OrderPaid' | 'OrderShipped' | 'OrderClosed'>();
  });

  test('is looked at by every method that writes', () => {
    never(async () => {
      const { version } = await store().append('a', { type: 'OrderClosed' }, { expected: 'none' });
      expectTypeOf(version).toBeNumber();
      await store().append('a', [{ type: 'OrderPaid', data: { euros: 1 }, metadata: { till: 7 }, id: 'x' }]);
      // @ts-expect-error no such type
      await store().append('a', { type: 'OrderPayed', data: { euros: 1 } });
      // @ts-expect-error data of another type
      await store().append('a', { type: 'OrderPaid', data: { pieces: 1 } });
      // @ts-expect-error nothing of the kind
      await store().append('a', { type: 'OrderClosed', dta: 1 });
      await store().append([{ type: 'OrderClosed', tags: ['order:1'], stream: 'a' }], {
        condition: { failIfEventsMatch: { items: [{ types: ['OrderPaid'], tags: ['order:1'] }] } },
      });
      await store().append(
        // @ts-expect-error data of another type
        { type: 'OrderPaid', data: 1 },
        { condition: { failIfEventsMatch: { items: [] } } },
      );
      await store().append(
        // @ts-expect-error a condition that would never fail, since there is no such type
        { type: 'OrderClosed' },
        { condition: { failIfEventsMatch: { items: [{ types: ['OrderPayed'] }] } } },
      );
      await store().appendToStreams([{ stream: 'a', expected: 3, events: [{ type: 'OrderClosed' }] }]);
      // @ts-expect-error data of another type
      await store().appendToStreams([{ stream: 'a', events: [{ type: 'OrderPaid', data: {} }] }]);
    });
  });
});

describe('definitions', () => {
  test('of versions are a chain: each makes what the next one stores', () => {
    const first = versions(type<{ pieces: number }>());
    const second = first.next(z.object({ pieces: z.int(), at: z.coerce.date() }), (data, event) => {
      expectTypeOf(data).toEqualTypeOf<{ pieces: number }>();
      return { ...data, at: event.createdAt.toISOString() };
    });
    const third = second.next(v.object({ count: v.number() }), (data) => {
      expectTypeOf(data).toEqualTypeOf<{ pieces: number; at: string }>();
      return { count: data.pieces };
    });
    const events = defineEvents({ OrderPlaced: third }, { renamed: { Placed: 'OrderPlaced' } });
    expectTypeOf<Extract<EventOf<typeof events>, { isRedacted: false }>['data']>().toEqualTypeOf<{ count: number }>();
    never(() => {
      // @ts-expect-error something is missing
      first.next(type<{ pieces: number; currency: string }>(), (data) => data);
      // @ts-expect-error it is called something else
      defineEvents({ OrderPlaced: third }, { renamed: { Placed: 'OrderPlcaed' } });
      // @ts-expect-error no definition
      defineEvents({ OrderPlaced: { pieces: 'number' } });
    });
  });

  test('that are put together are one', () => {
    const library = { CopyLent: type<{ reader: string }>() };
    const both = defineEvents({ ...library, OrderClosed: type<undefined>() });
    expectTypeOf<EventOf<typeof both>['type']>().toEqualTypeOf<'CopyLent' | 'OrderClosed'>();
  });
});
