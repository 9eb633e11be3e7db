import { describe, expect, it } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { encodeText } from '../../core/base/text.ts';
import {
  type AllFilter,
  type AllPosition,
  ANY,
  type EventAccess,
  type EventQuery,
  type StoredEvent,
} from '../../core/streams/api.ts';
import { MemoryAttributes } from '../support/memory-attributes.ts';
import { Random } from '../support/random.ts';
import {
  accessOf,
  compare,
  everything,
  fill,
  history,
  isVisible,
  nameOf,
  placeOf,
  TEXTS,
  TYPES,
  wantedOf,
} from './query-history.ts';
import { codeOf, event, setUp, type Setup, takeUntil } from './setup.ts';

function queryOf(random: Random): EventQuery {
  for (;;) {
    const query: EventQuery = {
      ...(random.chance(0.5) && { category: random.pick(['a', 'ab', 'b', 'å', 'old', 'c']) }),
      ...(random.chance(0.4) && { types: TYPES.filter(() => random.chance(0.5)) }),
      ...(random.chance(0.3) && { correlation: random.pick(TEXTS) }),
      ...(random.chance(0.3) && { tags: TEXTS.filter(() => random.chance(0.5)) }),
    };
    const { types, tags, category, correlation } = query;
    if (types?.length === 0 || tags?.length === 0) continue;
    if (category ?? correlation ?? types ?? tags) return query;
  }
}

describe.each([
  ['warm', 0],
  ['with misses', 0.3],
] as const)('queries, %s', (_, misses) => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'show what a look at everything shows, seed %i',
    async (seed) => {
      const random = new Random(seed * 100 + (misses > 0 ? 1 : 0));
      const s = await history(
        random,
        { readSliceEvents: random.int(1, 8), readThroughBytes: random.pick([0, 0, 300]) },
        misses,
      );
      const { store, log } = s;
      fill(s, random);
      // A scavenge removes what nobody sees.
      for (const each of await everything(s)) {
        // oxlint-disable-next-line no-await-in-loop
        const info = await store.streamInfo(each.stream);
        const mayGo = each.position === each.preparePosition && each.number < info.lastEventNumber;
        if (mayGo && !isVisible(info, each, s.clock.nowMs()) && random.chance(0.5)) log.remove(each.position);
      }
      for (let asked = 0; asked < 12; asked++) {
        const query = queryOf(random);
        const prefixes = random.chance(0.1) ? ['a'] : undefined;
        const filter = { on: 'stream', query, ...(prefixes && { prefixes }) } as const;
        const access = random.chance(0.5) ? accessOf() : undefined;
        // oxlint-disable-next-line no-await-in-loop
        const wanted = await wantedOf(s, filter, access);
        // oxlint-disable-next-line no-await-in-loop
        const places = (await everything(s)).map(placeOf);
        const from: AllPosition | 'start' | 'end' = random.pick<AllPosition | 'start' | 'end'>([
          'start',
          'end',
          random.pick(places),
          { commit: random.pick(places).commit, prepare: 0 },
          { commit: random.pick(log.starts), prepare: 0 },
        ]);
        for (const direction of ['forward', 'backward'] as const) {
          const isForward = direction === 'forward';
          const expected = (isForward ? wanted : wanted.toReversed()).filter((each) => {
            if (from === 'start') return isForward;
            if (from === 'end') return !isForward;
            return isForward === compare(placeOf(each), from) >= 0;
          });
          const names: string[] = [];
          let at = from;
          let pages = 0;
          for (; ; pages++) {
            // oxlint-disable-next-line no-await-in-loop
            const page = await store.readAll({
              direction,
              from: at,
              count: random.int(1, 5),
              filter,
              access,
              scan: { recordsMax: random.int(1, 12), bytesMax: random.int(1, 2_000) },
            });
            names.push(...page.events.map(nameOf));
            if (page.isEnd) break;
            expect(pages, 'pages lead on').toBeLessThan(500);
            at = page.next;
          }
          expect({ names, query, direction, from }).toEqual({ names: expected.map(nameOf), query, direction, from });
          if (access !== undefined) expect(access.begun).toBeGreaterThanOrEqual(pages);
        }
      }
    },
    20_000,
  );
});

