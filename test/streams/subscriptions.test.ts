import { describe, expect, it } from 'vitest';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { collidingHasher } from '../support/colliding-hasher.ts';
import { Random } from '../support/random.ts';
import { ANY, type SubscriptionMessage } from '../../core/streams/api.ts';
import { brief, codeOf, event, events, setMetadata, setUp, takeUntil } from './setup.ts';

const count =
  (n: number) =>
  (messages: SubscriptionMessage[]): boolean =>
    messages.length >= n;
const live = (messages: SubscriptionMessage[]): boolean => messages.at(-1)?.kind === 'caught-up';
const turn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

describe('a subscription to a stream', () => {
  it('gives history, says so, and goes on live', async () => {
    const { store } = setUp({ options: { subscriptionPageEvents: 2 } });
    await store.append('s', ANY, events(5));
    const all = store.subscribeToStream('s', { after: -1 })[Symbol.asyncIterator]();
    expect(brief(await takeUntil(all, live))).toEqual([0, 1, 2, 3, 4, 'caught-up']);
    const next = all.next();
    await store.append('other', ANY, events(1));
    await store.append('s', ANY, events(1));
    expect((await next).value).toMatchObject({ kind: 'event', event: { number: 5 } });
    // Far behind again: it says so when it has caught up.
    await store.append('s', ANY, events(7));
    expect(brief(await takeUntil(all, live))).toEqual([6, 7, 8, 9, 10, 11, 12, 'caught-up']);
    await all.return!();
    const late = store.subscribeToStream('s', { after: 3 })[Symbol.asyncIterator]();
    expect(brief(await takeUntil(late, count(2)))).toEqual([4, 5]);
    await late.return!();
  });

  it('waits for a stream that is not there, and ends only with its tombstone', async () => {
    const { store } = setUp();
    const reader = store.subscribeToStream('s', { after: -1 })[Symbol.asyncIterator]();
    expect(brief(await takeUntil(reader, live))).toEqual(['caught-up']);
    const next = reader.next();
    await store.append('s', ANY, events(2));
    expect((await next).value).toMatchObject({ event: { number: 0 } });
    expect(brief(await takeUntil(reader, count(1)))).toEqual([1]);
    const after = reader.next();
    await store.deleteStream('s', ANY, 'soft');
    await store.append('s', -1, events(1));
    expect((await after).value).toMatchObject({ event: { number: 2 } });
    const [waiting] = [reader.next(), await turn()];
    await Promise.all([store.append('s', ANY, events(2)), store.deleteStream('s', ANY, 'hard')]);
    expect((await waiting).value).toMatchObject({ event: { number: 3 } });
    expect(brief(await takeUntil(reader, count(2)))).toEqual([4, TOMBSTONE]);
    expect(await codeOf(reader.next())).toBe('stream_deleted');
    expect(await codeOf(store.subscribeToStream('s', { after: 'end' })[Symbol.asyncIterator]().next())).toBe(
      'stream_deleted',
    );
  });

  it('from the end, or from beyond it, gives only what comes', async () => {
    const { store } = setUp();
    await store.append('s', ANY, events(3));
    const end = store.subscribeToStream('s', { after: 'end' })[Symbol.asyncIterator]();
    const beyond = store.subscribeToStream('s', { after: 4 })[Symbol.asyncIterator]();
    expect(brief(await takeUntil(end, live))).toEqual(['caught-up']);
    expect(brief(await takeUntil(beyond, live))).toEqual(['caught-up']);
    const [first, second] = [end.next(), beyond.next()];
    await store.append('s', ANY, events(3));
    expect((await first).value).toMatchObject({ event: { number: 3 } });
    expect((await second).value).toMatchObject({ event: { number: 5 } });
  });

  it('leaves hidden events out and follows metadata and its deletion', async () => {
    const { store } = setUp();
    await store.append('s', ANY, events(5));
    await setMetadata(store, 's', '{"$maxCount":2}');
    const reader = store.subscribeToStream('s', { after: -1 })[Symbol.asyncIterator]();
    expect(brief(await takeUntil(reader, live))).toEqual([3, 4, 'caught-up']);
    const meta = store.subscribeToStream('$$s', { after: -1 })[Symbol.asyncIterator]();
    expect(brief(await takeUntil(meta, live))).toEqual([0, 'caught-up']);
    const waiting = codeOf(meta.next());
    await store.deleteStream('s', ANY, 'hard');
    expect(await waiting).toBe('stream_deleted');
  });

  it('ends when it is aborted, left, or the store closed', async () => {
    const { store } = setUp({ options: { subscriptionsMax: 2 } });
    const abort = new AbortController();
    const first = store.subscribeToStream('s', { after: -1, signal: abort.signal })[Symbol.asyncIterator]();
    const second = store.subscribeToAll({ after: 'start' })[Symbol.asyncIterator]();
    await takeUntil(first, live);
    await takeUntil(second, live);
    expect(await codeOf(store.subscribeToAll({ after: 'start' })[Symbol.asyncIterator]().next())).toBe('too_busy');
    const ended = first.next();
    abort.abort();
    expect(await ended).toEqual({ done: true, value: undefined });
    const third = store.subscribeToStream('s', { after: -1 })[Symbol.asyncIterator]();
    await takeUntil(third, live);
    const closing = [codeOf(second.next()), codeOf(third.next())];
    await store.close();
    expect(await Promise.all(closing)).toEqual(['store_closed', 'store_closed']);
  });

  it('resolves links', async () => {
    const { store } = setUp();
    await store.append('s', ANY, events(1));
    await store.append('l', ANY, [event('0@s', { type: '$>' })]);
    const reader = store.subscribeToStream('l', { after: -1, resolveLinks: true })[Symbol.asyncIterator]();
    expect((await reader.next()).value).toMatchObject({ event: { stream: 's', link: { stream: 'l' } } });
  });
});

