import { describe, expect, it } from 'vitest';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { ANY, type AllFilter, type AllPosition, type StoredEvent } from '../../core/streams/api.ts';
import { BEGIN, ByHand, DATA, DELETE, END } from './by-hand.ts';
import type { EventStoreOptions } from '../../core/streams/store-context.ts';
import { codeOf, event, events, setUp, type Setup } from './setup.ts';

/**
 * Two interleaved transactions, one that deletes, one never committed, and implicit events, epochs and empty writes
 * between.
 */
async function mixed(misses: number, options: Partial<EventStoreOptions> = {}): Promise<Setup> {
  const s = setUp({ misses, options: { readSliceEvents: 3, ...options } });
  const hand = new ByHand(s.log);
  await s.store.writeEpoch({
    epochNumber: 0,
    prevEpochPosition: -1,
    leaderInstanceId: '00000000-0000-4000-8000-000000000001',
  });
  await s.store.append('i', ANY, events(2));
  const a = hand.prepare('a', BEGIN, -1, -1, -2);
  hand.prepare('a', DATA, a, 0, -2);
  const b = hand.prepare('b', BEGIN, -1, -1, -2);
  await s.store.append('i', ANY, events(1));
  hand.prepare('b', DATA, b, 0, -2);
  hand.prepare('a', DATA, a, 1, -2);
  const lost = hand.prepare('lost', BEGIN, -1, -1, -2);
  hand.prepare('lost', DATA, lost, 0, -2);
  hand.prepare('b', END, b, -1, -2);
  hand.commit(b, 0);
  await s.store.appendInternal('i', 2, []);
  hand.prepare('a', DATA, a, 2, -2);
  hand.prepare('a', END, a, -1, -2);
  await s.store.append('i', ANY, events(1));
  hand.commit(a, 5);
  const d = hand.prepare('b', BEGIN | DELETE | END, -1, 0, -2);
  hand.commit(d, 1);
  await s.store.append('$sys', ANY, [event('', { type: '$x' })]);
  return s;
}

const NAMES = ['0@i', '1@i', '2@i', '0@b', '3@i', '5@a', '6@a', '7@a', `${TOMBSTONE}@b`, '0@$sys'];
const nameOf = (e: StoredEvent): string => `${e.number}@${e.stream}`;

async function walk(
  { store }: Setup,
  direction: 'forward' | 'backward',
  count: number,
  filter?: AllFilter,
): Promise<{ names: string[]; pages: number }> {
  const names: string[] = [];
  let from: AllPosition | 'start' | 'end' = direction === 'forward' ? 'start' : 'end';
  for (let pages = 1; ; pages++) {
    const page = await store.readAll({ direction, from, count, ...(filter ? { filter } : {}) });
    names.push(...page.events.map(nameOf));
    if (page.isEnd) return { names, pages };
    from = page.next;
  }
}

