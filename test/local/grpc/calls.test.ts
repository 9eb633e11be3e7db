import * as net from 'node:net';
import { describe, expect, test } from 'vitest';
import { GrpcError, STATUS } from '../../../handlers/grpc/call.ts';
import { received } from '../tls/clients.ts';
import { called, ClientCall, connect, echo, framed, serveGrpc } from './clients.ts';

describe('calls over a connection', () => {
  test('messages go both ways, in their order, whatever pieces they arrive in', async () => {
    const session = connect(await serveGrpc(echo));
    const long = 'x'.repeat(200_000);
    const call = await called(session, ['a', '', long, 'b']);
    expect(call.headers).toMatchObject({ ':status': 200, 'content-type': 'application/grpc' });
    expect(call.texts).toEqual(['a', '', long, 'b']);
    expect(call.trailers).toEqual(expect.objectContaining({ 'grpc-status': '0' }));
    expect(call.message).toBe('');

    const slow = new ClientCall(session);
    for (const byte of framed('in bytes')) {
      slow.stream.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    await slow.has(1);
    slow.stream.end();
    await slow.ended;
    expect([slow.texts, slow.status]).toEqual([['in bytes'], 0]);
  });

  test('an error before the first message comes as headers alone, one behind it as trailers, both with what is no header text encoded', async () => {
    const session = connect(
      await serveGrpc(async (call) => {
        const name = String(await call.read());
        if (name === 'late') await call.send(framed('first'));
        throw new GrpcError(STATUS.notFound, '100% of Zoë\n', {
          exception: 'stream-not-found',
          'stream-name': 'Zoë',
          'group-name': '',
          'a-bin': Uint8Array.of(1, 2, 250),
        });
      }),
    );
    const told = {
      'grpc-status': '5',
      'grpc-message': '100%25 of Zo%C3%AB%0A',
      exception: 'stream-not-found',
      'stream-name': 'Zo%C3%AB',
      'a-bin': 'AQL6',
    };
    const alone = await called(session, ['alone']);
    expect(alone.headers).toEqual(
      expect.objectContaining({ ':status': 200, 'content-type': 'application/grpc', 'content-length': '0', ...told }),
    );
    expect([alone.trailers, alone.headers!['group-name']]).toEqual([null, undefined]);
    const late = await called(session, ['late']);
    expect([late.texts, late.headers!['grpc-status']]).toEqual([['first'], undefined]);
    expect(late.trailers).toEqual(expect.objectContaining(told));
  });

  test('what is no call of any service gets a status of HTTP alone', async () => {
    const call = await called(connect(await serveGrpc(() => ({ httpStatus: 404 }))), []);
    expect([call.headers![':status'], call.headers!['grpc-status'], call.headers!['content-type']]).toEqual([
      404,
      undefined,
      undefined,
    ]);
  });

  test('an answer before the half-close is whole, and the client is told to send no more', async () => {
    const session = connect(
      await serveGrpc(async (call) => {
        await call.read();
        await call.send(framed('enough'));
      }),
    );
    const call = new ClientCall(session);
    call.stream.write(framed('a'));
    await call.ended;
    expect([call.texts, call.status, call.stream.rstCode]).toEqual([['enough'], 0, 0]);
  });

  test('half a message at the half-close is none; a compressed one, and a too long one are refused', async () => {
    const session = connect(await serveGrpc(echo));
    const sent = async (bytes: Buffer) => {
      const call = new ClientCall(session);
      call.stream.end(bytes);
      await call.ended;
      return [call.texts, call.status, call.message];
    };
    expect(await sent(Buffer.concat([framed('whole'), framed('half').subarray(0, 7)]))).toEqual([
      ['whole'],
      13,
      'Incomplete message.',
    ]);
    expect(await sent(Buffer.of(1, 0, 0, 0, 1, 7))).toEqual([[], 12, expect.stringContaining('Compressed messages')]);
    expect(await sent(Buffer.from([0, 0, 255, 216, 241]))).toEqual([
      [],
      8,
      'Received message exceeds the maximum configured message size.',
    ]);
    expect(await sent(Buffer.from([0, 255, 255, 255, 255]))).toEqual([
      [],
      8,
      'Received message exceeds the maximum configured message size.',
    ]);
  });
});

describe('one port', () => {
  test('speaks HTTP/1.1, too, and HTTP/2 without gRPC', async () => {
    const server = await serveGrpc(echo, {
      fetch: (request) =>
        new Response(`${request.method} ${new URL(request.url).pathname} ${request.headers.get('host')}`, {
          headers: { connection: 'close', 'x-a': 'b' },
        }),
    });
    expect(await (await fetch(`${server.url}/first`)).text()).toBe(`GET /first 127.0.0.1:${server.port}`);
    const session = connect(server);
    const call = new ClientCall(session, '/second', { 'content-type': 'text/plain' });
    let text = '';
    call.stream.on('data', (part: Buffer) => {
      text += part.toString();
    });
    call.stream.end('body');
    await call.ended;
    expect([call.headers![':status'], call.headers!['x-a'], call.headers!['connection'], text]).toEqual([
      200,
      'b',
      undefined,
      `POST /second 127.0.0.1:${server.port}`,
    ]);
    expect((await called(session, ['a'])).texts).toEqual(['a']);
  });

  test('knows HTTP/2 by its first bytes in whatever pieces they come, and what looks like it for a while', async () => {
    const server = await serveGrpc(echo, { fetch: ({ method }) => new Response(method) });
    const sends = async (...pieces: string[]): Promise<string> => {
      const socket = net.connect(server.port, '127.0.0.1');
      socket.setNoDelay(true);
      const all = received(socket);
      for (const piece of pieces) {
        await new Promise((resolve) => {
          socket.write(piece, 'latin1', resolve);
        });
        await new Promise(setImmediate);
      }
      return all;
    };
    expect(await sends('PRO', 'PFIND / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 200 OK[^]*PROPFIND/,
    );
    expect(await sends('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).toMatch(/^HTTP\/1.1 200 OK[^]*GET/);
    // Settings, and a GOAWAY that ends the connection: its preface came in three pieces.
    expect(
      (
        await sends(
          'PRI * HT',
          'TP/2.0\r\n\r\nSM',
          '\r\n\r\n',
          '\0\0\0\x04\0\0\0\0\0',
          '\0\0\x07\x07\0\0\0\0\0nonsense',
        )
      ).slice(3, 9),
    ).toBe('\x04\0\0\0\0\0');
  });

  test('a client that does not say what it speaks is cut off as one that sends no headers', async () => {
    const server = await serveGrpc(echo, { patience: { headersMs: 50, checkMs: 10 } });
    const silent = net.connect(server.port, '127.0.0.1');
    expect(await received(silent)).toMatch(/^HTTP\/1.1 408 /);
    const half = net.connect(server.port, '127.0.0.1', () => half.write('PRI * HTTP/2.0\r\n'));
    expect(await received(half)).toMatch(/^HTTP\/1.1 408 /);
  });
});
