import { once } from 'node:events';
import { constants } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { expect, test } from 'vitest';
import type { Log } from '../../../core/ports/log.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { OK } from '../../../handlers/grpc/call.ts';
import { http2Side } from '../../../local/grpc/connections.ts';
import { CAUGHT_METRIC } from '../../../local/http/guard.ts';
import { socketOf } from '../../../local/http/http-request.ts';
import type { HttpServer } from '../../../local/http/server.ts';
import { caughtDuring } from '../../support/caught.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { called, ClientCall, connect } from '../grpc/clients.ts';
import { startedProcess } from '../spawn.ts';
import { call, open, serve } from '../tls/clients.ts';

/** What fails for a connection, wherever it does, ends it; others go on, and it is counted and logged. */

interface Watched {
  readonly server: HttpServer;
  readonly counted: unknown[];
  readonly lines: string[];
}

const limitsWith = (counted: unknown[], log: Log = silentLog) => ({
  perAddressMax: 100,
  isExempt: () => true,
  log,
  clock: new ManualClock(),
  meter: {
    count: (name: string, _by?: number, labels?: object) => {
      if (name === CAUGHT_METRIC) counted.push(labels);
    },
    gauge() {},
    observe() {},
  },
});

async function failing(fail: (request: Request) => void): Promise<Watched> {
  const counted: unknown[] = [];
  const lines: string[] = [];
  const log: Log = {
    ...silentLog,
    error: (message) => {
      lines.push(message);
    },
  };
  const server = await serve({
    log,
    limits: limitsWith(counted, log),
    fetch: (request) => {
      if (request.url.endsWith('/fail')) fail(request);
      return new Response('ok');
    },
  });
  return { server, counted, lines };
}

const broken = () => {
  throw new Error('broken');
};

test('a listener of a connection', async () => {
  const { server, counted, lines } = await failing((request) => {
    socketOf(request).once('close', broken);
  });
  const caught = await caughtDuring(async () => {
    const socket = await open(server);
    socket.end('GET /fail HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => counted.length).toBe(1);
  });
  expect(caught).toMatchObject([{ message: 'broken' }]);
  expect(counted).toEqual([{ owner: 'connection' }]);
  expect(lines).toEqual(['a handler of a connection failed; the connection was closed']);
  expect((await call(server)).status).toBe(200);
});

test('a listener of a reply, after which nothing more comes on its connection', async () => {
  const { server, counted } = await failing((request) => {
    // The reply hangs on its connection while it is under way.
    (socketOf(request) as unknown as { _httpMessage: NodeJS.EventEmitter })._httpMessage.once('finish', broken);
  });
  await caughtDuring(async () => {
    const socket = await open(server);
    const closed = new Promise((resolve) => {
      socket.on('close', resolve);
    });
    socket.on('error', () => {});
    socket.resume().write('GET /fail HTTP/1.1\r\nHost: a\r\n\r\n');
    await closed;
  });
  expect(counted).toEqual([{ owner: 'connection' }]);
  expect((await call(server)).status).toBe(200);
});

test('a stream of HTTP/2, whose connection goes on', async () => {
  const counted: unknown[] = [];
  const answered = http2Side({
    log: silentLog,
    grpc: (grpc) => {
      if (grpc.path.endsWith('/Fail')) broken();
      return Promise.resolve(OK);
    },
  });
  const server = await serve({ http2: answered, limits: limitsWith(counted) });
  const session = connect(server);
  await caughtDuring(async () => {
    const failed = new ClientCall(session, '/a.b/Fail');
    await failed.ended;
    expect(failed.stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
  });
  expect(counted).toEqual([{ owner: 'stream' }]);
  expect((await called(session, [], {}, '/a.b/Well')).status).toBe(0);
});

test('many failures are counted, and some are logged', async () => {
  const { server, counted, lines } = await failing((request) => {
    socketOf(request).once('close', broken);
  });
  await caughtDuring(async () => {
    for (let i = 0; i < 30; i++) {
      const socket = await open(server);
      socket.end('GET /fail HTTP/1.1\r\nHost: a\r\n\r\n');
    }
    await expect.poll(() => counted.length).toBe(30);
  });
  expect(lines).toHaveLength(20);
});

test('in a program that a test starts: the test learns of it', async () => {
  const fault = `import { subscribe } from 'node:diagnostics_channel'; subscribe('http.server.request.start', ({ request }) => request.socket.once('close', () => { throw new Error('put in'); }));`;
  const caught = await caughtDuring(async () => {
    const node = await startedProcess(['--mem-db'], {
      NODE_OPTIONS: `${process.env['NODE_OPTIONS']} --import=data:text/javascript,${encodeURIComponent(fault)}`,
    });
    const { hostname, port } = new URL(node.url);
    const client = connectSocket({ host: hostname, port: Number(port) });
    client.write('GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    // The node has closed its side, and whoever listens has been told, when it answers another one.
    await once(client.resume(), 'close');
    expect((await fetch(`${node.url}/ping`)).status).toBe(200);
    await node.stop();
  });
  expect(new Set(caught.map((one) => (one as Error).message))).toEqual(new Set(['put in']));
});
