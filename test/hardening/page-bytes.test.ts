import { describe, expect, test } from 'vitest';
import { ByteBudget } from '../../core/base/byte-budget.ts';
import type { AllPosition, StoredEvent } from '../../core/streams/api.ts';
import { Random } from '../support/random.ts';
import { ManualClock } from '../support/manual-clock.ts';
import {
  brief,
  codeOf,
  event,
  newId,
  numbers,
  type Setup,
  setMetadata,
  setUp,
  type SetupOptions,
  takeUntil,
  textOf,
} from '../streams/setup.ts';
import { encodeText } from '../../core/base/text.ts';

const KIB = 1_024;

/** A stream of events of many sizes, and a stream of links to them, some of which lead nowhere. */
async function written(seed: number, options: SetupOptions = {}): Promise<Setup> {
  const random = new Random(seed);
  const s = setUp({ capacity: 16 * 1_048_576, ...options });
  for (let n = 0; n < 60; n++) {
    await s.store.append('a', -2, [event(`${n}:`.padEnd(random.pick([10, 500, 3 * KIB, 9 * KIB, 40 * KIB]), 'x'))]);
    if (random.chance(0.7))
      await s.store.append('links', -2, [event(`${random.chance(0.9) ? random.int(0, n) : 900}@a`, { type: '$>' })]);
    if (random.chance(0.3)) await s.store.append('b', -2, [event(`${n}`)]);
  }
  return s;
}

const seen = (events: readonly StoredEvent[]) =>
  events.map(
    (e) => `${(e.link ?? e).stream}/${(e.link ?? e).number}=${e.data.length === 0 ? e.linkTargetMissing : textOf(e)}`,
  );
const bytesOf = (events: readonly StoredEvent[]) =>
  events.reduce((sum, e) => sum + e.data.length + e.metadata.length, 0);

interface Walked {
  readonly events: StoredEvent[];
  readonly pages: number;
}

/** All pages of a stream, each of which must make progress and hold no more than it may. */
async function walkStream(
  { store }: Setup,
  stream: string,
  direction: 'forward' | 'backward',
  count: number,
  bytesMax: number,
  resolveLinks: boolean,
): Promise<Walked> {
  const events: StoredEvent[] = [];
  for (let from: number | 'end' = direction === 'forward' ? 0 : 'end', pages = 1; ; pages++) {
    const page = await store.readStream(stream, { direction, from, count, bytesMax, resolveLinks });
    if (page.events.length > 1) expect(bytesOf(page.events)).toBeLessThanOrEqual(bytesMax);
    if (page.isCut)
      expect([page.events.length > 0, page.isEnd, page.events.length < count]).toEqual([true, false, true]);
    events.push(...page.events);
    if (page.isEnd) return { events, pages };
    from = page.nextEventNumber;
  }
}

async function walkAll(
  { store }: Setup,
  direction: 'forward' | 'backward',
  count: number,
  bytesMax: number,
  resolveLinks: boolean,
  isFiltered: boolean,
): Promise<Walked> {
  const events: StoredEvent[] = [];
  for (let from: AllPosition | 'start' | 'end' = direction === 'forward' ? 'start' : 'end', pages = 1; ; pages++) {
    const page = await store.readAll({
      direction,
      from,
      count,
      bytesMax,
      resolveLinks,
      ...(isFiltered && { filter: { on: 'stream', prefixes: ['a', 'l'] } as const }),
    });
    if (page.events.length > 1) expect(bytesOf(page.events)).toBeLessThanOrEqual(bytesMax);
    events.push(...page.events);
    if (page.isEnd) return { events, pages };
    from = page.next;
  }
}

