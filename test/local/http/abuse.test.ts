import * as net from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { readBody } from '../../../local/http/http-request.ts';
import type { HttpServer, HttpServerOptions } from '../../../local/http/server.ts';
import type { CertificateSet } from '../../../local/tls/certificate-set.ts';
import { devCertificate } from '../../../local/tls/dev-certificate.ts';
import { EVENTS, harness } from '../../handlers/harness.ts';
import { call, open, PlainResponse as Response, received, serve } from '../tls/clients.ts';

const BODY_BYTES_MAX = 10_000;
const QUICK = { headersMs: 250, requestMs: 500, checkMs: 25 };
const event = (data: string) =>
  JSON.stringify([{ eventId: '00000000-0000-4000-8000-000000000001', eventType: 'made', data }]);
const ADDRESSED = 'POST /streams/s HTTP/1.1\r\nHost: x\r\n';

let certificates: CertificateSet;

beforeAll(async () => {
  certificates = (await devCertificate(Date.now())).set;
});

/** The whole interface over a model of the store, behind the real server. */
function node(isTls: boolean, options: Partial<HttpServerOptions> = {}): Promise<HttpServer> {
  const { app } = harness({ readBody, options: { bodyBytesMax: BODY_BYTES_MAX } });
  return serve({ fetch: app, ...(isTls && { tls: { certificates } }), ...options });
}

/** A client that means well still gets its answer. */
async function goesOn(server: HttpServer): Promise<void> {
  for (;;) {
    const { status } = await call(
      server,
      {
        method: 'POST',
        path: '/streams/well',
        headers: { 'content-type': EVENTS },
        rejectUnauthorized: false,
        agent: false,
      },
      event('fine'),
    );
    // Where the machine is busy a good client may be as slow as the bad one was, and tries again.
    if (status === 408) continue;
    expect(status).toBe(201);
    return;
  }
}

async function answerTo(server: HttpServer, ...pieces: string[]): Promise<string> {
  const socket = await open(server);
  const reply = received(socket);
  for (const piece of pieces) socket.write(piece);
  return reply;
}

