import { request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../core/ports/log.ts';
import type { App } from '../../handlers/http/context.ts';
import { behindMembers, forwardedOf } from '../../handlers/http/forwarded.ts';
import { OwnHosts } from '../../handlers/http/own-hosts.ts';
import { Progress } from '../../local/cli/progress.ts';
import { coloursFor, EXIT, line, tableLines } from '../../infra/runtime/io.ts';
import { defineCommand } from '../../local/cli/command.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { runProgram } from '../../local/cli/run-command.ts';
import { PeerClient } from '../../local/cluster/peer-client.ts';
import { watchInsecure } from '../../local/node/security.ts';
import { appOptions } from '../../local/node/node-settings.ts';
import { loadCertificates } from '../../local/tls/load-certificates.ts';
import { EVENTS } from '../handlers/harness.ts';
import { basic } from '../handlers/secured.ts';
import { ran, startedNode } from '../local/spawn.ts';
import type { Started } from '../local/spawn.ts';
import { load } from '../local/config/support.ts';
import { FakeIo } from '../local/support.ts';
import { serve } from '../local/tls/clients.ts';
import { Files } from '../local/tls/files.ts';
import { issueNode, issueRoot, NODE_USAGES } from '../support/certificates.ts';
import { ManualClock } from '../support/manual-clock.ts';

/**
 * What pages whose names were pointed at the node may do, and what members and programs still may. Each test is named
 * by the table of findings (edge-hosts.ts).
 */

const FOREIGN = 'evil.example.com';
const SCRIPT = Buffer.from('const route = () => ({ stream: "parcels" });').toString('base64');

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly code: unknown;
}

