import { DatabaseSync } from 'node:sqlite';
import {
  inMemoryCheckpointer,
  inMemoryProjector,
  inMemorySingleStreamProjection,
  MessageProcessor,
  reactor,
} from 'emmett-current';
import type { Event } from 'emmett-current';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { connect } from '../../local/client/index.ts';
import { openStore } from '../../local/embedded/index.ts';
import type { Store } from '../../local/embedded/index.ts';
import { getSkuaConsumer, getSkuaEventStore } from '../../local/emmett/index.ts';
import type { SkuaConsumerOptions, SkuaReadEvent } from '../../local/emmett/index.ts';
import { defineEvents, type } from '../../local/events/index.ts';
import { sqlite } from '../../local/project-sqlite/index.ts';
import { startedNode } from '../local/spawn.ts';

type Weighed = Event<'Weighed', { readonly grams: number }>;
const weighed = (...grams: readonly number[]): Weighed[] =>
  grams.map((each) => ({ type: 'Weighed', data: { grams: each } }));

type Source = Parameters<typeof getSkuaConsumer>[0] & Parameters<typeof getSkuaEventStore>[0];

/** What Emmett's processors get, wherever the events are. */
describe.each<[string, () => Promise<{ readonly source: Source; close(): Promise<unknown> }>]>([
  [
    'a store of this process',
    async () => {
      const source = await openStore({ memory: true });
      return { source, close: () => source.close() };
    },
  ],
  [
    'a typed store',
    async () => {
      const source = defineEvents({ Weighed: type<Weighed['data']>() }, { unknown: 'keep' }).over(
        await openStore({ memory: true }),
      );
      return { source, close: () => source.close() };
    },
  ],
  [
    'the address of a node',
    async () => {
      const node = await startedNode(['--mem-db']);
      return { source: { url: node.url }, close: () => node.stop() };
    },
  ],
  [
    'a client',
    async () => {
      const node = await startedNode(['--mem-db']);
      const source = connect({ url: node.url });
      return {
        source,
        close: async () => {
          await source.close();
          await node.stop();
        },
      };
    },
  ],
])('a consumer over %s', (_, open) => {
  let opened: Awaited<ReturnType<typeof open>>;
  let store: ReturnType<typeof getSkuaEventStore>;
  let categories = 0;
  const fresh = (): string => `scale${++categories}`;
  beforeAll(async () => {
    opened = await open();
    store = getSkuaEventStore(opened.source);
  });
  afterAll(() => opened?.close());
  const consumer = (options: SkuaConsumerOptions) => getSkuaConsumer(opened.source, options);
  const gramsOf = (events: readonly SkuaReadEvent[]) => events.map(({ data }) => (data as Weighed['data']).grams);

  test('gives what there is, and then what comes, in order, until there is enough', async () => {
    const category = fresh();
    await store.appendToStream(`${category}-1`, weighed(1, 2));
    await store.appendToStream(`${category}-2`, weighed(3));
    await store.appendToStream(`${category}x-1`, weighed(99));
    const seen: SkuaReadEvent<Weighed>[] = [];
    const each = consumer({ category, consumerId: 'scales' });
    const processor = each.reactor<Weighed>({
      processorId: 'sums',
      eachMessage: async (event) => {
        seen.push(event as SkuaReadEvent<Weighed>);
        if (event.data.grams === 3) await store.appendToStream(`${category}-1`, weighed(4));
      },
      stopAfter: ({ data }) => data.grams === 4,
    });
    expect([each.consumerId, each.isRunning, each.processors]).toEqual(['scales', false, [processor]]);
    const started = each.start();
    expect(each.isRunning).toBe(true);
    expect(each.start()).toBe(started);
    await started;
    expect(each.isRunning).toBe(false);
    expect(gramsOf(seen)).toEqual([1, 2, 3, 4]);
    expect(seen[2]).toMatchObject({
      kind: 'Event',
      metadata: { streamName: `${category}-2`, streamPosition: 0n, messageId: expect.any(String) as string },
    });
    expect(seen.map(({ metadata }) => metadata.globalPosition)).toEqual(
      seen.map(({ metadata }) => metadata.globalPosition).toSorted((a, b) => Number(a - b)),
    );
    await each.close();
  });

  test('goes on from the checkpoints of its processors, each from its own', async () => {
    const category = fresh();
    await store.appendToStream(`${category}-1`, weighed(1, 2, 3));
    const checkpoints = inMemoryCheckpointer<Weighed>();
    const database = inMemoryProjector({ projection: { canHandle: [], handle: () => {} } as never }).database;
    const seen: Record<string, number[]> = { first: [], late: [], begun: [] };
    const made = (processorId: string, last: number) =>
      reactor<Weighed>({
        processorId,
        checkpoints: checkpoints as never,
        processingScope: (handler) => handler({ database }),
        eachMessage: ({ data }) => {
          seen[processorId]!.push(data.grams);
        },
        stopAfter: ({ data }) => data.grams === last,
      });
    await consumer({ category, processors: [made('first', 2)] }).start();
    const late = reactor<Weighed>({
      processorId: 'late',
      startFrom: 'END',
      eachMessage: ({ data }) => {
        seen['late']!.push(data.grams);
      },
      stopAfter: ({ data }) => data.grams === 5,
    });
    await store.appendToStream(`${category}-1`, weighed(4));
    const each = consumer({ category, processors: [made('first', 5), late, made('begun', 5)] });
    const started = each.start();
    await expect.poll(() => seen['begun']).toEqual([1, 2, 3, 4]);
    await expect.poll(() => late.isActive).toBe(true);
    await store.appendToStream(`${category}-1`, weighed(5));
    // What began at the end may have begun behind that.
    await expect
      .poll(() => [seen['first'], seen['begun']])
      .toEqual([
        [1, 2, 3, 4, 5],
        [1, 2, 3, 4, 5],
      ]);
    await each.stop();
    await started;
    expect(seen['first']).toEqual([1, 2, 3, 4, 5]);
    expect(seen['begun']).toEqual([1, 2, 3, 4, 5]);
    expect([[], [5]]).toContainEqual(seen['late']);
    const { lastCheckpoint } = await checkpoints.read({ processorId: 'begun' }, { database });
    expect(lastCheckpoint).toBe((await store.readStream(`${category}-1`)).events.at(-1)!.metadata.globalPosition);
  });

  test('keeps a projection of Emmett, also through a stop', async () => {
    const category = fresh();
    await store.appendToStream(`${category}-1`, weighed(1, 2));
    const sums = inMemoryProjector<Weighed>({
      projection: inMemorySingleStreamProjection<{ sum: number }, Weighed>({
        collectionName: 'sums',
        canHandle: ['Weighed'],
        initialState: () => ({ sum: 0 }),
        evolve: (before: { sum: number }, { data }: Weighed) => ({ sum: before.sum + data.grams }),
      }),
    });
    const each = consumer({ category, processors: [sums] });
    const sum = async () =>
      (
        await sums.database
          .collection<{ sum: number; _id: string }>('sums')
          .findOne(({ _id }) => _id === `${category}-1`)
      )?.sum;
    for (const [grams, wanted] of [
      [3, 6],
      [4, 10],
    ] as const) {
      const started = each.start();
      await store.appendToStream(`${category}-1`, weighed(grams));
      await expect.poll(sum).toBe(wanted);
      await each.stop();
      await started;
      expect([each.isRunning, sums.isActive]).toEqual([false, false]);
    }
    await each.close();
  });

  test('ends with what a handler throws, or the error of a stop, and tells the others', async () => {
    const category = fresh();
    await store.appendToStream(`${category}-1`, weighed(1, 2));
    const closed = vi.fn<() => Promise<void>>(() => Promise.resolve());
    const waiting = reactor<Weighed>({ processorId: 'waiting', eachMessage: () => {}, hooks: { onClose: closed } });
    const handled: number[] = [];
    let isBroken = true;
    const failing = reactor<Weighed>({
      processorId: 'failing',
      eachMessage: ({ data }) => {
        if (isBroken && data.grams === 2) throw new RangeError('too heavy');
        handled.push(data.grams);
      },
      stopAfter: ({ data }) => data.grams === 2,
    });
    const each = consumer({ category, processors: [waiting, failing] });
    await expect(each.start()).rejects.toThrow('too heavy');
    expect(closed).toHaveBeenCalledTimes(1);
    expect([each.isRunning, waiting.isActive, failing.isActive]).toEqual([false, false, false]);
    isBroken = false;
    const again = consumer({ category, processors: [failing] });
    await again.start();
    expect(handled.at(-1)).toBe(2);
    const stopping = consumer({ category });
    const error = Object.assign(new Error('enough'), { errorCode: 500 });
    stopping.reactor({
      processorId: 'stopping',
      eachMessage: () => MessageProcessor.result.stop({ error: error as never }),
    });
    await expect(stopping.start()).rejects.toBe(error);
  });

  test('refuses a checkpoint that is beyond the end of the log, which would leave out all until there', async () => {
    const ahead = reactor({
      processorId: 'ahead',
      startFrom: { lastCheckpoint: 1_000_000_000n },
      eachMessage: () => {},
    });
    await store.appendToStream(fresh(), weighed(1));
    await expect(consumer({ processors: [ahead] }).start()).rejects.toMatchObject({
      code: 'checkpoint_unknown',
      errorCode: 409,
      message: expect.stringContaining('ahead') as string,
    });
    const within = reactor({ processorId: 'within', startFrom: { lastCheckpoint: 3n }, eachMessage: () => {} });
    await expect(consumer({ processors: [within] }).start()).rejects.toMatchObject({ code: 'checkpoint_unknown' });
  });

  test('needs processors, before it is started', async () => {
    const each = consumer({ category: fresh() });
    await expect(each.start()).rejects.toMatchObject({ code: 'bad_option' });
    each.reactor({ processorId: 'one', eachMessage: () => {} });
    const started = each.start();
    expect(() => each.reactor({ processorId: 'two', eachMessage: () => {} })).toThrow('is running');
    await each.stop();
    await started;
    await each.stop();
  });
});

