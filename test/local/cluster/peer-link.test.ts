import { once } from 'node:events';
import * as net from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { NodeAddress } from '../../../core/ports/nodes.ts';
import { PeerClient } from '../../../local/cluster/peer-client.ts';
import type { PeerReply, PeerRequest } from '../../../local/cluster/peer-exchange.ts';
import { isOfMember, readBody } from '../../../local/http/request.ts';
import { serve } from '../tls/clients.ts';

const SECRET = 's3cret';

function clientOf(secret = SECRET) {
  const client = new PeerClient({ certificates: null, secret });
  onTestFinished(() => client.close());
  return client;
}

const nodeOf = (server: { readonly port: number }): NodeAddress => ({ address: '127.0.0.1', port: server.port });

function asking(node: NodeAddress, more: Partial<PeerRequest> = {}): PeerRequest {
  return { node, method: 'POST', path: '/streams/s', headers: { 'skua-forwarded': '{}' }, body: 'hello', as: 'caller', timeoutMs: 20_000, ...more };
}

/** A member that knows the secret. It answers with what came and how, or as the test says. */
function memberOf(answer: (request: Request) => Response | Promise<Response> | null = () => null) {
  return serve({
    fetch: async (request) => {
      if (request.url.endsWith('/cluster/frames')) return request.headers.get('authorization') === `Cluster ${SECRET}` ? new Response(null, { status: 204 }) : new Response('{"code":"not_a_member"}', { status: 401 });
      const own = answer(request);
      if (own !== null) return own;
      const body = await readBody(request, 1_000_000);
      return new Response(body as Uint8Array<ArrayBuffer>, { status: 201, headers: { 'x-framed': String(isOfMember(request)), 'x-path': new URL(request.url).pathname, 'x-length': request.headers.get('content-length') ?? '' } });
    },
  });
}

const isFramed = ({ headers }: PeerReply): boolean => headers['x-framed'] === 'true';

/** Asks until requests go over one connection. */
async function linked(client: PeerClient, node: NodeAddress): Promise<void> {
  for (let tries = 0; tries < 100_000; tries++) if (isFramed(await client.request(asking(node)))) return;
  throw new Error('There is no such connection.');
}

const endOf = (call: Promise<PeerReply>): Promise<string> => call.then(({ status }) => String(status), (error: { code: string; data: Record<string, unknown> }) => `${error.code} ${String(error.data['reason'])}`);

