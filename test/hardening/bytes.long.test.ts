import * as net from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Flow } from '../../local/http/flow.ts';
import { readBody, replyShareOf } from '../../local/http/http-request.ts';
import type { HttpServer } from '../../local/http/server.ts';
import { startServer } from '../../local/http/server.ts';
import { toResponse } from '../../local/http/send-reply.ts';
import { createApp } from '../../handlers/app.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { contextOf } from '../support/app-context.ts';
import { FakeScavenger } from '../support/fake-scavenger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { encodeText } from '../../core/base/text.ts';
import { event, setUp, type Setup } from '../streams/setup.ts';

const MIB = 1_048_576;
/** For what a test writes besides, and for what its records have around their data. */
const ROOM_BYTES = 8 * MIB;
const ATOM = 'application/vnd.eventstore.atom+json';
const EVENTS = 'application/vnd.eventstore.events+json';

interface Node {
  readonly server: HttpServer;
  readonly flow: Flow;
  readonly clock: ManualClock;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
}

async function filled(count: number, bytes: number): Promise<Setup> {
  const made = setUp({ capacity: count * bytes + ROOM_BYTES });
  const data = encodeText(JSON.stringify('x'.repeat(Math.max(0, bytes - 2))));
  for (let n = 0; n < count; n++) await made.store.append('big', -2, [event('', { data, isJson: true })]);
  await made.store.append('small', -2, [event('"small"', { isJson: true })]);
  return made;
}

/** Logs with events, to which no test writes: to fill one takes longer than most tests. */
const FILLED: Record<string, Promise<Setup>> = {};

/** The interface over a store with `count` events of `bytes` bytes in the stream `big`, behind the real server. */
async function node(
  count: number,
  bytes: number,
  options: { replyBytesMax?: number; uploadBytesMax?: number; readPageBytesMax?: number } = {},
): Promise<Node> {
  const clock = new ManualClock();
  const { store } =
    count === 0
      ? await filled(count, bytes)
      : setUp({ from: await (FILLED[`${count} ${bytes}`] ??= filled(count, bytes)) });
  const flow = new Flow({ replyBytesMax: 64 * MIB, uploadBytesMax: 64 * MIB, stallMs: 30_000, ...options }, clock);
  const fetchApp = createApp(
    contextOf({
      store,
      clock,
      scavenger: new FakeScavenger(),
      ids: new SeededIds(),
      log: silentLog,
      meter: silentMeter,
      security: null,
      node: null,
      readBody,
      replyShareOf,
      toResponse,
      ...(options.readPageBytesMax !== undefined && { options: { readPageBytesMax: options.readPageBytesMax } }),
    }),
  );
  const server = await startServer({ hostname: '127.0.0.1', port: 0, fetch: fetchApp, log: silentLog, flow });
  onTestFinished(async () => {
    await server.stop(100);
  });
  return { server, flow, clock, get: (path, headers = {}) => fetch(server.url + path, { headers }) };
}