describe('a query', () => {
  it('is refused beyond its limits', async () => {
    const { store } = setUp();
    const refused: EventQuery[] = [
      {},
      { category: '' },
      { category: 'a-b' },
      { types: [] },
      { types: Array.from({ length: 65 }, (_, i) => `t${i}`) },
      { types: [''] },
      { correlation: '' },
      { correlation: 'x'.repeat(257) },
      { correlation: 'ü'.repeat(129) },
      { tags: [] },
      { tags: Array.from({ length: 65 }, (_, i) => `t${i}`) },
      { tags: ['x'.repeat(257)] },
      { tags: ['\ud800'] },
    ];
    for (const query of refused)
      expect(
        await codeOf(store.readAll({ direction: 'forward', from: 'start', count: 1, filter: { on: 'type', query } })),
        JSON.stringify(query),
      ).toBe('bad_request');
    const most = { types: Array.from({ length: 64 }, (_, i) => `t${i}`), tags: ['x'.repeat(256)] };
    expect(
      await codeOf(
        store.readAll({ direction: 'forward', from: 'start', count: 1, filter: { on: 'type', query: most } }),
      ),
    ).toBe('ok');
    const following = store.followAll({ after: 'start', filter: { on: 'type', query: {} } })[Symbol.asyncIterator]();
    expect(await codeOf(following.next())).toBe('bad_request');
  });

  it('jumps over what an index rules out, within one page', async () => {
    const attributes = new MemoryAttributes();
    const s = setUp({ attributes, options: { readThroughBytes: 0 } });
    for (let i = 0; i < 10; i++) {
      await s.store.append(
        'o-1',
        ANY,
        Array.from({ length: 99 }, () => event('', { type: 'other' })),
      );
      await s.store.append('w-1', ANY, [event('', { type: 'wanted' })]);
    }
    const read = async (direction: 'forward' | 'backward', query: EventQuery) =>
      s.store.readAll({
        direction,
        from: direction === 'forward' ? 'start' : 'end',
        count: 100,
        filter: { on: 'type', query },
        scan: { recordsMax: 64, bytesMax: 10_000 },
      });
    for (const direction of ['forward', 'backward'] as const) {
      const { events, isEnd } = await read(direction, { category: 'w' });
      expect({ found: events.length < 2, isEnd }).toEqual({ found: true, isEnd: false });
    }
    for (const each of await everything(s)) attributes.add(each);
    for (const name of ['names', 'correlations', 'tags'] as const) attributes.of(name)!.coveredTo = s.log.end;
    for (const direction of ['forward', 'backward'] as const) {
      for (const query of [{ category: 'w' }, { types: ['wanted', 'none'] }, { category: 'w', types: ['wanted'] }]) {
        const { events, isEnd } = await read(direction, query);
        expect({ found: events.length, isEnd }).toEqual({ found: 10, isEnd: true });
      }
      const none = await read(direction, { tags: ['none'] });
      expect({ found: none.events.length, isEnd: none.isEnd }).toEqual({ found: 0, isEnd: true });
    }
  });

  it('looks at no more entries in a page than records', async () => {
    const attributes = new MemoryAttributes();
    const s = setUp({ attributes, options: { readThroughBytes: 0 } });
    const one = (tag: string) => event('', { metadata: encodeText(`{"$tags":["${tag}"]}`) });
    for (let i = 0; i < 40; i++)
      await s.store.append(
        's',
        ANY,
        Array.from({ length: 100 }, (_each, k) => one(k % 2 === 0 ? 'a' : 'b')),
      );
    for (const each of await everything(s)) attributes.add(each);
    for (const name of ['names', 'correlations', 'tags'] as const) attributes.of(name)!.coveredTo = s.log.end;
    for (const direction of ['forward', 'backward'] as const) {
      let from: AllPosition | 'start' | 'end' = direction === 'forward' ? 'start' : 'end';
      let pages = 1;
      for (; ; pages++) {
        const page = await s.store.readAll({
          direction,
          from,
          count: 10,
          filter: { on: 'type', query: { tags: ['a', 'b'] } },
          scan: { recordsMax: 200, bytesMax: 1_000_000 },
        });
        expect(page.events).toEqual([]);
        if (page.isEnd) break;
        from = page.next;
      }
      expect(pages).toBeGreaterThan(5);
      expect(pages).toBeLessThan(40);
    }
  });
});