describe.each([
  ['http', false],
  ['https', true],
] as const)('over %s', (_, isTls) => {
  test.each([
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['bytes of nothing', '\0\u0001\u0002\u0003'.repeat(500), 400],
    ['no version', 'GET /streams/s\r\n\r\n', null],
    ['a later version', 'GET /streams/s HTTP/9.9\r\nHost: x\r\n\r\n', 400],
    ['no Host', 'GET /ping HTTP/1.1\r\n\r\n', 400],
    ['a header without a colon', 'GET /ping HTTP/1.1\r\nHost: x\r\nBroken\r\n\r\n', 400],
    ['a blank before the colon', 'GET /ping HTTP/1.1\r\nHost: x\r\nBroken : y\r\n\r\n', 400],
    ['a control character in a header', 'GET /ping HTTP/1.1\r\nHost: x\r\nA: \u0001\r\n\r\n', 400],
    ['a folded header', 'GET /ping HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n', null],
    ['two lengths', `${ADDRESSED}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, 400],
    ['a length and chunks', `${ADDRESSED}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    ['a length that is no number', `${ADDRESSED}Content-Length: ten\r\n\r\n`, 400],
    ['a negative length', `${ADDRESSED}Content-Length: -1\r\n\r\n`, 400],
    ['a length beyond all bounds', `${ADDRESSED}Content-Length: 99999999999999999999\r\n\r\n`, 400],
    ['a damaged chunk', `${ADDRESSED}Content-Type: ${EVENTS}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`, 400],
    ['an unknown transfer encoding', `${ADDRESSED}Transfer-Encoding: brotli\r\n\r\n`, 400],
    ['a target that is no path', 'GET streams HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['a request line over 8 KiB', `GET /streams/${'a'.repeat(8_200)} HTTP/1.1\r\nHost: x\r\n\r\n`, 414],
    ['a request line that does not end', `GET /streams/${'a'.repeat(60_000)}`, isTls ? 431 : 414],
    ['a header over the limit', `GET /ping HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(40_000)}\r\n\r\n`, 431],
    ['many headers over the limit', `GET /ping HTTP/1.1\r\nHost: x\r\n${'A: b\r\n'.repeat(10_000)}\r\n`, 431],
    [
      'a declared body over the limit',
      `${ADDRESSED}Connection: close\r\nContent-Type: ${EVENTS}\r\nContent-Length: ${BODY_BYTES_MAX + 1}\r\n\r\n${'x'.repeat(BODY_BYTES_MAX + 1)}`,
      413,
    ],
    [
      'an undeclared body over the limit',
      `${ADDRESSED}Connection: close\r\nContent-Type: ${EVENTS}\r\nTransfer-Encoding: chunked\r\n\r\n${'100\r\n'.concat('x'.repeat(256), '\r\n').repeat(100)}0\r\n\r\n`,
      413,
    ],
    ['a Host that is none', 'GET /streams/s HTTP/1.1\r\nHost: a b<>\r\nConnection: close\r\n\r\n', null],
    ['an unknown expectation', `${ADDRESSED}Expect: miracles\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, 417],
    ['a tunnel', 'CONNECT example.test:443 HTTP/1.1\r\nHost: example.test\r\n\r\n', null],
    ['another protocol', 'GET /ping HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n', null],
  ])('%s', async (_, text, status) => {
    const server = await node(isTls);
    const reply = await answerTo(server, text);
    if (status === null) expect(reply).not.toMatch(/^HTTP\/1\.1 5/);
    else expect(reply.split(' ', 2)).toEqual(['HTTP/1.1', String(status)]);
    await goesOn(server);
  });

  test('connections on which no request has begun do not hold up the end', async () => {
    const server = await node(isTls);
    const silent = [await open(server), await open(server)];
    silent[1]!.write('GET /ping HT');
    const closed = silent.map(received);
    await goesOn(server);
    expect(await server.stop(20_000)).toBe(true);
    await Promise.all(closed);
  });
  test('headers that come too slowly: 408', async () => {
    const server = await node(isTls, { patience: QUICK });
    expect(await answerTo(server, 'GET /ping HTTP/1.1\r\nHost: x\r\n')).toMatch(/^HTTP\/1\.1 408 /);
    await goesOn(server);
  });
  test('a connection on which nothing comes is closed', async () => {
    const server = await node(isTls, { patience: QUICK });
    expect(await answerTo(server)).toMatch(/^(HTTP\/1\.1 408 |$)/);
    await goesOn(server);
  });
  test('a body that comes too slowly: 408', async () => {
    const server = await node(isTls, { patience: QUICK });
    expect(await answerTo(server, `${ADDRESSED}Content-Type: ${EVENTS}\r\nContent-Length: 100\r\n\r\nhalf`)).toMatch(
      /^HTTP\/1\.1 408 /,
    );
    await goesOn(server);
  });
  test('a reply that was begun is never torn by another answer', async () => {
    const server = await serve({
      fetch: () =>
        new Response(new ReadableStream<Uint8Array>({ start: (c) => c.enqueue(new TextEncoder().encode('first')) })),
      patience: QUICK,
      ...(isTls && { tls: { certificates } }),
    });
    let reply: string;
    // Where the machine stood still, the head itself was too late, and nothing was begun.
    do reply = await answerTo(server, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf');
    while (reply.startsWith('HTTP/1.1 408 '));
    expect(reply).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(reply.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
  test('garbage behind a good request: that one is answered, then the connection ends', async () => {
    const server = await serve({ fetch: async () => new Response('done'), ...(isTls && { tls: { certificates } }) });
    const reply = await answerTo(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n\0\0garbage\r\n\r\n');
    expect(reply).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*done$/);
  });
  test('clients that go away at every point of a request', async () => {
    const server = await node(isTls);
    const whole = `${ADDRESSED}Content-Type: ${EVENTS}\r\nContent-Length: 500\r\n\r\n${'x'.repeat(400)}`;
    for (let length = 0; length <= whole.length; length += 20) {
      const socket = await open(server);
      const closed = received(socket);
      socket.write(whole.slice(0, length), () =>
        isTls || length % 40 === 0 ? socket.destroy() : socket.resetAndDestroy(),
      );
      if (length === 0) socket.destroy();
      await closed;
    }
    await goesOn(server);
  });
  test('a client that goes away before anybody reads its body: the reader is told', async () => {
    const looked = Promise.withResolvers<Request>();
    const gone = Promise.withResolvers<void>();
    const outcome = Promise.withResolvers<unknown>();
    const server = await serve({
      fetch: async (request) => {
        looked.resolve(request);
        await gone.promise;
        outcome.resolve(await readBody(request, BODY_BYTES_MAX).catch((error: unknown) => error));
        return new Response('ok');
      },
      ...(isTls && { tls: { certificates } }),
    });
    const socket = await open(server);
    socket.write(`${ADDRESSED}Content-Length: 100\r\n\r\nhalf`);
    const { signal } = await looked.promise;
    signal.addEventListener('abort', () => gone.resolve());
    socket.destroy();
    expect(await outcome.promise).toMatchObject({ code: 'aborted' });
  });
  test('a refused client that keeps its connection open loses it', async () => {
    const server = await node(isTls);
    const socket = await open(server, { allowHalfOpen: true } as net.TcpNetConnectOpts);
    const closed = received(socket);
    // It goes on sending, and learns by that when nobody is there any more.
    const sending = setInterval(() => socket.write('hello\r\n\r\n'), 20);
    expect(await closed).toMatch(/^HTTP\/1\.1 400 /);
    clearInterval(sending);
  });
});
