import { describe, expect, it } from 'vitest';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { collidingHasher } from '../support/colliding-hasher.ts';
import { ANY, type ReadStreamOptions } from '../../core/streams/api.ts';
import { parseLink } from '../../core/streams/format/links.ts';
import { encodeText } from '../../core/base/text.ts';
import { brief, codeOf, event, events, numbers, setMetadata, setUp, takeUntil, type Setup } from './setup.ts';

type Page = [numbers: number[], next: number, isEnd: boolean];

async function read(
  { store }: Setup,
  direction: 'forward' | 'backward',
  from: number | 'end',
  count: number,
  stream = 's',
): Promise<Page> {
  const page = await store.readStream(stream, { direction, from, count });
  return [numbers(page.events), page.nextEventNumber, page.isEnd];
}

describe.each([
  ['warm', {}],
  ['with misses and colliding hashes', { hasher: collidingHasher, misses: 0.3 }],
] as const)('pages of a stream, %s', (_, options) => {
  const filled = async (count: number): Promise<Setup> => {
    const first = setUp(options);
    for (let i = 0; i < count; i++) {
      await first.store.append('s', ANY, [event(`s${i}`)]);
      await first.store.append('other', ANY, [event(`o${i}`)]);
    }
    return setUp({ ...options, from: first });
  };

  it('go both ways', async () => {
    const s = await filled(10);
    expect(await read(s, 'forward', 0, 4)).toEqual([[0, 1, 2, 3], 4, false]);
    expect(await read(s, 'forward', 4, 6)).toEqual([[4, 5, 6, 7, 8, 9], 10, true]);
    expect(await read(s, 'forward', 9, 6)).toEqual([[9], 10, true]);
    expect(await read(s, 'forward', 10, 6)).toEqual([[], 10, true]);
    expect(await read(s, 'forward', 99, 6)).toEqual([[], 10, true]);
    expect(await read(s, 'forward', 'end', 6)).toEqual([[9], 10, true]);
    expect(await read(s, 'backward', 'end', 4)).toEqual([[9, 8, 7, 6], 5, false]);
    expect(await read(s, 'backward', 3, 4)).toEqual([[3, 2, 1, 0], -1, true]);
    expect(await read(s, 'backward', 3, 3)).toEqual([[3, 2, 1], 0, false]);
    expect(await read(s, 'backward', 99, 2)).toEqual([[9, 8], 7, false]);
    const page = await s.store.readStream('s', { direction: 'backward', from: 'end', count: 1 });
    expect(page).toMatchObject({ stream: 's', from: 9, lastEventNumber: 9, metadata: {} });
    expect(page.events[0]).toMatchObject({
      stream: 's',
      number: 9,
      type: 'thing',
      data: encodeText('s9'),
      link: null,
      createdMs: 1_700_000_000_000,
    });
    expect(page.events[0]!.position).toBe(page.events[0]!.preparePosition);
  });

  it('obey $tb and $maxCount', async () => {
    const s = await filled(10);
    await setMetadata(s.store, 's', '{"$tb":4}');
    expect(await read(s, 'forward', 0, 3)).toEqual([[], 4, false]);
    expect(await read(s, 'forward', 0, 6)).toEqual([[4, 5], 6, false]);
    expect(await read(s, 'backward', 'end', 6)).toEqual([[9, 8, 7, 6, 5, 4], -1, true]);
    expect(await read(s, 'backward', 6, 2)).toEqual([[6, 5], 4, false]);
    expect(await read(s, 'backward', 2, 2)).toEqual([[], -1, true]);
    await setMetadata(s.store, 's', '{"$tb":4,"$maxCount":3}');
    expect(await read(s, 'forward', 0, 100)).toEqual([[7, 8, 9], 10, true]);
    await setMetadata(s.store, 's', '{"$tb":40}');
    expect(await read(s, 'forward', 0, 3)).toEqual([[], 10, true]);
    expect(await read(s, 'backward', 'end', 3)).toEqual([[], -1, true]);
    expect(await codeOf(s.store.readEvent('s', 9))).toBe('event_not_found');
    await setMetadata(s.store, 's', '{}');
    expect(await read(s, 'forward', 0, 3)).toEqual([[0, 1, 2], 3, false]);
    expect(numbers([await s.store.readEvent('s', 0)])).toEqual([0]);
    expect(await read(s, 'forward', 0, 3, '$$s')).toEqual([[], 3, false]);
    expect(await read(s, 'forward', 3, 3, '$$s')).toEqual([[3], 4, true]);
  });

  it('obey $maxAge', async () => {
    const first = setUp(options);
    for (let i = 0; i < 10; i++) {
      await first.store.append('s', ANY, [event()]);
      await first.clock.advance(1000);
    }
    await setMetadata(first.store, 's', '{"$maxAge":3}');
    const s = setUp({ ...options, from: first });
    // As the reference: a page of expired numbers begins with the first event that is alive.
    expect(await read(s, 'forward', 0, 4)).toEqual([[7, 8, 9], 10, true]);
    expect(await read(s, 'forward', 0, 2)).toEqual([[7, 8], 9, false]);
    expect(await read(s, 'forward', 5, 2)).toEqual([[7, 8], 9, false]);
    expect(await read(s, 'forward', 6, 2)).toEqual([[7], 8, false]);
    expect(await read(s, 'forward', 0, 9)).toEqual([[7, 8], 9, false]);
    expect(await read(s, 'backward', 'end', 9)).toEqual([[9, 8, 7], -1, true]);
    expect(await read(s, 'backward', 'end', 2)).toEqual([[9, 8], 7, false]);
    expect(await codeOf(s.store.readEvent('s', 6))).toBe('event_not_found');
    await s.clock.advance(1);
    expect(await read(s, 'forward', 0, 9)).toEqual([[8], 9, false]);
    await s.clock.advance(60_000);
    expect(await read(s, 'forward', 0, 4)).toEqual([[], 10, true]);
    expect(await read(s, 'backward', 'end', 4)).toEqual([[], -1, true]);
    expect(await codeOf(s.store.readEvent('s', 'last'))).toBe('event_not_found');
  });

  it('are empty where $maxCount or $tb hide all their numbers, whatever their age, and lead on to what is alive', async () => {
    const first = setUp(options);
    for (let i = 0; i < 10; i++) {
      await first.store.append('s', ANY, [event()]);
      await first.clock.advance(1000);
    }
    await setMetadata(first.store, 's', '{"$maxAge":3,"$tb":5}');
    const s = setUp({ ...options, from: first });
    expect(await read(s, 'forward', 0, 3)).toEqual([[], 7, false]);
    expect(await read(s, 'forward', 3, 3)).toEqual([[7, 8, 9], 10, true]);
  });

  it('that are filled with what is alive hold no more than their count and bytes', async () => {
    const s = await written([...aged(40, 3), ...aged(200, 0)], options);
    expect(await read(s, 'forward', 3, 7)).toEqual([[40, 41, 42, 43, 44, 45, 46], 47, false]);
    expect((await follow(s, 'forward', 7)).seen).toEqual(Array.from({ length: 200 }, (_, i) => 40 + i));
  });

  it('pass over what a scavenge removed', async () => {
    const s = await filled(10);
    for (const number of [0, 1, 2, 5]) s.log.remove((await s.store.readEvent('s', number)).position);
    expect(await read(s, 'forward', 0, 3)).toEqual([[], 3, false]);
    expect(await read(s, 'forward', 4, 3)).toEqual([[4, 6], 7, false]);
    expect(await read(s, 'forward', 5, 1)).toEqual([[], 6, false]);
    expect(await read(s, 'backward', 5, 1)).toEqual([[], 4, false]);
    expect(await read(s, 'backward', 2, 1)).toEqual([[], -1, true]);
    expect(await codeOf(s.store.readEvent('s', 5))).toBe('event_not_found');
    s.log.remove((await s.store.readEvent('s', 9)).position);
    expect(await setUp({ ...options, from: s }).store.streamInfo('s')).toMatchObject({ lastEventNumber: 8 });
  });

  it('take the lowest position of several for one number', async () => {
    const s = await filled(3);
    const second = await s.store.readEvent('s', 1);
    s.index.addEvent('s', 1, (await s.store.readEvent('s', 2)).position);
    expect((await read(s, 'forward', 0, 9))[0]).toEqual([0, 1, 2]);
    expect((await s.store.readStream('s', { direction: 'backward', from: 1, count: 1 })).events[0]!.position).toBe(
      second.position,
    );
    expect((await s.store.readEvent('s', 1)).position).toBe(second.position);
  });

  it('of large streams come in slices', async () => {
    const first = setUp({ ...options, options: { readSliceEvents: 7 } });
    await first.store.append('s', ANY, events(100));
    expect((await read(first, 'forward', 0, 100))[0].length).toBe(100);
  });
});