describe('a subscription by query', () => {
  const tagged = (tag: string) => event('', { metadata: encodeText(`{"$tags":["${tag}"]}`) });
  const filter: AllFilter = { on: 'type', query: { tags: ['w'] } };

  /** 40 events, of which the numbers 7 and 25 are wanted; the index covers as many of them as is said. */
  async function followed(covered: number): Promise<Setup & { readonly all: StoredEvent[] }> {
    const attributes = new MemoryAttributes();
    const s = setUp({
      attributes,
      options: { readThroughBytes: 0, checkpointRecords: 4, readSliceEvents: 3, subscriptionPageEvents: 5 },
    });
    for (let i = 0; i < 40; i++) await s.store.append('s', ANY, [tagged(i === 7 || i === 25 ? 'w' : 'o')]);
    const all = await everything(s);
    for (const each of all.slice(0, covered)) attributes.add(each);
    attributes.of('tags')!.coveredTo = all[covered]?.position ?? s.log.end;
    return { ...s, all };
  }

  it.each([0, 1, 20, 40])(
    'has checkpoints from each of which it goes on rightly, %i events indexed',
    async (covered) => {
      const { store, all } = await followed(covered);
      const messages = await takeUntil(
        store.subscribeToAll({ after: 'start', filter })[Symbol.asyncIterator](),
        (seen) => seen.at(-1)?.kind === 'caught-up',
      );
      const places: (AllPosition | null)[] = [];
      const rest: number[][] = [];
      let found = 0;
      for (const message of messages) {
        if (message.kind === 'event') found++;
        places.push(message.kind === 'event' ? placeOf(message.event) : (message.after as AllPosition | null));
        rest.push([7, 25].slice(found));
      }
      expect(found).toBe(2);
      expect(messages.length).toBeGreaterThan(covered === 40 ? 2 : 4);
      // Whatever was jumped over has been seen.
      expect(places.at(-1)).toEqual(placeOf(all.at(-1)!));
      for (const [i, after] of places.entries()) {
        const later = await takeUntil(
          store.subscribeToAll({ after: after!, filter })[Symbol.asyncIterator](),
          (seen) => seen.at(-1)?.kind === 'caught-up',
        );
        expect(later.flatMap((each) => (each.kind === 'event' ? [each.event.number] : []))).toEqual(rest[i]);
      }
    },
  );

  it('moves its checkpoint where nothing is found, whether records are read or jumped over', async () => {
    const attributes = new MemoryAttributes();
    const tags = attributes.of('tags')!;
    const s = setUp({ attributes, options: { readThroughBytes: 0, checkpointRecords: 4 } });
    await s.store.append('s', ANY, [tagged('o')]);
    const pages = s.store.followAll({ after: 'start', filter })[Symbol.asyncIterator]();
    expect((await pages.next()).value).toMatchObject({ isCaughtUp: true });
    for (const isCovered of [false, true, true]) {
      const coming = pages.next();
      await s.store.append(
        's',
        ANY,
        Array.from({ length: 20 }, () => tagged('o'.repeat(60))),
      );
      if (isCovered) tags.coveredTo = s.log.end;
      const last = placeOf((await everything(s)).at(-1)!);
      let page = (await coming).value!;
      // Where they are read, it is a few records a page.
      for (let read = 1; page.checkpoints.at(-1)?.after.commit !== last.commit; read++) {
        expect([page.events, read < 8]).toEqual([[], true]);
        page = (await pages.next()).value!;
      }
      expect(page).toMatchObject({ events: [], checkpoints: [{ behind: 0, after: last }] });
    }
    let page = pages.next();
    await s.store.append('s', ANY, [tagged('w')]);
    // That it has caught up comes first.
    if ((await page).value!.events.length === 0) page = pages.next();
    expect((await page).value!.events).toHaveLength(1);
  });

  it('asks for access before each page, and ends with what that throws', async () => {
    const { store } = await followed(40);
    let mayRead = false;
    let isUser = true;
    const access: EventAccess = {
      begin: async () => {
        if (!isUser) throw new SkuaError('not_authenticated', 'Gone.');
      },
      allows: () => mayRead,
    };
    const pages = store.followAll({ after: 'start', filter, access })[Symbol.asyncIterator]();
    for (let isCaughtUp = false; !isCaughtUp;) {
      const page = (await pages.next()).value!;
      expect(page.events).toEqual([]);
      isCaughtUp = page.isCaughtUp;
    }
    mayRead = true;
    let coming = pages.next();
    await store.append('s', ANY, [tagged('w')]);
    expect((await coming).value!.events).toHaveLength(1);
    isUser = false;
    coming = pages.next();
    await store.append('s', ANY, [tagged('w')]);
    expect(await codeOf(coming)).toBe('not_authenticated');
  });
});
