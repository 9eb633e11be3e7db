import { describe, expect, it } from 'vitest';
import { collidingHasher } from '../support/colliding-hasher.ts';
import { Random } from '../support/random.ts';
import { ANY, type NewEvent, NO_STREAM, STREAM_EXISTS } from '../../core/streams/api.ts';
import { RecentIds } from '../../core/streams/recent-ids.ts';
import { event, events, newId, outcomeOf, setUp } from './setup.ts';

describe.each([
  ['warm', {}],
  ['with misses and colliding hashes', { hasher: collidingHasher, misses: 0.3 }],
] as const)('repeats, %s', (_, options) => {
  it('by number answer the original place, even after a restart', async () => {
    const first = setUp(options);
    const [a, b, c] = [events(2), events(2), events(1)];
    const original = await first.store.append('s', NO_STREAM, a);
    await first.store.append('s', 1, b);
    await first.store.append('s', 3, c);
    const { store, log } = setUp({ ...options, from: first });
    const end = log.end;
    expect(await store.append('s', NO_STREAM, a)).toEqual({ ...original, isRepeat: true });
    expect(await store.append('s', 1, b)).toMatchObject({ firstEventNumber: 2, lastEventNumber: 3, isRepeat: true });
    expect(await store.append('s', 0, [a[1]!])).toMatchObject({ firstEventNumber: 1, isRepeat: true });
    expect(await outcomeOf(store.append('s', 1, events(2)))).toBe('conflict 4');
    expect(await outcomeOf(store.append('s', 1, [b[0]!, event()]))).toBe('conflict 4');
    expect(await outcomeOf(store.append('s', 3, [c[0]!, event()]))).toBe('conflict 4');
    expect(await outcomeOf(store.append('s', 2, b))).toBe('conflict 4');
    expect(await outcomeOf(store.append('s', 5, c))).toBe('conflict 4');
    expect(log.end).toBe(end);
    // At the end of the stream nothing is ever a repeat.
    expect(await store.append('s', 4, c)).toMatchObject({ firstEventNumber: 5, isRepeat: false });
  });

  it('by id are known for a while, in this stream only', async () => {
    const { store } = setUp(options);
    const [a, b] = [events(3), events(2)];
    const original = await store.append('s', ANY, a);
    await store.append('s', ANY, b);
    expect(await store.append('s', ANY, a)).toEqual({ ...original, isRepeat: true });
    expect(await store.append('s', STREAM_EXISTS, [a[1]!])).toMatchObject({
      firstEventNumber: 1,
      lastEventNumber: 1,
      isRepeat: true,
    });
    // Known ids in another order answer the place of the first one.
    expect(await store.append('s', ANY, [b[0]!, a[0]!])).toMatchObject({
      firstEventNumber: 3,
      lastEventNumber: 0,
      isRepeat: true,
    });
    expect(await outcomeOf(store.append('s', ANY, [a[0]!, event()]))).toBe('conflict 4');
    expect(await store.append('s', ANY, [event(), a[0]!])).toMatchObject({ firstEventNumber: 5, isRepeat: false });
    expect(await store.append('t', ANY, a)).toMatchObject({ firstEventNumber: 0, isRepeat: false });
    expect(await store.append('t', ANY, a)).toMatchObject({ firstEventNumber: 0, isRepeat: true });
    expect(await store.append('s', ANY, a)).toEqual({ ...original, isRepeat: true });
  });

  it('go by the id alone, and one id twice in a batch is written twice', async () => {
    const { store } = setUp(options);
    const twice = event('x');
    expect(await store.append('s', ANY, [twice, twice])).toMatchObject({ firstEventNumber: 0, lastEventNumber: 1 });
    expect(await store.append('s', ANY, [{ ...twice, type: 'other', id: twice.id.toUpperCase() }])).toMatchObject({
      firstEventNumber: 0,
      isRepeat: true,
    });
  });

  it('are answered when the original is in the same group', async () => {
    const { store, log } = setUp(options);
    await store.append('s', ANY, events(1));
    const [a, b] = [events(2), events(1)];
    const [first, again, byNumber, other, conflict] = await Promise.all([
      store.append('s', ANY, a),
      store.append('s', ANY, a),
      store.append('s', 0, a),
      store.append('s', 2, b),
      outcomeOf(store.append('s', 0, events(1))),
    ]);
    expect(again).toEqual({ ...first, isRepeat: true });
    expect(byNumber).toEqual({ ...first, isRepeat: true });
    expect(other).toMatchObject({ firstEventNumber: 3, isRepeat: false });
    expect(conflict).toBe('conflict 3');
    expect(log.starts.length).toBe(4);
  });

  it('survive a restart by id for the last events of the log', async () => {
    const first = setUp(options);
    const a = events(2);
    await first.store.append('s', ANY, a);
    await first.store.append('t', ANY, events(2));
    const { store } = setUp({ ...options, from: first });
    await store.primeRecentIds();
    expect(await store.append('s', ANY, a)).toMatchObject({ firstEventNumber: 0, lastEventNumber: 1, isRepeat: true });
  });

  it('on a soft-deleted stream are its first events again, or it comes back', async () => {
    const { store } = setUp(options);
    const a = events(2);
    await store.append('s', NO_STREAM, a);
    await store.deleteStream('s', ANY, 'soft');
    expect(await store.append('s', NO_STREAM, a)).toMatchObject({ firstEventNumber: 0, isRepeat: true });
    expect(await outcomeOf(store.append('s', NO_STREAM, [a[0]!, event()]))).toBe('conflict 1');
    expect(await store.append('s', NO_STREAM, [event(), a[1]!])).toMatchObject({
      firstEventNumber: 2,
      isRepeat: false,
    });
  });
});