const HOUR = 3_600_000;

/**
 * A stream with `$maxAge` of one hour whose events were written at these ages, in hours before now: the clock was set
 * back in between.
 */
async function written(ages: readonly number[], options: Parameters<typeof setUp>[0] = {}): Promise<Setup> {
  const first = setUp(options);
  const now = first.clock.nowMs();
  for (const age of ages) {
    first.clock.setNow(now - age * HOUR);
    await first.store.append('s', ANY, [event()]);
    await first.store.append('other', ANY, [event()]);
  }
  first.clock.setNow(now);
  await setMetadata(first.store, 's', '{"$maxAge":3600}');
  return setUp({ ...options, from: first });
}

const aged = (count: number, age: number): number[] => Array.from({ length: count }, () => age);

/** Numbers that pages give until one says that it is the last, and how many pages there were. */
async function follow(
  { store }: Setup,
  direction: 'forward' | 'backward',
  count: number,
): Promise<{ seen: number[]; pages: number }> {
  const seen: number[] = [];
  let from: number | 'end' = direction === 'forward' ? 0 : 'end';
  for (let pages = 1; pages < 1_000; pages++) {
    const page = await store.readStream('s', { direction, from, count });
    seen.push(...numbers(page.events));
    if (page.isEnd) return { seen, pages };
    const next: number = page.nextEventNumber;
    if (direction === 'forward' ? next <= page.from : next >= page.from || next < 0)
      throw new Error(`the page from ${page.from} leads on to ${next}`);
    from = next;
  }
  throw new Error('the pages lead on for ever');
}

