import {
  BACKWARDS,
  EventStoreDBClient,
  jsonEvent,
  persistentSubscriptionToAllSettingsFromDefaults,
  START,
  streamNameFilter,
} from '@eventstore/db-client';
import type { AllStreamResolvedEvent, Position } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestNode } from '../../local/testing/index.ts';
import type { TestNode } from '../../local/testing/index.ts';

/**
 * No reader of `$all` ever gets an event that a scavenge has emptied, whichever way it asks, and every one gets on
 * behind it. A real node is asked over HTTP, by an official client and by its own store, before such events are
 * emptied, so that each way is known to show them, and then.
 */

/** More emptied events in a row than any page here has. */
const EMPTIED = Array.from({ length: 7 }, (_, i) => `seen-gone-${i}`);
const SECRET = 'which nobody may see';
const PAGE_EVENTS = 3;
const ALL = '/streams/%24all';
const FILTER = 'context=streamid&type=prefix&data=seen-';

let node: TestNode;
let client: EventStoreDBClient;
/** Names of streams in the order of the log. */
let written: string[];
let left: string[];
/** Of the first emptied event and of the last one, from before they were emptied. */
let first: Position;
let last: Position;

async function write(stream: string): Promise<void> {
  await client.appendToStream(stream, jsonEvent({ type: 'told', data: { secret: SECRET }, metadata: { who: SECRET } }));
}

async function collected<T>(events: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const textOf = ({ commit, prepare }: Position): string => `${commit}/${prepare}`;
/** As paths of feeds have it. */
const hexOf = ({ commit, prepare }: Position): string =>
  [commit, prepare].map((half) => half.toString(16).padStart(16, '0')).join('');
const ours = (streams: readonly string[]): string[] => streams.filter((stream) => stream.startsWith('seen-'));

async function asked(path: string, accept: string): Promise<Response> {
  const reply = await fetch(new URL(path, node.url), { headers: { accept } });
  expect(reply.status, path).toBe(200);
  return reply;
}

interface Feed {
  readonly links: readonly { readonly uri: string; readonly relation: string }[];
  readonly entries: readonly { readonly streamId: string; readonly data?: string }[];
}

/** Follows the links of a feed to its end. */
async function feed(path: string, relation: 'next' | 'previous'): Promise<string[]> {
  const found: string[] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const url = new URL(next, node.url);
    url.searchParams.set('embed', 'body');
    // Links have no filter.
    if (path.includes(FILTER))
      for (const [name, value] of new URLSearchParams(FILTER)) url.searchParams.set(name, value);
    const { links, entries } = (await (await asked(url.href, 'application/vnd.eventstore.atom+json')).json()) as Feed;
    const streams = entries.map(({ streamId }) => streamId);
    found.push(...(relation === 'next' ? streams : streams.toReversed()));
    const link = links.find((each) => each.relation === relation)?.uri;
    // Forward there always is one more page, for what comes.
    next = link === undefined || (relation === 'previous' && entries.length === 0) ? undefined : link;
  }
  return relation === 'next' ? found.toReversed() : found;
}

async function lines(from?: Position): Promise<string[]> {
  const text = await (
    await asked(`${ALL}${from === undefined ? '' : `?from=${textOf(from)}`}`, 'application/x-ndjson')
  ).text();
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { streamId: string }).streamId);
}

/** Server-sent events up to where the history ends, and the id that is told there. */
async function live({ path = ALL, after }: { readonly path?: string; readonly after?: string } = {}): Promise<{
  streams: string[];
  id: string | undefined;
}> {
  const ending = new AbortController();
  const reply = await fetch(new URL(path, node.url), {
    headers: { accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': after }) },
    signal: ending.signal,
  });
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of reply.body!) {
    text += decoder.decode(bytes, { stream: true });
    if (/event: caught-up\n[^]*?\n\n/.test(text)) break;
  }
  ending.abort();
  const messages = text
    .split('\n\n')
    .map(
      (message) =>
        Object.fromEntries(
          message.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
        ) as Record<string, string>,
    );
  return {
    streams: messages
      .filter(({ event, data }) => event === undefined && data !== undefined)
      .map(({ data }) => (JSON.parse(data!) as { streamId: string }).streamId),
    id: messages.find(({ event }) => event === 'caught-up')?.['id'],
  };
}

async function read(fromPosition: Position | typeof START = START): Promise<AllStreamResolvedEvent[]> {
  return collected(client.readAll({ fromPosition }));
}

const streamsOf = (events: readonly AllStreamResolvedEvent[]): string[] => events.map(({ event }) => event!.streamId);

