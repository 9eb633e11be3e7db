import { describe, expect, it } from 'vitest';
import {
  type AllPosition,
  ANY,
  type CheckpointRule,
  type StoredEvent,
  type SubscriptionMessage,
  type SubscriptionPage,
} from '../../core/streams/api.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { Random } from '../support/random.ts';
import { codeOf, event, events, numbers, setMetadata, setUp, takeUntil } from './setup.ts';

const live = (messages: SubscriptionMessage[]): boolean => messages.at(-1)?.kind === 'caught-up';

/** What a page says; its events by number, since they are taken back. */
const said = ({ events: some, checkpoints, isCaughtUp, after, isAwaited }: SubscriptionPage): unknown => ({
  numbers: numbers(some),
  checkpoints,
  isCaughtUp,
  after,
  isAwaited,
});
const next = async (pages: AsyncIterator<SubscriptionPage>): Promise<unknown> =>
  said((await pages.next()).value as SubscriptionPage);

describe('following a stream', () => {
  it('gives a page at a time, with what follows it', async () => {
    const { store } = setUp({ options: { subscriptionPageEvents: 3 } });
    await store.append('s', ANY, events(5));
    const pages = store.followStream('s', { after: -1 })[Symbol.asyncIterator]();
    const first = (await pages.next()).value as SubscriptionPage;
    expect(said(first)).toEqual({ numbers: [0, 1, 2], checkpoints: [], isCaughtUp: false, after: 2, isAwaited: false });
    expect(await next(pages)).toEqual({
      numbers: [3, 4],
      checkpoints: [],
      isCaughtUp: true,
      after: 4,
      isAwaited: false,
    });
    expect(first.events).toEqual([]);
    const more = next(pages);
    await store.append('s', ANY, events(2));
    expect(await more).toMatchObject({ numbers: [5, 6], isCaughtUp: false });
    // It fell behind, and says so when it has caught up.
    await store.append('s', ANY, events(4));
    expect([await next(pages), await next(pages)]).toMatchObject([
      { numbers: [7, 8, 9], isCaughtUp: false },
      { numbers: [10], isCaughtUp: true },
    ]);
    const [waiting] = [next(pages), await Promise.resolve()];
    await Promise.all([store.append('s', ANY, events(1)), store.deleteStream('s', ANY, 'hard')]);
    expect(await waiting).toMatchObject({ numbers: [11, TOMBSTONE], isCaughtUp: false });
    expect(await codeOf(pages.next())).toBe('stream_deleted');
  });

  it('says at once that there is no such stream', async () => {
    const { store } = setUp();
    await store.append('gone', ANY, events(2));
    await store.deleteStream('gone', ANY, 'soft');
    await setMetadata(store, 'only', '{"$maxAge":5}');
    for (const stream of ['none', 'gone', 'only'])
      expect([stream, await next(store.followStream(stream, { after: -1 })[Symbol.asyncIterator]())]).toMatchObject([
        stream,
        { numbers: [], isCaughtUp: true, isAwaited: true },
      ]);
    await store.append('gone', ANY, events(1));
    expect(await next(store.followStream('gone', { after: -1 })[Symbol.asyncIterator]())).toMatchObject({
      numbers: [2],
      isCaughtUp: true,
      isAwaited: false,
    });
  });
});

/** The messages of a filtered subscription, by the rule as it is written down. */
function expected(
  all: readonly StoredEvent[],
  isWanted: (event: StoredEvent) => boolean,
  { windowEvents, intervalEvents }: CheckpointRule,
  liveFrom: number,
): string[] {
  const lines: string[] = [];
  let counted = 0;
  let window: StoredEvent[] = [];
  for (const each of all.slice(0, liveFrom)) {
    window.push(each);
    const wanted = window.filter(isWanted);
    if (isWanted(each)) lines.push(`event ${each.position}`);
    if (window.length < windowEvents && wanted.length < 32) continue;
    counted += window.length;
    if (counted >= intervalEvents)
      lines.push(
        wanted.length > 0
          ? `checkpoint ${wanted.at(-1)!.position}/${wanted.at(-1)!.position}`
          : `checkpoint ${window[0]!.position}/0`,
      );
    counted %= intervalEvents;
    window = [];
  }
  lines.push('caught-up');
  counted += window.length;
  for (const each of all.slice(liveFrom)) {
    if (isWanted(each)) lines.push(`event ${each.position}`);
    if (++counted < intervalEvents) continue;
    lines.push(`checkpoint ${each.position}/${each.position}`);
    counted = 0;
  }
  return lines;
}

function lineOf(message: SubscriptionMessage): string {
  if (message.kind === 'event') return `event ${(message.event.link ?? message.event).position}`;
  if (message.kind === 'caught-up') return message.kind;
  const { commit, prepare } = message.after as { commit: number; prepare: number };
  return `checkpoint ${commit}/${prepare}`;
}

describe.each([1, 2, 3, 4, 5, 6, 7, 8])('checkpoints of a filtered subscription, seed %i', (seed) => {
  it('stand where the rule says, however the history is read', async () => {
    const random = new Random(seed);
    const withLinks = seed % 2 === 0;
    const options = {
      subscriptionPageEvents: random.int(1, 40),
      checkpointRecords: random.int(1, 50),
      readSliceEvents: random.int(1, 9),
      subscriptionPageBytes: withLinks ? 4_000 : 1_048_576,
    };
    const { store } = setUp({ misses: 0.1, options });
    await store.append('target', ANY, [event('x'.repeat(1_500))]);
    const share = random.int(1, 10) / 10;
    const append = (): Promise<unknown> =>
      store.append(random.chance(share) ? 'wanted' : 'other', ANY, [
        withLinks ? event('0@target', { type: '$>' }) : event('e'),
      ]);
    for (let i = random.int(100, 250); i > 0; i--) await append();
    const rule = { windowEvents: random.int(1, 60), intervalEvents: 0 };
    rule.intervalEvents = rule.windowEvents * random.int(1, 4);
    const filter = { on: 'stream', prefixes: ['wanted'] } as const;
    const messages = store
      .subscribeToAll({ after: 'start', filter, checkpoints: rule, resolveLinks: withLinks })
      [Symbol.asyncIterator]();
    const history = await takeUntil(messages, live);
    const liveFrom = (await store.readAll({ direction: 'forward', from: 'start', count: 4_096 })).events.length;
    for (let i = 0; i < 3 * rule.intervalEvents; i++) await append();
    const { events: all } = await store.readAll({ direction: 'forward', from: 'start', count: 4_096 });
    const lines = expected(all, ({ stream }) => stream === 'wanted', rule, liveFrom);
    const seen = history.map(lineOf);
    for (let checkpoints = 0; checkpoints < 2;) {
      const line = lineOf((await messages.next()).value as SubscriptionMessage);
      if (line.startsWith('checkpoint')) checkpoints++;
      // A page that is cut for its links has fallen behind: it says so more often, and nothing else differs.
      if (line !== 'caught-up') seen.push(line);
    }
    await messages.return!();
    expect(seen).toEqual(lines.slice(0, seen.length));
    // Behind each checkpoint comes what came behind it.
    for (const message of history) {
      if (message.kind !== 'checkpoint') continue;
      const rest = await takeUntil(
        store
          .subscribeToAll({ after: message.after as AllPosition, filter, checkpoints: rule })
          [Symbol.asyncIterator](),
        live,
      );
      expect(rest.map(lineOf).filter(isEvent)).toEqual(lines.slice(lines.indexOf(lineOf(message))).filter(isEvent));
    }
  });
});

function isEvent(line: string): boolean {
  return line.startsWith('event');
}