describe.each([
  ['warm', {}],
  ['with misses and colliding hashes', { hasher: collidingHasher, misses: 0.3 }],
] as const)('a clock that was set back by hours, %s', (_, options) => {
  it('hides no event whose own time is alive because a neighbour has expired', async () => {
    // 0..1 expired, 2..3 alive, 4..60 expired, 61..62 alive: halving finds only the last two.
    const s = await written([2, 2, 0, 0, ...aged(57, 3), 0, 0], options);
    for (const count of [1, 2, 3, 7, 100]) {
      expect((await follow(s, 'forward', count)).seen, `forward by ${count}`).toEqual([2, 3, 61, 62]);
      expect((await follow(s, 'backward', count)).seen, `backward by ${count}`).toEqual([62, 61, 3, 2]);
    }
    expect(await read(s, 'forward', 0, 2)).toEqual([[2, 3], 4, false]);
    expect(await read(s, 'forward', 4, 2)).toEqual([[61, 62], 63, true]);
    expect(await read(s, 'backward', 'end', 3)).toEqual([[62, 61], 3, false]);
    expect(await read(s, 'backward', 60, 3)).toEqual([[], 3, false]);
    expect(await read(s, 'backward', 3, 3)).toEqual([[3, 2], -1, true]);
  });

  it('hides none from a subscription', async () => {
    const s = await written([2, 0, ...aged(30, 3), 0, ...aged(10, 2)], {
      ...options,
      options: { subscriptionPageEvents: 3 },
    });
    const reader = s.store.subscribeToStream('s', { after: -1 })[Symbol.asyncIterator]();
    expect(brief(await takeUntil(reader, (messages) => messages.at(-1)?.kind === 'caught-up'))).toEqual([
      1,
      32,
      'caught-up',
    ]);
    const next = reader.next();
    await s.store.append('s', ANY, [event()]);
    expect((await next).value).toMatchObject({ event: { number: 43 } });
    await reader.return!();
  });

  it('costs a page no more than its limit: the page leads on, and what was found out is remembered', async () => {
    const s = await written([0, ...aged(100, 3), 0, ...aged(100, 2), 0], {
      ...options,
      options: { expiredScanEventsMax: 16, readSliceEvents: 4, subscriptionPageEvents: 5 },
    });
    const first = await s.store.readStream('s', { direction: 'forward', from: 1, count: 5 });
    expect([first.events.length, first.isEnd]).toEqual([0, false]);
    expect(first.nextEventNumber).toBeGreaterThan(6);
    expect(first.nextEventNumber).toBeLessThanOrEqual(22);
    const forward = await follow(s, 'forward', 5);
    expect(forward.seen).toEqual([0, 101, 202]);
    expect(forward.pages).toBeLessThan(60);
    // The stretch that was looked at last costs one page now.
    expect(await read(s, 'forward', 110, 5)).toEqual([[202], 203, true]);
    expect(await read(s, 'backward', 190, 5)).toEqual([[], 101, false]);
    expect((await follow(s, 'backward', 5)).seen).toEqual([202, 101, 0]);
    const reader = s.store.subscribeToStream('s', { after: -1 })[Symbol.asyncIterator]();
    expect(brief(await takeUntil(reader, (messages) => messages.at(-1)?.kind === 'caught-up'))).toEqual([
      0,
      101,
      202,
      'caught-up',
    ]);
    await reader.return!();
  });

  it('what was remembered of expired events does not count for a longer age', async () => {
    const s = await written([...aged(40, 3), 0], options);
    expect(await read(s, 'forward', 0, 5)).toEqual([[40], 41, true]);
    await setMetadata(s.store, 's', '{"$maxAge":14400}');
    expect((await follow(s, 'forward', 7)).seen).toEqual(Array.from({ length: 41 }, (_, i) => i));
    await setMetadata(s.store, 's', '{"$maxAge":7200}');
    expect(await read(s, 'backward', 30, 5)).toEqual([[], -1, true]);
  });
});

