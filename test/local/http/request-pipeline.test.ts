import type { Socket } from 'node:net';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { Reply, ReplyBody } from '../../../handlers/http/context.ts';
import { Pipelines, UNDER_WAY_MAX } from '../../../local/http/request-pipeline.ts';
import { toResponse } from '../../../local/http/send-reply.ts';
import { readBody, socketOf } from '../../../local/http/http-request.ts';
import type { HttpServer } from '../../../local/http/server.ts';
import type { CertificateSet } from '../../../local/tls/certificate-set.ts';
import { devCertificate } from '../../../local/tls/dev-certificate.ts';
import { open, received, serve } from '../tls/clients.ts';

let certificates: CertificateSet;

beforeAll(async () => {
  certificates = (await devCertificate(Date.now())).set;
});

const answer = (body: ReplyBody, headers: Reply['headers'] = {}): Response =>
  toResponse({ status: 200, statusText: '', headers, body });
/** Numbered requests, the last of which ends the connection. */
const requests = (count: number, from = 0): string =>
  Array.from({ length: count }, (_, i) => `GET /${from + i} HTTP/1.1\r\nHost: x\r\n\r\n`).join('');
const LAST = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
const bodiesOf = (text: string): string[] =>
  text
    .split('HTTP/1.1 200 OK')
    .slice(1)
    .map((reply) => reply.slice(reply.indexOf('\r\n\r\n') + 4));
const turn = () =>
  new Promise<void>((resolve) => {
    setImmediate(resolve);
  });

/** Answers with the path once it is let to. */
class Gate {
  readonly begun: string[] = [];
  readonly open: (() => void)[] = [];
  mostUnderWay = 0;
  isOpen = false;
  socket: Socket | null = null;
  #underWay = 0;
  #waiting: { readonly count: number; resolve(): void }[] = [];