/** A bare connection on which `text` was sent, and which takes nothing. */
async function silent(server: HttpServer, text: string): Promise<net.Socket> {
  const socket = net.connect(server.port, '127.0.0.1');
  socket.pause();
  socket.on('error', () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  await new Promise<void>((resolve) => {
    socket.write(text, () => resolve());
  });
  return socket;
}

async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; !isTrue(); turn++) {
    if (turn > 100_000) throw new Error(`It never came to: ${isTrue}`);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** Time goes on, slowly beside what sockets do, until it is so. */
async function passing(clock: ManualClock, isTrue: () => boolean): Promise<void> {
  for (let turn = 0; !isTrue(); turn++) {
    if (turn > 20_000) throw new Error(`It never came to: ${isTrue}`);
    await clock.advance(100);
  }
}

const pathOf = (uri: string) => new URL(uri).pathname;
interface Feed {
  entries: { title: string; data?: string }[];
  links: { relation: string; uri: string }[];
}

describe('pages', () => {
  test.each([
    ['/streams/big/head/backward/4096', 'next'],
    ['/streams/big/0/forward/4096', 'previous'],
    ['/streams/%24all/head/backward/4096', 'next'],
    [`/streams/%24all/${'0'.repeat(32)}/forward/4096`, 'previous'],
    [`/streams/%24all/filtered/${'0'.repeat(32)}/forward/4096?context=streamid&type=prefix&data=big`, 'previous'],
  ])('%s ends at a number of bytes, and its links lead to exactly what is missing', async (start, relation) => {
    const { get } = await node(12, MIB);
    const seen: string[] = [];
    let path: string | undefined = start;
    const query = start.includes('?') ? `${start.slice(start.indexOf('?'))}&` : '?';
    for (let pages = 0; path !== undefined; pages++) {
      expect(pages).toBeLessThan(6);
      const reply = await get(`${path.split('?')[0]}${query}embed=body`, { accept: ATOM });
      const { entries, links } = (await reply.json()) as Feed;
      if (entries.length === 0) break;
      expect(entries.length).toBeLessThanOrEqual(8);
      seen.push(
        ...(relation === 'next' ? entries : entries.toReversed())
          .map(({ title }) => title)
          .filter((title) => title.endsWith('@big')),
      );
      const link = links.find((each) => each.relation === relation);
      path = link === undefined ? undefined : pathOf(link.uri);
    }
    const all = Array.from({ length: 12 }, (_, n) => `${n}@big`);
    expect(seen).toEqual(relation === 'next' ? all.toReversed() : all);
  });
  test('a page without embed has all its events, and holds next to nothing', async () => {
    const { get, flow } = await node(12, MIB);
    const { entries } = (await (await get('/streams/big/head/backward/4096', { accept: ATOM })).json()) as Feed;
    expect([entries.length, flow.replies.heldBytes]).toEqual([12, 0]);
  });
  test('a large reply holds its bytes until the client has taken it, and gives them back', async () => {
    const { server, flow, get } = await node(8, MIB);
    const socket = await silent(
      server,
      `GET /streams/big/head/backward/7?embed=body HTTP/1.1\r\nHost: x\r\nAccept: ${ATOM}\r\n\r\n`,
    );
    await until(() => flow.replies.heldBytes > 7 * MIB);
    expect((await get('/streams/small/0')).status).toBe(200);
    socket.destroy();
    await until(() => flow.replies.heldBytes === 0);
  });
  test('while stalled replies hold everything, small ones go on, and large ones wait, and are refused in the end', async () => {
    const { server, flow, get, clock } = await node(8, MIB, { replyBytesMax: 33_554_432 });
    for (let i = 0; i < 8; i++)
      await silent(
        server,
        `GET /streams/big/head/backward/7?embed=body HTTP/1.1\r\nHost: x\r\nAccept: ${ATOM}\r\n\r\n`,
      );
    await until(() => flow.replies.waiting === 5);
    expect(flow.replies.heldBytes).toBeLessThanOrEqual(33_554_432);
    expect((await get('/streams/small/0')).status).toBe(200);
    const late = get('/streams/big/head/backward/7?embed=body', { accept: ATOM });
    await until(() => flow.replies.waiting === 6);
    await clock.advance(20_000);
    const reply = await late;
    expect([reply.status, reply.headers.get('retry-after'), ((await reply.json()) as { code: string }).code]).toEqual([
      503,
      '1',
      'too_busy',
    ]);
  });
});

describe.each([
  ['server-sent events', 'text/event-stream'],
  ['NDJSON', 'application/x-ndjson'],
])('%s', (_, accept) => {
  test('hold one block of a stalled reader, and stop loading when he leaves', async () => {
    const { server, flow } = await node(40, MIB);
    const readers = await Promise.all(
      Array.from({ length: 4 }, () =>
        silent(server, `GET /streams/big HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\n\r\n`),
      ),
    );
    await until(() => flow.replies.heldBytes > 4 * MIB);
    expect(flow.replies.heldBytes).toBeLessThan(9 * MIB);
    for (const socket of readers) socket.destroy();
    await until(() => flow.replies.heldBytes === 0);
  });
  test('a reader that stands still is cut off', async () => {
    const { server, flow, clock, get } = await node(40, MIB);
    const socket = await silent(server, `GET /streams/big HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\n\r\n`);
    await until(() => flow.replies.heldBytes > MIB);
    await passing(clock, () => flow.replies.heldBytes === 0);
    socket.resume();
    await new Promise((resolve) => {
      socket.on('close', resolve);
    });
    expect((await get('/streams/small/0')).status).toBe(200);
  });
  test('large events come as they would in one piece', async () => {
    const { get } = await node(2, 300_000);
    const reply = await get('/streams/big?limit=1', { accept });
    const reader = reply.body!.getReader();
    let text = '';
    for (const decoder = new TextDecoder(); !text.includes('\n', 40);)
      text += decoder.decode((await reader.read()).value, { stream: true });
    await reader.cancel();
    const line = JSON.parse(text.slice(text.indexOf('{'), text.indexOf('\n', 40))) as Record<string, unknown>;
    expect(Object.keys(line)).toEqual([
      'eventId',
      'eventType',
      'eventNumber',
      'data',
      'metaData',
      'linkMetaData',
      'streamId',
      'isJson',
      'isMetaData',
      'isLinkMetaData',
      'isRedacted',
      'positionEventNumber',
      'positionStreamId',
      'updated',
      'position',
    ]);
    expect([
      line['eventNumber'],
      (line['data'] as string).length,
      line['metaData'],
      line['linkMetaData'],
      line['isJson'],
    ]).toEqual([0, 300_000, null, null, true]);
  });
});

describe('uploads', () => {
  const head = (length: number, path = '/streams/up') =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${EVENTS}\r\nContent-Length: ${length}\r\n\r\n`;
  /** Sends as much as the server takes. */
  async function upload(server: HttpServer, bytes: number): Promise<net.Socket> {
    const socket = await silent(server, head(30_000_000));
    socket.write(Buffer.alloc(bytes, 0x20));
    return socket;
  }

  test('a declared length counts for nothing', async () => {
    const { server, flow, get } = await node(0, 0);
    for (let i = 0; i < 20; i++) await silent(server, head(30_000_000));
    expect([flow.uploads.heldBytes, (await get('/streams/small/0')).status]).toEqual([0, 200]);
  });
  test('bytes that have arrived count, until the append has been answered', async () => {
    const { server, flow } = await node(0, 0);
    const body = JSON.stringify([
      { eventId: '00000000-0000-4000-8000-000000000001', eventType: 'made', data: 'x'.repeat(MIB) },
    ]);
    const socket = await silent(server, head(body.length) + body.slice(0, -1));
    await until(() => flow.uploads.heldBytes === body.length - 1);
    socket.write(']');
    await until(() => flow.uploads.heldBytes === 0);
    socket.resume();
    const reply = await new Promise<string>((resolve) => {
      socket.once('data', (part) => resolve(part.toString()));
    });
    expect(reply.split('\r\n')[0]).toBe('HTTP/1.1 201 Created');
  });
  test('at the total others are not read on, one always ends, and small ones go on', async () => {
    const { server, flow } = await node(0, 0);
    await Promise.all(Array.from({ length: 6 }, () => upload(server, 29_999_999)));
    await until(() => flow.uploads.waiting === 5);
    // Six have sent 30 MB each, or would.
    expect(flow.uploads.heldBytes).toBeLessThan(64 * MIB + 6 * 262_144);
    const small = await fetch(`${server.url}/streams/other`, {
      method: 'POST',
      headers: { 'content-type': EVENTS },
      body: JSON.stringify([{ eventId: '00000000-0000-4000-8000-000000000002', eventType: 'made', data: 'x' }]),
    });
    expect(small.status).toBe(201);
  });
  test('who waits too long is refused with 503; who sends nothing any more is cut off', async () => {
    const { server, flow, clock } = await node(0, 0);
    const sockets = await Promise.all(Array.from({ length: 5 }, () => upload(server, 29_999_999)));
    await until(() => flow.uploads.waiting === 4);
    const replies = sockets.map(
      (socket) =>
        new Promise<string>((resolve) => {
          socket.on('data', (part) => resolve(part.toString().split('\r\n')[0]!));
          socket.on('close', () => resolve('cut off'));
          socket.resume();
        }),
    );
    let ended: string[] = [];
    void Promise.all(replies).then((lines) => {
      ended = lines;
    });
    await passing(clock, () => ended.length > 0);
    expect(ended.filter((line) => line === 'HTTP/1.1 503 Server Is Too Busy').length).toBeGreaterThan(0);
    expect(ended.filter((line) => line === 'cut off').length).toBeGreaterThan(0);
    await until(() => flow.uploads.heldBytes === 0);
  });
});