it('other work has its turn while a subscription passes over expired events', async () => {
  const s = await written([...aged(300, 3), 0], { options: { expiredScanEventsMax: 2, subscriptionPageEvents: 1 } });
  const reader = s.store.subscribeToStream('s', { after: -1 })[Symbol.asyncIterator]();
  let turns = 0;
  const turn = (): void => {
    turns++;
    ticking = setImmediate(turn);
  };
  let ticking = setImmediate(turn);
  const first = await reader.next();
  clearImmediate(ticking);
  expect(first.value).toMatchObject({ event: { number: 300 } });
  expect(turns).toBeGreaterThan(50);
  await reader.return!();
});

describe('streams that are not there', () => {
  const page: ReadStreamOptions = { direction: 'forward', from: 0, count: 10 };

  it('are told apart', async () => {
    const { store } = setUp();
    await setMetadata(store, 'meta', '{"$maxCount":1}');
    await store.append('gone', ANY, events(1));
    await store.deleteStream('gone', ANY, 'hard');
    await store.deleteStream('never', ANY, 'hard');
    expect(await codeOf(store.readStream('none', page))).toBe('stream_not_found');
    expect(await codeOf(store.readStream('$all', page))).toBe('stream_not_found');
    expect(await codeOf(store.readStream('meta', page))).toBe('stream_not_found');
    expect(await codeOf(store.readStream('gone', page))).toBe('stream_deleted');
    expect(await codeOf(store.readStream('$$gone', page))).toBe('stream_deleted');
    expect(await codeOf(store.readEvent('never', 'last'))).toBe('stream_deleted');
    expect(await codeOf(store.readStream('$$$$gone', page))).toBe('stream_not_found');
    expect(await store.streamInfo('gone')).toMatchObject({ lastEventNumber: TOMBSTONE, isTombstoned: true });
    expect(await store.streamInfo('$$meta')).toEqual({
      lastEventNumber: 0,
      isTombstoned: false,
      isSoftDeleted: false,
      metadata: { maxCount: 1 },
      metadataVersion: -1,
    });
  });

  it('bad questions are refused', async () => {
    const { store } = setUp();
    await store.append('s', ANY, events(1));
    expect(await codeOf(store.readStream('', page))).toBe('invalid_stream_name');
    for (const count of [0, -1, 1.5])
      expect(await codeOf(store.readStream('s', { ...page, count }))).toBe('invalid_count');
    expect(await codeOf(store.readStream('s', { ...page, count: 4097 }))).toBe('page_too_large');
    for (const from of [-1, 0.5, NaN])
      expect(await codeOf(store.readStream('s', { ...page, from }))).toBe('invalid_event_number');
    expect(await codeOf(store.readEvent('s', -1))).toBe('invalid_event_number');
    expect(await codeOf(store.readEvent('s', 1))).toBe('event_not_found');
  });

  it('a tombstone that no cache remembers is still found', async () => {
    const first = setUp();
    await first.store.deleteStream('never', ANY, 'hard');
    const { store } = setUp({ from: first });
    expect(await codeOf(store.append('never', ANY, events(1)))).toBe('stream_deleted');
  });
});

