import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { EventStore, RecordedEvent } from '../../../local/event-store/api.ts';
import type * as Events from '../../../local/events/index.ts';
import type { StandardSchema } from '../../../local/events/index.ts';

/** A store whose events get types. */
export interface Below {
  readonly store: EventStore;
  redact(stream: string, version: number): Promise<unknown>;
  close(): Promise<unknown>;
}

/** A schema of no library: texts that are not empty, which it makes shorter. */
const trimmed: StandardSchema<string> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) =>
      typeof value === 'string' && value.trim() !== ''
        ? { value: value.trim() }
        : { issues: [{ message: 'is no text' }] },
  },
};

/** Answers later. */
function later<Input, Output>({
  '~standard': { validate },
}: StandardSchema<Input, Output>): StandardSchema<Input, Output> {
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: async (value) => {
        await Promise.resolve();
        return validate(value);
      },
    },
  };
}

/** What `skua/events` promises over any store, for the sources and the packed package alike. */
export function typedEventsTests(
  name: string,
  open: () => Promise<Below>,
  { defineEvents, type, versions }: Pick<typeof Events, 'defineEvents' | 'type' | 'versions'>,
): void {
  describe(`typed events over ${name}`, () => {
    let below: Below;
    let store: EventStore;
    let streams = 0;
    const fresh = (): string => `typed-${++streams}`;
    beforeAll(async () => {
      below = await open();
      store = below.store;
    });
    afterAll(() => below?.close());

    async function all<T>(events: AsyncIterable<T>): Promise<T[]> {
      const found: T[] = [];
      for await (const event of events) found.push(event);
      return found;
    }
    const dataOf = async (stream: string, typed: { read(stream: string): AsyncIterable<RecordedEvent> } = store) =>
      (await all(typed.read(stream))).map((event) => [event.type, event.data]);
    async function failure(work: Promise<unknown>): Promise<Error & { code: string; data: Record<string, unknown> }> {
      return work.then(
        () => {
          throw new Error('it did not fail');
        },
        (error: unknown) => error as never,
      );
    }

    /** What wants the index of types, once that is built. */
    async function onceIndexed<T>(work: () => Promise<T>): Promise<T> {
      for (;;)
        try {
          return await work();
        } catch (error) {
          if ((error as { code?: string }).code !== 'index_building') throw error;
        }
    }

    const orders = defineEvents({
      OrderPlaced: z.object({ pieces: z.int(), note: z.string().trim().default('none') }),
      OrderShipped: v.object({ to: v.object({ lines: v.array(v.pipe(v.string(), v.minLength(1))) }) }),
      OrderNoted: trimmed,
      OrderPaid: type<{ euros: number }>(),
      OrderClosed: type<undefined>(),
    });

    test('writes what schemas of any library have made, and reads it', async () => {
      const stream = fresh();
      const typed = orders.over(store);
      expect(
        await typed.append(
          stream,
          [
            { type: 'OrderPlaced', data: { pieces: 2, note: ' two ' } },
            { type: 'OrderPlaced', data: { pieces: 3 }, metadata: { by: 'kim' } },
            { type: 'OrderShipped', data: { to: { lines: ['Oslo'] } } },
            { type: 'OrderNoted', data: ' late ' },
            { type: 'OrderPaid', data: { euros: 30 } },
          ],
          { expected: 'none' },
        ),
      ).toMatchObject({ version: 4, firstVersion: 0 });
      await typed.append(stream, { type: 'OrderClosed' }, { expected: 4 });
      const written = [
        ['OrderPlaced', { pieces: 2, note: 'two' }],
        ['OrderPlaced', { pieces: 3, note: 'none' }],
        ['OrderShipped', { to: { lines: ['Oslo'] } }],
        ['OrderNoted', 'late'],
        ['OrderPaid', { euros: 30 }],
        ['OrderClosed', undefined],
      ];
      expect(await dataOf(stream)).toEqual(written);
      expect(await dataOf(stream, typed)).toEqual(written);
      expect((await all(store.read(stream))).map(({ metadata }) => metadata)).toEqual([
        undefined,
        { by: 'kim' },
        ...Array.from({ length: 4 }),
      ]);
      // The same events again, by their ids.
      const id = crypto.randomUUID();
      for (const isRepeat of [false, true])
        expect(await typed.append(stream, { type: 'OrderClosed', id })).toMatchObject({ version: 6, isRepeat });
    });

    test('refuses what does not fit, with its place, and writes nothing of the batch', async () => {
      const stream = fresh();
      const typed = orders.over(store);
      const fits = { type: 'OrderPaid', data: { euros: 1 } } as const;
      for (const [event, path, message] of [
        [{ type: 'OrderPlaced', data: { pieces: 1.5 } }, ['data', 'pieces'], 'int'],
        [{ type: 'OrderPlaced', data: undefined }, ['data'], 'object'],
        [{ type: 'OrderShipped', data: { to: { lines: ['a', ''] } } }, ['data', 'to', 'lines', 1], 'length'],
        [{ type: 'OrderNoted', data: ' ' }, ['data'], 'is no text'],
      ] as const) {
        const error = await failure(typed.append(stream, [fits, event as never, fits]));
        expect(error).toMatchObject({
          name: 'SkuaError',
          code: 'event_invalid',
          data: { type: event.type, index: 1, issues: [{ path, message: expect.stringContaining(message) as string }] },
        });
        expect(error.message).toMatch(
          new RegExp(
            `^Event 1, ${event.type}, does not fit its schema: ${path.join('\\.')}: .*Nothing was written\\.$`,
            's',
          ),
        );
        expect(
          await failure(
            typed.appendToStreams([
              { stream, events: [fits] },
              { stream: `${stream}-b`, events: [fits, event as never] },
            ]),
          ),
        ).toMatchObject({ code: 'event_invalid', data: { type: event.type, index: 1, stream: `${stream}-b` } });
        expect(
          await failure(
            typed.append([{ ...fits, stream }, { ...(event as object), stream } as never], {
              condition: { failIfEventsMatch: { items: [{ types: ['OrderClosed'] }] } },
            }),
          ),
        ).toMatchObject({ code: 'event_invalid', data: { index: 1 } });
      }
      expect((await store.info(stream)).state).toBe('none');
    });

    test('waits for schemas that answer later, for each event in turn', async () => {
      const stream = fresh();
      const slow = defineEvents(
        { A: later(z.object({ n: z.int() })) },
        { metadata: later(z.object({ by: z.string() })), check: 'read' },
      );
      const typed = slow.over(store);
      const event = (n: number) => ({ type: 'A', data: { n }, metadata: { by: 'kim' } }) as const;
      expect(await failure(typed.append(stream, [event(1), event(0.5)]))).toMatchObject({
        code: 'event_invalid',
        data: { index: 1 },
      });
      expect(await failure(typed.append(stream, { ...event(1), metadata: { by: 7 as never } }))).toMatchObject({
        code: 'event_invalid',
        data: { index: 0, issues: [{ path: ['metadata', 'by'] }] },
      });
      expect((await store.info(stream)).state).toBe('none');
      await typed.append(stream, [event(1), event(2)]);
      expect((await all(typed.read(stream))).map(({ data, metadata }) => [data, metadata])).toEqual([
        [{ n: 1 }, { by: 'kim' }],
        [{ n: 2 }, { by: 'kim' }],
      ]);
      await store.append(stream, { type: 'A', data: { n: 0.5 }, metadata: { by: 'kim' } });
      expect(await failure(all(typed.read(stream)))).toMatchObject({ code: 'event_invalid', data: { version: 2 } });
    });

    test('refuses to write a type that is not defined, or has another name now', async () => {
      const stream = fresh();
      const typed = defineEvents({ B: type<number>() }, { renamed: { A: 'B' }, unknown: 'keep' }).over(store);
      for (const each of ['A', 'C', 'toString', undefined])
        expect(
          await failure(
            typed.append(stream, [
              { type: 'B', data: 1 },
              { type: each as 'B', data: 1 },
            ]),
          ),
        ).toMatchObject({
          code: 'event_unknown',
          data: { type: each, index: 1 },
        });
      expect(await failure(typed.append(stream, [undefined as never]))).toMatchObject({ code: 'event_unknown' });
      expect((await store.info(stream)).state).toBe('none');
    });

    test('asks schemas at reading where that is wanted, and gives what they make', async () => {
      const stream = fresh();
      const definitions = { SessionBegun: z.object({ at: z.coerce.date() }) };
      const at = new Date(86_400_000);
      const checking = defineEvents(definitions, { check: 'read' }).over(store);
      const trusting = defineEvents(definitions).over(store);
      await trusting.append(stream, { type: 'SessionBegun', data: { at } });
      expect(await dataOf(stream, trusting)).toEqual([['SessionBegun', { at: at.toISOString() }]]);
      expect(await dataOf(stream, checking)).toEqual([['SessionBegun', { at }]]);
      await store.append(stream, [{ type: 'SessionBegun', data: { at: 'soon' } }]);
      expect(await dataOf(stream, trusting)).toHaveLength(2);
      const found: unknown[] = [];
      const error = await failure(
        (async () => {
          for await (const event of checking.read(stream)) found.push(event);
        })(),
      );
      expect(error).toMatchObject({
        code: 'event_invalid',
        data: { type: 'SessionBegun', stream, version: 1, issues: [{ path: ['data', 'at'] }] },
      });
      expect(error.message).toContain(
        `Event 1 of '${stream}', SessionBegun of version 1, does not fit its schema: data.at:`,
      );
      expect(found).toHaveLength(1);
      for (const events of [
        checking.readAll({ types: ['SessionBegun'] }),
        checking.subscribe({ types: ['SessionBegun'] }),
        checking.subscribe({ stream }),
      ])
        expect(await failure(all(events))).toMatchObject({ code: 'event_invalid', data: { stream, version: 1 } });
      // Bytes that are no JSON fit no object.
      const other = fresh();
      await store.append(other, { type: 'SessionBegun', data: Uint8Array.of(255) });
      expect(await failure(all(checking.read(other)))).toMatchObject({ code: 'event_invalid' });
    });

    test('ends a reading at an event of a type that is not defined, or gives it apart from the others', async () => {
      const stream = fresh();
      await store.append(stream, [
        { type: `${stream}-known`, data: 1 },
        { type: `${stream}-other`, data: 2, metadata: { by: 'kim' } },
      ]);
      const definitions = { [`${stream}-known`]: type<number>() };
      const refusing = defineEvents(definitions).over(store);
      for (const events of [refusing.read(stream), refusing.subscribe({ stream })]) {
        const error = await failure(all(events));
        expect(error).toMatchObject({
          code: 'event_unknown',
          data: { type: `${stream}-other`, stream, version: 1 },
        });
        expect(error.message).toContain('defineEvents');
      }
      expect(await failure(all(refusing.readAll()))).toMatchObject({ code: 'event_unknown' });
      expect(await all(refusing.readAll({ types: [`${stream}-known`] }))).toMatchObject([
        { stream, version: 0, data: 1 },
      ]);
      const keeping = defineEvents(definitions, { unknown: 'keep' }).over(store);
      const [known, other] = await all(keeping.read(stream));
      expect(known).toMatchObject({ type: `${stream}-known`, data: 1 });
      expect(known).not.toHaveProperty('storedType');
      expect(other).toMatchObject({
        type: '$unknown',
        storedType: `${stream}-other`,
        version: 1,
        data: 2,
        metadata: { by: 'kim' },
      });
      expect((await all(keeping.readAll({ direction: 'backward', limit: 2 }))).map((event) => event.type)).toContain(
        '$unknown',
      );
    });

    test('shows a redacted event to no schema and no upcast', async () => {
      const stream = fresh();
      const seen = vi.fn<(value: unknown) => void>();
      const watched: StandardSchema<{ n: number }> = {
        '~standard': {
          version: 1,
          vendor: 'test',
          validate: (value) => {
            seen(value);
            return { value: value as { n: number } };
          },
        },
      };
      const upcast = vi.fn<(data: { n: number }) => { n: number }>((data) => data);
      await store.append(stream, [
        { type: 'Old', data: { n: 1 }, metadata: { by: 'kim', $correlationId: 'x' } },
        { type: 'New', data: { n: 2 } },
      ]);
      await below.redact(stream, 0);
      const typed = defineEvents(
        { New: versions(type<{ n: number }>()).next(watched, upcast) },
        { renamed: { Old: 'New' }, metadata: watched, check: 'read' },
      ).over(store);
      const events = await all(typed.read(stream));
      expect(events).toMatchObject([
        { type: 'New', isRedacted: true, data: undefined, metadata: { $correlationId: 'x' } },
        { type: 'New', isRedacted: false, data: { n: 2 } },
      ]);
      expect(events.map((event) => (event.isRedacted ? 'gone' : event.data.n))).toEqual(['gone', 2]);
      expect(upcast).toHaveBeenCalledTimes(1);
      expect(seen.mock.calls).toEqual([[{ n: 2 }], [undefined]]);
    });

    describe('of several versions', () => {
      const one = { OrderPlaced: type<{ pieces: number }>() };
      const two = versions(type<{ pieces: number }>()).next(
        z.object({ pieces: z.int(), currency: z.string() }),
        (data) => ({
          ...data,
          currency: 'EUR',
        }),
      );
      const three = two.next(z.object({ count: z.int(), currency: z.string(), at: z.string() }), (data, event) => ({
        count: data.pieces,
        currency: data.currency,
        at: `${event.type} ${event.version}`,
      }));

      test('are written with their number but for the first, and read as the newest', async () => {
        const stream = fresh();
        await defineEvents(one)
          .over(store)
          .append(stream, { type: 'OrderPlaced', data: { pieces: 1 } });
        await defineEvents({ OrderPlaced: two })
          .over(store)
          .append(stream, { type: 'OrderPlaced', data: { pieces: 2, currency: 'NOK' }, metadata: { by: 'kim' } });
        const newest = defineEvents({ OrderPlaced: three }).over(store);
        await newest.append(stream, { type: 'OrderPlaced', data: { count: 3, currency: 'SEK', at: 'now' } });
        expect((await all(store.read(stream))).map(({ metadata }) => metadata)).toEqual([
          undefined,
          { by: 'kim', $schemaVersion: 2 },
          { $schemaVersion: 3 },
        ]);
        expect(await dataOf(stream, newest)).toEqual([
          ['OrderPlaced', { count: 1, currency: 'EUR', at: 'OrderPlaced 0' }],
          ['OrderPlaced', { count: 2, currency: 'NOK', at: 'OrderPlaced 1' }],
          ['OrderPlaced', { count: 3, currency: 'SEK', at: 'now' }],
        ]);
        // Metadata of an event that was read, passed on.
        const [, second] = await all(newest.read(stream));
        await newest.append(stream, {
          type: 'OrderPlaced',
          data: { count: 4, currency: 'DKK', at: '' },
          metadata: second!.metadata,
        });
        await defineEvents(one)
          .over(store)
          .append(fresh(), { type: 'OrderPlaced', data: { pieces: 1 }, metadata: second!.metadata });
        expect((await all(store.read(stream))).at(-1)).toMatchObject({ metadata: { by: 'kim', $schemaVersion: 3 } });
        expect((await all(store.read(`typed-${streams}`))).at(-1)).toMatchObject({
          metadata: { by: 'kim', $schemaVersion: 1 },
        });
      });

      test('are refused by a program that knows older ones alone, whatever it does with types that are not defined', async () => {
        const stream = fresh();
        const older = defineEvents({ OrderPlaced: two }, { unknown: 'keep' }).over(store);
        await defineEvents({ OrderPlaced: three })
          .over(store)
          .append(stream, { type: 'OrderPlaced', data: { count: 3, currency: 'SEK', at: 'now' } });
        expect(await failure(all(older.read(stream)))).toMatchObject({
          code: 'event_unknown',
          message: expect.stringContaining('update it') as string,
          data: { type: 'OrderPlaced', stream, version: 0, schemaVersion: 3 },
        });
      });

      test('say where an upcast failed, what it made does not fit, or the number is none', async () => {
        const stream = fresh();
        const failing = two.next(type<number>(), () => {
          throw new RangeError('no rate');
        });
        await store.append(stream, { type: 'OrderPlaced', data: { pieces: 0.5 } });
        const error = await failure(all(defineEvents({ OrderPlaced: failing }).over(store).read(stream)));
        expect(error).toMatchObject({
          code: 'event_invalid',
          message: expect.stringContaining('no rate') as string,
          data: { stream, version: 0, schemaVersion: 1 },
          cause: { name: 'RangeError' },
        });
        expect(
          await failure(all(defineEvents({ OrderPlaced: two }, { check: 'read' }).over(store).read(stream))),
        ).toMatchObject({ code: 'event_invalid', data: { version: 0, issues: [{ path: ['data', 'pieces'] }] } });
        for (const $schemaVersion of [0, 1.5, '2', -1]) {
          const other = fresh();
          await store.append(other, { type: 'OrderPlaced', data: {}, metadata: { $schemaVersion } });
          expect(await failure(all(defineEvents({ OrderPlaced: two }).over(store).read(other)))).toMatchObject({
            code: 'event_invalid',
            data: { stream: other, version: 0, issues: [{ path: ['metadata', '$schemaVersion'] }] },
          });
        }
        for (const metadata of ['text', [1], null, Uint8Array.of(1)])
          expect(
            await failure(
              defineEvents({ OrderPlaced: two })
                .over(store)
                .append(fresh(), { type: 'OrderPlaced', data: { pieces: 1, currency: '' }, metadata }),
            ),
          ).toMatchObject({ code: 'event_invalid', data: { index: 0, issues: [{ path: ['metadata'] }] } });
      });
    });

    test('knows types by the names that they had: read, asked for, and in conditions', async () => {
      const stream = fresh();
      const events = defineEvents(
        { OrderBegun: type<number>(), OrderEnded: type<undefined>() },
        { renamed: { 'order-begun': 'OrderBegun' } },
      );
      expect(events.types).toEqual(['OrderBegun', 'order-begun', 'OrderEnded']);
      const typed = events.over(store);
      await store.append(stream, [{ type: 'order-begun', data: 1 }]);
      const condition = { failIfEventsMatch: { items: [{ types: ['OrderBegun'] }] } } as const;
      const error = await failure(onceIndexed(() => typed.append({ type: 'OrderEnded', stream }, { condition })));
      expect(error).toMatchObject({ code: 'condition_failed', data: { stream, number: 0 } });
      await typed.append(stream, { type: 'OrderBegun', data: 2 });
      const both = [
        ['OrderBegun', 1],
        ['OrderBegun', 2],
      ];
      expect(await dataOf(stream, typed)).toEqual(both);
      expect((await all(typed.readAll({ types: ['OrderBegun'] }))).map((event) => [event.type, event.data])).toEqual(
        both,
      );
      const followed: unknown[] = [];
      for await (const event of typed.subscribe({ types: ['OrderBegun'] }))
        if (followed.push([event.type, event.data]) === 2) break;
      expect(followed).toEqual(both);
    });

    test('appends on a condition, to the streams and with the tags that events name', async () => {
      const stream = fresh();
      const typed = defineEvents({ Enrolled: trimmed, Left: type<undefined>() }).over(store);
      const condition = { failIfEventsMatch: { items: [{ types: ['Left'] }] } } as const;
      await onceIndexed(() =>
        typed.append({ type: 'Enrolled', data: ' kim ', tags: ['course:1'], stream }, { condition }),
      );
      expect(await all(typed.readAll({ tags: ['course:1'] }))).toMatchObject([
        { stream, type: 'Enrolled', data: 'kim', metadata: { $tags: ['course:1'] } },
      ]);
    });

    test('shows metadata to their schema without what is not the writer’s, and keeps that', async () => {
      const stream = fresh();
      const strict = z.strictObject({ by: z.string() }).optional();
      const loose = z.object({ by: z.string().trim() });
      const schema = versions(type<number>()).next(type<number>(), (data) => data);
      const typed = defineEvents({ Watched: schema }, { metadata: strict, check: 'read' }).over(store);
      await onceIndexed(() =>
        typed.append(
          { type: 'Watched', data: 1, stream, tags: ['x'], metadata: { by: 'kim' } },
          { condition: { failIfEventsMatch: { items: [{ types: ['Watched'] }] } } },
        ),
      );
      await typed.append(stream, { type: 'Watched', data: 2 });
      expect((await all(typed.read(stream))).map(({ metadata }) => metadata)).toEqual([
        { by: 'kim', $tags: ['x'], $schemaVersion: 2 },
        { $schemaVersion: 2 },
      ]);
      const other = fresh();
      const trimming = defineEvents({ A: type<number>() }, { metadata: loose }).over(store);
      const metadata = { by: ' kim ', till: 7, $correlationId: 'c' };
      await trimming.append(other, { type: 'A', data: 1, metadata });
      expect((await all(store.read(other)))[0]!.metadata).toEqual({ by: 'kim', $correlationId: 'c' });
    });

    test('has as many issues in an error as anybody reads', async () => {
      const typed = defineEvents({ A: z.array(z.int()) }).over(store);
      const error = await failure(typed.append(fresh(), { type: 'A', data: Array.from({ length: 1_000 }, () => 0.5) }));
      expect(error.data['issues']).toHaveLength(100);
      expect(error.message).toMatch(/data\.2: [^;]*; and 97 more\. Nothing was written\.$/s);
      const odd: StandardSchema<unknown> = {
        '~standard': {
          version: 1,
          vendor: 'test',
          validate: (value) => ({
            issues: value === 'none' ? [] : [{ message: 'odd', path: [Symbol('s'), { key: 'k' }, 0] }],
          }),
        },
      };
      const strange = defineEvents({ A: odd }).over(store);
      expect((await failure(strange.append(fresh(), { type: 'A' }))).data['issues']).toEqual([
        { message: 'odd', path: ['data', 'Symbol(s)', 'k', 0] },
      ]);
      expect((await failure(strange.append(fresh(), { type: 'A', data: 'none' }))).data['issues']).toEqual([
        { message: 'does not fit', path: ['data'] },
      ]);
    });

    test('says at once what is no definition', () => {
      expect(() => defineEvents({ A: {} as never })).toThrow(/'A' is defined by neither/);
      expect(() => defineEvents({ A: null as never })).toThrow(/'A' is defined by neither/);
      expect(() => defineEvents({ A: type<number>() }, { renamed: { B: 'C' as 'A' } })).toThrow(TypeError);
      expect(() => defineEvents({ A: type<number>(), B: type<number>() }, { renamed: { A: 'B' } })).toThrow(TypeError);
    });

    test('passes on the rest, errors and signals as they are', async () => {
      const stream = fresh();
      const typed = orders.over(store);
      await typed.append(stream, [{ type: 'OrderClosed' }, { type: 'OrderClosed' }]);
      expect(await typed.info(stream)).toEqual({ stream, state: 'live', version: 1 });
      expect(await failure(typed.append(stream, { type: 'OrderClosed' }, { expected: 7 }))).toMatchObject({
        code: 'wrong_expected_version',
        data: { stream, expected: 7, actual: 1 },
      });
      expect(await failure(typed.append(stream, []))).toMatchObject({ code: 'batch_empty' });
      expect(await all(typed.read(stream, { direction: 'backward', limit: 1 }))).toMatchObject([{ version: 1 }]);
      await typed.setMetadata(stream, { maxCount: 1 }, { expected: 'none' });
      expect(await typed.metadata(stream)).toMatchObject({ maxCount: 1, version: 0 });
      expect(await all(typed.read(stream))).toMatchObject([{ version: 1 }]);
      const reason = new Error('enough');
      expect(await failure(all(typed.read(stream, { signal: AbortSignal.abort(reason) })))).toBe(reason);
      expect(await all(typed.subscribe({ stream, signal: AbortSignal.abort(reason) }))).toEqual([]);
      const caughtUp = vi.fn<() => void>();
      for await (const event of typed.subscribe({ stream, onCaughtUp: caughtUp })) {
        expect(event.version).toBeGreaterThan(0);
        if (event.version === 2) break;
        await typed.append(stream, { type: 'OrderClosed' });
      }
      await typed.delete(stream);
      expect(await failure(all(typed.read(stream)))).toMatchObject({ code: 'stream_not_found' });
    });

    test('is closed with the store below', async () => {
      const other = await open();
      await orders.over(other.store).close();
      expect(await failure(other.store.info('x'))).toMatchObject({ code: 'store_closed' });
      await other.close();
      const third = await open();
      {
        await using typed = orders.over(third.store);
        await typed.info('x');
      }
      expect(await failure(third.store.info('x'))).toMatchObject({ code: 'store_closed' });
      await third.close();
    });
  });
}
