import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import * as lib from '@kurrent/kurrentdb-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../local/embedded/index.ts';
import { startedNode } from './spawn.ts';
import type { Started } from './spawn.ts';

/**
 * A marker of 32 bytes in one event, and all that every interface gives: before the event is redacted each that shows
 * data shows it, and none does from the mark on, nor after a restart and a scavenge.
 */

const MARKER = 'M4RK3R/of/32/bytes/0123456789ab!';
const SECRET_ID = '7c000000-0000-4000-8000-000000000001';
const ATOM = 'application/vnd.eventstore.atom+json';
const EVENTS = 'application/vnd.eventstore.events+json';
/** Groups that took the event before its mark: one holds it in its buffer, one has parked it. */
const BUFFERED = 'buffered';
const PARKED = 'parked';

let folder: string;
let node: Started;
let client: lib.KurrentDBClient;

async function start(): Promise<void> {
  node = await startedNode(['--insecure', '--db', path.join(folder, 'data'), '--chunk-size', '1048576']);
  client = lib.KurrentDBClient.connectionString(`kurrentdb://127.0.0.1:${new URL(node.url).port}?tls=false`);
}

async function stop(): Promise<void> {
  await client.dispose();
  await node.stop();
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-redacted-'));
  await start();
  const event = (n: number) => ({
    eventId: `7c000000-0000-4000-8000-00000000000${n}`,
    eventType: 'paid',
    data: { card: n === 1 ? MARKER : `card ${n}` },
    metadata: { who: n === 1 ? MARKER : 'nobody', $correlationId: 'c' },
  });
  await ask('POST', '/streams/orders', { 'content-type': EVENTS }, [0, 1, 2].map(event));
  await ask(
    'POST',
    '/streams/links',
    { 'content-type': 'application/octet-stream', 'es-eventtype': '$>', 'es-eventid': crypto.randomUUID() },
    '1@orders',
  );
});

