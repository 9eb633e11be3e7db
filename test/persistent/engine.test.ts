import { describe, expect, test } from 'vitest';
import { ALL_STREAM, answerId } from '../../core/persistent/api.ts';
import type { Delivery, GroupConsumer, NewGroup, PersistentSubscriptionsEngine } from '../../core/persistent/api.ts';
import { Group } from '../../core/persistent/group.ts';
import { DEFAULT_LIMITS, Held } from '../../core/persistent/group-limits.ts';
import { CONFIG_STREAM, CONFIG_TYPE, encodeConfig } from '../../core/persistent/stored-forms.ts';
import { correlationIn } from '../../core/persistent/strategies.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentLog } from '../../core/ports/log.ts';
import { streamHasher } from '../../core/base/stream-hash.ts';
import { ANY } from '../../core/streams/api.ts';
import type { EventStore, ReadAllOptions, StoredEvent } from '../../core/streams/api.ts';
import type { EventStoreInternals } from '../../core/streams/streams.ts';
import { encodeText } from '../../core/base/text.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';
import { CONNECT, drain, engineOver, events, numberOf, settings } from './support.ts';

interface World {
  readonly store: EventStore;
  readonly engine: PersistentSubscriptionsEngine;
  readonly clock: ManualClock;
}

async function world(): Promise<World> {
  const clock = new ManualClock();
  const { store } = await openTestStore({ storage: new MemoryStorage(), clock });
  return { store, ...engineOver(store, { clock }) };
}

/** A group of a stream `s` with so many events. */
async function running(options: Partial<NewGroup> = {}, count = 10, stream = 's'): Promise<World> {
  const made = await world();
  if (count > 0) await made.store.append('s', ANY, events(count));
  made.engine.start();
  await made.engine.create(stream, 'g', { settings: settings(), from: 'start', ...options }, 'admin');
  return made;
}

const nothing = () => {};
const acks =
  (consumer: GroupConsumer) =>
  ({ event }: Delivery) => {
    consumer.ack([answerId(event)]);
  };
const numbers = async (consumer: GroupConsumer, { clock }: World, answer: (delivery: Delivery) => void = nothing) =>
  (await drain(consumer, clock, answer)).map(numberOf);