describe('repeats of events that a scavenge removed', () => {
  it('are written again', async () => {
    const { store, log } = setUp();
    const a = event();
    const { position } = await store.append('s', ANY, [a]);
    await store.append('s', ANY, events(1));
    log.remove(position);
    expect(await store.append('s', ANY, [a])).toMatchObject({ firstEventNumber: 2, isRepeat: false });
    expect(await store.append('s', ANY, [a])).toMatchObject({ firstEventNumber: 2, isRepeat: true });
  });
});

describe('the remembered ids', () => {
  it.each([1, 16, 100, 2_048])('behave like a map of at most %d ids on random histories', (capacity) => {
    const random = new Random(7);
    const recent = new RecentIds(capacity);
    const ids = Array.from({ length: Math.ceil(capacity * 2.5) }, (_, i) =>
      Uint8Array.of(i & 3, 0, 0, 0, 0, 0, 0, 0, (i >> 2) & 255, i >> 10, 0, 0, 0, 0, 0, 0),
    );
    let model: { key: number; position: number }[] = [];
    let groupStart = 0;
    for (let position = 0; position < Math.max(5_000, 8 * capacity); position++) {
      const key = random.int(0, ids.length - 1);
      const known = model.find((m) => m.key === key);
      expect(recent.find(ids[key]!, 0, 9)).toBe(known?.position ?? -1);
      expect(recent.find(ids[key]!, 0, 8)).toBe(-1);
      if (known === undefined) {
        recent.add(ids[key]!, 0, 9, position, 0);
        model.push({ key, position });
        model = model.slice(-capacity);
      } else recent.add(ids[key]!, 0, 9, position, 0);
      if (random.chance(0.2)) groupStart = position + 1;
      if (random.chance(0.05)) {
        recent.withdrawFrom(groupStart);
        model = model.filter((m) => m.position < groupStart);
      }
    }
  });

  it('replace what is out of date, and take a replacement back', () => {
    const recent = new RecentIds(4);
    const [a, b] = [Uint8Array.from({ length: 16 }, () => 1), Uint8Array.from({ length: 16 }, () => 2)];
    recent.add(a, 0, 1, 10, 0);
    recent.add(b, 0, 1, 20, 0);
    recent.add(a, 0, 1, 30, 30);
    expect(recent.find(a, 0, 1)).toBe(30);
    recent.add(a, 0, 1, 40, 30);
    expect(recent.find(a, 0, 1)).toBe(30);
    recent.withdrawFrom(30);
    expect(recent.find(a, 0, 1)).toBe(-1);
    expect(recent.find(b, 0, 1)).toBe(20);
  });
});

describe('many writers', () => {
  it('fill groups', async () => {
    const { store, log } = setUp();
    log.beforeAppend = () =>
      new Promise((resolve) => {
        setImmediate(resolve);
      });
    const client = async (name: string): Promise<void> => {
      for (let i = 0; i < 50; i++) await store.append(name, i - 1, [event()]);
    };
    await Promise.all(Array.from({ length: 64 }, (_, i) => client(`s${i}`)));
    expect((64 * 50) / log.groups.length).toBeGreaterThanOrEqual(32);
  });

  it('to one stream get each number once', async () => {
    const { store, log } = setUp({ misses: 0.1 });
    log.beforeAppend = () =>
      new Promise((resolve) => {
        setImmediate(resolve);
      });
    const numbers: number[] = [];
    const client = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        const batch: NewEvent[] = [{ ...event(), id: newId() }];
        for (;;) {
          const { lastEventNumber } = await store.streamInfo('s');
          if (
            (await outcomeOf(
              store.append('s', lastEventNumber, batch).then((r) => {
                numbers.push(r.firstEventNumber);
              }),
            )) === 'ok'
          )
            break;
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 160 }, (_, i) => i));
  });
});