  readonly fetch = async (request: Request): Promise<Response> => {
    this.socket = socketOf(request);
    const path = new URL(request.url).pathname;
    this.begun.push(path);
    this.mostUnderWay = Math.max(this.mostUnderWay, ++this.#underWay);
    const reached = this.#waiting.filter(({ count }) => this.begun.length >= count);
    this.#waiting = this.#waiting.filter((one) => !reached.includes(one));
    for (const { resolve } of reached) resolve();
    if (!this.isOpen)
      await new Promise<void>((resolve) => {
        this.open.push(resolve);
      });
    await turn();
    this.#underWay--;
    return answer(path);
  };

  until(count: number): Promise<void> {
    return this.begun.length >= count
      ? Promise.resolve()
      : new Promise((resolve) => {
          this.#waiting.push({ count, resolve });
        });
  }

  letAll(): void {
    this.isOpen = true;
    for (const open of this.open.splice(0)) open();
  }
}

describe.each([
  ['plain', false],
  ['TLS', true],
])('pipelined requests, %s', (_, isTls) => {
  const node = (fetch: (request: Request) => Response | Promise<Response>): Promise<HttpServer> =>
    serve({ fetch, ...(isTls && { tls: { certificates } }) });

  test('eight are worked on, the others wait in their order and nothing more is read meanwhile', async () => {
    const gate = new Gate();
    const server = await node(gate.fetch);
    const socket = await open(server);
    const all = received(socket);
    const count = 5_000;
    socket.write(requests(count) + LAST);
    await gate.until(UNDER_WAY_MAX);
    // Replies behind the first are done, which does not make room before they are sent; and all that Node.js does by
    // itself on the way resumes nothing.
    for (const one of gate.open.splice(1)) one();
    for (let i = 0; i < 50; i++) await turn();
    expect(gate.begun).toHaveLength(UNDER_WAY_MAX);
    // Of 190 kB: the first look at the connection, and one read.
    expect(gate.socket!.bytesRead).toBeLessThanOrEqual(2 * 65_536);
    gate.letAll();
    const bodies = bodiesOf(await all);
    expect(bodies).toEqual([...Array.from({ length: count }, (_unused, i) => `/${i}`), '/last']);
    expect(gate.begun).toEqual(bodies);
    expect(gate.mostUnderWay).toBe(UNDER_WAY_MAX);
  });

  test('bodies that come in several reads arrive whole, and who waits for 100 Continue gets it in turn', async () => {
    const server = await node(async (request) => {
      await turn();
      return answer(String((await readBody(request, 1_000_000)).length));
    });
    const socket = await open(server);
    const all = received(socket);
    const sizes = Array.from({ length: 60 }, (_unused, i) => (i % 3 === 0 ? 0 : i * 1_000));
    socket.write(
      sizes
        .map(
          (bytes, i) =>
            `POST / HTTP/1.1\r\nHost: x\r\n${i === 40 ? 'Expect: 100-continue\r\n' : ''}Content-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`,
        )
        .join('') + LAST,
    );
    const text = await all;
    expect(bodiesOf(text.replace('HTTP/1.1 100 Continue\r\n\r\n', ''))).toEqual([...sizes.map(String), '0']);
    expect(text.split('100 Continue')).toHaveLength(2);
  });

  test('what waits is not begun where nobody would learn of it: the client has left, or an earlier request ends the connection', async () => {
    const gone = new Gate();
    const left = await open(await node(gone.fetch));
    left.write(requests(100));
    await gone.until(UNDER_WAY_MAX);
    const closed = new Promise((resolve) => {
      gone.socket!.once('close', resolve);
    });
    gone.socket!.destroy();
    await closed;
    gone.letAll();
    for (let i = 0; i < 20; i++) await turn();
    expect(gone.begun).toHaveLength(UNDER_WAY_MAX);
    const gate = new Gate();
    const socket = await open(
      await node(async (request) => {
        const reply = await gate.fetch(request);
        return new URL(request.url).pathname === '/3' ? answer('/3', { connection: 'close' }) : reply;
      }),
    );
    const all = received(socket);
    socket.write(requests(100));
    await gate.until(UNDER_WAY_MAX);
    gate.letAll();
    expect(bodiesOf(await all)).toEqual(['/0', '/1', '/2', '/3']);
    for (let i = 0; i < 20; i++) await turn();
    expect(gate.begun.length).toBeLessThanOrEqual(UNDER_WAY_MAX + 4);
  });

  test.each([
    ['CONNECT', 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n'],
    ['an upgrade', 'GET /ping HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['what is no request', 'no request\r\n\r\n'],
    ['nothing', ''],
  ])('replies whose turn never comes are told when the connection is gone, behind %s, too', async (_name, last) => {
    const signals: AbortSignal[] = [];
    let served: Socket | null = null;
    const begun = Promise.withResolvers<void>();
    const socket = await open(
      await node((request) => {
        served = socketOf(request);
        if (signals.push(request.signal) === UNDER_WAY_MAX) begun.resolve();
        return new Promise<Response>(() => {});
      }),
    );
    socket.on('error', () => {});
    socket.write(requests(UNDER_WAY_MAX) + last);
    await begun.promise;
    const closed = served!.destroyed
      ? Promise.resolve()
      : new Promise((resolve) => {
          served!.once('close', resolve);
        });
    socket.destroy();
    served!.destroy();
    await closed;
    for (let i = 0; i < 20; i++) await turn();
    expect(signals.map(({ aborted }) => aborted)).toEqual(Array.from({ length: UNDER_WAY_MAX }, () => true));
  });

  test('what pipelined requests hold is bounded for all connections of an address, beyond it a connection ends, and all of it is given back', async () => {
    const pipelines = new Pipelines(4_194_304);
    const gates: Gate[] = [];
    const byPort = new Map<number, Gate>();
    const server = await serve({
      pipelines,
      ...(isTls && { tls: { certificates } }),
      fetch: (request) => {
        const port = socketOf(request).remotePort!;
        if (!byPort.has(port)) {
          byPort.set(port, new Gate());
          gates.push(byPort.get(port)!);
        }
        return byPort.get(port)!.fetch(request);
      },
    });
    const first = await open(server);
    const all = received(first);
    first.write(requests(1_000) + LAST);
    await vi.waitFor(() => expect(pipelines.heldBytes).toBeGreaterThan(1_000 * 2_048));
    const others = await Promise.all([1, 2, 3].map(() => open(server)));
    const closed = others.map((socket) => received(socket));
    const held = pipelines.heldBytes;
    for (const socket of others) socket.write(requests(1_200));
    await Promise.all(closed);
    await vi.waitFor(() => expect(pipelines.heldBytes).toBe(held), { timeout: 5_000 });
    // One without others before it is taken all the same.
    const alone = await open(server);
    const answered = received(alone);
    alone.write(LAST);
    await vi.waitFor(() => expect(gates.at(-1)!.begun).toEqual(['/last']));
    for (const gate of gates) gate.letAll();
    expect(bodiesOf(await answered)).toEqual(['/last']);
    expect(bodiesOf(await all)).toHaveLength(1_001);
    await vi.waitFor(() => expect(pipelines.heldBytes).toBe(0), { timeout: 5_000 });
  });

  test('what Node.js would answer by itself waits its turn and counts as others: no host, and another expectation', async () => {
    const pipelines = new Pipelines();
    const gate = new Gate();
    const socket = await open(await serve({ pipelines, fetch: gate.fetch, ...(isTls && { tls: { certificates } }) }));
    const all = received(socket);
    socket.write(
      `${requests(1)}GET / HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n${requests(1)}${'GET / HTTP/1.1\r\n\r\n'.repeat(1_000)}`,
    );
    await vi.waitFor(() => expect(pipelines.heldBytes).toBeGreaterThan(1_000 * 2_048));
    gate.letAll();
    expect((await all).match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 417']);
    const second = await open(await node(() => answer('never')));
    const answered = received(second);
    second.write('GET / HTTP/1.1\r\n\r\n');
    expect(await answered).toMatch(/^HTTP\/1.1 400 /);
    await vi.waitFor(() => expect(pipelines.heldBytes).toBe(0), { timeout: 5_000 });
  });

  test('a stop is held up by nobody who waits', async () => {
    const gate = new Gate();
    const server = await node(gate.fetch);
    const socket = await open(server);
    const all = received(socket);
    socket.write(requests(100));
    await gate.until(UNDER_WAY_MAX);
    const stopped = server.stop(10_000);
    gate.letAll();
    expect(await stopped).toBe(true);
    await all;
  });
});
