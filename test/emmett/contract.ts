import {
  CommandHandler,
  ExpectedVersionConflictError,
  IllegalStateError,
  isExpectedVersionConflictError,
  NO_CONCURRENCY_CHECK,
  STREAM_DOES_NOT_EXIST,
  STREAM_EXISTS,
  WrapEventStore,
} from 'emmett-current';
import type {
  Event,
  EventStore,
  ExpectedStreamVersion,
  ReadEvent,
  ReadEventMetadataWithGlobalPosition,
} from 'emmett-current';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import * as sources from '../../local/emmett/index.ts';
import type { SkuaEventStore, SkuaReadEvent } from '../../local/emmett/index.ts';
import type { Backend } from './backends.ts';

type Weighed = Event<'Weighed', { readonly grams: number }>;
type Labelled = Event<'Labelled', { readonly text: string }, { readonly by: string; readonly messageId?: string }>;
type ParcelEvent = Weighed | Labelled;

interface Parcel {
  readonly grams: number;
  readonly events: number;
}
const initialState = (): Parcel => ({ grams: 0, events: 0 });
const evolve = (parcel: Parcel, { type, data }: ParcelEvent): Parcel => ({
  grams: parcel.grams + (type === 'Weighed' ? data.grams : 0),
  events: parcel.events + 1,
});

const weighed = (grams: number): Weighed => ({ type: 'Weighed', data: { grams } });
const several = (count: number, first = 0): Weighed[] => Array.from({ length: count }, (_, n) => weighed(first + n));
const gramsOf = (events: readonly { readonly data: unknown }[]): number[] =>
  events.map(({ data }) => (data as Weighed['data']).grams);

/** The error with which this fails. */
async function failure(work: Promise<unknown>): Promise<Error & Record<string, unknown>> {
  try {
    await work;
  } catch (error) {
    return error as Error & Record<string, unknown>;
  }
  throw new Error('it did not fail');
}

