import { describe, expect, it } from 'vitest';
import { untilHit } from '../../core/base/step.ts';
import { decodeText } from '../../core/base/text.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame } from '../../core/log/format/records.ts';
import { ANY, type EventAccess, type EventStore, type StoredEvent } from '../../core/streams/api.ts';
import { viewFilter } from '../../core/streams/link-views/view-filter.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryAttributes } from '../support/memory-attributes.ts';
import { Random } from '../support/random.ts';
import { BEGIN, ByHand, DATA } from './by-hand.ts';
import type { MemoryLog } from './doubles.ts';
import { accessOf, everything, fill, history, wantedOf } from './query-history.ts';
import { codeOf, event, setMetadata, setUp } from './setup.ts';

const VIEWS = ['$ce-a', '$ce-ab', '$ce-b', '$ce-å', '$ce-c', '$ce-old', '$et-t', '$et-tt', '$et-$v', '$bc-x', '$bc-ü'];

async function isExplicit(log: MemoryLog, position: number): Promise<boolean> {
  const frame = new RecordFrame();
  const fields = new PrepareFields();
  if (!log.starts.includes(position)) return false;
  await untilHit(() => log.readAt(position, frame));
  if (frame.type !== PREPARE) return false;
  parsePrepare(frame, fields);
  return !fields.isCommitted;
}

interface ReadPart {
  readonly direction: 'forward' | 'backward';
  readonly from: number | 'end';
  readonly access: EventAccess | undefined;
  readonly resolveLinks: boolean;
}

/** All pages from a number on, of any sizes. */
async function readOn(store: EventStore, view: string, part: ReadPart, random: Random): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  let { from } = part;
  for (let pages = 0; ; pages++) {
    // oxlint-disable-next-line no-await-in-loop
    const page = await store.readStream(view, { ...part, from, count: random.int(1, 5) });
    events.push(...page.events);
    expect(page.hasGaps).toBe(true);
    for (const each of page.events) expect((each.link ?? each).number).toBeLessThanOrEqual(page.lastEventNumber);
    if (page.isEnd) return events;
    expect(
      pages,
      `pages lead on from ${from} to ${page.nextEventNumber} of ${part.direction} ${part.from}`,
    ).toBeLessThan(500);
    from = page.nextEventNumber;
  }
}

const linkText = (each: StoredEvent): string => {
  const link = each.link ?? each;
  return `${link.number}: ${decodeText(link.data)} ${link.id}`;
};
const targetText = (each: StoredEvent): string => `${each.number}@${each.stream}`;
const dataText = (each: StoredEvent): string => decodeText((each.link ?? each).data);