describe('who gets a message', () => {
  test.each([
    [
      'RoundRobin',
      [
        [0, 2, 4, 6, 8],
        [1, 3, 5, 7, 9],
      ],
    ],
    [
      'DispatchToSingle',
      [
        [0, 1, 2, 3, 4, 5],
        [6, 7, 8, 9],
      ],
    ],
  ])('%s', async (strategy, expected) => {
    const made = await running({ settings: settings({ strategy }) }, 0);
    const readers = [
      await made.engine.connect('s', 'g', { ...CONNECT, bufferSize: 6 }),
      await made.engine.connect('s', 'g', { ...CONNECT, bufferSize: 6 }),
    ];
    await made.store.append('s', ANY, events(10));
    expect([await numbers(readers[0]!, made), await numbers(readers[1]!, made)]).toEqual(expected);
    await made.engine.stop();
  });

  test.each([
    ['Pinned', (event: Delivery['event']) => event.stream],
    ['PinnedByCorrelation', (event: Delivery['event']) => correlationIn(event.metadata) ?? event.stream],
  ])(
    '%s: what belongs together goes to one consumer, in order, also when another one comes',
    async (strategy, keyOf) => {
      const made = await running({ settings: settings({ strategy }) }, 0, ALL_STREAM);
      let count = 0;
      const write = async () => {
        for (let i = 0; i < 60; i++)
          await made.store.append(`x-${i % 7}`, ANY, [
            {
              ...events(1, 1_000 + count++)[0]!,
              metadata: encodeText(
                JSON.stringify({ first: [1, { $correlationId: 'no' }], $correlationId: `c${i % 5}` }),
              ),
            },
          ]);
      };
      const got = new Map<string, { readonly reader: number; readonly position: number }>();
      const owners = new Set<number>();
      const readers = [await made.engine.connect(ALL_STREAM, 'g', { ...CONNECT, bufferSize: 200 })];
      const read = async (isFirst: boolean) => {
        for (const [reader, consumer] of readers.entries()) {
          for (const { event } of await drain(consumer, made.clock, acks(consumer))) {
            if (!event.stream.startsWith('x-')) continue;
            const before = got.get(keyOf(event));
            if (!isFirst && before !== undefined) expect(before).toMatchObject({ reader });
            if (before !== undefined) expect(event.position).toBeGreaterThan(before.position);
            owners.add(reader);
            got.set(keyOf(event), { reader, position: event.position });
          }
        }
      };
      await write();
      await read(true);
      expect(owners).toEqual(new Set([0]));
      readers.push(await made.engine.connect(ALL_STREAM, 'g', { ...CONNECT, bufferSize: 200 }));
      await write();
      await read(true);
      await write();
      await read(false);
      expect(owners).toEqual(new Set([0, 1]));
      await made.engine.stop();
    },
  );

  test('events of several streams with one id are answered one by one', async () => {
    const made = await running(
      { settings: settings({ maxRetryCount: 0 }), filter: { on: 'stream', prefixes: ['a', 'b'] } },
      0,
      ALL_STREAM,
    );
    for (const stream of ['a', 'b']) await made.store.append(stream, ANY, events(1));
    const consumer = await made.engine.connect(ALL_STREAM, 'g', CONNECT);
    expect((await drain(consumer, made.clock, nothing)).map(({ event }) => event.stream)).toEqual(['a', 'b']);
    consumer.ack([events(1)[0]!.id]);
    await made.clock.advance(2_000);
    expect(
      (
        await made.store.readStream('$persistentsubscription-$all::g-parked', {
          direction: 'forward',
          from: 0,
          count: 9,
          resolveLinks: true,
        })
      ).events.map(({ stream }) => stream),
    ).toEqual(['b']);
    await made.engine.stop();
  });

  test('of $all with an index in place of a prefix gets what the index names, and of what retention leaves', async () => {
    const made = await running({ filter: { on: 'stream', prefixes: ['$idx-ce-a'] } }, 0, ALL_STREAM);
    await made.store.append('$$a-1', ANY, [
      { ...events(1)[0]!, type: '$metadata', isJson: true, data: encodeText('{"$maxCount":1}') },
    ]);
    for (const stream of ['a-1', 'b-1', 'a', 'ab-1', 'a-2']) await made.store.append(stream, ANY, events(2));
    const consumer = await made.engine.connect(ALL_STREAM, 'g', CONNECT);
    expect(
      (await drain(consumer, made.clock, acks(consumer))).map(({ event }) => `${event.number}@${event.stream}`),
    ).toEqual(['1@a-1', '0@a', '1@a', '0@a-2', '1@a-2']);
    const wrong = (prefixes: string[]) =>
      made.engine.create(
        ALL_STREAM,
        'w',
        { settings: settings(), from: 'start', filter: { on: 'stream', prefixes } },
        'admin',
      );
    for (const prefixes of [['$idx-ce-a', '$idx-ce-b'], ['$idx-ce-a', 'b'], ['$idx-ce-'], ['$idx-ce-a-b'], ['$idx-x']])
      await expect(wrong(prefixes)).rejects.toMatchObject({ code: 'bad_request' });
    await made.engine.stop();
  });

  test('of a view of links gets its events by their positions, goes on behind what was answered, and from its end', async () => {
    const made = await running({ settings: settings({ resolveLinks: true, minCheckpointCount: 1 }) }, 0, '$ce-a');
    const { store, engine, clock } = made;
    for (const stream of ['a-1', 'b-1', 'a', 'a-2']) await store.append(stream, ANY, events(2));
    await engine.create('$ce-a', 'end', { settings: settings(), from: 'end' }, 'admin');
    const targets = async (consumer: GroupConsumer, answer: (delivery: Delivery) => void) =>
      (await drain(consumer, clock, answer)).map(({ event }) => `${event.number}@${event.stream}`);
    const consumer = await engine.connect('$ce-a', 'g', CONNECT);
    let answered = 0;
    const first = await targets(consumer, (delivery) => {
      if (answered++ < 3) acks(consumer)(delivery);
    });
    expect(first).toEqual(['0@a-1', '1@a-1', '0@a-2', '1@a-2']);
    const late = await engine.connect('$ce-a', 'end', CONNECT);
    expect(await targets(late, acks(late))).toEqual([]);
    await engine.stop();
    const again = engineOver(store, { clock });
    again.engine.start();
    const second = await again.engine.connect('$ce-a', 'g', CONNECT);
    await store.append('a-3', ANY, events(1));
    expect(await targets(second, acks(second))).toEqual(['1@a-2', '0@a-3']);
    const last = await again.engine.connect('$ce-a', 'end', CONNECT);
    const { events: all } = await store.readStream('a-3', { direction: 'forward', from: 0, count: 1 });
    expect((await drain(last, clock, acks(last))).map(({ event }) => [event.type, event.number])).toEqual([
      ['$>', all[0]!.position],
    ]);
    await again.engine.stop();
  });

  test('a consumer without slots gets nothing, a reader without a connection what it asks for, and again what it does not answer', async () => {
    const made = await running();
    const { engine, clock } = made;
    const none = await engine.connect('s', 'g', { ...CONNECT, bufferSize: 0 });
    expect(await numbers(none, made)).toEqual([]);
    expect((await engine.take('s', 'g', 3)).map(numberOf)).toEqual([0, 1, 2]);
    await engine.ack('s', 'g', [events(3)[0]!.id]);
    await engine.nack('s', 'g', [events(3)[1]!.id], 'Retry', '');
    expect((await engine.take('s', 'g', 2)).map((delivery) => [numberOf(delivery), delivery.retryCount])).toEqual([
      [1, 1],
      [3, 0],
    ]);
    await clock.advance(1_600);
    expect(
      (await engine.take('s', 'g', 9)).map((delivery) => [numberOf(delivery), delivery.retryCount]).slice(0, 4),
    ).toEqual([
      [1, 2],
      [2, 1],
      [3, 1],
      [4, 0],
    ]);
    await engine.stop();
  });
});