describe('links', () => {
  it.each([
    ['3@s', { number: 3, stream: 's' }],
    ['0@a@b', { number: 0, stream: 'a@b' }],
    ['-1@s', { number: -1, stream: 's' }],
    ['9223372036854775807@s', { number: TOMBSTONE, stream: 's' }],
    ['9223372036854775808@s', null],
    ['3', null],
    ['@s', null],
    ['x@s', null],
    ['1.0@s', null],
  ])('%s', (text, target) => {
    expect(parseLink(encodeText(text))).toEqual(target);
  });

  it('lead to their targets, one level deep', async () => {
    const { store } = setUp({ misses: 0.3 });
    const link = (text: string) => event(text, { type: '$>' });
    await store.append('s', ANY, events(3));
    await store.append('dead', ANY, events(1));
    await store.append('soft', ANY, events(1));
    await store.append('l', ANY, [
      link('1@s'),
      link('9@s'),
      link('0@none'),
      link('0@dead'),
      link('0@soft'),
      link('nonsense'),
      link('0@l'),
      event(),
      link('0@s'),
      link('0@'),
    ]);
    await store.deleteStream('dead', ANY, 'hard');
    await store.deleteStream('soft', ANY, 'soft');
    await setMetadata(store, 's', '{"$tb":1}');
    const { events: page } = await store.readStream('l', {
      direction: 'forward',
      from: 0,
      count: 20,
      resolveLinks: true,
    });
    expect(page.map((e) => [`${e.number}@${e.stream}`, e.link?.number ?? null, e.linkTargetMissing])).toEqual([
      ['1@s', 0, false],
      ['1@l', null, true],
      ['2@l', null, true],
      ['3@l', null, true],
      ['4@l', null, true],
      ['5@l', null, false],
      ['0@l', 6, false],
      ['7@l', null, false],
      ['8@l', null, true],
      ['9@l', null, true],
    ]);
    expect(await store.readEvent('l', 0, true)).toMatchObject({
      number: 1,
      stream: 's',
      link: { number: 0, stream: 'l' },
    });
    expect(await store.readEvent('l', 0)).toMatchObject({ number: 0, stream: 'l', link: null });
    const all = await store.readAll({
      direction: 'backward',
      from: 'end',
      count: 100,
      resolveLinks: true,
      filter: { on: 'stream', prefixes: ['l'] },
    });
    expect(all.events.length).toBe(10);
    expect(all.events[9]).toMatchObject({ number: 1, stream: 's', link: { number: 0 } });
  });
});
