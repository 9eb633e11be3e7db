import * as http from 'node:http';
import * as net from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startNode } from '../../../local/node/node.ts';
import type { RunningNode } from '../../../local/node/node.ts';
import { basic } from '../../handlers/secured.ts';
import { NodeLines, until } from '../backup/node-kit.ts';
import { load } from '../config/support.ts';

/**
 * Real nodes, and clients at addresses of this machine: 127.0.0.1 is a proxy of the first node, all others are
 * themselves.
 */

const ADMIN = { authorization: basic('admin', 'changeit') };
const WHO = '/users/$current';

let behindProxy: RunningNode;
let open: RunningNode;
const log = new NodeLines();
const PER_ADDRESS = 12;

const start = (words: readonly string[], lines = new NodeLines()) =>
  startNode({
    config: load([
      '--node-port',
      '0',
      '--mem-db',
      '--disable-tls',
      '--password-format',
      'compatible',
      '--stream-existence-filter-size',
      '10000',
      ...words,
    ]),
    log: lines,
    env: {},
  });

beforeAll(async () => {
  [behindProxy, open] = await Promise.all([
    start([
      '--trusted-proxies',
      '127.0.0.1,10.0.0.0/8',
      '--enable-trusted-auth',
      '--max-connections-per-address',
      String(PER_ADDRESS),
    ]),
    start(['--max-connections-per-address', String(PER_ADDRESS)], log),
  ]);
});
afterAll(() => Promise.all([behindProxy, open].map((node) => node.stop())));

interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

const portOf = (node: RunningNode) => Number(new URL(node.url).port);

/** A request over a connection of its own, whose path is sent as it stands here. */
function ask(
  node: RunningNode,
  path: string,
  headers: Record<string, string> = {},
  options: http.RequestOptions = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: '127.0.0.1', port: portOf(node), path, headers, agent: false, ...options },
      (reply) => {
        const parts: Buffer[] = [];
        reply.on('data', (part: Buffer) => parts.push(part));
        reply.on('end', () =>
          resolve({ status: reply.statusCode!, headers: reply.headers, body: Buffer.concat(parts).toString() }),
        );
        reply.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end();
  });
}