describe('what was deleted', () => {
  test('is not sent, though it had been read ahead', async () => {
    const made = await running();
    const { engine, store } = made;
    expect((await engine.take('s', 'g', 1)).map(numberOf)).toEqual([0]);
    await store.append('$$s', ANY, [{ ...events(1, 500)[0]!, type: '$metadata', data: encodeText('{"$tb":6}') }]);
    const consumer = await engine.connect('s', 'g', CONNECT);
    expect(await numbers(consumer, made)).toEqual([6, 7, 8, 9]);
    await store.deleteStream('s', ANY, 'hard');
    consumer.nack(
      events(9, 6).map(({ id }) => id),
      'Retry',
      '',
    );
    expect(await numbers(consumer, made)).toEqual([]);
    await expect(engine.info('s', 'g')).resolves.toMatchObject({
      retryBufferCount: 0,
      outstandingMessagesCount: 1,
      readBufferCount: 0,
    });
    await engine.stop();
  });

  test("goes on with the stream's numbers when a stream comes back", async () => {
    const made = await running();
    const { engine, store } = made;
    const consumer = await engine.connect('s', 'g', CONNECT);
    expect(await numbers(consumer, made, acks(consumer))).toHaveLength(10);
    await store.deleteStream('s', ANY, 'soft');
    await store.append('s', ANY, events(2, 20));
    expect(await numbers(consumer, made, acks(consumer))).toEqual([10, 11]);
    await engine.stop();
  });
});

