import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { createSecurity } from '../../core/security/security.ts';
import type { RunningSecurity } from '../../core/security/security.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import type { EventStoreInternals } from '../../core/streams/streams.ts';
import { createApp } from '../../handlers/app.ts';
import type { AppOptions } from '../../handlers/http/context.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import { runProgram } from '../../local/cli/run-command.ts';
import { COMMANDS } from '../../local/commands/all-commands.ts';
import { readBody } from '../../local/http/http-request.ts';
import { toResponse } from '../../local/http/send-reply.ts';
import { startServer } from '../../local/http/server.ts';
import type { HttpServer } from '../../local/http/server.ts';
import { EVENTS } from '../handlers/harness.ts';
import { basic, LogLines } from '../handlers/secured.ts';
import { fakeBackups, HOLD_ID } from '../support/backup/fake-backups.ts';
import { contextOf } from '../support/app-context.ts';
import { FakeIo } from '../local/support.ts';
import { FakeNode } from '../support/fake-node.ts';
import { FakeScavenger } from '../support/fake-scavenger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';

/**
 * What an attacker, or an honest mistake, could do about roles, access lists and browsers, asked of a real store with
 * real users over real HTTP. Each test is named by the table of findings (access.ts).
 */

const ADMIN = { authorization: basic('ada', 'ada-pass') };
const OPS = { authorization: basic('olga', 'olga-pass') };
const KEEPER = { authorization: basic('bo', 'bo-pass') };
const PLAIN = { authorization: basic('kim', 'kim-pass') };
const FOREIGN = 'https://elsewhere.test';

let opened: DirectoryStore;
let security: RunningSecurity;
let server: HttpServer;
let log: LogLines;
let ids = 0;

beforeEach(async () => {
  log = new LogLines();
  opened = await openTestStore({ storage: new MemoryStorage(), clock: new ManualClock(TEST_NOW_MS, 'microtask') });
  security = createSecurity(
    { store: opened.store, keys: nodeKeys, clock: systemClock, ids: systemIds, log, meter: silentMeter },
    {
      passwordFormat: 'compatible',
      allowAnonymousStreamAccess: false,
      adminPassword: 'changeit',
      opsPassword: 'changeit',
    },
  );
  await security.start();
  for (const [loginName, group] of [
    ['ada', '$admins'],
    ['olga', '$ops'],
    ['bo', '$backup'],
    ['kim', 'pickers'],
  ] as const) {
    await security.users.create({
      loginName,
      fullName: null,
      groups: [group],
      password: `${loginName === 'olga' ? 'olga' : loginName}-pass`,
    });
  }
  server = await serve({});
});

afterEach(async () => {
  await server.stop(100);
  await opened.close();
});

async function serve(options: Partial<AppOptions>, isSecure = true): Promise<HttpServer> {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const app = createApp(
    contextOf({
      store: opened.store,
      scavenger: new FakeScavenger(),
      clock,
      ids: systemIds,
      log: silentLog,
      meter: silentMeter,
      security: isSecure ? security : null,
      node: new FakeNode(),
      backups: await fakeBackups(clock, { isHeld: true }),
      readBody,
      toResponse,
      options,
    }),
  );
  return startServer({ hostname: '127.0.0.1', port: 0, fetch: app, log: silentLog });
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly problem: Record<string, unknown>;
}