/** A subscription up to where it has caught up. */
async function subscribed(options: Parameters<EventStoreDBClient['subscribeToAll']>[0]): Promise<string[]> {
  const subscription = client.subscribeToAll(options);
  const streams: string[] = [];
  subscription.on('data', ({ event }) => {
    streams.push(event!.streamId);
  });
  await new Promise((resolve, reject) => {
    subscription.on('caughtUp', resolve).on('error', reject);
  });
  await subscription.unsubscribe();
  return streams;
}

/** What a new group of consumers gets up to an event of this stream, which is written last. */
async function consumed(group: string, until: string): Promise<string[]> {
  const consumer = client.subscribeToPersistentSubscriptionToAll(group);
  const streams: string[] = [];
  for await (const resolved of consumer) {
    streams.push(resolved.event?.streamId ?? `nothing behind ${resolved.link?.streamId}`);
    await consumer.ack(resolved);
    if (streams.at(-1) === until) break;
  }
  await expect
    .poll(async () => (await client.getPersistentSubscriptionToAllInfo(group)).stats.totalInFlightMessages)
    .toBe(0);
  await consumer.unsubscribe();
  return streams;
}

async function created(group: string, startFrom: Position | typeof START, prefixes = ['seen-']): Promise<void> {
  await client.createPersistentSubscriptionToAll(
    group,
    persistentSubscriptionToAllSettingsFromDefaults({
      startFrom,
      checkPointLowerBound: 1,
      checkPointUpperBound: 1,
      checkPointAfter: 10,
    }),
    { filter: streamNameFilter({ prefixes }) },
  );
}

/** Every way to read all of `$all`, the streams of its events in the order of the log. */
const WAYS: Readonly<Record<string, () => Promise<string[]>>> = {
  'Atom pages backward': () => feed(`${ALL}/head/backward/${PAGE_EVENTS}`, 'next'),
  'Atom pages forward': () => feed(`${ALL}/${hexOf({ commit: 0n, prepare: 0n })}/forward/${PAGE_EVENTS}`, 'previous'),
  'Atom pages of a filter': () => feed(`${ALL}/filtered/head/backward/${PAGE_EVENTS}?${FILTER}`, 'next'),
  'lines of JSON': () => lines(),
  'server-sent events': async () => (await live()).streams,
  'gRPC, a read forward': async () => streamsOf(await read()),
  'gRPC, a read backward': async () =>
    streamsOf(await collected(client.readAll({ direction: BACKWARDS, fromPosition: 'end' }))).toReversed(),
  'gRPC, a subscription': () => subscribed({ fromPosition: START }),
  'gRPC, a filtered subscription': () =>
    subscribed({
      fromPosition: START,
      filter: streamNameFilter({ prefixes: ['seen-'], checkpointInterval: 1, maxSearchWindow: 1 }),
    }),
  'the store, forward': async () => (await collected(node.store.readAll())).map(({ stream }) => stream),
  'the store, backward': async () =>
    (await collected(node.store.readAll({ direction: 'backward' }))).map(({ stream }) => stream).toReversed(),
};
const shownBefore: Record<string, string[]> = {};

beforeAll(async () => {
  node = await startTestNode();
  client = EventStoreDBClient.connectionString(
    `${node.connectionString}&defaultDeadline=600000&keepAliveTimeout=600000`,
  );
  written = ['seen-kept', ...EMPTIED.slice(0, 2), 'seen-kept', ...EMPTIED.slice(2), 'seen-kept', 'seen-kept'];
  for (const stream of written) await write(stream);
  left = written.filter((stream) => !EMPTIED.includes(stream));
  for (const [name, way] of Object.entries(WAYS)) shownBefore[name] = ours(await way());
  const positions = (await read())
    .filter(({ event }) => EMPTIED.includes(event!.streamId))
    .map(({ event }) => event!.position);
  [first, last] = [positions[0]!, positions.at(-1)!];
  // A group that has parked one, and knows it by a link only.
  await created('parking', START);
  const consumer = client.subscribeToPersistentSubscriptionToAll('parking');
  let count = 0;
  for await (const resolved of consumer) {
    await (EMPTIED.includes(resolved.event!.streamId)
      ? consumer.nack('park', 'later', resolved)
      : consumer.ack(resolved));
    if (++count === written.length) break;
  }
  await vi.waitFor(
    async () =>
      expect(Number((await client.getPersistentSubscriptionToAllInfo('parking')).stats.parkedMessageCount)).toBe(
        EMPTIED.length,
      ),
    { timeout: 120_000 },
  );
  await consumer.unsubscribe();
  for (const stream of EMPTIED) await client.deleteStream(stream);
  await node.scavenge();
});