test('what groups are at is known at once while they are loaded, and asking measures nothing', async () => {
  const { engine } = await running({}, 10);
  await engine.take('s', 'g', 4);
  expect(engine.figuresNow()).toEqual(await engine.figures());
  expect(engine.figuresNow()).toMatchObject([{ group: 'g', totalItems: 4, countSinceLastMeasurement: 4 }]);
  await engine.stop();
  expect(engine.figuresNow()).toBeNull();
});

describe('a group', () => {
  test('from the end begins there, and where an update says as long as nothing was done', async () => {
    const made = await running({ from: 'end' });
    const { engine, store } = made;
    await store.append('s', ANY, events(1, 30));
    // As after a crash: the event came before anybody looked.
    await engine.restart();
    expect((await engine.take('s', 'g', 9)).map(numberOf)).toEqual([10]);
    await expect(engine.info('s', 'g')).resolves.toMatchObject({ startFrom: '-1', lastCheckpointedPosition: null });
    await engine.update('s', 'g', { settings: settings(), from: 8 }, 'admin');
    expect((await engine.take('s', 'g', 9)).map(numberOf)).toEqual([8, 9, 10]);
    await engine.update('s', 'g', { settings: settings(), from: 'end' }, 'admin');
    expect((await engine.take('s', 'g', 9)).map(numberOf)).toEqual([]);
    await engine.stop();
  });

  test('drops its consumers when it is changed, deleted or restarted, and when the node leads no more', async () => {
    const { engine } = await running();
    for (const change of [
      () => engine.update('s', 'g', { settings: settings() }, 'admin'),
      () => engine.restart(),
      () => engine.delete('s', 'g', 'admin'),
    ]) {
      const consumer = await engine.connect('s', 'g', { ...CONNECT, bufferSize: 0 });
      const dropped = expect(consumer.next()).rejects.toMatchObject({
        code: 'persistent_subscription_dropped',
        message: 'Subscription group g on stream s was dropped.',
      });
      await change();
      await dropped;
    }
    await expect(engine.connect('s', 'g', CONNECT)).rejects.toMatchObject({
      code: 'persistent_subscription_not_found',
    });
    await engine.stop();
    await expect(engine.list()).rejects.toMatchObject({ code: 'not_leader' });
    engine.start();
    await expect(engine.list()).resolves.toEqual([]);
    await engine.stop();
  });

  test('of $all that begins where the log has ended its chunk waits there for what comes', async () => {
    const made = await running({ settings: settings() }, 3, ALL_STREAM);
    await made.engine.stop();
    const { store, engine } = made;
    await (store as EventStoreInternals).completeChunk((await store.append('s', ANY, events(1, 10))).position);
    const readAll = store.readAll.bind(store);
    let reads = 0;
    Object.assign(store, {
      readAll: (options: ReadAllOptions) => {
        // A group that reads without end would not let this test end either.
        if (++reads > 100) void engine.stop();
        return readAll(options);
      },
    });
    engine.start();
    const consumer = await engine.connect(ALL_STREAM, 'g', CONNECT);
    const last = async () => (await drain(consumer, made.clock, acks(consumer))).at(-1)?.event;
    expect(await last()).toMatchObject({ stream: 's', number: 3 });
    expect(reads).toBeLessThan(10);
    await store.append('s', ANY, events(1, 20));
    expect(await last()).toMatchObject({ stream: 's', number: 4 });
    await engine.stop();
  });

  test('of $all lets others have a turn where more is said to have come, and nothing has', async () => {
    const made = await running({ settings: settings() }, 3, ALL_STREAM);
    await made.engine.stop();
    const { store, engine } = made;
    const readAll = store.readAll.bind(store);
    let reads = 0;
    Object.assign(store, {
      readAll: (options: ReadAllOptions) => {
        reads++;
        return readAll(options);
      },
      waitForLog: async () => reads < 1_000,
    });
    engine.start();
    for (let turn = 0; turn < 40; turn++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    expect(reads).toBeGreaterThan(3);
    expect(reads).toBeLessThan(1_000);
    await engine.stop();
  });

  test('that is made again knows nothing of the one before', async () => {
    const made = await running();
    const { engine } = made;
    const consumer = await engine.connect('s', 'g', CONNECT);
    await drain(consumer, made.clock, ({ event }) => {
      consumer.nack([event.id], event.number === 2 ? 'Park' : 'Skip', '');
    });
    await made.clock.advance(300);
    await expect(engine.info('s', 'g')).resolves.toMatchObject({
      parkedMessageCount: 1,
      lastCheckpointedPosition: '9',
      parkedByClient: 1,
    });
    await engine.delete('s', 'g', 'admin');
    await engine.create('s', 'g', { settings: settings({ maxSubscriberCount: 1 }), from: 'start' }, 'admin');
    const other = await engine.connect('s', 'g', CONNECT);
    await expect(engine.connect('s', 'g', CONNECT)).rejects.toMatchObject({
      code: 'maximum_subscribers_reached',
      message: 'Maximum subscriptions reached for subscription group g on stream s.',
    });
    expect(await numbers(other, made)).toHaveLength(10);
    await expect(engine.info('s', 'g')).resolves.toMatchObject({
      parkedMessageCount: 0,
      lastCheckpointedPosition: null,
    });
    await engine.stop();
  });

  test('forgets parked messages that are truncated', async () => {
    const made = await running();
    const { engine } = made;
    const consumer = await engine.connect('s', 'g', CONNECT);
    await drain(consumer, made.clock, ({ event }) => {
      consumer.nack([event.id], 'Park', '');
    });
    await engine.truncateParked('s', 'g', 4);
    await engine.replayParked('s', 'g', null);
    const again = await drain(consumer, made.clock, acks(consumer));
    expect(again.map(({ event, retryCount }) => [event.number, event.link!.number, retryCount])).toEqual(
      [4, 5, 6, 7, 8, 9].map((number) => [number, number, 0]),
    );
    await expect(engine.replayParked('s', 'g', -1)).rejects.toMatchObject({
      data: { reason: 'Cannot stop replaying parked message at a negative version.' },
    });
    await engine.stop();
  });

  test('tells the times of answers', async () => {
    const made = await running({ settings: settings({ extraStatistics: true, messageTimeoutMs: 0 }) });
    const consumer = await made.engine.connect('s', 'g', CONNECT);
    await numbers(consumer, made);
    await made.clock.advance(40);
    consumer.ack(events(5).map(({ id }) => id));
    const [connection] = (await made.engine.info('s', 'g')).connections;
    expect(connection).toMatchObject({ totalItems: 10, inFlightMessages: 5, availableSlots: 5, username: 'admin' });
    expect(connection!.observedMeasurements.map(({ key, value }) => `${key} ${value}`)).toContain('Median 40');
    await made.engine.stop();
  });

  test('gives back all that it held', async () => {
    const clock = new ManualClock();
    const { store } = await openTestStore({ storage: new MemoryStorage(), clock });
    await store.append('s', ANY, events(50));
    const held = new Held();
    const kept = {
      stream: 's',
      group: 'g',
      settings: settings({ messageTimeoutMs: 100, maxRetryCount: 1 }),
      filter: null,
      startPosition: '0',
    };
    const group = new Group(
      {
        store,
        writes: store,
        clock,
        ids: new SeededIds(1),
        log: silentLog,
        hasher: streamHasher,
        matcherOf: async () => ({ test: () => true, stepsPerCharacter: 1 }),
        limits: DEFAULT_LIMITS,
        held,
        onWork: nothing,
      },
      kept,
    );
    group.start();
    const consumer = group.connect({ ...CONNECT, bufferSize: 20 });
    await drain(consumer, clock, ({ event }) => {
      if (event.number % 3 > 0) consumer.ack([event.id]);
    });
    for (let i = 0; i < 8; i++) {
      await clock.advance(100);
      group.tick();
      await drain(consumer, clock, nothing);
    }
    expect(held).toMatchObject({ messages: 0, bytes: 0 });
    expect((await group.info()).parkedMessageCount).toBe(17);
    await store.append('s', ANY, events(20, 60));
    await clock.advance(1);
    expect(held.messages).toBe(20);
    await group.stop(true);
    expect(held).toMatchObject({ messages: 0, bytes: 0 });
  });
});

describe('a group of $all whose start is no place at which a record begins', () => {
  /** Events over two chunks. */
  async function chunks(): Promise<World & { readonly all: readonly StoredEvent[] }> {
    const clock = new ManualClock();
    const { store } = await openTestStore({ storage: new MemoryStorage(), clock, chunkSizeBytes: 65_536 });
    for (let n = 0; n < 12; n++)
      await store.append(`s${n % 2}`, ANY, [
        ...events(1, n),
        { ...events(1, 100 + n)[0]!, data: new Uint8Array(9_000) },
      ]);
    return {
      store,
      ...engineOver(store, { clock }),
      all: (await store.readAll({ direction: 'forward', from: 'start', count: 4_096 })).events.filter(
        ({ type }) => type === 'happened',
      ),
    };
  }
  const delivered = async (made: World, group: string) => {
    const consumer = await made.engine.connect(ALL_STREAM, group, { ...CONNECT, bufferSize: 100 });
    const got = await drain(consumer, made.clock, acks(consumer));
    consumer.close();
    return got
      .map(({ event }) => event)
      .filter(({ type }) => type === 'happened')
      .map(({ id }) => id);
  };

  test('begins with the next event, however it came to have it', async () => {
    const made = await chunks();
    const { engine, store, all } = made;
    engine.start();
    const idsFrom = (commit: number) => all.filter(({ position }) => position >= commit).map(({ id }) => id);
    const starts = [1, all[3]!.position - 1, all[3]!.position + 1, all[9]!.position + 50, all.at(-1)!.position + 1].map(
      (commit) => ({ commit, prepare: Math.max(0, commit - 7) }),
    );
    // Behind the last record of a chunk.
    starts.push({ commit: 65_535, prepare: 65_535 });
    for (const [n, from] of starts.entries()) {
      await engine.create(ALL_STREAM, `made-${n}`, { settings: settings(), from }, 'admin');
      expect((await engine.info(ALL_STREAM, `made-${n}`)).startFrom).toBe(`C:${from.commit}/P:${from.prepare}`);
      expect(await delivered(made, `made-${n}`)).toEqual(idsFrom(from.commit));
    }
    await engine.create(ALL_STREAM, 'moved', { settings: settings(), from: 'end' }, 'admin');
    await engine.reset(ALL_STREAM, 'moved', starts[2]!, 'admin');
    expect(await delivered(made, 'moved')).toEqual(idsFrom(starts[2]!.commit));
    await engine.create(ALL_STREAM, 'changed', { settings: settings(), from: 'start' }, 'admin');
    await engine.update(ALL_STREAM, 'changed', { settings: settings(), from: starts[3]! }, 'admin');
    expect(await delivered(made, 'changed')).toEqual(idsFrom(starts[3]!.commit));
    await engine.stop();
    // As a directory brings it that another program wrote, one beyond the end of the log too.
    const beyond = store.end + 2_500;
    const kept = (group: string, startPosition: string) => ({
      stream: ALL_STREAM,
      group,
      settings: settings(),
      filter: null,
      startPosition,
    });
    await store.append(CONFIG_STREAM, ANY, [
      {
        id: '00000000-0000-4000-8000-00000000c0f1',
        type: CONFIG_TYPE,
        isJson: true,
        data: encodeConfig(
          [kept('brought', `C:${starts[1]!.commit}/P:3`), kept('beyond', `C:${beyond}/P:${beyond}`)],
          0,
          'admin',
        ),
        metadata: new Uint8Array(0),
      },
    ]);
    const moved = { ...made, ...engineOver(store, { clock: made.clock }) };
    moved.engine.start();
    expect(await delivered(moved, 'brought')).toEqual(idsFrom(starts[1]!.commit));
    const more = events(4, 900).map((event) => ({ ...event, data: new Uint8Array(700) }));
    const waiting = await moved.engine.connect(ALL_STREAM, 'beyond', { ...CONNECT, bufferSize: 100 });
    for (const event of more) await store.append('later', ANY, [event]);
    const expected = (await store.readStream('later', { direction: 'forward', from: 0, count: 9 })).events
      .filter(({ position }) => position >= beyond)
      .map(({ id }) => id);
    expect(expected.length).toBeGreaterThan(0);
    expect(
      (await drain(waiting, moved.clock, acks(waiting)))
        .map(({ event }) => event)
        .filter(({ stream }) => stream === 'later')
        .map(({ id }) => id),
    ).toEqual(expected);
    await moved.engine.stop();
  });
});

describe('what is refused', () => {
  test('a group whose streams would be those of another one, which goes on', async () => {
    const { engine } = await running({}, 1, 'a::b');
    await expect(engine.create('a', 'b::g', { settings: settings(), from: 'start' }, 'admin')).rejects.toMatchObject({
      code: 'persistent_subscription_failed',
      data: { stream: 'a', group: 'b::g', reason: expect.stringContaining('Group g of stream a::b') },
    });
    await expect(engine.create('a::b', 'g', { settings: settings(), from: 'start' }, 'admin')).rejects.toMatchObject({
      code: 'persistent_subscription_exists',
    });
    expect(await engine.parkedStream('a::b', 'g')).toBe('$persistentsubscription-a::b::g-parked');
    for (const ask of [
      () => engine.parkedStream('a', 'b::g'),
      () => engine.info('a', 'b::g'),
      () => engine.replayParked('a', 'b::g', null),
      () => engine.truncateParked('a', 'b::g', null),
      () => engine.take('a', 'b::g', 1),
      () => engine.delete('a', 'b::g', 'admin'),
    ]) {
      await expect(ask()).rejects.toMatchObject({ code: 'persistent_subscription_not_found' });
    }
    expect(await engine.list('a')).toEqual([]);
    await engine.delete('a::b', 'g', 'admin');
    await engine.create('a', 'b::g', { settings: settings(), from: 'start' }, 'admin');
    await engine.stop();
  });

  test.each([
    [{ settings: settings({ strategy: 'Nonsense' }) }, 'Consumer strategy Nonsense does not exist.'],
    [
      { settings: settings({ readBatchSize: 40, historyBufferSize: 40 }) },
      "Specified argument was out of the range of valid values. (Parameter 'ReadBatchSize may not be greater than or equal to BufferSize')",
    ],
    [{ filter: { on: 'stream', prefixes: ['a,b'] } }, 'A filter prefix may not contain a comma'],
    [
      { from: { commit: 9, prepare: 10 } },
      'Invalid Start From position: prepare position must be less than or equal to the commit position.',
    ],
    [
      { from: { commit: 9, prepare: -1 } },
      'Invalid Start From position: prepare and commit positions must be greater than or equal to 0 or both equal to -1.',
    ],
    [
      { from: { commit: 99_999_999_999, prepare: 99_999_999_999 } },
      'Invalid Start From position: commit position must be less than or equal to the last commit position in the transaction file.',
    ],
  ] as const)('%j', async (options, reason) => {
    const { engine } = await running();
    await expect(
      engine.create(ALL_STREAM, 'x', { settings: settings(), from: 'start', ...options }, 'admin'),
    ).rejects.toMatchObject({ code: 'persistent_subscription_failed', data: { reason } });
    await expect(engine.create('s', 'g', { settings: settings(), from: 'start' }, 'admin')).rejects.toMatchObject({
      code: 'persistent_subscription_exists',
    });
    await engine.stop();
  });
});