describe('a subscription to $all', () => {
  it('starts behind a position, filters, and goes on live', async () => {
    const { store } = setUp({ options: { subscriptionPageEvents: 2 } });
    await store.append('a', ANY, events(3));
    await store.append('b', ANY, events(2));
    const { events: all } = await store.readAll({ direction: 'forward', from: 'start', count: 10 });
    const behind = store
      .subscribeToAll({ after: { commit: all[1]!.position, prepare: all[1]!.preparePosition } })
      [Symbol.asyncIterator]();
    expect(brief(await takeUntil(behind, live))).toEqual([2, 0, 1, 'caught-up']);
    const filtered = store
      .subscribeToAll({ after: 'start', filter: { on: 'stream', prefixes: ['b'] } })
      [Symbol.asyncIterator]();
    expect(brief(await takeUntil(filtered, live))).toEqual([0, 1, 'caught-up']);
    const end = store.subscribeToAll({ after: 'end' })[Symbol.asyncIterator]();
    const beyond = store.subscribeToAll({ after: { commit: store.end + 9, prepare: 0 } })[Symbol.asyncIterator]();
    expect(brief(await takeUntil(end, live))).toEqual(['caught-up']);
    expect(brief(await takeUntil(beyond, live))).toEqual(['caught-up']);
    const waiting = [behind, filtered, end, beyond].map((reader) => reader.next());
    await store.append('a', ANY, events(1));
    await store.append('b', ANY, events(1));
    expect((await Promise.all(waiting)).map((r) => (r.value as { event: { stream: string } }).event.stream)).toEqual([
      'a',
      'b',
      'a',
      'a',
    ]);
    expect(
      await codeOf(
        store
          .subscribeToAll({ after: { commit: 1, prepare: 1 } })
          [Symbol.asyncIterator]()
          .next(),
      ),
    ).toBe('invalid_position');
  });
});

