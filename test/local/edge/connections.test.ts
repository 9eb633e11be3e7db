import { createHook } from 'node:async_hooks';
import * as net from 'node:net';
import * as tls from 'node:tls';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { HttpServer } from '../../../local/http/server.ts';
import type { CertificateSet } from '../../../local/tls/certificate-set.ts';
import { devCertificate } from '../../../local/tls/dev-certificate.ts';
import { Random } from '../../support/random.ts';
import { bySize, seedsFrom } from '../../support/run-size.ts';
import { PATH } from '../grpc/clients.ts';
import {
  ACK,
  callHeaders,
  END_HEADERS,
  END_STREAM,
  fields,
  FRAME,
  frame,
  headersFrame,
  PREFACE,
  settingsFrame,
} from '../grpc/frames.ts';
import { edgeServer, isWell } from './server.ts';

/**
 * What connections do that no client means: sequences of frames and of pieces of HTTP/1.1, and silence that ends in
 * each way. What escapes the server ends the process, which the runner takes for a failure; what its guards catch fails
 * the run, too (`test/support/caught.ts`).
 */

const GET_PING: readonly (readonly [string, string])[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/ping'],
  [':authority', 'a'],
];
const BEGINNING = Buffer.concat([Buffer.from(PREFACE, 'latin1'), settingsFrame()]);
const WINDOW_MAX = Buffer.of(0x7f, 0xff, 0xff, 0xff);
const PING = 'GET /ping HTTP/1.1\r\nHost: a\r\n\r\n';

const ENDS = ['end', 'close', 'reset'] as const;
type End = (typeof ENDS)[number];

/** A connection, and what carries it, which can be reset. */
interface Client {
  readonly socket: net.Socket;
  readonly carrier: net.Socket;
}

/** A connection whose errors are nobody's; to a server with TLS, one that speaks it unless `isBare`. */
async function opened(server: HttpServer, protocol: 'h2' | 'http/1.1', isBare = false): Promise<Client> {
  const carrier = net.connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
  carrier.on('error', () => {});
  onTestFinished(() => {
    carrier.destroy();
  });
  await new Promise((resolve) => {
    carrier.once('connect', resolve);
  });
  if (isBare || !server.url.startsWith('https:')) return { socket: carrier, carrier };
  const socket = tls.connect({ socket: carrier, ALPNProtocols: [protocol], rejectUnauthorized: false });
  socket.on('error', () => {});
  await new Promise((resolve) => {
    for (const event of ['secureConnect', 'close']) socket.once(event, resolve);
  });
  return { socket, carrier };
}

/** Ends a connection. Who only says no more goes away a little later. */
async function endBy({ socket, carrier }: Client, end: End): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    carrier.on('close', () => resolve());
  });
  socket.resume();
  if (carrier.destroyed) return;
  if (end === 'reset') carrier.resetAndDestroy();
  else if (end === 'end') {
    socket.end();
    for (let turns = 0; turns < 5; turns++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
  }
  carrier.destroy();
  await closed;
}

/** Resolves when the server has said something, or has closed the connection. */
async function heard({ socket, carrier }: Client): Promise<void> {
  if (carrier.destroyed) return;
  await new Promise<void>((resolve) => {
    for (const event of ['data', 'end', 'close']) socket.once(event, () => resolve());
    carrier.once('close', () => resolve());
  });
}

let certificates: CertificateSet;
beforeAll(async () => {
  certificates = (await devCertificate(Date.now())).set;
});

const WAYS = [
  ['plain', false],
  ['over TLS', true],
] as const;

/** Nobody's connection is left. */
async function isLeft(server: HttpServer): Promise<void> {
  await isWell(server);
  await expect.poll(() => server.connections()).toBe(0);
}

test('requests of somebody who has gone by then make no streams', async () => {
  const server = await edgeServer(null);
  const requests = Array.from({ length: 100 }, (_one, i) =>
    headersFrame(1 + 2 * i, GET_PING, END_HEADERS | END_STREAM),
  );
  const { socket } = await opened(server, 'h2');
  const told: Buffer[] = [];
  socket.on('data', (piece: Buffer) => told.push(piece));
  socket.end(Buffer.concat([BEGINNING, ...requests]));
  await new Promise((resolve) => {
    socket.once('close', resolve);
  });
  expect(Buffer.concat(told)).toHaveLength(0);
  await isLeft(server);
});