function send(
  node: Started,
  method: string,
  path: string,
  headers: Record<string, string>,
  body = '',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      node.url + path,
      {
        method,
        agent: false,
        headers: { ...headers, ...(body !== '' && { 'content-length': String(Buffer.byteLength(body)) }) },
      },
      (reply) => {
        let text = '';
        reply.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        reply.on('end', () =>
          resolve({
            status: reply.statusCode!,
            headers: reply.headers,
            text,
            code: text.startsWith('{') ? (JSON.parse(text) as { code?: unknown }).code : null,
          }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

let written = 0;
const events = () =>
  JSON.stringify([
    { eventId: `8b1d7c9b-1a2f-4e6d-8c0b-${String(++written).padStart(12, '0')}`, eventType: 'made', data: {} },
  ]);
const append = (node: Started, headers: Record<string, string>) =>
  send(node, 'POST', '/streams/parcels', { 'content-type': EVENTS, ...headers }, events());

test.each([
  ['127.0.0.1:2113', true],
  ['10.1.2.3', true],
  ['[::1]:2113', true],
  ['localhost:2113', true],
  ['a.localhost', true],
  ['LOCALHOST.', true],
  ['skua-1', true],
  ['skua:80', true],
  ['node.local', true],
  ['a.b.internal', true],
  ['nas.lan', true],
  ['x.home.arpa', true],
  ['node.test', true],
  ['skua.default.svc', true],
  ['skua-0.skua.default.svc.cluster.local:2113', true],
  ['events.example.org', true],
  ['EVENTS.example.org.:443', true],
  ['deep.below.example.net', true],
  ['example.net', false],
  ['other.example.org', false],
  ['xevents.example.org', false],
  ['evil.example.com', false],
  ['evil.com:2113', false],
  ['127.0.0.1.nip.io', false],
  ['localhost.evil.com', false],
  ['local', true],
  ['evil.test.com', false],
  ['a@127.0.0.1', false],
  ['127.0.0.1, evil.com', false],
  ['evil.com/', false],
  [`${'a'.repeat(300)}.local`, false],
  ['evil.com:x', false],
  ['1.2.3', false],
])('the host %s counts as the node: %s', (host, isOwn) => {
  const hosts = new OwnHosts(['events.example.org', '.example.net']);
  expect([hosts.has(host), hosts.has(host), hosts.has('localhost'), hosts.has(host)]).toEqual([
    isOwn,
    isOwn,
    true,
    isOwn,
  ]);
});

describe('a node without users', () => {
  let node: Started;
  beforeAll(async () => {
    node = await startedNode([
      '--mem-db',
      '--allowed-hosts',
      'events.example.org,.example.net',
      '--trusted-proxies',
      '127.0.0.1',
      '--connectors-data-protection-token',
      'a token of these tests',
    ]);
  });
  afterAll(() => node.stop());

  test('a page whose name was pointed at it changes nothing and reads nothing', async () => {
    expect((await append(node, {})).status).toBe(201);
    for (const headers of [
      {},
      { 'x-forwarded-host': 'localhost' },
      { origin: `http://${FOREIGN}`, 'sec-fetch-site': 'same-origin' },
      {
        'skua-forwarded': JSON.stringify({
          epoch: 0,
          base: 'http://localhost',
          address: null,
          isLocal: true,
          caller: null,
          certificate: null,
        }),
      },
    ] as Record<string, string>[]) {
      const host = { host: `${FOREIGN}:2113`, ...headers };
      const refused = await append(node, host);
      expect([refused.status, refused.code, refused.text]).toEqual([
        421,
        'foreign_host',
        expect.stringContaining('AllowedHosts'),
      ]);
      for (const [method, path] of [
        ['GET', '/streams/parcels'],
        ['GET', '/ui'],
        ['GET', '/metrics'],
        ['GET', '/openapi.json'],
        ['GET', '/nothing'],
        ['GET', '/cluster/commits'],
        ['POST', '/admin/shutdown'],
        ['DELETE', '/streams/parcels'],
        ['POST', '/event_store.client.streams.Streams/Read'],
      ] as const)
        expect([path, (await send(node, method, path, host)).status]).toEqual([path, 421]);
    }
    expect(JSON.parse((await send(node, 'GET', '/connectors', { host: FOREIGN })).text)).toMatchObject({
      code: 9,
      message: expect.stringContaining('AllowedHosts'),
    });
    expect((await send(node, 'GET', '/streams/parcels/1', { accept: 'application/json' })).status).toBe(404);
  });

  test('whoever asks for the node by a name of its own goes on, and probes by any', async () => {
    for (const host of [
      '127.0.0.1:2113',
      'localhost',
      'skua',
      hostname(),
      'node.local',
      'events.example.org',
      'a.example.net:80',
    ])
      expect([host, (await append(node, { host })).status]).toEqual([host, 201]);
    for (const path of ['/health/live', '/health/ready'])
      expect((await send(node, 'GET', path, { host: FOREIGN })).status).toBeLessThan(400);
    const answered = await new Promise<string>((resolve) => {
      let text = '';
      const socket = connect(Number(new URL(node.url).port), '127.0.0.1', () =>
        socket.write('GET /ping HTTP/1.0\r\n\r\n'),
      );
      socket
        .setEncoding('utf8')
        .on('data', (part: string) => {
          text += part;
        })
        .on('close', () => resolve(text));
    });
    expect(answered).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('what a named proxy says was asked for must be ours, too', async () => {
    expect((await append(node, { host: '127.0.0.1', 'x-forwarded-host': FOREIGN })).code).toBe('foreign_host');
    expect((await append(node, { host: '127.0.0.1', 'x-forwarded-host': 'events.example.org' })).status).toBe(201);
  });

  test('senders are told why, and those that sign are not asked', async () => {
    const make = (id: string, settings: object) =>
      send(
        node,
        'POST',
        `/connectors/${id}`,
        { 'content-type': 'application/json' },
        JSON.stringify({ settings: { instanceTypeName: 'webhook-source', routingScript: SCRIPT, ...settings } }),
      );
    for (const [id, settings] of [
      ['plain', {}],
      ['signed', { 'Signature:Scheme': 'GitHub', 'Signature:Secret': 'between-us' }],
    ] as const) {
      expect((await make(id, { 'streams:0': 'parcels', ...settings })).status).toBe(200);
      expect((await send(node, 'POST', `/connectors/${id}/start`, {})).status).toBe(200);
    }
    const calls = (id: string, host: string) =>
      send(node, 'POST', `/webhook/${id}`, { host, 'content-type': 'application/json' }, '{"a":1}');
    const refused = await calls('plain', FOREIGN);
    expect([refused.status, refused.code]).toEqual([421, 'foreign_host']);
    expect((await calls('plain', 'localhost')).status).toBe(202);
    expect((await calls('signed', FOREIGN)).status).toBe(401);
    for (const path of ['/webhook/nobody', '/webhook/%', '/webhook/'])
      expect((await send(node, 'POST', path, { host: FOREIGN })).status).toBe(421);
  });
});

test('a node with users asks while one of the default users has the default password', async () => {
  const node = await startedNode(['--mem-db', '--disable-tls', '--password-format', 'compatible']);
  const as = (name: string, password: string, more = {}) => ({
    host: FOREIGN,
    authorization: basic(name, password),
    ...more,
  });
  const change = (name: string, host: string) =>
    send(
      node,
      'POST',
      `/users/${name}/command/reset-password`,
      {
        host,
        authorization: basic('admin', name === 'ops' ? 'a-new-one' : 'changeit'),
        'content-type': 'application/json',
      },
      JSON.stringify({ newPassword: 'a-new-one' }),
    );
  expect((await send(node, 'GET', '/users', as('admin', 'changeit'))).code).toBe('foreign_host');
  expect((await change('admin', 'localhost')).status).toBe(200);
  expect((await send(node, 'GET', '/users', as('admin', 'a-new-one'))).code).toBe('foreign_host');
  expect((await change('ops', 'localhost')).status).toBe(200);
  expect((await send(node, 'GET', '/users', as('admin', 'a-new-one'))).status).toBe(200);
  expect((await send(node, 'GET', '/users', as('admin', 'changeit'))).status).toBe(401);
  expect(
    (
      await send(
        node,
        'POST',
        '/users/ops/command/reset-password',
        { ...as('admin', 'a-new-one'), 'content-type': 'application/json' },
        JSON.stringify({ newPassword: 'changeit' }),
      )
    ).status,
  ).toBe(200);
  expect((await send(node, 'GET', '/users', as('admin', 'a-new-one'))).code).toBe('foreign_host');
  await node.stop();
});

test('what handlers see of a request that a member has passed on is the host that its client asked for', () => {
  const raw = ['Host', '10.0.0.2:2113', 'skua-forwarded', '…', 'X-Odd', 'kept'];
  const server = behindMembers({ rawHeadersOf: () => raw });
  const request = new Request('http://10.0.0.2:2113/', {
    headers: {
      'skua-forwarded': JSON.stringify({
        epoch: 1,
        base: 'https://events.example.org/skua',
        address: null,
        isLocal: false,
        caller: null,
        certificate: null,
      }),
    },
  });
  expect(server.rawHeadersOf!(request)).toEqual(raw);
  forwardedOf(request, { security: null, server: {}, features: {} } as unknown as App);
  expect(server.rawHeadersOf!(request)).toEqual(['Host', 'events.example.org', 'X-Odd', 'kept']);
});

test('browsers are told to come over TLS where the node has a certificate of its own', () => {
  const told = (...words: string[]) => appOptions(load(['--hsts-max-age', '60', ...words]).values).hstsSeconds;
  expect([
    told('--certificate-file', 'x.pem'),
    told('--dev'),
    told('--disable-tls'),
    told('--insecure'),
    appOptions(load([]).values).hstsSeconds,
  ]).toEqual([60, 0, 0, 0, 0]);
});

test('a node without users that others reach says so at the start and every hour', async () => {
  const clock = new ManualClock();
  const lines: string[] = [];
  const end = new AbortController();
  const watch = (address: string) =>
    watchInsecure(address, {
      clock,
      log: {
        ...silentLog,
        warn: (message) => {
          lines.push(message);
        },
      },
      signal: end.signal,
    });
  const [here, there] = [watch('127.0.0.1'), watch('0.0.0.0')];
  await here;
  expect(lines).toHaveLength(1);
  await clock.advance(3_600_000);
  await clock.advance(3_600_000);
  expect(lines).toEqual([lines[0], lines[0], lines[0]]);
  expect(lines[0]).toContain('--insecure');
  end.abort();
  await there;
});

describe('certificates for servers alone', () => {
  const forServers = { usages: NODE_USAGES.slice(0, 1) };

  test('members know each other by the ClusterSecret, and browsers are told to come over TLS', async () => {
    const root = await issueRoot();
    const issued = await issueNode(root, 'node.parcels.test', forServers);
    const files = await Files.of({ 'node.crt': issued.cert, 'node.key': issued.key, 'roots/ca.crt': root.cert });
    const node = await startedNode([
      '--storage',
      files.path('log'),
      '--db',
      files.path('copy'),
      '--cluster-size',
      '1',
      '--cluster-secret',
      'between-us',
      '--certificate-file',
      files.path('node.crt'),
      '--certificate-private-key-file',
      files.path('node.key'),
      '--trusted-root-certificates-path',
      files.path('roots'),
      '--hsts-max-age',
      '3600',
      '--password-format',
      'compatible',
    ]);
    onTestFinished(async () => {
      await node.stop();
    });
    const { port } = new URL(node.url);
    const set = await loadCertificates(files.options(), Date.now());
    const asked = async (secret: string | null) => {
      const client = new PeerClient({ certificates: set, secret });
      onTestFinished(() => client.close());
      return (
        await client.request({
          node: { address: '127.0.0.1', port: Number(port) },
          method: 'GET',
          path: '/users',
          headers: {},
          body: null,
          as: 'member',
          timeoutMs: 20_000,
        })
      ).status;
    };
    expect([await asked('between-us'), await asked('guessed'), await asked(null)]).toEqual([200, 401, 401]);
    const told = (host: string) =>
      new Promise((resolve, reject) => {
        httpsRequest(
          `${node.url}/ping`,
          { ca: root.cert, agent: false, servername: 'localhost', headers: { host } },
          (reply) => {
            reply.resume();
            resolve(reply.headers['strict-transport-security']);
          },
        )
          .on('error', reject)
          .end();
      });
    for (const host of ['events.example.org', 'events.example.org:2113', '10.0.0.1', 'nolocalhost'])
      expect([host, await told(host)]).toEqual([host, 'max-age=3600']);
    for (const host of ['localhost', 'LOCALHOST:2113', 'a.localhost', '127.0.0.1:2113', '[::1]:2113'])
      expect([host, await told(host)]).toEqual([host, undefined]);
  });

  test('a server whose certificate is not verified is not shown the secret', async () => {
    const [root, foreign] = [await issueRoot(), await issueRoot('Foreign')];
    const [ours, theirs] = [await issueNode(root), await issueNode(foreign)];
    const sets = await Promise.all(
      (
        [
          [ours, root],
          [theirs, foreign],
        ] as const
      ).map(async ([node, by]) =>
        loadCertificates(
          (await Files.of({ 'node.crt': node.cert, 'node.key': node.key, 'roots/ca.crt': by.cert })).options(),
          Date.now(),
        ),
      ),
    );
    const seen: (string | null)[] = [];
    const server = await serve({
      tls: { certificates: sets[1]! },
      fetch: (request) => {
        seen.push(request.headers.get('authorization'));
        return new Response('ok');
      },
    });
    for (const [set, expected] of [
      [sets[0]!, 'member_unreachable'],
      [sets[1]!, 200],
    ] as const) {
      const client = new PeerClient({ certificates: set, secret: 'between-us' });
      onTestFinished(() => client.close());
      const answer = await client
        .request({
          node: { address: '127.0.0.1', port: server.port },
          method: 'GET',
          path: '/',
          headers: {},
          body: null,
          as: 'member',
          timeoutMs: 20_000,
        })
        .then(
          ({ status }) => status,
          ({ code }: { code: string }) => code,
        );
      expect(answer).toBe(expected);
    }
    expect(seen).toEqual(['Cluster between-us']);
  });
});

describe('what a command writes', () => {
  /** What terminals obey, or turn texts round by; as a text of others. */
  const HOSTILE = 'a\u001B[2Jb\u009B31mc\u0007d\u007Fe\u202Ef\u2066g\r\u0000h';
  const SHOWN = String.raw`a\u001b[2Jb\u009b31mc\u0007d\u007fe\u202ef\u2066g\r\u0000h`;
  const OBEYED = /(?![\n\t])[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/u;

  const command = defineCommand({
    name: 'show',
    summary: 'Shows.',
    options: {},
    examples: [],
    run: async (_, io) => {
      const { red } = coloursFor(io.stdout, io.env);
      line(io.stdout, `${red('name')}:\t${HOSTILE}`);
      for (const each of tableLines(
        [
          { title: 'name', align: 'left' },
          { title: 'last', align: 'left' },
        ],
        [
          [`${HOSTILE}\nforged`, 'x'],
          ['y', '\u001B[31mred'],
        ],
      ))
        line(io.stdout, each);
      line(io.stdout, JSON.stringify({ name: HOSTILE }, null, 2));
      const progress = new Progress({
        io,
        onLine: (text) => line(io.stderr, text),
      });
      // The first one begins, and the second one is shown.
      for (const bytesDone of [0, 1]) progress.update({ label: HOSTILE, detail: HOSTILE, bytesDone, bytesTotal: 2 });
      progress.clear();
      throw new CommandError('refused', HOSTILE, EXIT.refused);
    },
  });

  test.each([false, true])(
    'has nothing in it that a terminal would obey, but for our own (on a terminal: %s)',
    async (isTTY) => {
      // Far enough between two looks for a bar, or a line of progress.
      let nowMs = 0;
      const io = new FakeIo({ isTTY, monotonicMs: () => (nowMs += 60_000) });
      expect(await runProgram({ commands: [command], version: '1' }, ['show'], io)).toBe(EXIT.refused);
      const [first, titles, row, last] = io.out.split('\n');
      expect(first).toBe(`${isTTY ? '\u001B[31mname\u001B[0m' : 'name'}:\t${SHOWN}`);
      expect([titles, row, last]).toEqual([
        `${'name'.padEnd(SHOWN.length + 8)}  last`,
        `${SHOWN}\\nforged  x`,
        `${'y'.padEnd(SHOWN.length + 8)}  ${String.raw`\u001b[31mred`}`,
      ]);
      const json = io.out.slice(io.out.indexOf('{'));
      expect(json).not.toMatch(OBEYED);
      expect(JSON.parse(json)).toEqual({ name: HOSTILE });
      expect(io.err).toContain(` refused: ${SHOWN}\n`);
      expect(io.err).toContain(`50 %, 1 B of 2 B`);
      expect(
        io.err
          .replaceAll('\r\u001B[2K', '')
          .replaceAll('\u001B[31m', '')
          .replaceAll('\u001B[32m', '')
          .replaceAll('\u001B[0m', ''),
      ).not.toMatch(OBEYED);
    },
  );

  test('so do the names and the metadata that a node tells', async () => {
    const node = await startedNode(['--mem-db']);
    onTestFinished(async () => {
      await node.stop();
    });
    // Of control characters only foreign data may have some.
    const stream = 'a\u202Ed';
    const path = `/streams/${encodeURIComponent(stream)}`;
    expect(await send(node, 'POST', path, { 'content-type': EVENTS }, events())).toMatchObject({ status: 201 });
    expect(
      await send(
        node,
        'POST',
        `${path}/metadata`,
        {
          'content-type': 'application/json',
          'es-eventtype': '$metadata',
          'es-eventid': '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b12',
        },
        JSON.stringify({ custom: '\u009B2J\u202E' }),
      ),
    ).toMatchObject({ status: 201 });
    const told = await ran(['explain', stream, '--node', node.url]);
    expect([told.code, told.out]).toEqual([0, expect.stringContaining(String.raw`a\u202ed: last event 0`)]);
    expect(told.out).toContain(String.raw`\u009b2J\u202e`);
    expect(told.out).not.toMatch(OBEYED);
    const absent = await ran(['explain', 'x\u009B2J\u001B[2K\nforged', '--node', node.url]);
    expect(absent.out + absent.err).toContain(String.raw`x\u009b2J\u001b[2K\nforged`);
    const json = await ran(['explain', stream, '--node', node.url, '--json']);
    expect(json.out).not.toMatch(OBEYED);
    expect((JSON.parse(json.out) as { stream: string }).stream).toBe(stream);
  });
});