describe.each([
  ['warm', 0],
  ['with misses', 0.3],
] as const)('views of links, %s', (_, misses) => {
  it.each([1, 2, 4, 6])(
    'show what a look at everything shows, from every number, seed %i',
    async (seed) => {
      const random = new Random(seed * 1_000 + (misses > 0 ? 1 : 0));
      const s = await history(
        random,
        {
          readSliceEvents: random.int(1, 8),
          readThroughBytes: random.pick([0, 0, 300]),
        },
        misses,
      );
      const { log } = s;
      fill(s, random);
      const { store } = setUp({
        from: s,
        attributes: s.attributes,
        options: { readSliceEvents: random.int(1, 8), allScanRecordsMax: random.pick([2, 5, 65_536]) },
      });
      await store.loadMarks();
      for (const view of VIEWS) {
        const filter = viewFilter(view)!;
        const access = random.chance(0.5) ? accessOf() : undefined;
        // oxlint-disable-next-line no-await-in-loop
        const wanted = await wantedOf(s, { ...filter, query: filter.query! }, access);
        const links = new Map<number, string>();
        const checked = async (part: ReadPart, expected: readonly StoredEvent[]): Promise<void> => {
          const read = await readOn(store, view, part, random);
          expect({ ...part, access: 0, read: read.map(dataText) }).toEqual({
            ...part,
            access: 0,
            read: expected.map(targetText),
          });
          for (const [i, each] of read.entries()) {
            expect((each.link ?? each).number).toBe(expected[i]!.preparePosition);
            const known = links.get(expected[i]!.preparePosition);
            if (known !== undefined) expect(linkText(each)).toBe(known);
            links.set(expected[i]!.preparePosition, linkText(each));
            if (part.resolveLinks) expect(targetText(each)).toBe(targetText(expected[i]!));
          }
        };
        if (wanted.length === 0) {
          // oxlint-disable-next-line no-await-in-loop
          expect((await readOn(store, view, partOf('backward', 'end'), random).catch(() => [])).length).toBe(0);
          continue;
        }
        // oxlint-disable-next-line no-await-in-loop
        await checked(partOf('forward', 0), wanted);
        // oxlint-disable-next-line no-await-in-loop
        await checked(partOf('backward', 'end'), wanted.toReversed());
        for (const [i, each] of wanted.entries()) {
          // oxlint-disable-next-line no-await-in-loop
          await checked(partOf('forward', each.preparePosition), wanted.slice(i));
          // oxlint-disable-next-line no-await-in-loop
          await checked(partOf('backward', each.preparePosition), wanted.slice(0, i + 1).toReversed());
          if (i + 1 < wanted.length)
            // oxlint-disable-next-line no-await-in-loop
            await checked(partOf('forward', each.preparePosition + 1), wanted.slice(i + 1));
        }
        for (let tried = 0; tried < 10; tried++) {
          const number = random.int(0, log.end + 5);
          // oxlint-disable-next-line no-await-in-loop
          if ((await isExplicit(log, number)) || (await isExplicit(log, number - 1))) continue;
          const above = wanted.filter(({ position }) => position >= number);
          const below = wanted.filter(({ position }) => position <= number);
          // oxlint-disable-next-line no-await-in-loop
          if (above.length > 0) await checked(partOf('forward', number), above);
          // oxlint-disable-next-line no-await-in-loop
          await checked(partOf('backward', number), below.toReversed());
        }
        // oxlint-disable-next-line no-await-in-loop
        await follows(view, wanted, access);

        function partOf(direction: 'forward' | 'backward', from: number | 'end'): ReadPart {
          return { direction, from, access, resolveLinks: random.chance(0.5) };
        }
      }

      /** A subscription that ends and begins again behind what it has seen. */
      async function follows(view: string, wanted: StoredEvent[], access: EventAccess | undefined): Promise<void> {
        const seen: string[] = [];
        let after = -1;
        for (let isOver = false; !isOver;) {
          const ending = new AbortController();
          const breaks = random.chance(0.5);
          // oxlint-disable-next-line no-await-in-loop
          for await (const page of store.followStream(view, {
            after,
            access,
            resolveLinks: random.chance(0.5),
            signal: ending.signal,
            bytesMax: random.pick([1, 1_000, 100_000]),
          })) {
            seen.push(...page.events.map(dataText));
            const last = page.events.at(-1);
            if (last !== undefined) after = (last.link ?? last).number;
            if (page.isCaughtUp) {
              isOver = true;
              after = page.after!;
            }
            if (isOver || breaks) ending.abort();
          }
        }
        expect(seen).toEqual(wanted.map(targetText));
        // Behind where it had caught up nothing comes again.
        const ending = new AbortController();
        for await (const page of store.followStream(view, { after, access, signal: ending.signal })) {
          expect(page.events).toEqual([]);
          ending.abort();
        }
      }
    },
    20_000,
  );
});