/** The first line that comes back for a target which no client would send. */
function firstLine(node: RunningNode, target: string, method = 'GET', headers = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(portOf(node), '127.0.0.1', () =>
      socket.write(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`, 'latin1'),
    );
    let text = '';
    socket.on('data', (part) => {
      text += part.toString('latin1');
    });
    socket.on('close', () => resolve(text.split('\r\n')[0]!));
    socket.on('error', reject);
  });
}

const guess = (node: RunningNode, i: number, headers: Record<string, string> = {}, options = {}) =>
  ask(node, WHO, { authorization: basic('admin', `guess${i}`), ...headers }, options).then(({ status }) => status);
const admin = (node: RunningNode, headers: Record<string, string> = {}, options = {}) =>
  ask(node, WHO, { ...ADMIN, ...headers }, options).then(({ status }) => status);

describe('logins', () => {
  test('ten wrong passwords of a client behind a proxy lock the user out for that client, and nobody else', async () => {
    const attacker = { 'x-forwarded-for': '198.51.100.1, 203.0.113.66' };
    for (let i = 0; i < 10; i++) expect(await guess(behindProxy, i, attacker)).toBe(401);
    expect(await guess(behindProxy, 10, attacker)).toBe(429);
    expect(await admin(behindProxy, attacker)).toBe(429);
    expect(await admin(behindProxy, { 'x-forwarded-for': '203.0.113.67' })).toBe(200);
    expect(await admin(behindProxy, { forwarded: 'for="[2001:db8::1]:4711"' })).toBe(200);
    expect(await admin(behindProxy)).toBe(200);
    // Who is no proxy can't say that he is somebody else.
    expect(await guess(behindProxy, 11, { ...attacker }, { localAddress: '127.0.0.7' })).toBe(401);
  });

  test('a verified login goes on beside guesses from the same address, over a kept connection and over others', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const from = { localAddress: '127.0.0.5' };
    expect(await admin(open, {}, { ...from, agent })).toBe(200);
    const statuses = await Promise.all(Array.from({ length: 10 }, (_, i) => guess(open, i, {}, from)));
    expect(new Set(statuses)).toEqual(new Set([401]));
    expect(await guess(open, 10, {}, from)).toBe(429);
    expect(await admin(open, {}, { ...from, agent })).toBe(200);
    expect(await admin(open, {}, from)).toBe(200);
    agent.destroy();
  });
});

test('the trusted header names the caller where it comes from a proxy', async () => {
  const reply = await ask(behindProxy, WHO, { 'es-trustedauth': 'kim; $admins' });
  expect([reply.status, (await ask(behindProxy, '/users', { 'es-trustedauth': 'kim; $admins' })).status]).toEqual([
    404, 200,
  ]);
});

describe('paths', () => {
  test.each([
    ['/x/../ping', 404],
    ['/x/%2e%2e/ping', 404],
    ['/x/.%2E/ping', 404],
    ['/./ping', 404],
    ['/ping/.', 404],
    ['/ping/..', 404],
    ['//ping', 404],
    ['/x\\..\\ping', 404],
    ['\\ping', 400],
    ['/\\ping', 404],
    ['http://other.test/x/../ping', 404],
    ['http://other.test/ping', 200],
    ['http://other.test', 200],
    ['http://other.test?x', 200],
    ['/streams/..', 400],
    ['/streams/%2e', 400],
    ['/streams/../ping', 404],
    ['/streams/../ping/', 404],
    ['/streams/x/../../ping', 404],
    ['/ping#x', 400],
    ['/ping?a=/../b', 200],
    ['/ping', 200],
    ['/%70ing', 404],
    ['/PING', 404],
    ['/ping%2f', 404],
    ['/ping;x', 404],
    ['/ping/', 404],
    ['/.ping', 404],
    ['/streams/.x', 401],
    ['/streams/...', 401],
  ])('are taken as they arrived: %s is %i', async (target, status) => {
    expect(await firstLine(open, target)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  test('a name with a backslash is one name, for writers and readers alike', async () => {
    const body = '{"a":1}';
    const head = `Authorization: ${ADMIN.authorization}\r\n`;
    expect(
      await firstLine(
        open,
        '/streams/a\\b',
        'POST',
        `${head}Content-Type: application/json\r\nES-EventType: t\r\nES-EventId: 00000000-0000-4000-8000-000000000001\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      ),
    ).toMatch(/^HTTP\/1\.1 201 /);
    expect(await firstLine(open, '/streams/a\\b/0', 'GET', head)).toMatch(/^HTTP\/1\.1 200 /);
    expect((await ask(open, '/streams/a%5Cb/0', ADMIN)).status).toBe(200);
  });

  test.each([
    ['256.1.1.1', [200, 307]],
    ['x:99999', [200, 307]],
    ['a b', [421, 421]],
    ['[::1', [421, 421]],
    ['x@y', [421, 421]],
    ['1.2.3.4.5', [421, 421]],
    ['{}', [421, 421]],
  ])('a host that is none does no harm: %s', async (host, statuses) => {
    expect([
      (await ask(open, '/ping', { host })).status,
      (await ask(open, '/streams/s/', { host, ...ADMIN })).status,
    ]).toEqual(statuses);
  });
});

describe('connections', () => {
  const connect = (node: RunningNode, localAddress: string) =>
    new Promise<net.Socket>((resolve, reject) => {
      const socket = net.connect({ port: portOf(node), host: '127.0.0.1', localAddress }, () => resolve(socket));
      socket.on('error', reject);
    });
  const textOf = (socket: net.Socket) =>
    new Promise<string>((resolve) => {
      let text = '';
      socket.on('data', (part) => {
        text += part.toString('latin1');
      });
      socket.on('close', () => resolve(text));
    });

  test('beyond the limit of an address are refused with an answer, a line and a count; others are not', async () => {
    const held = await Promise.all(Array.from({ length: PER_ADDRESS }, () => connect(open, '127.0.0.9')));
    // Each has been counted before the server looks at the next.
    const refused = await Promise.all([connect(open, '127.0.0.9'), connect(open, '127.0.0.9')]);
    for (const text of await Promise.all(refused.map(textOf)))
      expect(text).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\nRetry-After: 10\r\nConnection: close\r\n/);
    expect((await ask(open, '/ping', {}, { localAddress: '127.0.0.10' })).status).toBe(200);
    expect((await ask(open, '/metrics', ADMIN)).body).toContain(
      'eventstore_http_connections_refused_total{limit="address"} 2',
    );
    expect(
      log.lines
        .filter(({ message }) => message.startsWith('connections were refused'))
        .map(({ level, fields }) => [level, fields]),
    ).toEqual([
      ['warn', { limit: `MaxConnectionsPerAddress ${PER_ADDRESS}`, address: '127.0.0.9', refusedSinceLastLine: 1 }],
    ]);
    for (const socket of held) socket.destroy();
    await until(() =>
      ask(open, '/ping', {}, { localAddress: '127.0.0.9' }).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  });

  test('of a trusted proxy are not counted', async () => {
    const held = await Promise.all(Array.from({ length: PER_ADDRESS + 5 }, () => connect(behindProxy, '127.0.0.1')));
    expect((await ask(behindProxy, '/ping')).status).toBe(200);
    for (const socket of held) socket.destroy();
  });
});