afterAll(async () => {
  await client?.dispose();
  await node?.stop();
});

describe('an event that a scavenge has emptied', () => {
  it('is in the log without its data', async () => {
    for (const stream of EMPTIED) {
      const { kept, redacted } = (await (
        await asked(`/admin/scavenge/explain/${stream}`, 'application/json')
      ).json()) as { kept: unknown; redacted?: unknown };
      expect([kept, redacted]).toEqual([
        [{ from: 0, to: 0, count: 1, why: 'last event of the deleted stream, without its data' }],
        undefined,
      ]);
    }
  });

  it.each(Object.keys(WAYS))('is shown before and not then, and what lies behind it is: %s', async (name) => {
    expect(shownBefore[name]).toEqual(written);
    expect(ours(await WAYS[name]!())).toEqual(left);
  });

  it('leads on from its own position, and from the last of several', async () => {
    for (const place of [first, last]) {
      const behind = ours(left).slice(place === first ? 1 : 2);
      expect(ours(streamsOf(await read(place)))).toEqual(behind);
      expect(ours(await lines(place))).toEqual(behind);
      expect(ours((await live({ after: textOf(place) })).streams)).toEqual(behind);
      expect(ours(await subscribed({ fromPosition: place }))).toEqual(behind);
      expect(ours(await feed(`${ALL}/${hexOf(place)}/forward/${PAGE_EVENTS}`, 'previous'))).toEqual(behind);
      expect(ours(await feed(`${ALL}/${hexOf(place)}/backward/${PAGE_EVENTS}`, 'next'))).toEqual(
        left.slice(0, left.length - behind.length),
      );
    }
  });

  it('is passed by checkpoints of filters that look for nothing else', async () => {
    const checkpoints: bigint[] = [];
    const filter = streamNameFilter({
      prefixes: ['seen-gone-'],
      checkpointInterval: 1,
      maxSearchWindow: 1,
      checkpointReached: (_, { commit }) => {
        checkpoints.push(commit);
      },
    });
    expect(await subscribed({ fromPosition: START, filter })).toEqual([]);
    expect(checkpoints.some((commit) => commit > last.commit)).toBe(true);
    const { streams, id } = await live({ path: `${ALL}/filtered?${FILTER}gone-` });
    expect(streams).toEqual([]);
    expect(BigInt(id!.split('/')[0]!)).toBeGreaterThan(last.commit);
  });

  it('is nothing that a group of consumers gets, from the start, from its position, or of what was parked', async () => {
    await client.replayParkedMessagesToAll('parking');
    await created('from the start', START);
    await created('from its position', first);
    await created('nothing else', START, ['seen-gone-', 'seen-end']);
    await write('seen-end');
    expect(await consumed('from the start', 'seen-end')).toEqual([...left, 'seen-end']);
    expect(await consumed('from its position', 'seen-end')).toEqual([...left.slice(1), 'seen-end']);
    expect(await consumed('nothing else', 'seen-end')).toEqual(['seen-end']);
    const parked: string[] = [];
    const consumer = client.subscribeToPersistentSubscriptionToAll('parking').on('data', (resolved) => {
      parked.push(resolved.event?.streamId ?? 'nothing');
      void consumer.ack(resolved);
    });
    await expect.poll(() => parked).toContain('seen-end');
    // All that was parked has been put up, and nothing of it waits.
    await expect
      .poll(async () => {
        const { parkedMessageCount, retryBufferCount } = (await client.getPersistentSubscriptionToAllInfo('parking'))
          .stats;
        return [Number(parkedMessageCount), Number(retryBufferCount)];
      })
      .toEqual([0, 0]);
    await consumer.unsubscribe();
    expect(parked).toEqual(['seen-end']);
    for (const group of ['from the start', 'from its position', 'nothing else']) {
      await expect
        .poll(
          async () =>
            (await client.getPersistentSubscriptionToAllInfo(group)).stats.lastCheckpointedEventPosition?.commit ?? 0n,
        )
        .toBeGreaterThan(last.commit);
    }
  });

  it('is followed by what its stream gets later', async () => {
    await write(EMPTIED[0]!);
    for (const [name, way] of Object.entries(WAYS)) expect(ours(await way()).at(-1), name).toBe(EMPTIED[0]);
    expect((await collected(client.readStream(EMPTIED[0]!))).map(({ event }) => Number(event!.revision))).toEqual([1]);
  });
});