describe('coming back', () => {
  const B = { on: 'stream', prefixes: ['b'] } as const;

  it('to a stream after the place of the caught-up mark misses nothing and repeats nothing', async () => {
    const { store } = setUp();
    const marks: unknown[] = [];
    for (const after of [-1, 'end'] as const) {
      const [mark] = await takeUntil(store.subscribeToStream('s', { after })[Symbol.asyncIterator](), live);
      marks.push(mark);
    }
    await store.append('s', ANY, events(3));
    for (const after of [-1, 1, 'end'] as const)
      marks.push((await takeUntil(store.subscribeToStream('s', { after })[Symbol.asyncIterator](), live)).at(-1));
    expect(marks).toEqual([-1, -1, 2, 2, 2].map((after) => ({ kind: 'caught-up', after })));
  });

  it('to $all does the same, from wherever it began, with a filter and without', async () => {
    const { store } = setUp();
    expect(await takeUntil(store.subscribeToAll({ after: 'start' })[Symbol.asyncIterator](), live)).toEqual([
      { kind: 'caught-up', after: null },
    ]);
    await store.append('a', ANY, events(4));
    await store.append('b', ANY, events(2));
    await store.append('a', ANY, events(3));
    const { events: all } = await store.readAll({ direction: 'forward', from: 'start', count: 20 });
    const places = all.map(({ position: commit, preparePosition: prepare }) => ({ commit, prepare }));
    for (const filter of [undefined, B]) {
      for (const after of ['start', 'end', ...places, { commit: store.end + 50, prepare: 0 }] as const) {
        for (const isInclusive of [false, true]) {
          const seen = await takeUntil(
            store.subscribeToAll({ after, isInclusive, ...(filter && { filter }) })[Symbol.asyncIterator](),
            live,
          );
          expect(seen.at(-1)).toEqual({ kind: 'caught-up', after: places.at(-1) });
          const from = after === 'start' ? 0 : places.findIndex((place) => place === after) + (isInclusive ? 0 : 1);
          const wanted =
            after === 'end' || (after !== 'start' && after.commit > store.end)
              ? []
              : all.slice(from).filter(({ stream }) => filter === undefined || stream === 'b');
          expect(brief(seen.slice(0, -1))).toEqual(wanted.map(({ number }) => number));
        }
      }
    }
    const back = store.subscribeToAll({ after: places.at(-1)! })[Symbol.asyncIterator]();
    await store.append('b', ANY, events(1));
    expect(brief(await takeUntil(back, live))).toEqual([2, 'caught-up']);
  });

  it('to a filtered $all looks at no more than what was not looked at since the last checkpoint', async () => {
    const { store } = setUp({ options: { checkpointRecords: 8, readSliceEvents: 3 } });
    await store.append('a', ANY, events(30));
    await store.append('b', ANY, events(1));
    await store.append('a', ANY, events(20));
    const reader = store.subscribeToAll({ after: 'start', filter: B })[Symbol.asyncIterator]();
    const seen = await takeUntil(reader, live);
    expect(seen.map(({ kind }) => kind)).toEqual([
      'checkpoint',
      'checkpoint',
      'checkpoint',
      'event',
      'checkpoint',
      'checkpoint',
      'caught-up',
    ]);
    const { events: all } = await store.readAll({ direction: 'forward', from: 'start', count: 60 });
    expect(seen[2]).toEqual({
      kind: 'checkpoint',
      after: { commit: all[23]!.position, prepare: all[23]!.preparePosition },
    });
    // From each of them on comes the same as without having been away.
    for (let i = 0; i < seen.length; i++) {
      const message = seen[i]!;
      if (message.kind === 'event' || message.after === null || typeof message.after === 'number') continue;
      const rest = await takeUntil(
        store.subscribeToAll({ after: message.after, filter: B })[Symbol.asyncIterator](),
        live,
      );
      expect(rest.filter(({ kind }) => kind === 'event')).toEqual(seen.slice(i).filter(({ kind }) => kind === 'event'));
    }
    // Live too, where nothing that others write is wanted.
    const next = reader.next();
    for (let i = 0; i < 10; i++) {
      await store.append('a', ANY, events(1));
      await turn();
    }
    expect((await next).value).toMatchObject({ kind: 'checkpoint' });
    await reader.return!();
    const unfiltered = store.subscribeToAll({ after: 'start' })[Symbol.asyncIterator]();
    expect((await takeUntil(unfiltered, live)).filter(({ kind }) => kind === 'checkpoint')).toEqual([]);
  });
});

describe.each([1, 2, 3, 4, 5, 6])('readers beside writers, seed %i', (seed) => {
  it('miss nothing and get nothing twice', async () => {
    const random = new Random(seed);
    const { store, log } = setUp({
      misses: 0.2,
      options: { subscriptionPageEvents: 3, groupRequestsMax: 4 },
      ...(seed % 2 === 0 ? { hasher: collidingHasher } : {}),
    });
    const pause = async (): Promise<void> => {
      for (let i = random.int(0, 3); i > 0; i--) await turn();
    };
    log.beforeAppend = pause;
    const total = 60;
    const write = async (stream: string): Promise<void> => {
      for (let written = 0; written < total;) {
        const size = Math.min(random.int(1, 4), total - written);
        await store.append(stream, written - 1, events(size));
        written += size;
        await pause();
      }
    };
    const read = async (messages: AsyncIterable<SubscriptionMessage>, wanted: number): Promise<string[]> => {
      const seen: string[] = [];
      for await (const message of messages) {
        if (message.kind === 'event') seen.push(`${message.event.number}@${message.event.stream}`);
        if (seen.length === wanted) break;
        if (random.chance(0.2)) await pause();
      }
      return seen;
    };
    const streams = ['a', 'b', 'c'];
    const readers = streams.map((stream) => read(store.subscribeToStream(stream, { after: -1 }), total));
    const all = read(store.subscribeToAll({ after: 'start' }), total * streams.length);
    await Promise.all(streams.map(write));
    for (const [i, stream] of streams.entries())
      expect(await readers[i]).toEqual(Array.from({ length: total }, (_, n) => `${n}@${stream}`));
    const seen = await all;
    for (const stream of streams)
      expect(seen.filter((name) => name.endsWith(stream))).toEqual(
        Array.from({ length: total }, (_, n) => `${n}@${stream}`),
      );
  });
});

describe('waiting', () => {
  it('for a stream or the log ends with a write or the signal', async () => {
    const { store } = setUp();
    const { signal } = new AbortController();
    const abort = new AbortController();
    const results = [
      store.waitForStream('s', signal),
      store.waitForLog(0, signal),
      store.waitForStream('t', abort.signal),
      store.waitForLog(10_000, abort.signal),
    ];
    await store.append('s', ANY, events(1));
    expect(await Promise.all(results.slice(0, 2))).toEqual([true, true]);
    expect(await store.waitForLog(0, signal)).toBe(true);
    abort.abort();
    expect(await Promise.all(results.slice(2))).toEqual([false, false]);
    expect(await store.waitForStream('s', abort.signal)).toBe(false);
  });
});