afterAll(async () => {
  await stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Answer {
  readonly status: number;
  readonly etag: string | null;
  readonly text: string;
}

async function ask(
  method: string,
  target: string,
  headers: Record<string, string> = {},
  body?: unknown,
): Promise<Answer> {
  const reply = await fetch(node.url + target, {
    method,
    headers,
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await reply.text();
  if (reply.status >= 400) throw new Error(`${method} ${target}: ${reply.status} ${text}`);
  return { status: reply.status, etag: reply.headers.get('etag'), text };
}

const get = (target: string, accept: string, headers: Record<string, string> = {}) =>
  ask('GET', target, { accept, ...headers });

/** Until a stream of server-sent events has caught up. */
async function sse(target: string): Promise<string> {
  const ending = new AbortController();
  const reply = await fetch(node.url + target, {
    headers: { accept: 'text/event-stream', 'es-resolvelinktos': 'true' },
    signal: ending.signal,
  });
  let text = '';
  for await (const part of reply.body!.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.includes('event: caught-up')) break;
  }
  ending.abort();
  return text;
}

/** What an event of a client holds, bytes as text. */
function told(events: readonly (lib.ResolvedEvent | undefined)[]): string {
  return JSON.stringify(events, (_, value: unknown) =>
    typeof value === 'bigint'
      ? String(value)
      : value instanceof Uint8Array
        ? Buffer.from(value).toString()
        : typeof value === 'object' && value !== null && (value as { type?: unknown }).type === 'Buffer'
          ? Buffer.from((value as { data: number[] }).data).toString()
          : value,
  );
}

async function all(events: AsyncIterable<lib.ResolvedEvent>): Promise<string> {
  const found: lib.ResolvedEvent[] = [];
  for await (const event of events) found.push(event);
  return told(found);
}

/** What comes until the history has been read. */
async function history(subscription: lib.StreamSubscription | lib.AllStreamSubscription): Promise<string> {
  const found: lib.ResolvedEvent[] = [];
  await new Promise<void>((resolve, reject) => {
    subscription.on('data', (event) => found.push(event));
    subscription.on('caughtUp', () => resolve());
    subscription.on('error', reject);
  });
  await subscription.unsubscribe();
  return told(found);
}

/** The next events of a group, each answered by `answer`. */
async function consumed(
  stream: string,
  group: string,
  count: number,
  answer: 'ack' | 'park' | 'retry' = 'ack',
): Promise<string> {
  const consumer = client.subscribeToPersistentSubscriptionToStream(stream, group);
  const found: lib.ResolvedEvent[] = [];
  for await (const event of consumer) {
    found.push(event);
    await (answer === 'ack' ? consumer.ack(event) : consumer.nack(answer, 'told to', event));
    if (found.length === count) break;
  }
  // What was answered has arrived when nothing is under way any more.
  for (;;) {
    const { stats } = await client.getPersistentSubscriptionToStreamInfo(stream, group);
    if (stats.totalInFlightMessages === 0) break;
  }
  await consumer.unsubscribe();
  return told(found);
}

let groups = 0;
/** A group of its own that reads the stream from its beginning. */
async function fresh(stream: string, count: number): Promise<string> {
  const group = `fresh-${++groups}`;
  await client.createPersistentSubscriptionToStream(
    stream,
    group,
    lib.persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: lib.START, resolveLinkTos: true }),
  );
  return consumed(stream, group, count);
}

async function freshByHttp(): Promise<string> {
  const group = `http-${++groups}`;
  await ask('PUT', `/subscriptions/orders/${group}`, { 'content-type': 'application/json' }, { startFrom: 0 });
  const accept = 'application/vnd.eventstore.competingatom+json';
  return (await get(`/subscriptions/orders/${group}/10?embed=body`, accept)).text;
}

/** By what it is: all that is shown now. `isDataless`: it shows no data of events. */
async function everything(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const add = async (what: string, text: Promise<string> | string) => found.set(what, await text);
  const textOf = async (answer: Promise<Answer>) => (await answer).text;
  const links = { 'es-resolvelinktos': 'true' };
  for (const stream of ['orders', 'links', '%24all'])
    for (const embed of ['none', 'content', 'rich', 'body', 'pretty', 'tryharder'])
      for (const page of ['', stream === '%24all' ? '/head/backward/50' : '/0/forward/20'])
        await add(`${embed} ${stream}${page}`, textOf(get(`/streams/${stream}${page}?embed=${embed}`, ATOM, links)));
  for (const stream of ['orders', 'links', '%24all']) {
    await add(`lines ${stream}`, textOf(get(`/streams/${stream}`, 'application/x-ndjson', links)));
    await add(`sse ${stream}`, sse(`/streams/${stream}`));
  }
  await add('lines page', textOf(get('/streams/orders/0/forward/10', 'application/x-ndjson')));
  await add('long poll', textOf(get('/streams/orders/1/forward/10?embed=body', ATOM, { 'es-longpoll': '1' })));
  await add(
    'filtered',
    textOf(get('/streams/%24all/filtered?context=eventtype&type=prefix&data=paid&embed=body', ATOM)),
  );
  for (const event of ['/streams/orders/1', '/streams/links/0'])
    for (const accept of [ATOM, 'application/json', 'application/octet-stream'])
      await add(`event ${event} ${accept}`, textOf(get(event, accept, links)));
  await add('group by HTTP', freshByHttp());
  await add(
    'parked',
    textOf(get(`/subscriptions/viewparkedmessages/orders/${PARKED}/0/forward/10`, ATOM)).catch(String),
  );

  for (const direction of [lib.FORWARDS, lib.BACKWARDS] as const) {
    const isForward = direction === lib.FORWARDS;
    const from = isForward ? lib.START : lib.END;
    await add(`gRPC stream ${direction}`, all(client.readStream('orders', { direction, fromRevision: from })));
    await add(`gRPC all ${direction}`, all(client.readAll({ direction, fromPosition: from })));
    await add(
      `gRPC links ${direction}`,
      all(client.readStream('links', { direction, fromRevision: from, resolveLinkTos: true })),
    );
  }
  await add('gRPC subscription', history(client.subscribeToStream('orders', { fromRevision: lib.START })));
  await add(
    'gRPC subscription of links',
    history(client.subscribeToStream('links', { fromRevision: lib.START, resolveLinkTos: true })),
  );
  await add('gRPC subscription of all', history(client.subscribeToAll({ fromPosition: lib.START })));
  await add('gRPC group', fresh('orders', 3));
  await add('gRPC group of links', fresh('links', 1));
  return found;
}

/** The node is at another port after a restart. */
const withoutPort = (text: string) => text.replaceAll(/127\.0\.0\.1:\d+/g, 'node');
/** What shows no data of events, or none of what a link leads to, in any state. */
const DATALESS = /^(none|rich) |^content links|links\/0 .*atom|^parked$/;
const showing = (found: Map<string, string>) =>
  [...found].filter(([, text]) => text.replaceAll('\\/', '/').includes(MARKER)).map(([what]) => what);

test('what was redacted shows at no interface', async () => {
  const settings = lib.persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: lib.START });
  await client.createPersistentSubscriptionToStream('orders', PARKED, settings);
  expect(await consumed('orders', PARKED, 3, 'park')).toContain(MARKER);
  await client.createPersistentSubscriptionToStream('orders', BUFFERED, settings);
  // Nobody reads it: it has read ahead, and waits.
  for (;;) {
    const { stats } = await client.getPersistentSubscriptionToStreamInfo('orders', BUFFERED);
    if (stats.readBufferCount === 3) break;
  }

  const before = await everything();
  const shown = showing(before);
  expect([...before.keys()].filter((what) => !shown.includes(what) && !DATALESS.test(what))).toEqual([]);
  expect(shown.length).toBeGreaterThan(30);
  const conditional: [string, string, string][] = [];
  for (const target of ['/streams/orders?embed=body', '/streams/orders/0/forward/20?embed=body']) {
    const { etag } = await get(target, ATOM);
    expect([target, (await get(target, ATOM, { 'if-none-match': etag! })).status]).toEqual([target, 304]);
    conditional.push([target, ATOM, etag!]);
  }

  const wanted = { stream: 'orders', ids: [SECRET_ID], reason: 'card number' };
  await ask('POST', '/admin/redact', { 'content-type': 'application/json' }, wanted);

  for (const [target, accept, etag] of conditional) {
    const { status, text } = await get(target, accept, { 'if-none-match': etag });
    expect([target, status, text.includes(MARKER)]).toEqual([target, 200, false]);
  }
  const delivered = await consumed('orders', BUFFERED, 3);
  expect(delivered).toContain(SECRET_ID);
  expect(delivered).not.toContain(MARKER);
  await client.replayParkedMessagesToStream('orders', PARKED);
  // Each is parked once more, so that a restart finds it so.
  const replayed = await consumed('orders', PARKED, 3, 'park');
  expect(replayed).toContain(SECRET_ID);
  expect(replayed).not.toContain(MARKER);

  /** Nothing shows it, and what shows data shows that of the others. */
  const check = async () => {
    const after = await everything();
    expect(showing(after)).toEqual([]);
    for (const [what, text] of after)
      if (shown.includes(what) && /orders/.test(what) && !/orders\/1/.test(what))
        expect([what, text]).toEqual([what, expect.stringContaining('card 2')]);
    expect(after.get('event /streams/orders/1 application/json')).toMatch(/^("")?$/);
    return after;
  };
  const marked = await check();
  await stop();
  await start();
  await check();
  const { scavengeId } = JSON.parse((await ask('POST', '/admin/scavenge')).text) as { scavengeId: string };
  for (;;) {
    const last = JSON.parse((await ask('GET', '/admin/scavenge/last')).text) as Record<string, string>;
    if (last['scavengeId'] === scavengeId && last['scavengeResult'] !== 'InProgress') {
      expect(last['scavengeResult']).toBe('Success');
      break;
    }
  }
  const scavenged = await check();
  for (const what of ['lines orders', 'gRPC stream forwards', 'body orders/0/forward/20'])
    expect(withoutPort(scavenged.get(what)!)).toBe(withoutPort(marked.get(what)!));
  await client.replayParkedMessagesToStream('orders', PARKED);
  expect(await consumed('orders', PARKED, 3)).not.toContain(MARKER);
  await stop();
  await start();
  await check();
});

test('a program that reads in its own time is given what reads so then', async () => {
  const store = await openStore({ memory: true });
  const secret = { type: 'Paid', data: { card: MARKER }, metadata: { who: MARKER, $correlationId: 'c' } };
  await store.append('orders', [{ type: 'Paid', data: { card: 'other' } }, secret, secret]);
  const ending = new AbortController();
  const readers = [
    store.read('orders'),
    store.readAll(),
    store.subscribe({ stream: 'orders', signal: ending.signal }),
    store.subscribe({ signal: ending.signal }),
  ].map((events) => events[Symbol.asyncIterator]());
  for (const reader of readers) expect((await reader.next()).value).toMatchObject({ data: { card: 'other' } });
  await store.redact('orders', { events: [1, 2], reason: 'card number' });
  for (const reader of readers)
    for (const version of [1, 2])
      expect((await reader.next()).value).toMatchObject({
        version,
        isRedacted: true,
        data: undefined,
        metadata: { $correlationId: 'c' },
      });
  ending.abort();
  await store.close();
});