describe('requests that are passed on', () => {
  test('go over one connection, as long as they are short and not too many; each gets its own answer', async () => {
    const server = await memberOf();
    const client = clientOf();
    await linked(client, nodeOf(server));
    const sizes = Array.from({ length: 700 }, (_, i) => (i % 50 === 0 ? 65_537 + i : i % 7 === 0 ? 65_536 - i : i));
    const replies = await Promise.all(sizes.map((size, i) => client.request(asking(nodeOf(server), { path: `/streams/${i}`, body: Buffer.alloc(size, i) }))));
    expect(replies.map(({ status, body, headers }) => [status, body.length, headers['x-path'], headers['x-length']])).toEqual(sizes.map((size, i) => [201, size, `/streams/${i}`, String(size)]));
    expect(replies.every(({ body }, i) => Buffer.from(body).equals(Buffer.alloc(sizes[i]!, i)))).toBe(true);
    expect(replies.filter((reply, i) => isFramed(reply) && sizes[i]! > 65_536)).toEqual([]);
    expect(replies.filter(isFramed).length).toBeGreaterThan(100);
    // Those of the member itself have connections of their own, and so has what fits in no frame.
    expect(isFramed(await client.request(asking(nodeOf(server), { as: 'member' })))).toBe(false);
    expect(isFramed(await client.request(asking(nodeOf(server))))).toBe(true);
  });

  test('have connections of their own where the other side gives none: it does not know us, or is of an older version', async () => {
    const server = await memberOf();
    const stranger = clientOf('another');
    const old = await serve({ fetch: (request) => new Response(null, { status: request.url.endsWith('/cluster/frames') ? 404 : 200 }) });
    for (let i = 0; i < 20; i++) {
      expect(isFramed(await stranger.request(asking(nodeOf(server))))).toBe(false);
      expect((await stranger.request(asking(nodeOf(old)))).status).toBe(200);
    }
  });

  test('end with their connection as not known, and go on over others', async () => {
    let hold = false;
    const arrived = Promise.withResolvers<void>();
    const aborted: string[] = [];
    const server = await memberOf((request) => {
      if (!hold) return null;
      request.signal.addEventListener('abort', () => aborted.push(new URL(request.url).pathname));
      if (request.url.endsWith('/b')) arrived.resolve();
      return new Promise(() => {});
    });
    const client = clientOf();
    await linked(client, nodeOf(server));
    hold = true;
    const ends = ['/a', '/b'].map((path) => endOf(client.request(asking(nodeOf(server), { path }))));
    await arrived.promise;
    await server.stop(1);
    expect(await Promise.all(ends)).toEqual(['member_silent broken', 'member_silent broken']);
    expect(aborted).toEqual(['/a', '/b']);
    expect(await endOf(client.request(asking(nodeOf(server))))).toBe('member_unreachable refused');
  });

  test('are given up one by one; then another connection is made, and the others end on theirs', async () => {
    const holding = Promise.withResolvers<Response>();
    const arrived = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    let held = 0;
    const server = await memberOf((request) => {
      if (!request.url.includes('/held')) return null;
      request.signal.addEventListener('abort', () => aborted.resolve());
      if (++held === 3) arrived.resolve();
      return request.url.endsWith('/held-on') ? holding.promise : new Promise(() => {});
    });
    const client = clientOf();
    await linked(client, nodeOf(server));
    const ending = new AbortController();
    const kept = client.request(asking(nodeOf(server), { path: '/held-on' }));
    const given = endOf(client.request(asking(nodeOf(server), { path: '/held-1', signal: ending.signal })));
    const late = endOf(client.request(asking(nodeOf(server), { path: '/held-2', timeoutMs: 30 })));
    await arrived.promise;
    ending.abort();
    expect([await given, await late]).toEqual(['member_silent given-up', 'member_silent time']);
    expect(await endOf(client.request(asking(nodeOf(server), { signal: ending.signal })))).toBe('member_unreachable given-up');
    await linked(client, nodeOf(server));
    holding.resolve(new Response('late', { status: 200 }));
    expect(Buffer.from((await kept).body).toString()).toBe('late');
    // Nobody waits for anything on that connection any more, and it is closed.
    await aborted.promise;
  });

  test('that are under way are answered before a server that stops closes the connection', async () => {
    const holding = Promise.withResolvers<Response>();
    const arrived = Promise.withResolvers<void>();
    const server = await memberOf((request) => {
      if (!request.url.endsWith('/held')) return null;
      arrived.resolve();
      return holding.promise;
    });
    const client = clientOf();
    await linked(client, nodeOf(server));
    const reply = client.request(asking(nodeOf(server), { path: '/held' }));
    await arrived.promise;
    const stopped = server.stop(60_000);
    holding.resolve(new Response('done'));
    expect([Buffer.from((await reply).body).toString(), await stopped]).toEqual(['done', true]);
  });

  test('fail alone where their answer is none, or fails', async () => {
    const server = await memberOf((request) => {
      if (request.url.endsWith('/fails')) throw new Error('It failed.');
      if (request.url.endsWith('/long')) return new Response(new Uint8Array(1_048_577));
      if (request.url.endsWith('/parts')) return new Response(ReadableStream.from([Buffer.from('one '), Buffer.from('two')]), { status: 203 });
      return null;
    });
    const client = clientOf();
    await linked(client, nodeOf(server));
    const replies = await Promise.all(['/fails', '/long', '/parts', '/a'].map((path) => client.request(asking(nodeOf(server), { path }))));
    expect(replies.map(({ status, body }) => [status, Buffer.from(body).toString()])).toEqual([[500, ''], [500, ''], [203, 'one two'], [201, 'hello']]);
  });
});

/** A connection that has been given; what comes over it is kept. */
async function rawLink(server: { readonly port: number }, headers = `Authorization: Cluster ${SECRET}\r\n`) {
  const socket = net.connect(server.port, '127.0.0.1');
  onTestFinished(() => { socket.destroy(); });
  socket.on('error', () => {});
  socket.write(`GET /cluster/frames HTTP/1.1\r\nHost: x\r\n${headers}Connection: Upgrade\r\nUpgrade: skua-frames\r\n\r\n`);
  const [first] = await once(socket, 'data') as [Buffer];
  return { socket, first: first.toString('latin1') };
}

