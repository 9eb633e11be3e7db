import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startNode } from '../../../local/node/node.ts';
import type { RunningNode } from '../../../local/node/node.ts';
import { NodeLines, until } from '../backup/node-kit.ts';
import { load } from '../config/support.ts';
import { connect } from './clients.ts';

/** Browsers and curl choose HTTP/2 with TLS, so that all of the HTTP interface is asked for over it, too. */

let node: RunningNode;
beforeAll(async () => {
  node = await startNode({
    config: load(['--node-port', '0', '--mem-db', '--insecure', '--stream-existence-filter-size', '10000']),
    log: new NodeLines(),
    env: {},
  });
});
afterAll(() => node.stop());

interface Answer {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

async function ask(
  session: ClientHttp2Session,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string | Buffer,
): Promise<Answer> {
  const stream = session.request({ ':method': method, ':path': path, ...headers }, { endStream: body === undefined });
  let answered: IncomingHttpHeaders = {};
  stream.on('response', (got) => {
    answered = got;
  });
  stream.end(body);
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return { headers: answered, body: Buffer.concat(parts).toString() };
}

const EVENTS = { 'content-type': 'application/vnd.eventstore.events+json' };
const eventsOf = (count: number, data: unknown) =>
  JSON.stringify(Array.from({ length: count }, () => ({ eventId: crypto.randomUUID(), eventType: 'made', data })));

test('writes and reads, heads, conditions, errors', async () => {
  const session = connect(node);
  const written = await ask(session, 'POST', '/streams/parcels', EVENTS, eventsOf(3, { a: 1 }));
  expect(written.headers[':status']).toBe(201);
  expect(written.headers['location']).toBe(`${node.url}/streams/parcels/0`);
  const read = await ask(session, 'GET', '/streams/parcels/1', { accept: 'application/json' });
  expect([read.headers[':status'], JSON.parse(read.body)]).toEqual([200, { a: 1 }]);
  const feed = await ask(session, 'GET', '/streams/parcels', { accept: 'application/vnd.eventstore.atom+json' });
  expect(JSON.parse(feed.body)).toMatchObject({ streamId: 'parcels' });
  const etag = feed.headers['etag']!;
  expect(
    (
      await ask(session, 'GET', '/streams/parcels', {
        accept: 'application/vnd.eventstore.atom+json',
        'if-none-match': etag,
      })
    ).headers[':status'],
  ).toBe(304);
  const head = await ask(session, 'HEAD', '/streams/parcels', { accept: 'application/vnd.eventstore.atom+json' });
  expect([head.headers[':status'], head.headers['etag'], head.body]).toEqual([200, etag, '']);
  expect((await ask(session, 'GET', '/streams/none')).headers[':status']).toBe(404);
  expect(
    (await ask(session, 'POST', '/streams/parcels', { 'content-type': 'text/nonsense' }, 'x')).headers[':status'],
  ).toBe(415);
  expect((await ask(session, 'GET', '/a#b')).headers[':status']).toBe(400);
  expect((await ask(session, 'GET', `/${'a'.repeat(9_000)}`)).headers[':status']).toBe(414);
});

test('large bodies both ways, and one that is too large', async () => {
  const session = connect(node);
  const data = { text: 'x'.repeat(1_000_000) };
  expect((await ask(session, 'POST', '/streams/large', EVENTS, eventsOf(4, data))).headers[':status']).toBe(201);
  const { body } = await ask(session, 'GET', '/streams/large/0/forward/4?embed=body', {
    accept: 'application/vnd.eventstore.atom+json',
  });
  expect(JSON.parse(body).entries).toHaveLength(4);
  expect((await ask(session, 'POST', '/streams/large', EVENTS, Buffer.alloc(30_000_001, 32))).headers[':status']).toBe(
    413,
  );
});

test('subscriptions go on until the client has had enough, or the node stops', async () => {
  const session = connect(node);
  const stream = session.request({ ':method': 'GET', ':path': '/streams/live', accept: 'text/event-stream' });
  let text = '';
  stream.on('data', (part: Buffer) => {
    text += part.toString();
  });
  await new Promise((resolve) => {
    stream.on('response', resolve);
  });
  await ask(session, 'POST', '/streams/live', EVENTS, eventsOf(1, { a: 1 }));
  await until(async () => text.includes('made'));
  const underWay = async () =>
    /^eventstore_subscriptions (\d+)/m.exec((await ask(session, 'GET', '/metrics')).body)![1];
  expect(await underWay()).not.toBe('0');
  stream.close(8);
  await until(async () => (await underWay()) === '0');
});
