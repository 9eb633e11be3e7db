import * as http from 'node:http';
import * as net from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { Log } from '../../../core/ports/log.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { readBody } from '../../../local/http/http-request.ts';
import { startServer } from '../../../local/http/server.ts';
import type { Fetch, HttpServer } from '../../../local/http/server.ts';
import { call, open, PlainResponse as Response, received, serve as serveWith } from '../tls/clients.ts';

const logged: string[] = [];
const log: Log = {
  ...silentLog,
  error: (message) => {
    logged.push(message);
  },
};
afterEach(() => {
  logged.length = 0;
});

const serve = (fetch: Fetch): Promise<HttpServer> => serveWith({ fetch, log });

/** Sends bytes as they are and gives all that comes back until the server closes the connection. */
async function raw(server: HttpServer, text: string): Promise<string> {
  const socket = await open(server);
  socket.write(text);
  return received(socket);
}

describe('requests and replies', () => {
  test('status, reason phrase, headers and body pass through', async () => {
    const server = await serve(
      () =>
        new Response('hello', {
          status: 400,
          statusText: 'Wrong expected EventNumber',
          headers: { 'es-currentversion': '7' },
        }),
    );
    const { status, reason, headers, body } = await call(server, { path: '/' });
    expect({ status, reason, version: headers['es-currentversion'], body }).toEqual({
      status: 400,
      reason: 'Wrong expected EventNumber',
      version: '7',
      body: 'hello',
    });
  });
  test('path, query and headers arrive untouched', async () => {
    let seen: unknown = null;
    const server = await serve((request) => {
      seen = [request.method, request.url, request.headers.get('es-eventtype'), request.headers.get('absent')];
      return new Response(null, { status: 204 });
    });
    await call(server, {
      path: '/streams/%24all/a%2Fb?x=%20y',
      method: 'DELETE',
      headers: { 'ES-EventType': 'päckchen' },
    });
    expect(seen).toEqual(['DELETE', `${server.url}/streams/%24all/a%2Fb?x=%20y`, 'päckchen', null]);
  });
  test('a host has at most 255 characters: links repeat it', async () => {
    const server = await serve((request) => new Response(new URL(request.url).hostname));
    const host = async (length: number) => (await call(server, { headers: { host: 'h'.repeat(length) } })).body;
    expect([await host(255), await host(256)]).toEqual(['h'.repeat(255), '_invalid_']);
  });
  test('a body is read byte for byte', async () => {
    const server = await serve(async (request) => new Response(await readBody(request, 1_000_000)));
    const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * 31) & 0x7f));
    expect((await call(server, { method: 'POST' }, bytes)).body).toBe(bytes.toString());
    expect((await call(server, { method: 'POST' }, '')).body).toBe('');
  });
  test('a client that goes away half way through its body', async () => {
    const failed = Promise.withResolvers<unknown>();
    const server = await serve(async (request) => {
      const reading = readBody(request, 1_000);
      socket.destroy();
      failed.resolve(await reading.catch((error: unknown) => error));
      return new Response(null);
    });
    const socket = net.connect(server.port, '127.0.0.1', () =>
      socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhi'),
    );
    expect(await failed.promise).toMatchObject({ code: 'aborted' });
  });
  test('without a reason phrase the usual one is sent; HEAD gets no body', async () => {
    const server = await serve(
      (request) =>
        new Response(request.url.endsWith('/stream') ? new globalThis.Response('abc').body : 'abc', { status: 404 }),
    );
    expect(await call(server, {})).toMatchObject({ reason: 'Not Found', body: 'abc' });
    expect(await call(server, { method: 'HEAD' })).toMatchObject({ status: 404, body: '' });
    expect(await call(server, { method: 'HEAD', path: '/stream' })).toMatchObject({ status: 404, body: '' });
  });
  test('a client that waits for 100 Continue gets it when the body is wanted, and only then', async () => {
    const server = await serve(async (request) =>
      request.url.endsWith('/no') ? new Response(null, { status: 413 }) : new Response(await readBody(request, 1_000)),
    );
    const head = (path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n`;
    expect(await raw(server, `${head('/yes')}ok`)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(await raw(server, head('/no'))).toMatch(/^HTTP\/1\.1 413 /);
  });
});

describe('bodies that come bit by bit', () => {
  test('each piece is sent when it is there', async () => {
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    // The head alone arrives first: the callback below would not run otherwise.
    const server = await serve(
      () =>
        new Response(
          new ReadableStream<Uint8Array>({
            start(c) {
              controller = c;
            },
          }),
        ),
    );
    const pieces: string[] = [];
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    http.get({ port: server.port, host: '127.0.0.1' }, (reply) => {
      // The next piece is made only after the one before has arrived: a server that collected them would never end.
      reply.on('data', (part: Buffer) => {
        pieces.push(part.toString());
        if (pieces.length === 3) controller.close();
        else controller.enqueue(Buffer.from(`piece ${pieces.length + 1}`));
      });
      reply.on('end', resolve);
      controller.enqueue(Buffer.from('piece 1'));
    });
    await ended;
    expect(pieces).toEqual(['piece 1', 'piece 2', 'piece 3']);
  });
  test('a client that does not read holds the body back', async () => {
    let pieces = 0;
    const server = await serve(
      () =>
        new Response(
          new ReadableStream<Uint8Array>(
            {
              pull(c) {
                if (pieces++ === 4_000) c.close();
                else c.enqueue(new Uint8Array(65_536));
              },
            },
            { highWaterMark: 0 },
          ),
        ),
    );
    const request = http.get({ port: server.port, host: '127.0.0.1' });
    const reply = await new Promise<http.IncomingMessage>((resolve) => {
      request.on('response', resolve);
    });
    await new Promise((resolve) => {
      reply.once('readable', resolve);
    });
    // The socket's buffers hold some MiB; all of it would be 250.
    const early = pieces;
    let bytes = 0;
    for await (const part of reply) bytes += (part as Buffer).length;
    expect(early).toBeLessThan(1_000);
    expect(bytes).toBe(4_000 * 65_536);
  });
  test('the signal aborts, and the body is cancelled, when the client goes away', async () => {
    const aborted = Promise.withResolvers<void>();
    const cancelled = Promise.withResolvers<void>();
    const server = await serve((request) => {
      request.signal.addEventListener('abort', () => aborted.resolve());
      return new Response(
        new ReadableStream<Uint8Array>({
          start: (c) => c.enqueue(Buffer.from('first')),
          cancel: () => cancelled.resolve(),
        }),
      );
    });
    const request = http.get({ port: server.port, host: '127.0.0.1' }, (reply) => {
      reply.on('data', () => request.destroy());
      reply.on('error', () => {});
    });
    request.on('error', () => {});
    await Promise.all([aborted.promise, cancelled.promise]);
  });
  test('the signal does not abort when the reply was complete', async () => {
    let signal: AbortSignal | null = null;
    const server = await serve((request) => {
      signal = request.signal;
      return new Response('ok');
    });
    await call(server, { headers: { connection: 'close' } });
    await server.stop(1_000);
    expect(signal!.aborted).toBe(false);
  });
  test('a body that fails half way cuts the connection and nothing else', async () => {
    const server = await serve((request) => {
      if (request.url.endsWith('/fine')) return new Response('fine');
      let count = 0;
      return new Response(
        new ReadableStream<Uint8Array>({
          pull(c) {
            if (count++ > 0) throw new Error('disk gone');
            c.enqueue(Buffer.from('first'));
          },
        }),
      );
    });
    await expect(call(server, { path: '/broken' })).rejects.toThrow();
    expect((await call(server, { path: '/fine' })).body).toBe('fine');
  });
  test('a handler that throws, at once or later: 500, logged, and the server goes on', async () => {
    const server = await serve((request) => {
      if (request.url.endsWith('/now')) throw new Error('now');
      return Promise.reject(new Error('later'));
    });
    expect((await call(server, { path: '/now' })).status).toBe(500);
    expect((await call(server, { path: '/later' })).status).toBe(500);
    expect(logged).toEqual(['request failed', 'request failed']);
  });
});

describe('stopping', () => {
  test('requests under way are finished, idle connections closed, new ones refused', async () => {
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const server = await serve(async () => {
      started.resolve();
      await finish.promise;
      return new Response('done');
    });
    const agent = new http.Agent({ keepAlive: true });
    const answer = call(server, { agent });
    await started.promise;
    const stopped = server.stop(10_000);
    await expect(call(server, {})).rejects.toThrow(/ECONNREFUSED/);
    finish.resolve();
    expect((await answer).body).toBe('done');
    expect(await stopped).toBe(true);
    agent.destroy();
  });
  test('what waits for the signal ends', async () => {
    const started = Promise.withResolvers<void>();
    const server = await serve(async ({ signal }) => {
      started.resolve();
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve());
      });
      return new Response('nothing new');
    });
    const answer = call(server, {});
    await started.promise;
    expect(await server.stop(10_000)).toBe(true);
    expect((await answer).body).toBe('nothing new');
  });
  test('what does not end is cut off after the grace time', async () => {
    const started = Promise.withResolvers<void>();
    const server = await serve(() => {
      started.resolve();
      return new Promise<Response>(() => {});
    });
    const answer = call(server, {}).catch((error: NodeJS.ErrnoException) => error.code);
    await started.promise;
    expect(await server.stop(20)).toBe(false);
    expect(await answer).toBe('ECONNRESET');
  });
});

describe('addresses that can not be used', () => {
  test('a port in use', async () => {
    const { port } = await serve(() => new Response('ok'));
    await expect(
      startServer({ hostname: '127.0.0.1', port, fetch: () => new Response('ok'), log }),
    ).rejects.toMatchObject({
      code: 'port_in_use',
      exitCode: 3,
      message: expect.stringContaining(`--node-port ${port + 1}`),
    });
  });
  test('an address of another machine', async () => {
    await expect(
      startServer({ hostname: '192.0.2.1', port: 0, fetch: () => new Response('ok'), log }),
    ).rejects.toMatchObject({ code: 'address_not_available', exitCode: 3 });
  });
});
