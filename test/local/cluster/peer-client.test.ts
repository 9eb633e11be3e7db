import { once } from 'node:events';
import * as net from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { NodeAddress } from '../../../core/ports/nodes.ts';
import { PeerClient } from '../../../local/cluster/peer-client.ts';
import type { PeerClientOptions } from '../../../local/cluster/peer-client.ts';
import type { PeerRequest } from '../../../local/cluster/peer-exchange.ts';
import { secretCheck } from '../../../local/cluster/secret.ts';
import { serve } from '../tls/clients.ts';

function clientOf(options: Partial<PeerClientOptions> = {}) {
  const client = new PeerClient({ certificates: null, secret: null, ...options });
  onTestFinished(() => client.close());
  return client;
}

function asking(node: NodeAddress, more: Partial<PeerRequest> = {}): PeerRequest {
  return {
    node,
    method: 'POST',
    path: '/streams/s',
    headers: {},
    body: 'hello',
    as: 'member',
    timeoutMs: 20_000,
    ...more,
  };
}

/** A server of bare connections, which the test answers as it likes. */
async function bare(
  onConnection: (socket: net.Socket, n: number) => void,
): Promise<{ readonly node: NodeAddress; readonly sockets: net.Socket[]; readonly close: () => Promise<unknown> }> {
  const sockets: net.Socket[] = [];
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    sockets.push(socket);
    onConnection(socket, sockets.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    if (server.listening)
      await new Promise((resolve) => {
        server.close(resolve);
      });
  };
  onTestFinished(async () => {
    await close();
  });
  return { node: { address: '127.0.0.1', port: (server.address() as net.AddressInfo).port }, sockets, close };
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const nodeOf = (server: { readonly port: number }): NodeAddress => ({ address: '127.0.0.1', port: server.port });

/** `code reason` of what a call ends with. */
async function endOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => 'a reply',
    (error: { code: string; data: Record<string, unknown> }) => `${error.code} ${String(error.data['reason'])}`,
  );
}

describe('a request', () => {
  test('arrives as it is, and any answer is one', async () => {
    const seen: unknown[] = [];
    const server = await serve({
      fetch: async (request) => {
        seen.push([
          request.method,
          new URL(request.url).pathname,
          request.headers.get('es-eventtype'),
          request.headers.get('content-length'),
          request.headers.get('accept-encoding'),
        ]);
        return new Response('nö', { status: 409, statusText: 'Conflict', headers: { 'X-One': '1' } });
      },
    });
    const client = clientOf();
    const reply = await client.request(
      asking(nodeOf(server), { headers: { 'es-eventtype': 'made' }, body: Uint8Array.of(1, 2, 3) }),
    );
    expect([reply.status, reply.statusText, reply.headers['x-one'], Buffer.from(reply.body).toString()]).toEqual([
      409,
      'Conflict',
      '1',
      'nö',
    ]);
    await client.request(asking(nodeOf(server), { method: 'POST', body: null }));
    await client.request(asking(nodeOf(server), { method: 'GET', body: null }));
    expect(seen).toEqual([
      ['POST', '/streams/s', 'made', '3', null],
      ['POST', '/streams/s', null, '0', null],
      ['GET', '/streams/s', null, null, null],
    ]);
  });

  test('without TLS carries the secret: for the member itself where credentials stand, for others beside theirs', async () => {
    const seen: unknown[] = [];
    const server = await serve({
      fetch: (request) => {
        seen.push([request.headers.get('authorization'), request.headers.get('skua-member')]);
        return new Response('ok');
      },
    });
    const client = clientOf({ secret: 's3cret' });
    await client.request(asking(nodeOf(server)));
    await client.request(asking(nodeOf(server), { as: 'caller', headers: { authorization: 'Basic x' } }));
    await clientOf({ secret: '' }).request(asking(nodeOf(server), { as: 'caller' }));
    expect(seen).toEqual([
      ['Cluster s3cret', null],
      ['Basic x', 's3cret'],
      [null, null],
    ]);
  });

  test('takes a connection that is there, and so many at a time: the others wait in their order', async () => {
    const order: string[] = [];
    const others = Promise.withResolvers<void>();
    const server = await bare((socket) =>
      socket.on('data', (data) => {
        const name = /^POST \/(\w+)/.exec(data.toString())?.[1];
        // Asked for a link, which this server does not know.
        if (name === undefined) return void socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');
        order.push(name);
        // Each request is answered once, the first two when those behind them have been given up.
        if (order.length === 2)
          void others.promise.then(() => {
            for (const each of server.sockets) each.write(OK);
          });
        else if (order.length > 2) socket.write(OK);
      }),
    );
    const client = clientOf({ requestsMax: 2 });
    const all = ['a', 'b', 'c', 'd'].map((name) => client.request(asking(server.node, { path: `/${name}` })));
    const given = new AbortController();
    const busy = endOf(client.request(asking(server.node, { path: '/never', timeoutMs: 1 })));
    const left = endOf(client.request(asking(server.node, { path: '/never', signal: given.signal })));
    given.abort();
    expect([await busy, await left]).toEqual(['too_busy undefined', 'member_unreachable given-up']);
    others.resolve();
    await Promise.all(all);
    expect([order, server.sockets.length]).toEqual([['a', 'b', 'c', 'd'], 2]);
    // Those of members have places of their own.
    expect((await client.request(asking(server.node, { as: 'caller', path: '/e' }))).status).toBe(200);
    expect(order).toEqual(['a', 'b', 'c', 'd', 'e']);
  });
});