describe.each([
  ['warm', 0],
  ['with misses', 0.4],
] as const)('$all, %s', (_, misses) => {
  it.each([1, 2, 3, 4, 7, 100])('is visited once in pages of %i, both ways', async (count) => {
    const s = await mixed(misses);
    expect((await walk(s, 'forward', count)).names).toEqual(NAMES);
    expect((await walk(s, 'backward', count)).names).toEqual(NAMES.toReversed());
  });

  it.each([1, 2, 3, 5])('is visited once in pages that look at %i records, both ways', async (allScanRecordsMax) => {
    const s = await mixed(misses, { allScanRecordsMax });
    expect((await walk(s, 'forward', 100)).names).toEqual(NAMES);
    expect((await walk(s, 'backward', 100)).names).toEqual(NAMES.toReversed());
  });

  it('starts at every event, inclusive forward and exclusive backward', async () => {
    const s = await mixed(misses);
    const { events: all, lastCommitPosition } = await s.store.readAll({
      direction: 'forward',
      from: 'start',
      count: 100,
    });
    expect(lastCommitPosition).toBe(all.at(-1)!.position);
    for (const [i, e] of all.entries()) {
      const from = { commit: e.position, prepare: e.preparePosition };
      expect((await s.store.readAll({ direction: 'forward', from, count: 100 })).events.map(nameOf)).toEqual(
        NAMES.slice(i),
      );
      expect((await s.store.readAll({ direction: 'backward', from, count: 100 })).events.map(nameOf)).toEqual(
        NAMES.slice(0, i).toReversed(),
      );
      const start = NAMES.findIndex((_name, j) => all[j]!.position === e.position);
      expect(
        (
          await s.store.readAll({ direction: 'forward', from: { commit: e.position, prepare: 0 }, count: 100 })
        ).events.map(nameOf),
      ).toEqual(NAMES.slice(start));
      expect(
        (
          await s.store.readAll({ direction: 'backward', from: { commit: e.position, prepare: 0 }, count: 100 })
        ).events.map(nameOf),
      ).toEqual(NAMES.slice(0, start).toReversed());
    }
  });

  it('starts at the next event where no record begins, if that is asked for', async () => {
    const s = await mixed(misses);
    const { events: all } = await s.store.readAll({ direction: 'forward', from: 'start', count: 100 });
    const read = async (commit: number, prepare: number) =>
      (await s.store.readAll({ direction: 'forward', from: { commit, prepare }, orNext: true, count: 100 })).events.map(
        nameOf,
      );
    for (let at = 0; at <= s.store.end; at += 5)
      expect(await read(at, 0)).toEqual(NAMES.filter((_name, i) => all[i]!.position >= at));
    for (const { position } of all)
      expect(await read(position + 1, position + 1)).toEqual(NAMES.filter((_name, i) => all[i]!.position > position));
    // Within a transaction the place of none of its events stands for all of them.
    expect(await read(all[5]!.position, all[5]!.preparePosition + 1)).toEqual(NAMES.slice(5));
    expect(await read(all[6]!.position, all[6]!.preparePosition)).toEqual(NAMES.slice(6));
    expect(
      await codeOf(s.store.readAll({ direction: 'backward', from: { commit: 1, prepare: 1 }, orNext: true, count: 1 })),
    ).toBe('invalid_position');
  });

  it('has the positions of explicit transactions', async () => {
    const s = await mixed(misses);
    const { events: all } = await s.store.readAll({ direction: 'forward', from: 'start', count: 100 });
    const [five, six, seven] = all.slice(5, 8);
    expect(new Set([five!.position, six!.position, seven!.position]).size).toBe(1);
    expect(five!.preparePosition).toBeLessThan(six!.preparePosition);
    expect(seven!.preparePosition).toBeLessThan(seven!.position);
    expect(all[0]!.preparePosition).toBe(all[0]!.position);
  });

  it.each<[AllFilter, string[]]>([
    [{ on: 'stream', prefixes: ['a', 'b'] }, ['0@b', '5@a', '6@a', '7@a', `${TOMBSTONE}@b`]],
    [{ on: 'type', prefixes: ['th'] }, ['0@i', '1@i', '2@i', '3@i']],
    [
      { on: 'stream', regex: { test: (text) => /[ab$]/.test(text), stepsPerCharacter: 1 }, prefixes: ['i'] },
      ['0@b', '5@a', '6@a', '7@a', `${TOMBSTONE}@b`, '0@$sys'],
    ],
    [{ on: 'stream', excludeSystemEvents: true }, NAMES.slice(0, 9)],
    [{ on: 'type', prefixes: [] }, []],
    [{ on: 'type', prefixes: [''] }, NAMES],
  ])('filters %j', async (filter, expected) => {
    const s = await mixed(misses);
    expect((await walk(s, 'forward', 2, filter)).names).toEqual(expected);
    expect((await walk(s, 'backward', 2, filter)).names).toEqual(expected.toReversed());
  });
});