/** What the event store promises Emmett, wherever its events are. */
export function describeEventStore(
  name: string,
  open: () => Promise<Backend>,
  emmett: () => typeof sources = () => sources,
): void {
  describe(`the event store over ${name}`, () => {
    let backend: Backend;
    // What applications are written against.
    let store: EventStore<ReadEventMetadataWithGlobalPosition> & SkuaEventStore;
    let streams = 0;
    const fresh = (): string => `parcel-${++streams}`;
    const filled = async (count: number): Promise<string> => {
      const stream = fresh();
      await store.appendToStream<Weighed>(stream, several(count));
      return stream;
    };
    beforeAll(async () => {
      backend = await open();
      store = emmett().getSkuaEventStore(backend.source);
    });
    afterAll(() => backend?.close());

    test('begins a stream with the first append, and goes on with the next', async () => {
      const stream = fresh();
      expect(await store.streamExists(stream)).toBe(false);
      expect(await store.appendToStream(stream, several(2))).toEqual({
        nextExpectedStreamVersion: 1n,
        createdNewStream: true,
      });
      expect(await store.appendToStream(stream, [weighed(2)])).toEqual({
        nextExpectedStreamVersion: 2n,
        createdNewStream: false,
      });
      expect(await store.streamExists(stream)).toBe(true);
      const { events, ...rest } = await store.readStream<Weighed>(stream);
      expect(rest).toEqual({ currentStreamVersion: 2n, streamExists: true });
      expect(gramsOf(events)).toEqual([0, 1, 2]);
    });

    test('has nothing of a stream that does not exist', async () => {
      const stream = fresh();
      expect(await store.readStream(stream)).toEqual({
        currentStreamVersion: emmett().SkuaEventStoreDefaultStreamVersion,
        events: [],
        streamExists: false,
      });
      expect(
        await store.readStream(stream, { from: 5n, maxCount: 3n, expectedStreamVersion: STREAM_DOES_NOT_EXIST }),
      ).toMatchObject({ streamExists: false });
      expect(await store.readStream(stream, { to: 0n })).toEqual({
        currentStreamVersion: -1n,
        events: [],
        streamExists: false,
      });
      expect(await store.aggregateStream<Parcel, ParcelEvent>(stream, { evolve, initialState })).toEqual({
        currentStreamVersion: -1n,
        state: { grams: 0, events: 0 },
        streamExists: false,
      });
      const conflict = await failure(store.readStream(stream, { expectedStreamVersion: STREAM_EXISTS }));
      expect(conflict).toBeInstanceOf(ExpectedVersionConflictError);
      expect(conflict).toMatchObject({ current: '-1', expected: STREAM_EXISTS });
    });

    describe('expects', () => {
      test.each<[string, ExpectedStreamVersion | undefined, boolean, boolean]>([
        ['nothing', undefined, true, true],
        ['any stream', NO_CONCURRENCY_CHECK, true, true],
        ['no stream', STREAM_DOES_NOT_EXIST, true, false],
        ['no stream, as it was read', -1n, true, false],
        ['a stream', STREAM_EXISTS, false, true],
        ['the version of the last event', 1n, false, true],
        ['an older version', 0n, false, false],
        ['a later version', 7n, false, false],
      ])('%s', async (_, expectedStreamVersion, holdsForNone, holdsForTwo) => {
        for (const [count, holds] of [
          [0, holdsForNone],
          [2, holdsForTwo],
        ] as const) {
          const stream = count === 0 ? fresh() : await filled(count);
          const append = store.appendToStream<Weighed>(stream, several(2, 10), {
            ...(expectedStreamVersion !== undefined && { expectedStreamVersion }),
          });
          if (holds) {
            expect(await append).toEqual({
              nextExpectedStreamVersion: BigInt(count + 1),
              createdNewStream: count === 0,
            });
          } else {
            const conflict = await failure(append);
            expect(conflict).toBeInstanceOf(ExpectedVersionConflictError);
            expect(isExpectedVersionConflictError(conflict)).toBe(true);
            expect(conflict).toMatchObject({
              current: String(count - 1),
              expected: String(expectedStreamVersion),
              errorCode: 412,
            });
          }
          expect(gramsOf((await store.readStream(stream)).events)).toEqual(
            [...several(count), ...(holds ? several(2, 10) : [])].map(({ data }) => data.grams),
          );
        }
      });

      test('what a read finds, whatever part of the stream it reads', async () => {
        const stream = await filled(4);
        for (const part of [{}, { to: 2n }, { from: 1n, maxCount: 1n }, { from: 9n }, { to: 0n }]) {
          await store.readStream(stream, { ...part, expectedStreamVersion: 3n });
          await store.readStream(stream, { ...part, expectedStreamVersion: STREAM_EXISTS });
          const conflict = await failure(
            store.aggregateStream<Parcel, ParcelEvent>(stream, {
              evolve,
              initialState,
              read: { ...part, expectedStreamVersion: 1n },
            }),
          );
          expect(conflict).toMatchObject({ current: '3', expected: '1', errorCode: 412 });
        }
      });
    });

    // Events of a stream of five, and the version as of the end of the reading.
    test.each<[string, object, number[], bigint]>([
      ['all', {}, [0, 1, 2, 3, 4], 4n],
      ['from a version', { from: 3n }, [3, 4], 4n],
      ['from behind the last event', { from: 5n }, [], 4n],
      ['to a version, without it', { to: 3n }, [0, 1, 2], 2n],
      ['to the end', { to: 5n }, [0, 1, 2, 3, 4], 4n],
      ['to what is not there yet', { to: 50n }, [0, 1, 2, 3, 4], 4n],
      ['to the beginning', { to: 0n }, [], -1n],
      ['from one version to another', { from: 1n, to: 3n }, [1, 2], 2n],
      ['to a version before that from which', { from: 3n, to: 2n }, [], 1n],
      ['a number of events', { maxCount: 2n }, [0, 1], 1n],
      ['more events than there are', { maxCount: 9n }, [0, 1, 2, 3, 4], 4n],
      ['as many as there are', { maxCount: 5n }, [0, 1, 2, 3, 4], 4n],
      ['a number of events from a version on', { from: 2n, maxCount: 2n }, [2, 3], 3n],
      ['whichever comes first', { from: 1n, to: 5n, maxCount: 2n }, [1, 2], 2n],
      ['whichever comes first, the other way around', { from: 1n, to: 3n, maxCount: 9n }, [1, 2], 2n],
    ])('reads %s', async (_, options, grams, currentStreamVersion) => {
      const stream = await filled(5);
      const { events, ...rest } = await store.readStream<Weighed>(stream, options);
      expect([gramsOf(events), rest]).toEqual([grams, { currentStreamVersion, streamExists: true }]);
      expect(await store.aggregateStream<Parcel, ParcelEvent>(stream, { evolve, initialState, read: options })).toEqual(
        {
          currentStreamVersion,
          state: { grams: grams.reduce((sum, each) => sum + each, 0), events: grams.length },
          streamExists: true,
        },
      );
    });

    test('shows evolve the metadata too, and passes on what it throws', async () => {
      const stream = await filled(3);
      const { state } = await store.aggregateStream<bigint[], Weighed>(stream, {
        initialState: () => [],
        evolve: (seen: bigint[], event: ReadEvent<Weighed, ReadEventMetadataWithGlobalPosition>) => [
          ...seen,
          event.metadata.streamPosition,
        ],
      });
      expect(state).toEqual([0n, 1n, 2n]);
      const thrown = new TypeError('of the application');
      expect(
        await failure(
          store.aggregateStream(stream, {
            initialState,
            evolve: () => {
              throw thrown;
            },
          }),
        ),
      ).toBe(thrown);
    });

    test('gives data, types and metadata back as they were, with the places of the events', async () => {
      const stream = fresh();
      const data = {
        text: 'Grüße, 包裹 📦',
        list: [1, null, { deep: true }],
        none: null,
        zero: 0,
        long: 'x'.repeat(70_000),
      };
      await store.appendToStream<Labelled>(stream, [
        { type: 'Labelled', data, metadata: { by: 'kim', messageId: '0B9E0DCF-43B4-4B49-9C8D-0A6B7B9B5F10' } },
      ]);
      await store.appendToStream<Weighed>(stream, [weighed(1)]);
      const {
        events: [labelled, weight],
      } = await store.readStream<ParcelEvent>(stream);
      expect(labelled).toEqual({
        kind: 'Event',
        type: 'Labelled',
        data,
        metadata: {
          by: 'kim',
          messageId: '0b9e0dcf-43b4-4b49-9c8d-0a6b7b9b5f10',
          streamName: stream,
          streamPosition: 0n,
          globalPosition: expect.any(BigInt),
        },
      });
      expect(weight!.metadata).toEqual({
        messageId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        streamName: stream,
        streamPosition: 1n,
        globalPosition: expect.any(BigInt),
      });
      expect((weight as SkuaReadEvent).metadata.globalPosition).toBeGreaterThan(
        (labelled as SkuaReadEvent).metadata.globalPosition,
      );
    });

    test('takes streams of any name', async () => {
      for (const stream of ['a/b c?d#e&f=%2Fü', `${fresh()}..`, 'o\'brien+"x"']) {
        await store.appendToStream(stream, several(2));
        const { events } = await store.readStream(stream, { from: 1n });
        expect(events.map(({ metadata }) => metadata.streamName)).toEqual([stream]);
      }
    });

    test('writes an append that is repeated once', async () => {
      const stream = await filled(1);
      const event: Labelled = {
        type: 'Labelled',
        data: { text: 'fragile' },
        metadata: { by: 'kim', messageId: crypto.randomUUID() },
      };
      for (const expectedStreamVersion of [0n, 0n, NO_CONCURRENCY_CHECK, STREAM_EXISTS]) {
        expect(await store.appendToStream<Labelled>(stream, [event], { expectedStreamVersion })).toEqual({
          nextExpectedStreamVersion: 1n,
          createdNewStream: false,
        });
      }
      // Also behind what others wrote meanwhile.
      await store.appendToStream(stream, [weighed(7)]);
      await store.appendToStream<Labelled>(stream, [event], { expectedStreamVersion: 0n });
      expect((await store.readStream(stream)).events.map(({ type }) => type)).toEqual([
        'Weighed',
        'Labelled',
        'Weighed',
      ]);
      const begun = fresh();
      for (let n = 0; n < 2; n++)
        expect(
          await store.appendToStream<Labelled>(begun, [event], { expectedStreamVersion: STREAM_DOES_NOT_EXIST }),
        ).toEqual({ nextExpectedStreamVersion: 0n, createdNewStream: true });
    });

    test('takes an event that bears the metadata of one that was read for another', async () => {
      const stream = fresh();
      await store.appendToStream<Labelled>(stream, [
        { type: 'Labelled', data: { text: 'a' }, metadata: { by: 'kim' } },
      ]);
      const {
        events: [read],
      } = await store.readStream<Labelled>(stream);
      await store.appendToStream<Labelled>(stream, [read!]);
      const { events } = await store.readStream<Labelled>(stream);
      expect(events.map(({ metadata }) => [metadata.by, metadata.streamPosition])).toEqual([
        ['kim', 0n],
        ['kim', 1n],
      ]);
      expect(events[1]!.metadata.messageId).not.toBe(events[0]!.metadata.messageId);
    });

    test.each<[string, (stream: string) => Promise<unknown>, string]>([
      [
        'an id that is none',
        (stream) =>
          store.appendToStream<Labelled>(stream, [
            { type: 'Labelled', data: { text: '' }, metadata: { by: 'kim', messageId: '17' } },
          ]),
        'invalid_event',
      ],
      [
        'data that are no JSON',
        (stream) => store.appendToStream(stream, [weighed(1), { type: 'Weighed', data: { grams: 1n } }]),
        'invalid_event',
      ],
      ['an event without a type', (stream) => store.appendToStream(stream, [{ type: '', data: {} }]), 'invalid_event'],
      [
        'metadata that are no object',
        (stream) =>
          store.appendToStream(stream, [{ type: 'Weighed', data: {}, metadata: 'kim' } as unknown as Weighed]),
        'invalid_event',
      ],
      [
        'a version that is none',
        (stream) => store.appendToStream(stream, [weighed(1)], { expectedStreamVersion: -2n }),
        'invalid_expected_version',
      ],
      [
        'a version that is no bigint',
        (stream) => store.appendToStream(stream, [weighed(1)], { expectedStreamVersion: 0 as unknown as bigint }),
        'invalid_expected_version',
      ],
      [
        'a version beyond all',
        (stream) => store.appendToStream(stream, [weighed(1)], { expectedStreamVersion: 2n ** 53n }),
        'invalid_expected_version',
      ],
      [
        'a beginning before the first event',
        (stream) => store.readStream(stream, { from: -1n }),
        'invalid_event_number',
      ],
      [
        'an end that is no bigint',
        (stream) => store.readStream(stream, { to: 3 as unknown as bigint }),
        'invalid_event_number',
      ],
      ['no events at most', (stream) => store.readStream(stream, { maxCount: 0n }), 'invalid_count'],
    ])('refuses %s, and changes nothing', async (_, work, code) => {
      const stream = fresh();
      const refused = await failure(work(stream));
      expect(refused).toBeInstanceOf(emmett().SkuaEventStoreError);
      expect(refused).toMatchObject({ code, errorCode: 400 });
      expect(await store.streamExists(stream)).toBe(false);
    });

    test('takes an append of nothing for a question', async () => {
      const stream = await filled(2);
      expect(await store.appendToStream(stream, [], { expectedStreamVersion: 1n })).toEqual({
        nextExpectedStreamVersion: 1n,
        createdNewStream: false,
      });
      expect(await store.appendToStream(fresh(), [])).toEqual({
        nextExpectedStreamVersion: -1n,
        createdNewStream: false,
      });
      expect(
        await failure(store.appendToStream(stream, [], { expectedStreamVersion: STREAM_DOES_NOT_EXIST })),
      ).toBeInstanceOf(ExpectedVersionConflictError);
    });

    test('lets one command handler in after another, and loses none', async () => {
      const stream = fresh();
      const handle = CommandHandler<Parcel, ParcelEvent>({
        evolve,
        initialState,
        retry: {
          onVersionConflict: {
            retries: 100,
            minTimeout: 1,
            maxTimeout: 20,
            shouldRetryError: isExpectedVersionConflictError,
          },
        },
      });
      // Each puts on what the parcel then has, and one more: any decision on an old state would show.
      const results = await Promise.all(
        Array.from({ length: 8 }, () => handle(store, stream, ({ events }) => [weighed(events), weighed(events + 1)])),
      );
      expect(
        results.map(({ nextExpectedStreamVersion }) => nextExpectedStreamVersion).sort((a, b) => Number(a - b)),
      ).toEqual([1n, 3n, 5n, 7n, 9n, 11n, 13n, 15n]);
      expect(results.filter(({ createdNewStream }) => createdNewStream)).toHaveLength(1);
      const { events } = await store.readStream<Weighed>(stream);
      expect(gramsOf(events)).toEqual(several(16).map(({ data }) => data.grams));
    });

    test('has the conflict of a command handler that does not try again', async () => {
      const stream = fresh();
      const handle = CommandHandler<Parcel, ParcelEvent>({ evolve, initialState });
      const conflict = await failure(
        handle(store, stream, async () => {
          await store.appendToStream(stream, [weighed(1)]);
          return weighed(2);
        }),
      );
      expect(conflict).toBeInstanceOf(ExpectedVersionConflictError);
      await expect(
        handle(store, stream, () => {
          throw new IllegalStateError('no');
        }),
      ).rejects.toThrow(IllegalStateError);
      expect((await handle(store, stream, () => [])).nextExpectedStreamVersion).toBe(0n);
      expect(
        await failure(handle(store, stream, () => weighed(3), { expectedStreamVersion: STREAM_DOES_NOT_EXIST })),
      ).toMatchObject({ current: '0' });
    });

    test('reads long streams whole, and folds them', async () => {
      const stream = fresh();
      for (let first = 0; first < 2_500; first += 500)
        await store.appendToStream<Weighed>(stream, several(500, first), { expectedStreamVersion: BigInt(first - 1) });
      const { events, currentStreamVersion } = await store.readStream<Weighed>(stream);
      expect(currentStreamVersion).toBe(2_499n);
      expect(gramsOf(events)).toEqual(several(2_500).map(({ data }) => data.grams));
      expect(
        await store.aggregateStream<Parcel, ParcelEvent>(stream, {
          evolve,
          initialState,
          read: { from: 1_200n, to: 2_400n },
        }),
      ).toEqual({ currentStreamVersion: 2_399n, state: { grams: 2_159_400, events: 1_200 }, streamExists: true });
    });

    test('reads events of more bytes than a reply may have', async () => {
      const stream = fresh();
      const text = 'y'.repeat(900_000);
      for (let n = 0; n < 8; n++)
        await store.appendToStream<Labelled>(stream, [
          { type: 'Labelled', data: { text: `${n}${text}` }, metadata: { by: 'kim' } },
        ]);
      const { events } = await store.readStream<Labelled>(stream);
      expect(events.map(({ data }) => [data.text.slice(0, 1), data.text.length])).toEqual(
        Array.from({ length: 8 }, (_, n) => [String(n), 900_001]),
      );
    });

    test('begins a deleted stream anew behind its last number', async () => {
      const stream = await filled(3);
      await backend.deleteStream(stream, false);
      expect(await store.readStream(stream)).toEqual({ currentStreamVersion: -1n, events: [], streamExists: false });
      expect(await store.streamExists(stream)).toBe(false);
      expect(
        await store.appendToStream(stream, [weighed(9)], { expectedStreamVersion: STREAM_DOES_NOT_EXIST }),
      ).toEqual({ nextExpectedStreamVersion: 3n, createdNewStream: true });
      const { events, currentStreamVersion } = await store.readStream<Weighed>(stream);
      expect([gramsOf(events), currentStreamVersion]).toEqual([[9], 3n]);
    });

    test('says so of a stream that was deleted for ever', async () => {
      const stream = await filled(3);
      await backend.deleteStream(stream, true);
      for (const work of [
        () => store.readStream(stream),
        () => store.readStream(stream, { to: 0n }),
        () => store.aggregateStream(stream, { evolve, initialState }),
        () => store.streamExists(stream),
        () => store.appendToStream(stream, [weighed(1)]),
        () => store.appendToStream(stream, [weighed(1)], { expectedStreamVersion: STREAM_DOES_NOT_EXIST }),
      ]) {
        const gone = await failure(work());
        expect(gone).toBeInstanceOf(emmett().SkuaEventStoreError);
        expect(gone).toMatchObject({ code: 'stream_deleted', errorCode: 410 });
      }
    });

    test('knows the version of a stream whose events are hidden', async () => {
      const stream = await filled(5);
      await backend.setMetadata(stream, { $tb: 3 });
      expect(gramsOf((await store.readStream<Weighed>(stream, { to: 4n })).events)).toEqual([3]);
      expect(await store.readStream(stream, { to: 2n })).toEqual({
        currentStreamVersion: 1n,
        events: [],
        streamExists: true,
      });
      await backend.setMetadata(stream, { $tb: 5 });
      expect(await store.readStream(stream)).toEqual({ currentStreamVersion: 4n, events: [], streamExists: true });
      expect(await store.streamExists(stream)).toBe(true);
      const handle = CommandHandler<Parcel, ParcelEvent>({ evolve, initialState });
      expect(await handle(store, stream, () => weighed(50))).toMatchObject({
        nextExpectedStreamVersion: 5n,
        newState: { grams: 50, events: 1 },
        createdNewStream: false,
      });
    });

    test('shows what is no JSON as bytes', async () => {
      const stream = fresh();
      await backend.appendBytes(stream, Uint8Array.of(0, 255, 10));
      await store.appendToStream(stream, [weighed(1)]);
      const { events } = await store.readStream(stream);
      expect(events.map(({ type }) => type)).toEqual(['bytes', 'Weighed']);
      expect([...(events[0]!.data as unknown as Uint8Array)]).toEqual([0, 255, 10]);
    });

    test('reads old events as they are now, and writes new ones as they were', async () => {
      type Old = Event<'Weighed', { readonly kilograms: number }>;
      const stream = fresh();
      await store.appendToStream<Weighed, Old>(stream, [weighed(1_500)], {
        schema: { versioning: { downcast: ({ type, data }) => ({ type, data: { kilograms: data.grams / 1_000 } }) } },
      });
      expect((await store.readStream<Old>(stream)).events[0]!.data).toEqual({ kilograms: 1.5 });
      const schema = {
        versioning: { upcast: ({ type, data }: Old): Weighed => ({ type, data: { grams: data.kilograms * 1_000 } }) },
      };
      const { events } = await store.readStream<Weighed, Old>(stream, { schema });
      expect(events[0]).toMatchObject({ data: { grams: 1_500 }, metadata: { streamPosition: 0n } });
      expect(
        (await store.aggregateStream<Parcel, Weighed, Old>(stream, { evolve, initialState, read: { schema } })).state,
      ).toEqual({ grams: 1_500, events: 1 });
    });

    test('tells of what was written, once it is', async () => {
      const told: SkuaReadEvent[][] = [];
      const telling = emmett().getSkuaEventStore(backend.source, {
        hooks: {
          onAfterCommit: (messages) => {
            told.push(messages);
          },
        },
      });
      const stream = fresh();
      await telling.appendToStream<Labelled>(stream, [
        { type: 'Labelled', data: { text: 'a' }, metadata: { by: 'kim' } },
      ]);
      await telling.appendToStream<Weighed>(stream, several(3));
      expect(await failure(telling.appendToStream(stream, [weighed(1)], { expectedStreamVersion: 0n }))).toMatchObject({
        errorCode: 412,
      });
      expect(told.map(({ length }) => length)).toEqual([1, 3]);
      expect(told.flat()).toEqual((await store.readStream(stream)).events);
      // Of events that the stream has let go by then only the place is not their own.
      const kept = await filled(1);
      await backend.setMetadata(kept, { $maxCount: 1 });
      await telling.appendToStream<Weighed>(kept, several(2, 5));
      const {
        events: [last],
      } = await store.readStream<Weighed>(kept);
      expect(gramsOf(told[2]!)).toEqual([5, 6]);
      expect(told[2]!.map(({ metadata }) => [metadata.streamPosition, metadata.globalPosition])).toEqual([
        [1n, last!.metadata.globalPosition],
        [2n, last!.metadata.globalPosition],
      ]);
    });

    test('has written what it could not tell of', async () => {
      const said = vi.spyOn(console, 'error').mockImplementation(() => {});
      try {
        const stream = fresh();
        const telling = emmett().getSkuaEventStore(backend.source, {
          hooks: {
            onAfterCommit: () => {
              throw new Error('of the hook');
            },
          },
        });
        expect(await telling.appendToStream(stream, several(2))).toEqual({
          nextExpectedStreamVersion: 1n,
          createdNewStream: true,
        });
        expect(said).toHaveBeenCalledOnce();
        expect(await store.streamExists(stream)).toBe(true);
      } finally {
        said.mockRestore();
      }
    });

    test('may be wrapped, as Emmett does it for tests', async () => {
      const wrapped = WrapEventStore(store);
      const stream = fresh();
      await wrapped.setup(stream, [weighed(1)]);
      await wrapped.appendToStream(stream, [weighed(2)], { expectedStreamVersion: 0n });
      expect(wrapped.appendedEvents.get(stream)?.[1]).toEqual([weighed(2)]);
      expect((await wrapped.aggregateStream<Parcel, ParcelEvent>(stream, { evolve, initialState })).state).toEqual({
        grams: 3,
        events: 2,
      });
      expect(await wrapped.streamExists(stream)).toBe(true);
    });
  });
}