describe('a view of links', () => {
  it('goes on behind what a scavenge has removed between two pages', async () => {
    const { store, log } = setUp({ attributes: new MemoryAttributes() });
    for (let i = 0; i < 6; i++) await store.append('a-1', ANY, [event(String(i))]);
    const first = await store.readStream('$ce-a', { direction: 'forward', from: 0, count: 2 });
    const back = await store.readStream('$ce-a', { direction: 'backward', from: 'end', count: 2 });
    await setMetadata(store, 'a-1', '{"$tb":4}');
    for (const each of (await everything({ store })).slice(0, 4)) log.remove(each.position);
    const on = await store.readStream('$ce-a', { direction: 'forward', from: first.nextEventNumber, count: 2 });
    expect(on.events.map(dataText)).toEqual(['4@a-1', '5@a-1']);
    const under = await store.readStream('$ce-a', { direction: 'backward', from: back.nextEventNumber, count: 2 });
    expect([under.events, under.isEnd]).toEqual([[], true]);
  });

  it('has only streams with a dash, and no name that stands for nothing', async () => {
    const { store } = setUp();
    await store.append('a', ANY, [event('')]);
    await store.append('$x-1', ANY, [event('')]);
    for (const view of ['$ce-a', '$ce-$x', '$ce-', '$ce-a-b', '$et-', '$bc-', `$bc-${'x'.repeat(257)}`]) {
      expect(await codeOf(store.readStream(view, { direction: 'forward', from: 0, count: 1 })), view).toBe(
        'stream_not_found',
      );
      expect(await codeOf(store.readEvent(view, 'last')), view).toBe('stream_not_found');
      expect((await store.streamInfo(view)).lastEventNumber).toBe(-1);
    }
    const { events } = await store.readStream('$et-thing', { direction: 'forward', from: 0, count: 9 });
    expect(events.map(dataText)).toEqual(['0@a', '0@$x-1']);
  });

  it('gives an event by its number, and the last one, as a link or resolved', async () => {
    const { store } = setUp();
    await store.append('a-1', ANY, [event('x'), event('y')]);
    const [x, y] = await everything({ store });
    expect(dataText(await store.readEvent('$ce-a', x!.position))).toBe('0@a-1');
    const last = await store.readEvent('$ce-a', 'last', true);
    expect([decodeText(last.data), last.link!.number, last.link!.type]).toEqual(['y', y!.position, '$>']);
    expect(JSON.parse(decodeText(last.link!.metadata))).toEqual({
      $c: y!.position,
      $p: y!.position,
      $o: 'a-1',
      $causedBy: y!.id,
    });
    expect(await codeOf(store.readEvent('$ce-a', x!.position + 1))).toBe('event_not_found');
    expect((await store.streamInfo('$ce-a')).lastEventNumber).toBe(y!.position);
  });

  it('refuses to be written, deleted or given metadata', async () => {
    const { store } = setUp();
    for (const view of ['$ce-a', '$et-t', '$bc-x']) {
      const writes = [
        store.append(view, ANY, [event('')]),
        store.append(`$$${view}`, ANY, [event('{}', { type: '$metadata', isJson: true })]),
        store.appendToStreams([{ stream: view, expectedVersion: ANY, events: [event('')] }]),
        store.appendToStreams([{ stream: 'a-1', expectedVersion: ANY, events: [event('')] }], {
          checks: [{ stream: view, expectedVersion: -1 }],
        }),
        store.deleteStream(view, ANY, 'soft'),
        store.deleteStream(view, ANY, 'hard'),
      ];
      for (const write of writes)
        // oxlint-disable-next-line no-await-in-loop
        expect(await codeOf(write), view).toBe('stream_is_view');
    }
    expect(store.end).toBe(0);
  });

  it('shows what comes live, also of a transaction that began before what was seen', async () => {
    const { store, log, index } = setUp();
    const hand = new ByHand(log);
    await store.append('a-1', ANY, [event('')]);
    const ending = new AbortController();
    const pages = store.followStream('$ce-a', { after: 'end', signal: ending.signal })[Symbol.asyncIterator]();
    expect((await pages.next()).value).toMatchObject({ isCaughtUp: true, isAwaited: false });
    const begin = hand.prepare('a-2', BEGIN, -1, -1, -2);
    const inner = hand.prepare('a-2', DATA, begin, 0, -2, { type: 't', metadata: '' });
    index.addEvent('a-2', 0, inner);
    await store.append('a-1', ANY, [event('')]);
    const live = (await pages.next()).value as { events: StoredEvent[] };
    expect(live.events.map(dataText)).toEqual(['1@a-1']);
    hand.commit(begin, 0);
    await store.append('a-1', ANY, [event('')]);
    const next = (await pages.next()).value as { events: StoredEvent[] };
    expect(next.events.map(dataText)).toEqual(['0@a-2', '2@a-1']);
    expect(next.events[0]!.number).toBe(inner);
    ending.abort();
    await pages.return?.();
  });

  it('shadows a stream of its name that is in the log, and says so once', async () => {
    const warned: string[] = [];
    const { store, log, index } = setUp({
      log: { ...silentLog, warn: (message, data) => warned.push(`${message.split(':')[0]} ${JSON.stringify(data)}`) },
    });
    const hand = new ByHand(log);
    const begin = hand.prepare('$ce-a', BEGIN, -1, -1, -2);
    index.addEvent('$ce-a', 0, hand.prepare('$ce-a', DATA, begin, 0, -2, { type: '$>' }));
    hand.commit(begin, 0);
    await store.append('a-1', ANY, [event('')]);
    for (let i = 0; i < 2; i++) {
      const { events } = await store.readStream('$ce-a', { direction: 'forward', from: 0, count: 9 });
      expect(events.map(dataText)).toEqual(['0@a-1']);
    }
    expect((await everything({ store })).map(({ stream }) => stream)).toEqual(['$ce-a', 'a-1']);
    expect(warned).toEqual([
      'a stream of this name was written by a projection {"stream":"$ce-a","lastEventNumber":0}',
    ]);
  });
});
