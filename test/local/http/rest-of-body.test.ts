import * as net from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { silentLog } from '../../../core/ports/log.ts';
import { toResponse } from '../../../local/http/send-reply.ts';
import { readBody, socketOf } from '../../../local/http/http-request.ts';
import { REST_BYTES_MAX, REST_MS_MAX, SHORT_BODY_BYTES_MAX } from '../../../local/http/rest-of-body.ts';
import { startServer } from '../../../local/http/server.ts';
import type { HttpServer } from '../../../local/http/server.ts';

/** What a server still reads of the body of a request that it has refused. */

const BODY_BYTES = 30_000_000;
/** What the system may hold of a connection that is not read, and Node.js of a body. */
const BUFFERED_BYTES = 1_048_576;

let server: HttpServer;
let served: net.Socket | null = null;

beforeAll(async () => {
  server = await startServer({
    hostname: '127.0.0.1',
    port: 0,
    log: silentLog,
    fetch: async (request) => {
      served = socketOf(request);
      // One begins to read what is too long; the others look at the head alone.
      if (request.url.endsWith('/too-large')) await readBody(request, 1_000).catch(() => {});
      return toResponse({ status: 401, statusText: 'Unauthorized', headers: {}, body: 'no' });
    },
  });
});
afterAll(() => server.stop(1_000));
afterEach(() => {
  vi.useRealTimers();
});

/** Sends a head and then as much as is taken; resolves when the connection is closed. */
function send(head: string, bytes: number, { isQuiet = false } = {}) {
  let text = '';
  let onAnswer: () => void;
  const answered = new Promise<void>((resolve) => {
    onAnswer = resolve;
  });
  const socket = net.connect({ port: server.port, host: '127.0.0.1' }, () => {
    socket.write(head);
    if (!isQuiet) socket.write(Buffer.alloc(bytes));
  });
  socket.on('data', (part) => {
    text += part.toString('latin1');
  });
  socket.on('end', () => onAnswer());
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => resolve());
  });
  return {
    socket,
    answered,
    closed,
    get text() {
      return text;
    },
  };
}

test.each([
  ['a body that nobody looks at', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 30000000\r\n\r\n'],
  ['a body of which the beginning was read', 'POST /too-large HTTP/1.1\r\nHost: x\r\nContent-Length: 30000000\r\n\r\n'],
  [
    'one that waits for nothing behind Expect',
    'POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 30000000\r\n\r\n',
  ],
])('%s: the answer is whole, and no more is read than the bound', async (_, head) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const client = send(head, BODY_BYTES);
  await client.answered;
  expect(client.text).toMatch(/^HTTP\/1\.1 401 [^]*connection: close[^]*\r\n\r\nno$/i);
  expect(client.text).not.toContain('100 Continue');
  // The client sees its answer while the rest is held back, and loses the connection when its time is over.
  const end = new Promise((resolve) => {
    served!.once('close', resolve);
  });
  await vi.advanceTimersByTimeAsync(REST_MS_MAX);
  await end;
  expect(served!.bytesRead).toBeLessThan(REST_BYTES_MAX + BUFFERED_BYTES);
  await client.closed;
});

test('a client that sends its body and then looks for the answer finds it', async () => {
  const bytes = REST_BYTES_MAX / 2;
  const client = send(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`, bytes);
  await client.closed;
  expect(client.text).toMatch(/^HTTP\/1\.1 401 [^]*\r\n\r\nno$/);
});

test('of a client that waits for 100 Continue and sends nothing the connection is closed', async () => {
  const client = send('POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n', 0, {
    isQuiet: true,
  });
  await client.answered;
  expect(client.text).toMatch(/^HTTP\/1\.1 401 /);
  await client.closed;
});

test('behind a short body the connection goes on', async () => {
  const request = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${SHORT_BODY_BYTES_MAX}\r\n\r\n`;
  const client = send(request, SHORT_BODY_BYTES_MAX);
  while (!client.text.includes('\r\n\r\nno'))
    await new Promise((resolve) => {
      client.socket.once('data', resolve);
    });
  client.socket.write(request.replace(String(SHORT_BODY_BYTES_MAX), '0\r\nConnection: close'));
  await client.closed;
  expect(client.text.match(/HTTP\/1\.1 401/g)).toHaveLength(2);
});