describe('pages of $all', () => {
  it('examine a bounded number of records', async () => {
    const s = setUp({ options: { allScanRecordsMax: 10, readSliceEvents: 4 } });
    await s.store.append('s', ANY, events(95));
    await s.store.append('t', ANY, events(1));
    const filter: AllFilter = { on: 'stream', prefixes: ['t'] };
    expect(await walk(s, 'forward', 5, filter)).toEqual({ names: ['0@t'], pages: 10 });
    expect(await walk(s, 'backward', 5, filter)).toEqual({ names: ['0@t'], pages: 10 });
  });

  it('end where an expression has had much to do, and go on behind it', async () => {
    const s = setUp();
    await s.store.append('s', ANY, events(9));
    await s.store.append('t', ANY, events(1));
    // A quarter of what a page may cost, each.
    const filter: AllFilter = { on: 'stream', regex: { test: (text) => text === 't', stepsPerCharacter: 16_777_216 } };
    expect(await walk(s, 'forward', 5, filter)).toEqual({ names: ['0@t'], pages: 3 });
    expect(await walk(s, 'backward', 5, filter)).toEqual({ names: ['0@t'], pages: 3 });
  });

  it('refuse places that are none', async () => {
    const { store } = setUp();
    await store.append('s', ANY, events(3));
    const { end } = store;
    const at = (commit: number, prepare = commit) => ({ from: { commit, prepare }, count: 10 });
    expect(await codeOf(store.readAll({ direction: 'forward', ...at(1) }))).toBe('invalid_position');
    expect(await codeOf(store.readAll({ direction: 'backward', ...at(1) }))).toBe('invalid_position');
    expect(await codeOf(store.readAll({ direction: 'forward', ...at(-1) }))).toBe('invalid_position');
    expect(await codeOf(store.readAll({ direction: 'backward', ...at(end + 1) }))).toBe('invalid_position');
    expect(await codeOf(store.readAll({ direction: 'forward', from: 'start', count: 0 }))).toBe('invalid_count');
    expect(await codeOf(store.readAll({ direction: 'forward', from: 'start', count: 5000 }))).toBe('page_too_large');
    expect(await store.readAll({ direction: 'forward', ...at(end + 999) })).toMatchObject({
      events: [],
      isEnd: true,
      next: { commit: end + 999 },
    });
    expect(await store.readAll({ direction: 'forward', from: 'end', count: 1 })).toMatchObject({
      events: [],
      isEnd: true,
      from: { commit: end, prepare: end },
    });
    expect(await store.readAll({ direction: 'backward', from: 'start', count: 1 })).toMatchObject({
      events: [],
      isEnd: true,
    });
    // The end of the log, taken before a chunk was completed, stays a place.
    const s = setUp({ capacity: 1_024 });
    await s.store.append('s', ANY, [event('x'.repeat(500))]);
    const page = await s.store.readAll({ direction: 'forward', from: 'start', count: 10 });
    await s.store.append('s', ANY, [event('x'.repeat(500))]);
    expect((await s.store.readAll({ direction: 'forward', from: page.next, count: 10 })).events.map(nameOf)).toEqual([
      '1@s',
    ]);
  });

  it('ends with the log where that has ended its chunk: who waits behind it for more waits', async () => {
    const { store } = setUp({ capacity: 65_536 });
    await store.appendInternal('s', ANY, events(2), { completeChunkAfter: true });
    const { next, isEnd } = await store.readAll({ direction: 'forward', from: 'start', count: 10 });
    expect({ next, isEnd, end: store.end }).toEqual({ next: { commit: 65_536, prepare: 0 }, isEnd: true, end: 65_536 });
    const ending = new AbortController();
    let hasCome = false;
    const waiting = store.waitForLog(next.commit, ending.signal).then((came) => {
      hasCome = came;
    });
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(hasCome).toBe(false);
    await store.append('s', ANY, events(1));
    await waiting;
    expect(hasCome).toBe(true);
    expect((await store.readAll({ direction: 'forward', from: next, count: 10 })).events.map(nameOf)).toEqual(['2@s']);
  });
});

describe('events of explicit transactions in their stream', () => {
  it('are read by their index entries', async () => {
    const s = setUp();
    const hand = new ByHand(s.log);
    const a = hand.prepare('a', BEGIN, -1, -1, -2);
    s.index.addEvent('a', 0, hand.prepare('a', DATA, a, 0, -2));
    s.index.addEvent('a', 1, hand.prepare('a', DATA, a, 1, -2));
    hand.prepare('a', END, a, -1, -2);
    hand.commit(a, 0);
    expect(await s.store.append('a', 1, events(1))).toMatchObject({ firstEventNumber: 2 });
    const page = await s.store.readStream('a', { direction: 'forward', from: 0, count: 9 });
    expect(page.events.map((e) => [e.number, e.position >= 0])).toEqual([
      [0, false],
      [1, false],
      [2, true],
    ]);
  });
});