describe('what fails', () => {
  test('before a connection is there has certainly not arrived', async () => {
    const gone = await bare(() => {});
    await gone.close();
    const client = clientOf();
    expect(await endOf(client.request(asking(gone.node)))).toBe('member_unreachable refused');
    expect(await endOf(client.request(asking({ address: 'nowhere.invalid', port: 1 })))).toMatch(
      /member_unreachable (name|route|time)/,
    );
    expect(await endOf(client.request(asking(gone.node, { signal: AbortSignal.abort() })))).toBe(
      'member_unreachable given-up',
    );
  });

  test('after a part was sent is not known: no answer in time, half an answer, a connection that ends', async () => {
    const mute = await bare((socket) => socket.once('data', () => socket.write(OK)));
    const half = await bare((socket) =>
      socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok')),
    );
    const cut = await bare((socket) => socket.on('data', () => socket.destroy()));
    const noise = await bare((socket) => socket.on('data', () => socket.end('garbage\r\n\r\n')));
    const client = clientOf();
    // The connection is there by then, however slow the machine.
    await client.request(asking(mute.node));
    expect(await endOf(client.request(asking(mute.node, { timeoutMs: 60 })))).toBe('member_silent time');
    for (const server of [half, cut, noise])
      expect(await endOf(client.request(asking(server.node)))).toBe('member_silent broken');
    // The connection of a call that was given up is closed.
    const ending = new AbortController();
    const arrived = Promise.withResolvers<net.Socket>();
    const waiting = await bare((socket) => socket.on('data', () => arrived.resolve(socket)));
    const call = endOf(client.request(asking(waiting.node, { signal: ending.signal })));
    const socket = await arrived.promise;
    ending.abort();
    expect(await call).toBe('member_silent given-up');
    await once(socket, 'close');
  });

  test('a kept connection that breaks tells what a new one does; only what may arrive twice is sent again where it may have arrived', async () => {
    // Answers once, and ends when something comes a second time: as a process that died in between.
    const server = await bare((socket) => {
      let requests = 0;
      socket.on('data', () => (++requests === 1 ? socket.write(OK) : socket.destroy()));
    });
    const client = clientOf();
    await client.request(asking(server.node));
    expect(await endOf(client.request(asking(server.node)))).toBe('member_silent broken');
    await client.request(asking(server.node));
    expect(await endOf(client.request(asking(server.node, { isRepeatable: true })))).toBe('a reply');
    expect(server.sockets.length).toBe(3);
    await server.close();
    expect(await endOf(client.request(asking(server.node, { isRepeatable: true })))).toBe('member_unreachable refused');
  });

  test('a connection that the other side closed while it was idle is not used', async () => {
    const server = await bare((socket) => socket.on('data', () => socket.write(OK)));
    const client = clientOf();
    for (let i = 1; i <= 3; i++) {
      expect((await client.request(asking(server.node))).status).toBe(200);
      const [socket] = server.sockets.slice(-1);
      socket!.end();
      // Until this side has closed it, too.
      await once(socket!, 'close');
      expect(server.sockets.length).toBe(i);
    }
  });
});

test('a connection is given up at the end of its life, between requests', async () => {
  const server = await bare((socket) => socket.on('data', () => socket.write(OK)));
  const client = clientOf({ connectionLifetimeMs: 40 });
  await client.request(asking(server.node));
  // Idle ones end by themselves.
  await once(server.sockets[0]!, 'close');
  let requests = 0;
  while (server.sockets.length < 4 && requests++ < 100_000)
    expect((await client.request(asking(server.node))).status).toBe(200);
  expect(server.sockets.length).toBe(4);
});

test('the secret is compared as a whole; none is never right', () => {
  expect([secretCheck(null), secretCheck('')]).toEqual([null, null]);
  const isSecret = secretCheck('s3cret ü')!;
  expect([
    isSecret('s3cret ü'),
    isSecret('s3cret '),
    isSecret(''),
    isSecret('S3cret ü'),
    isSecret('x'.repeat(10_000)),
  ]).toEqual([true, false, false, false, false]);
});