/** As a browser sends it: the `fetch` of Node.js adds and leaves out headers of its own. */
function send(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
  to: HttpServer = server,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      to.url + path,
      {
        method,
        headers: { ...headers, ...(body !== '' && { 'content-length': String(Buffer.byteLength(body)) }) },
        agent: false,
      },
      (reply) => {
        const parts: Buffer[] = [];
        reply.on('data', (part: Buffer) => parts.push(part));
        reply.on('end', () => {
          const text = Buffer.concat(parts).toString();
          const isProblem = reply.headers['content-type']?.startsWith('application/problem+json') === true;
          resolve({
            status: reply.statusCode!,
            headers: reply.headers,
            text,
            problem: isProblem ? (JSON.parse(text) as Record<string, unknown>) : {},
          });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

function newId(): string {
  return `30000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`;
}

const batchOf = (type: string, data: unknown) => JSON.stringify([{ eventId: newId(), eventType: type, data }]);

async function append(stream: string, type = 'made'): Promise<void> {
  await send(
    'POST',
    `/streams/${encodeURIComponent(stream)}`,
    { ...ADMIN, 'content-type': EVENTS },
    batchOf(type, { n: 1 }),
  );
}

/** As a program of the reference may have left it: written beside all checks. */
async function leave(stream: string, data: string, isJson = true): Promise<void> {
  await (opened.store as EventStoreInternals).appendInternal(stream, -2, [
    { id: newId(), type: '$metadata', isJson, data: new TextEncoder().encode(data), metadata: new Uint8Array(0) },
  ]);
}

describe('roles', () => {
  const FILES = [
    ['POST', '/admin/backup/hold'],
    ['POST', `/admin/backup/hold/${HOLD_ID}`],
    ['GET', `/admin/backup/files?hold=${HOLD_ID}`],
    ['GET', `/admin/backup/files/chunk-000000.000000?hold=${HOLD_ID}`],
    ['DELETE', `/admin/backup/hold/${HOLD_ID}`],
  ] as const;

  test.each(FILES)('%s %s is not for operators, whom the answer tells the role that may', async (method, path) => {
    const refused = await send(method, path, OPS);
    expect([refused.status, refused.problem['code']]).toEqual([403, 'access_denied']);
    expect(refused.problem['detail']).toContain('$backup');
    expect((await send(method, path, PLAIN)).status).toBe(403);
    expect((await send(method, path, KEEPER)).status).toBeLessThan(300);
  });

  test.each([
    ['create', '--repository', 'nowhere'],
    ['copy', '--full', '--to', 'nowhere'],
  ])('skua backup %s as an operator says which role it takes, with exit code 4', async (...words) => {
    const io = new FakeIo({ env: { SKUA_USER: 'olga', SKUA_PASSWORD: 'olga-pass' } });
    const folder = mkdtempSync(join(tmpdir(), 'skua-role-'));
    const code = await runProgram(
      { commands: COMMANDS, version: '1' },
      ['backup', ...words.map((word) => (word === 'nowhere' ? join(folder, word) : word)), '--node', server.url],
      io,
    );
    rmSync(folder, { recursive: true, force: true });
    expect([code, io.err]).toEqual([EXIT.refused, expect.stringContaining('$backup')]);
  });

  test('the role of backups gives nothing else', async () => {
    for (const [method, path] of [
      ['POST', '/admin/backup'],
      ['GET', '/admin/backups'],
      ['POST', '/admin/scavenge'],
      ['GET', '/info/options'],
      ['GET', '/users'],
      ['GET', '/streams/$all'],
    ] as const)
      expect((await send(method, path, KEEPER)).status).toBe(403);
    expect((await send('POST', '/admin/backup', OPS)).status).toBe(202);
  });
});

describe('access lists', () => {
  const ODD: readonly (readonly [string, string])[] = [
    ['{"$maxAge":"PT5M"}', '$maxAge'],
    ['{"$maxCount":"10"}', '$maxCount'],
    ['{"$maxcount":10}', '$maxcount'],
    ['{"$MaxAge":10}', '$MaxAge'],
    ['{"$maxCount":"5","$acl":{"$r":"ada"}}', '$maxCount'],
    ['{"$maxAge":1.5}', '$maxAge'],
    ['{"$cacheControl":null}', '$cacheControl'],
    ['{"$tb":[]}', '$tb'],
    ['{"$tmp":"yes"}', '$tmp'],
    ['{"$acl":"ada"}', '$acl'],
    ['{"$acl":null}', '$acl'],
    ['{"$acl":{"$r":7}}', '$acl.$r'],
    ['{"$acl":{"$r":["ada",7]}}', '$acl.$r'],
    ['{"$acl":{"read":"ada"}}', '$acl.read'],
  ];

  test.each(ODD)('%s is refused in every way of writing it, with its key', async (json, key) => {
    const value = JSON.parse(json) as unknown;
    const single = { ...ADMIN, 'content-type': 'application/json', 'es-eventtype': '$metadata' };
    const answers = [
      await send('POST', '/streams/x/metadata', { ...single, 'es-eventid': newId() }, json),
      await send('POST', '/streams/x/metadata', { ...ADMIN, 'content-type': EVENTS }, batchOf('$metadata', value)),
      await send('POST', '/streams/$$x', { ...single, 'es-eventid': newId() }, json),
      await send('POST', '/streams/$$x', { ...ADMIN, 'content-type': EVENTS }, batchOf('whatever', value)),
      await send('POST', `/streams/$$x/incoming/${newId()}`, single, json),
    ];
    for (const { status, problem } of answers) {
      expect([status, problem['code'], problem['key']]).toEqual([400, 'invalid_metadata', key]);
      expect(problem['detail']).toMatch(/must be/);
    }
    expect((await opened.store.streamInfo('x')).metadataVersion).toBe(-1);
  });

  test.each([
    ['application/octet-stream', '{"$acl":{"$r":"ada"}}'],
    ['application/json', '{"$acl":'],
    ['application/json', '[1]'],
    ['application/json', ''],
    ['application/json', '"{\\"$maxCount\\":10}"'],
  ])('as %s, %s is no metadata', async (type, body) => {
    for (const path of ['/streams/x/metadata', '/streams/$$x']) {
      const { status, problem } = await send(
        'POST',
        path,
        { ...ADMIN, 'content-type': type, 'es-eventid': newId(), 'es-eventtype': '$metadata' },
        body,
      );
      expect([status, problem['code']]).toEqual([400, 'invalid_metadata']);
    }
  });

  test('data that are the text of an object are that object', async () => {
    expect(
      (
        await send(
          'POST',
          '/streams/x/metadata',
          { ...ADMIN, 'content-type': EVENTS },
          batchOf('$metadata', '{"$maxCount":10}'),
        )
      ).status,
    ).toBe(201);
    expect((await opened.store.streamInfo('x')).metadata).toEqual({ maxCount: 10 });
  });

  test.each(['keep ten', '"{}"', 10, null])('data %j that is no object is no metadata', async (data) => {
    for (const path of ['/streams/x/metadata', '/streams/$$x']) {
      const { status, problem } = await send(
        'POST',
        path,
        { ...ADMIN, 'content-type': EVENTS },
        batchOf('$metadata', data),
      );
      expect([status, problem['code'], problem['detail']]).toEqual([
        400,
        'invalid_metadata',
        expect.stringMatching(/^The metadata of x must be a JSON object sent as JSON, such as \{"\$maxCount": 100\}/),
      ]);
    }
    expect((await opened.store.streamInfo('x')).metadataVersion).toBe(-1);
  });

  test.each(['{"$userStreamAcl":{"$r":1}}', '{"$systemStreamAcl":[]}', '7', '{"$userStreamAcl":'])(
    '%s is refused as $settings',
    async (body) => {
      const { status, problem } = await send(
        'POST',
        '/streams/$settings',
        { ...ADMIN, 'content-type': 'application/json', 'es-eventid': newId(), 'es-eventtype': 'update' },
        body,
      );
      expect([status, problem['code']]).toEqual([400, 'invalid_metadata']);
    },
  );

  test.each([
    ['{"$maxCount":"5","$acl":{"$r":"ada","$w":"ada"}}', true],
    ['{"$acl":{"$r":"kim","$w":"kim","x":1}}', true],
    ['{"$acl":{"$r":"kim"}}', false],
    ['{"$acl":', true],
    ['\u0001\u0002', false],
  ] as const)('%s, left behind by another program, lets in administrators only', async (data, isJson) => {
    await append('x');
    await leave('$$x', data, isJson);
    expect((await send('GET', '/streams/x', PLAIN)).status).toBe(403);
    expect((await send('POST', '/streams/x', { ...PLAIN, 'content-type': EVENTS }, batchOf('made', {}))).status).toBe(
      403,
    );
    expect((await send('GET', '/streams/x', ADMIN)).status).toBe(200);
  });

  test('what is odd elsewhere than in the list loosens nothing, and is otherwise read as the reference reads it', async () => {
    for (let i = 0; i < 3; i++) await append('x');
    await leave('$$x', '{"$maxCount":1,"$tb":"2","$acl":{"$r":"kim"}}');
    expect((await send('GET', '/streams/x/0', PLAIN)).status).toBe(200);
    expect((await send('GET', '/streams/x/0', OPS)).status).toBe(403);
    await leave('$$y', '{"$maxCount":"1"}');
    await append('y');
    expect((await send('GET', '/streams/y', PLAIN)).status).toBe(200);
  });

  test('$settings that nobody can understand mean administrators only, with a warning', async () => {
    await append('x');
    await leave('$settings', '{"$userStreamAcl":');
    expect([(await send('GET', '/streams/x', PLAIN)).status, (await send('GET', '/streams/x', ADMIN)).status]).toEqual([
      403, 200,
    ]);
    expect(log.lines.filter(({ level }) => level === 'error' || level === 'warn')).not.toEqual([]);
  });

  test('a list that nobody can understand is told in the log, a few times a minute', async () => {
    await append('x');
    await leave('$$x', '{"$acl":7}');
    for (let i = 0; i < 60; i++) await send('GET', '/streams/x', PLAIN);
    const lines = log.lines.filter(({ fields }) => fields['stream'] === 'x');
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThanOrEqual(20);
    expect(lines[0]!.level).toBe('warn');
  });
});

describe('requests of foreign pages', () => {
  const own = () => new URL(server.url).host;

  test.each([
    ['cross-site', { 'sec-fetch-site': 'cross-site', origin: FOREIGN }],
    ['same-site', { 'sec-fetch-site': 'same-site', origin: 'https://other.node.test' }],
    ['no fetch metadata', { origin: FOREIGN }],
    ['a document without origin', { origin: 'null' }],
    ['what is no origin', { origin: 'x:y:z' }],
  ])('%s: what changes something is refused, what reads is not', async (_, headers) => {
    for (const [method, path, body] of [
      ['POST', '/streams/x', batchOf('made', {})],
      ['DELETE', '/streams/x', ''],
      ['POST', '/admin/scavenge', ''],
      ['POST', '/admin/shutdown', ''],
      ['POST', '/users', '{}'],
      ['POST', '/nothing', ''],
    ] as const) {
      const { status, problem } = await send(
        method,
        path,
        {
          ...ADMIN,
          ...headers,
          ...(body !== '' && {
            'content-type': method === 'POST' && path.startsWith('/streams') ? EVENTS : 'application/json',
          }),
        },
        body,
      );
      expect([path, status, problem['code']]).toEqual([path, 403, 'foreign_origin']);
    }
    expect((await opened.store.streamInfo('x')).lastEventNumber).toBe(-1);
    expect((await send('GET', '/streams/$all', { ...ADMIN, ...headers })).status).toBe(200);
  });

  test('pages of the node itself, proxies that name its host, and programs go on', async () => {
    const accepted: Record<string, string>[] = [
      {},
      { 'sec-fetch-site': 'same-origin', origin: 'https://hidden.test' },
      { 'sec-fetch-site': 'none' },
      { origin: `http://${own()}` },
      { origin: `https://${own()}` },
      {
        origin: 'https://events.example.test',
        'x-forwarded-host': 'events.example.test',
        'x-forwarded-proto': 'https',
      },
      {
        origin: 'https://events.example.test:8443',
        'x-forwarded-host': 'events.example.test',
        'x-forwarded-port': '8443',
        'x-forwarded-proto': 'https',
      },
      {
        origin: 'https://Events.example.test',
        'x-forwarded-host': 'events.example.test:443',
        'x-forwarded-proto': 'https',
      },
    ];
    for (const headers of accepted)
      expect([
        headers,
        (await send('POST', '/streams/x', { ...ADMIN, ...headers, 'content-type': EVENTS }, batchOf('made', {})))
          .status,
      ]).toEqual([headers, 201]);
    expect(
      (
        await send(
          'POST',
          '/streams/x',
          { ...ADMIN, origin: `http://${own().split(':')[0]!}:1`, 'content-type': EVENTS },
          batchOf('made', {}),
        )
      ).status,
    ).toBe(403);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'Text/Plain;charset=UTF-8',
  ])('a body of type %s, which a form can send, changes nothing', async (type) => {
    for (const [path, body] of [
      ['/admin/backup', '{"pauseScavenge":true}'],
      ['/users', '{}'],
      ['/users/kim/command/reset-password', '{"newPassword":"x"}'],
      ['/streams/x', '[]'],
      [`/streams/x/incoming/${newId()}`, '{}'],
      ['/streams/x/metadata', '{}'],
    ] as const) {
      for (const headers of [{ 'content-type': type }, {}] as Record<string, string>[])
        expect([path, (await send('POST', path, { ...ADMIN, ...headers }, body)).status]).toEqual([path, 415]);
    }
  });

  test('no reply lets other origins in unless an option names them', async () => {
    for (const isSecure of [true, false]) {
      const to = await serve({}, isSecure);
      for (const [method, path] of [
        ['GET', '/streams/$all'],
        ['OPTIONS', '/streams/x'],
        ['GET', '/info'],
        ['GET', '/streams/never'],
      ] as const) {
        const { headers } = await send(
          method,
          path,
          { ...(method === 'GET' && ADMIN), origin: FOREIGN, 'access-control-request-method': 'POST' },
          '',
          to,
        );
        expect([headers['access-control-allow-origin'], headers['access-control-allow-credentials']]).toEqual([
          undefined,
          undefined,
        ]);
      }
      await to.stop(100);
    }
  });

  test('named origins may read and write, with credentials, and no other; replies vary by them', async () => {
    const to = await serve({ corsOrigins: [FOREIGN] });
    const preflight = await send(
      'OPTIONS',
      '/streams/x',
      {
        origin: FOREIGN,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,authorization',
      },
      '',
      to,
    );
    expect(preflight.status).toBe(200);
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': FOREIGN,
      'access-control-allow-credentials': 'true',
      'access-control-max-age': '600',
      'access-control-allow-methods': 'POST, DELETE, GET, OPTIONS',
    });
    expect(preflight.headers['vary']).toContain('Origin');
    const written = await send(
      'POST',
      '/streams/x',
      { ...ADMIN, origin: FOREIGN, 'sec-fetch-site': 'cross-site', 'content-type': EVENTS },
      batchOf('made', {}),
      to,
    );
    expect([
      written.status,
      written.headers['access-control-allow-origin'],
      written.headers['access-control-expose-headers'],
    ]).toEqual([201, FOREIGN, expect.stringContaining('Location')]);
    const failed = await send('GET', '/streams/never', { ...ADMIN, origin: FOREIGN }, '', to);
    expect([failed.status, failed.headers['access-control-allow-origin']]).toEqual([404, FOREIGN]);
    const other = await send('GET', '/streams/x', { ...ADMIN, origin: 'https://other.test' }, '', to);
    expect([other.status, other.headers['access-control-allow-origin']]).toEqual([200, undefined]);
    expect(other.headers['vary']).toContain('Origin');
    expect((await send('DELETE', '/streams/x', { ...ADMIN, origin: 'https://other.test' }, '', to)).status).toBe(403);
    await to.stop(100);
  });

  test('* lets every page read, without credentials, and none write', async () => {
    const to = await serve({ corsOrigins: ['*'] });
    const read = await send('GET', '/streams/$all', { ...ADMIN, origin: FOREIGN }, '', to);
    expect([read.headers['access-control-allow-origin'], read.headers['access-control-allow-credentials']]).toEqual([
      '*',
      undefined,
    ]);
    expect((await send('DELETE', '/streams/x', { ...ADMIN, origin: FOREIGN }, '', to)).status).toBe(403);
    await to.stop(100);
  });
});

describe('what browsers keep and show', () => {
  test('events are kept by no shared cache, and not for long once they may be erased', async () => {
    for (let i = 0; i < 3; i++) await append('x');
    const paths = [
      '/streams/x',
      '/streams/x/0',
      '/streams/x/head',
      '/streams/x/0/forward/2',
      '/streams/x/1/backward/2',
      '/streams/x/head/backward/2',
      '/streams/$all',
      `/streams/$all/${'0'.repeat(32)}/forward/2`,
      '/streams/x/metadata',
    ];
    for (const path of paths) {
      for (const accept of path.includes('/x/0') && !path.includes('forward')
        ? ['application/json', 'application/octet-stream']
        : ['application/json']) {
        const { status, headers } = await send('GET', path, { ...ADMIN, accept });
        expect([path, status]).toEqual([path, 200]);
        expect(headers['cache-control']).toMatch(/(^|, )private(,|$)/);
        expect(Number(/max-age=(\d+)/.exec(headers['cache-control']!)![1])).toBeLessThanOrEqual(60);
        for (const name of ['Accept', 'Accept-Encoding', 'Authorization', 'ES-ResolveLinkTos'])
          expect(headers['vary']!.split(', ')).toContain(name);
      }
    }
    const lines = await send('GET', '/streams/x', { ...ADMIN, accept: 'application/x-ndjson' });
    expect([lines.headers['cache-control'], lines.headers['vary']]).toEqual([
      expect.stringContaining('private'),
      expect.stringContaining('Authorization'),
    ]);
  });

  test('no reply is guessed at', async () => {
    await append('x');
    for (const [method, path, headers] of [
      ['GET', '/', {}],
      ['GET', '/health/live', {}],
      ['GET', '/health/ready', {}],
      ['GET', '/streams/x', ADMIN],
      ['GET', '/streams/x', {}],
      ['GET', '/nothing', ADMIN],
      ['OPTIONS', '/streams/x', {}],
      ['PUT', '/streams/x', ADMIN],
      ['GET', '/openapi.json', {}],
      ['GET', '/metrics', ADMIN],
      ['GET', '/users', ADMIN],
      ['POST', '/streams/x', { ...ADMIN, 'content-type': 'text/html' }],
      ['GET', `/admin/backup/files/chunk-000000.000000?hold=${HOLD_ID}`, ADMIN],
      ['POST', '/webhook/none', {}],
      ['GET', '/connectors', OPS],
    ] as const) {
      const answer = await send(method, path, headers as Record<string, string>);
      expect([method, path, answer.headers['x-content-type-options']]).toEqual([method, path, 'nosniff']);
      expect(answer.headers['content-type'] ?? '').not.toContain('text/html');
    }
  });

  test.each([
    ['curl', {}, 'Basic'],
    ['a program', { 'user-agent': 'curl/8.5.0', accept: '*/*' }, 'Basic'],
    [
      'an address that is typed',
      { 'sec-fetch-mode': 'navigate', 'user-agent': 'Mozilla/5.0', accept: 'text/html,*/*' },
      'Basic',
    ],
    ['an address over plain HTTP', { 'user-agent': 'Mozilla/5.0', accept: 'text/html,*/*;q=0.8' }, 'Basic'],
    ['a fetch', { 'sec-fetch-mode': 'cors' }, 'X-Basic'],
    ['a fetch over plain HTTP', { 'user-agent': 'Mozilla/5.0', accept: '*/*', 'accept-language': 'nb' }, 'X-Basic'],
    ['a shell that borrows the name', { 'user-agent': 'Mozilla/5.0 (Windows NT)' }, 'Basic'],
    ['an old library', { 'x-requested-with': 'XMLHttpRequest' }, 'X-Basic'],
    ['a frame', { 'sec-fetch-mode': 'no-cors' }, 'X-Basic'],
  ])('%s without a login is challenged so that a password box opens where it should', async (_, headers, scheme) => {
    for (const credentials of [{}, { authorization: basic('kim', 'wrong') }]) {
      const { status, headers: got } = await send('GET', '/streams/x', {
        ...(headers as Record<string, string>),
        ...credentials,
      } as Record<string, string>);
      expect([status, got['www-authenticate']]).toEqual([401, `${scheme} realm="Skua", charset="UTF-8"`]);
    }
  });
});