describe.each([
  [1, 0],
  [2, 0.3],
])(
  'pages that end at a number of bytes lead on to exactly the first event that is missing, seed %i',
  (seed, misses) => {
    test.each(['forward', 'backward'] as const)('of a stream, %s', async (direction) => {
      const s = await written(seed, { misses });
      for (const stream of ['a', 'links']) {
        for (const resolveLinks of [false, true]) {
          const whole = await walkStream(s, stream, direction, 4_096, 1e9, resolveLinks);
          expect(whole.pages).toBe(1);
          for (const [count, bytesMax] of [
            [4_096, 1],
            [4_096, 20 * KIB],
            [7, 20 * KIB],
            [4_096, 100 * KIB],
          ] as const) {
            expect(seen((await walkStream(s, stream, direction, count, bytesMax, resolveLinks)).events)).toEqual(
              seen(whole.events),
            );
          }
        }
      }
    });
    test.each(['forward', 'backward'] as const)('of $all, %s', async (direction) => {
      const s = await written(seed, { misses });
      for (const isFiltered of [false, true]) {
        for (const resolveLinks of [false, true]) {
          const whole = await walkAll(s, direction, 4_096, 1e9, resolveLinks, isFiltered);
          for (const [count, bytesMax] of [
            [4_096, 1],
            [4_096, 20 * KIB],
            [7, 20 * KIB],
            [4_096, 100 * KIB],
          ] as const) {
            expect(seen((await walkAll(s, direction, count, bytesMax, resolveLinks, isFiltered)).events)).toEqual(
              seen(whole.events),
            );
          }
        }
      }
    });
  },
);

test('a page with truncation, a maximum age and a gap is cut where its events end', async () => {
  const s = await written(3);
  await setMetadata(s.store, 'a', '{"$maxCount":40,"$maxAge":1000}');
  for (const direction of ['forward', 'backward'] as const) {
    const whole = await walkStream(s, 'a', direction, 4_096, 1e9, false);
    expect(whole.events).toHaveLength(40);
    expect(numbers((await walkStream(s, 'a', direction, 4_096, 30 * KIB, false)).events)).toEqual(
      numbers(whole.events),
    );
  }
});

describe('a page without payloads', () => {
  test('keeps no data but where links lead, and holds all its events', async () => {
    const s = await written(4);
    const { events, isCut } = await s.store.readStream('a', {
      direction: 'forward',
      from: 0,
      count: 4_096,
      bytesMax: 64 * KIB,
      payloads: false,
    });
    expect([events.length, isCut, bytesOf(events)]).toEqual([60, false, 0]);
    const links = await s.store.readStream('links', {
      direction: 'backward',
      from: 'end',
      count: 4_096,
      payloads: false,
      resolveLinks: true,
    });
    const full = await s.store.readStream('links', {
      direction: 'backward',
      from: 'end',
      count: 4_096,
      resolveLinks: true,
    });
    expect(links.events.map((e) => [e.stream, e.number, e.link?.number, e.linkTargetMissing])).toEqual(
      full.events.map((e) => [e.stream, e.number, e.link?.number, e.linkTargetMissing]),
    );
    expect(bytesOf(links.events)).toBe(bytesOf(full.events.filter((e) => e.linkTargetMissing)));
  });
  test('looks at a bounded number of bytes all the same', async () => {
    const s = await written(4, { options: { readScanBytesMax: 50 * KIB } });
    const { events, isCut } = await s.store.readStream('a', {
      direction: 'forward',
      from: 0,
      count: 4_096,
      payloads: false,
    });
    expect([isCut, events.length < 60, events.length > 0]).toEqual([true, true, true]);
  });
  test('a page of $all passes a bounded number of bytes of the log', async () => {
    const s = await written(4, { options: { readScanBytesMax: 50 * KIB, readSliceEvents: 1 } });
    const filter = { on: 'stream', prefixes: ['none'] } as const;
    let pages = 0;
    for (let from: AllPosition | 'start' = 'start'; ; pages++) {
      const page = await s.store.readAll({ direction: 'forward', from, count: 10, filter });
      if (page.isEnd) break;
      from = page.next;
    }
    expect(pages).toBeGreaterThan(3);
  });
});