test('connections that break the rules and acknowledge no settings leave nothing in memory', async () => {
  const sessions = new Set<number>();
  const watching = createHook({
    init: (id, type) => {
      if (type === 'HTTP2SESSION') sessions.add(id);
    },
    destroy: (id) => {
      sessions.delete(id);
    },
  }).enable();
  onTestFinished(() => {
    watching.disable();
  });
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const server = await edgeServer(null);
  for (let i = 0; i < 60; i++) {
    const client = await opened(server, 'h2');
    client.socket.write(Buffer.concat([BEGINNING, frame(FRAME.windowUpdate, 0, 0, WINDOW_MAX)]));
    for (let turns = 0; turns < i % 12; turns++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    await endBy(client, 'close');
  }
  expect(sessions.size).toBeGreaterThan(0);
  await isLeft(server);
  await expect
    .poll(() => {
      collect();
      return sessions.size;
    })
    .toBe(0);
});

describe.each(WAYS)('%s', (_, isTls) => {
  test.each([
    ['a window of the connection that is too large', frame(FRAME.windowUpdate, 0, 0, WINDOW_MAX)],
    ['a window of the stream that is too large', frame(FRAME.windowUpdate, 0, 1, WINDOW_MAX)],
    ['a CONTINUATION that continues nothing', frame(FRAME.continuation, END_HEADERS, 1, fields([['a', 'b']]))],
  ])('a request and %s in one write', async (_what, broken) => {
    const server = await edgeServer(isTls ? certificates : null);
    for (const flags of [END_HEADERS, END_HEADERS | END_STREAM]) {
      const client = await opened(server, 'h2');
      client.socket.write(Buffer.concat([BEGINNING, headersFrame(1, GET_PING, flags), broken]));
      // Who has gone by then is not even looked at.
      await heard(client);
      await endBy(client, 'end');
    }
    await isWell(server);
  });

  test('sequences of frames', async () => {
    const server = await edgeServer(isTls ? certificates : null);
    for (const seed of seedsFrom(1, bySize(150, 1_500, 20_000))) await frames(server, new Random(seed));
    await isLeft(server);
  });

  test('pieces of HTTP/1.1', async () => {
    const server = await edgeServer(isTls ? certificates : null);
    for (const seed of seedsFrom(1, bySize(150, 1_500, 20_000))) await pieces(server, new Random(seed));
    await isLeft(server);
  });

  /**
   * What a client has said before it falls silent; `isSpeaking` where the server says something then, which is waited
   * for.
   */
  const states: readonly (readonly [
    what: string,
    protocol: 'h2' | 'http/1.1',
    said: string | Buffer,
    isSpeaking: boolean,
  ])[] = [
    ['nothing', 'http/1.1', '', true],
    ['a part of a preface', 'http/1.1', PREFACE.slice(0, 10), !isTls],
    ['a part of a head', 'http/1.1', 'GET /ping HTTP/1.1\r\nHo', true],
    ['a request that has been answered', 'http/1.1', PING, true],
    ['a request whose answer takes long', 'http/1.1', 'GET /long HTTP/1.1\r\nHost: a\r\n\r\n', false],
    ['a subscription', 'http/1.1', 'GET /events HTTP/1.1\r\nHost: a\r\n\r\n', true],
    ['a part of a body', 'http/1.1', 'POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc', false],
    [
      'a body that is waited for',
      'http/1.1',
      'POST /body HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n',
      true,
    ],
    [
      'a part of a chunk',
      'http/1.1',
      'POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc',
      false,
    ],
    ['the preface', 'h2', PREFACE, true],
    ['settings', 'h2', BEGINNING, true],
    ['a part of a frame', 'h2', Buffer.concat([BEGINNING, headersFrame(1, GET_PING).subarray(0, 12)]), true],
    ['a head that goes on', 'h2', Buffer.concat([BEGINNING, headersFrame(1, GET_PING, 0)]), true],
    [
      'a request of HTTP/2 that has no end',
      'h2',
      Buffer.concat([
        BEGINNING,
        headersFrame(1, [
          [':method', 'POST'],
          [':scheme', 'http'],
          [':path', '/body'],
          [':authority', 'a'],
        ]),
      ]),
      true,
    ],
    [
      'a subscription over HTTP/2',
      'h2',
      Buffer.concat([
        BEGINNING,
        headersFrame(
          1,
          [
            [':method', 'GET'],
            [':scheme', 'http'],
            [':path', '/events'],
            [':authority', 'a'],
          ],
          END_HEADERS | END_STREAM,
        ),
      ]),
      true,
    ],
    ['a call', 'h2', Buffer.concat([BEGINNING, headersFrame(1)]), true],
    [
      'a call that answers nothing',
      'h2',
      Buffer.concat([BEGINNING, headersFrame(1, callHeaders('/a.b/Silent'))]),
      true,
    ],
    [
      'a part of a message',
      'h2',
      Buffer.concat([BEGINNING, headersFrame(1), frame(FRAME.data, 0, 1, Buffer.of(0, 0, 0, 1, 0, 7))]),
      true,
    ],
  ];

  test.each(ENDS)('silence in each state, and then %s', async (end) => {
    const server = await edgeServer(isTls ? certificates : null);
    await Promise.all(
      states.map(async ([, protocol, said, isSpeaking]) => {
        for (const waits of isSpeaking ? [false, true] : [false]) {
          const client = await opened(server, protocol);
          if (said.length > 0) client.socket.write(said);
          // An answer, that it took too long, or the end.
          if (waits) await heard(client);
          await endBy(client, end);
        }
      }),
    );
    await isLeft(server);
  });

  if (isTls)
    test.each(ENDS)('silence within a handshake, and then %s', async (end) => {
      const server = await edgeServer(certificates);
      for (const said of [
        Buffer.alloc(0),
        Buffer.of(0x16),
        Buffer.of(0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3),
        Buffer.from(PING),
      ]) {
        for (const waits of [false, true]) {
          const client = await opened(server, 'http/1.1', true);
          if (said.length > 0) client.socket.write(said);
          if (waits) await heard(client);
          await endBy(client, end);
        }
      }
      await isLeft(server);
    });
});

/** Frames with what their kind may hold, more or less, in some writes; then the connection ends in any way. */
async function frames(server: HttpServer, random: Random): Promise<void> {
  const client = await opened(server, 'h2');
  const made: Buffer[] = [BEGINNING];
  let next = 1;
  const number = () =>
    Buffer.of(
      ...random.pick([
        [0, 0, 0, 0],
        [0, 0, 0, 1],
        [0x7f, 0xff, 0xff, 0xff],
        [0xff, 0xff, 0xff, 0xff],
        [0, 1, 0, 0],
      ]),
    );
  for (let left = random.int(1, 8); left > 0; left--) {
    const stream = random.pick([0, 1, 1, 1, 3, next]);
    const flags = random.pick([0, END_HEADERS, END_STREAM, END_HEADERS | END_STREAM, ACK, 8, 0x20, 0xff]);
    switch (random.int(0, 11)) {
      case 0:
      case 1:
      case 2: {
        const path = random.pick(['/ping', '/long', '/events', '/body', '']);
        const headers = random.pick([
          GET_PING.map(([name, value]) => [name, name === ':path' ? path : value] as const),
          callHeaders(PATH),
          callHeaders('/a.b/Silent', [['grpc-timeout', '1m']]),
          [['a', 'b']] as const,
        ]);
        made.push(headersFrame(next, headers, random.pick([END_HEADERS, END_HEADERS, END_HEADERS | END_STREAM, 0])));
        next += 2;
        break;
      }
      case 3:
        made.push(
          frame(
            FRAME.data,
            flags & 9,
            stream,
            random.pick([Buffer.alloc(0), Buffer.of(0, 0, 0, 0, 1, 65), Buffer.alloc(random.int(0, 16_384))]),
          ),
        );
        break;
      case 4:
        made.push(frame(FRAME.reset, 0, stream, number()));
        break;
      case 5:
        made.push(
          frame(
            FRAME.settings,
            flags & 1,
            random.pick([0, 0, stream]),
            random.pick([Buffer.alloc(0), Buffer.concat([Buffer.of(0, random.int(0, 9)), number()]), Buffer.alloc(5)]),
          ),
        );
        break;
      case 6:
        made.push(frame(FRAME.ping, flags & 1, random.pick([0, 0, stream]), Buffer.alloc(random.pick([8, 8, 7]))));
        break;
      case 7:
        made.push(frame(FRAME.goaway, 0, 0, Buffer.concat([number(), number()])));
        break;
      case 8:
      case 9:
        made.push(frame(FRAME.windowUpdate, 0, stream, number()));
        break;
      case 10:
        made.push(frame(FRAME.continuation, flags & 4, stream, fields([['c', 'd']])));
        break;
      default:
        made.push(
          frame(
            random.int(0, 255),
            flags,
            random.pick([stream, 0x7fffffff]),
            Buffer.from(random.bytes(random.int(0, 40))),
          ),
        );
        break;
    }
  }
  const all = Buffer.concat(made);
  await written(client.socket, all, random);
  await endBy(client, random.pick(ENDS));
}

const HTTP1_PIECES: readonly string[] = [
  PING,
  PING,
  'HEAD /ping HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /long HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /events HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /ping HTTP/1.0\r\n\r\n',
  'POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc',
  'POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\nabc',
  'POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n',
  'POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n',
  '3\r\nabc\r\n',
  '0\r\n\r\n',
  'zz\r\n',
  'POST /body HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n',
  'abc',
  'GET /ping HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
  'GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET http://b/ping HTTP/1.1\r\nHost: a\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /',
  ' HTTP/1.1\r\n',
  '\r\n',
  '\0\u0001',
  PREFACE,
  PREFACE.slice(0, 9),
  '\u0010\0\0\0\u0001\0\0\0\u0003\0\0\0GET\n',
  `A: ${'b'.repeat(40_000)}\r\n`,
];

async function pieces(server: HttpServer, random: Random): Promise<void> {
  const client = await opened(server, 'http/1.1');
  await written(
    client.socket,
    Buffer.from(Array.from({ length: random.int(0, 6) }, () => random.pick(HTTP1_PIECES)).join(''), 'latin1'),
    random,
  );
  await endBy(client, random.pick(ENDS));
}

/** In one write or some, between which the server may have had a turn or not. */
async function written(socket: net.Socket, all: Buffer, random: Random): Promise<void> {
  const cuts = random.chance(0.5)
    ? []
    : Array.from({ length: random.int(1, 3) }, () => random.int(0, all.length)).sort((a, b) => a - b);
  let at = 0;
  for (const end of [...cuts, all.length]) {
    socket.write(all.subarray(at, end));
    at = end;
    if (random.chance(0.5))
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
  }
}