describe('a consumer', () => {
  let store: Store;
  beforeAll(async () => {
    store = await openStore({ memory: true });
  });
  afterAll(() => store.close());

  test('shows an event whose content was taken away to no processor', async () => {
    await store.append('user-1', [
      { type: 'Joined', data: { name: 'Ann' }, metadata: { $correlationId: 'c', by: 'kim' } },
      { type: 'Left', data: {} },
    ]);
    await store.redact('user-1', { events: [0], reason: 'asked for' });
    const erased: SkuaReadEvent[] = [];
    const seen: string[] = [];
    const each = getSkuaConsumer(store, { category: 'user', onErased: (event) => void erased.push(event) });
    each.projector({
      projection: {
        name: 'users',
        canHandle: ['Joined', 'Left'],
        handle: (events) => {
          for (const event of events) seen.push(event.type);
        },
      },
      stopAfter: ({ type: name }) => name === 'Left',
    });
    await each.start();
    expect(seen).toEqual(['Left']);
    expect(erased).toMatchObject([
      { type: 'Joined', data: undefined, metadata: { streamName: 'user-1', streamPosition: 0n, $correlationId: 'c' } },
    ]);
  });

  test('keeps checkpoints in a model, with what its processors write, each event once', async () => {
    const db = new DatabaseSync(':memory:');
    db.exec('CREATE TABLE weights (grams INTEGER) STRICT');
    const grams = () =>
      db
        .prepare('SELECT grams FROM weights')
        .all()
        .map((row) => row['grams']);
    let isBroken = true;
    const weights = (last: number) => {
      const each = getSkuaConsumer(store, { category: 'kept', store: sqlite(db) });
      each.reactor<Weighed>({
        processorId: 'weights',
        eachMessage: ({ data }, { tx }: { readonly tx?: DatabaseSync }) => {
          tx!.prepare('INSERT INTO weights VALUES (?)').run(data.grams);
          if (isBroken && data.grams === 3) throw new RangeError('too heavy');
        },
        stopAfter: ({ data }) => data.grams === last,
      });
      return each;
    };
    await getSkuaEventStore(store).appendToStream('kept-1', weighed(1, 2, 3, 4));
    await expect(weights(4).start()).rejects.toThrow(new RangeError('too heavy'));
    expect(grams()).toEqual([1, 2]);
    isBroken = false;
    await weights(3).start();
    expect(grams()).toEqual([1, 2, 3]);
    await weights(4).start();
    expect(grams()).toEqual([1, 2, 3, 4]);
    // Of another log, which is longer.
    await using other = await openStore({ memory: true });
    await getSkuaEventStore(other).appendToStream('kept-1', weighed(...Array.from({ length: 50 }, (_, i) => i)));
    const moved = getSkuaConsumer(other, { category: 'kept', store: sqlite(db) });
    moved.reactor({ processorId: 'weights', eachMessage: () => {} });
    await expect(moved.start()).rejects.toMatchObject({ code: 'checkpoint_unknown', errorCode: 409 });
    db.close();
  });

  test.each([null, {}, { append: () => {} }, { readStream: () => {}, appendToStream: () => {} }])(
    'of %s is not made',
    (source) => {
      expect(() => getSkuaConsumer(source as never)).toThrow(TypeError);
    },
  );
});