/** Until so many wait. */
async function waiting(budget: ByteBudget, count: number): Promise<void> {
  for (let turn = 0; budget.waiting < count; turn++) {
    if (turn > 10_000) throw new Error(`${budget.waiting} wait.`);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

describe('a page on the account of a budget', () => {
  const OPTIONS = {
    of: 'replies',
    totalBytes: 400 * KIB,
    reserveBytes: 100 * KIB,
    smallBytes: 64 * KIB,
    waitersMax: 10,
    waitMs: 1_000,
  };
  const page = { direction: 'forward', from: 0, count: 4_096, bytesMax: 200 * KIB } as const;
  const budgetOf = () => {
    const clock = new ManualClock();
    return { clock, budget: new ByteBudget(OPTIONS, clock) };
  };

  test('holds what it has, and nothing where it is small', async () => {
    const s = await written(5);
    const { budget } = budgetOf();
    const share = budget.share();
    const { events } = await s.store.readStream('a', { ...page, share });
    expect(budget.heldBytes).toBe(bytesOf(events) + events.length * 256);
    await s.store.readStream('b', { ...page, share });
    expect(budget.heldBytes).toBe(0);
  });
  test('waits while others hold it, holding nothing, and is then what it would have been', async () => {
    const s = await written(5);
    const { budget } = budgetOf();
    const [other, share] = [budget.share(), budget.share()];
    for (const read of [
      () => s.store.readStream('a', { ...page, share }),
      () => s.store.readStream('links', { ...page, direction: 'backward', from: 'end', resolveLinks: true, share }),
      () => s.store.readAll({ ...page, from: 'start', share }),
    ]) {
      other.tryGrow(300 * KIB);
      const reading = read();
      await waiting(budget, 1);
      expect(share.heldBytes).toBe(0);
      other.release();
      const { events } = await reading;
      share.release();
      expect(seen(events)).toEqual(seen((await read()).events));
      share.release();
    }
  });
  test('is refused when the wait is too long, and ended when its reader goes', async () => {
    const s = await written(5);
    const { budget, clock } = budgetOf();
    budget.share().tryGrow(300 * KIB);
    const [late, gone] = [budget.share(), budget.share()];
    const codes = Promise.all([
      codeOf(s.store.readStream('a', { ...page, share: late })),
      codeOf(s.store.readStream('a', { ...page, share: gone })),
    ]);
    await waiting(budget, 2);
    gone.close();
    await clock.advance(1_000);
    expect(await codes).toEqual(['too_busy', 'aborted']);
  });
  test('one large event waits its turn too', async () => {
    const s = await written(5);
    await s.store.append('big', -1, [event('x'.repeat(250 * KIB))]);
    const { budget, clock } = budgetOf();
    const other = budget.share();
    other.tryGrow(200 * KIB);
    const reading = codeOf(s.store.readEvent('big', 0, false, budget.share()));
    await waiting(budget, 1);
    await clock.advance(1_000);
    expect(await reading).toBe('too_busy');
    other.close();
    expect(await codeOf(s.store.readEvent('big', 0, false, budget.share()))).toBe('ok');
  });
  test('a subscription holds one page at a time, and nothing while it waits', async () => {
    const s = await written(6, { options: { subscriptionPageBytes: 50 * KIB } });
    const { budget } = budgetOf();
    for (const subscribe of [
      (share = budget.share()) => s.store.subscribeToStream('a', { after: -1, share }),
      (share = budget.share()) => s.store.subscribeToAll({ after: 'start', share }),
      (share = budget.share()) => s.store.subscribeToStream('links', { after: -1, resolveLinks: true, share }),
    ]) {
      let most = 0;
      const iterator = subscribe()[Symbol.asyncIterator]();
      const messages = await takeUntil(iterator, (so) => {
        most = Math.max(most, budget.heldBytes);
        return so.at(-1)?.kind === 'caught-up';
      });
      expect([budget.heldBytes, most > 20 * KIB, most <= 64 * KIB]).toEqual([0, true, true]);
      expect(new Set(brief(messages)).size).toBeGreaterThan(20);
      void iterator.return!();
    }
  });
  test('a subscription that ends while a page is read ends at once, without an error', async () => {
    const s = await written(6, { misses: 0.9 });
    const ending = new AbortController();
    const iterator = s.store.subscribeToStream('a', { after: -1, signal: ending.signal })[Symbol.asyncIterator]();
    const next = iterator.next();
    ending.abort();
    expect(await next).toMatchObject({ done: true });
    await s.store.append('a', -2, [
      { id: newId(), type: 't', isJson: false, data: encodeText('x'), metadata: new Uint8Array(0) },
    ]);
  });
});