function closed(socket: net.Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}

function frame(id: number, head: string, body = ''): Buffer {
  const fixed = Buffer.alloc(12);
  fixed.writeUInt32LE(8 + head.length + body.length, 0);
  fixed.writeUInt32LE(id, 4);
  fixed.writeUInt32LE(head.length, 8);
  return Buffer.concat([fixed, Buffer.from(head + body, 'latin1')]);
}

describe('a server', () => {
  test('gives such a connection to nobody but members, and passes other protocols over', async () => {
    const server = await memberOf();
    expect((await rawLink(server)).first).toMatch(/^HTTP\/1.1 101 /);
    const { socket, first } = await rawLink(server, '');
    expect(first).toMatch(/^HTTP\/1.1 401 [^]*\r\nconnection: close/i);
    await closed(socket);
    const other = net.connect(server.port, '127.0.0.1');
    other.end('POST /streams/s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi');
    expect((await once(other, 'data') as [Buffer])[0].toString('latin1')).toMatch(/^HTTP\/1.1 201 [^]*x-framed: false/i);
  });

  test('closes a connection over which comes what is no request', async () => {
    const server = await memberOf();
    const hostile = [
      Buffer.from([255, 255, 255, 255]), Buffer.alloc(12), frame(1, 'POST'), frame(1, 'POST\n/x\nname'), frame(1, 'POST\n/x\nName\nx'), frame(1, 'POST\nx'), frame(1, 'POST\n/x#y'), frame(1, 'post it\n/x'), frame(1, 'POST\n/x\nname\na\0b'),
      frame(1, 'POST\n/x', 'x'.repeat(200_000)),
    ];
    for (const bytes of hostile) {
      const { socket } = await rawLink(server);
      socket.write(bytes);
      await closed(socket);
    }
    const { socket } = await rawLink(server);
    socket.write(frame(1, 'POST\n/x', 'a').subarray(0, 20));
    socket.destroy();
    // It goes on serving.
    await linked(clientOf(), nodeOf(server));
  });

  test('reads no more while it works on many', async () => {
    const held: ((response: Response) => void)[] = [];
    const full = Promise.withResolvers<void>();
    const server = await memberOf((request) => {
      if (!request.url.endsWith('/held')) return null;
      return new Promise((resolve) => {
        held.push(resolve);
        if (held.length === 512) full.resolve();
      });
    });
    const { socket } = await rawLink(server);
    let answers = 0;
    const all = Promise.withResolvers<void>();
    socket.on('data', (chunk: Buffer) => { if ((answers += chunk.toString('latin1').split('200\nOK').length - 1) === 2_000) all.resolve(); });
    socket.write(Buffer.concat(Array.from({ length: 2_000 }, (_, id) => frame(id, 'POST\n/held', 'x'.repeat(1_000)))));
    await full.promise;
    for (let i = 0; i < 20; i++) await fetch(`${server.url}/streams/s`, { method: 'POST', body: 'x' });
    // One read of the socket has some more.
    expect(held.length).toBeLessThan(650);
    let at = 0;
    const letGo = (): void => {
      while (at < held.length) held[at++]!(new Response(null));
      if (at < 2_000) setImmediate(letGo);
    };
    letGo();
    await all.promise;
  });
});

test('a member that answers what is no answer is told from one that does not answer', async () => {
  for (const reply of [Buffer.from([255, 255, 255, 255]), frame(99, '200\nOK'), frame(0, 'OK\n200'), frame(0, '200'), frame(0, '200\nOK').subarray(0, 15)]) {
    const server = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (data) => {
        const text = data.toString('latin1');
        if (text.startsWith('GET /cluster/frames')) socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: skua-frames\r\n\r\n');
        else if (text.startsWith('POST')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
        else socket.end(reply);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => { server.close(); });
    const client = clientOf();
    const node = nodeOf(server.address() as net.AddressInfo);
    let end = '200';
    while (end === '200') end = await endOf(client.request(asking(node)));
    expect(end).toBe('member_silent broken');
    client.close();
  }
});
