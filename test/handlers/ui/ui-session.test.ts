import { describe, expect, test, vi } from 'vitest';
import type { AuditEntry } from '../../../core/ports/audit.ts';
import { ownEntry } from '../../../core/ports/audit.ts';
import { ARRIVING_LOGINS_MAX } from '../../../handlers/ui/ui-session.ts';
import { fakePage } from '../../support/fake-page.ts';
import { FAKE_FAILURES_MAX } from '../../support/fake-security.ts';
import type { FlatContext } from '../../support/app-context.ts';
import { harness } from '../harness.ts';
import { AS, basic, secured } from '../secured.ts';

const PATH = '/ui/session';
const JSON_TYPE = { 'content-type': 'application/json' };
/** What the page sends along. */
const OURS = { 'x-requested-with': 'skua' };
const SECURE = { 'x-forwarded-proto': 'https' };

function world(context: Partial<FlatContext> = {}) {
  const entries: AuditEntry[] = [];
  const h = secured({
    page: fakePage(),
    audit: {
      record: (entry) => {
        entries.push(entry);
      },
    },
    addressOf: () => '192.0.2.7',
    ...context,
  });
  const logIn = (user = 'kim', password = 'kim:pass', headers: Record<string, string> = OURS) =>
    h.send('POST', PATH, { ...JSON_TYPE, ...headers }, JSON.stringify({ user, password }));
  /** `Cookie` of a session that has begun. */
  const cookie = async (user?: string, password?: string, headers?: Record<string, string>) => ({
    cookie: (await logIn(user, password, headers)).headers.get('set-cookie')!.split(';')[0]!,
  });
  return { ...h, entries, logIn, cookie };
}

describe('a login', () => {
  test('whose body does not arrive takes one of a few places of its address, and none of others', async () => {
    let address = '192.0.2.7';
    const bodies: ((body: Uint8Array) => void)[] = [];
    const h = world({
      addressOf: () => address,
      readBody: () =>
        new Promise((resolve) => {
          bodies.push(resolve);
        }),
    });
    const unfinished = Array.from({ length: ARRIVING_LOGINS_MAX }, () => h.logIn());
    await vi.waitFor(() => expect(bodies).toHaveLength(ARRIVING_LOGINS_MAX));
    expect(await h.logIn()).toMatchObject({ status: 503 });
    const body = new TextEncoder().encode('{"user":"kim","password":"kim:pass"}');
    address = '192.0.2.8';
    const other = h.logIn();
    await vi.waitFor(() => expect(bodies).toHaveLength(ARRIVING_LOGINS_MAX + 1));
    bodies[ARRIVING_LOGINS_MAX]!(body);
    expect((await other).status).toBe(200);
    bodies[0]!(body);
    expect((await unfinished[0]!).status).toBe(200);
    address = '192.0.2.7';
    void h.logIn();
    await vi.waitFor(() => expect(bodies).toHaveLength(ARRIVING_LOGINS_MAX + 2));
  });

  test('gives a cookie that scripts, other hosts and other sites do not get', async () => {
    const h = world();
    const reply = await h.logIn('olga', 'olga-pass');
    expect([reply.status, reply.headers.get('set-cookie'), reply.headers.get('cache-control')]).toEqual([
      200,
      expect.stringMatching(/^skua-session=[\w.-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/),
      'no-store',
    ]);
    expect(reply.json()).toEqual({
      user: 'olga',
      groups: ['$ops'],
      endsAt: '2031-04-03T00:00:00Z',
      security: true,
      insecure: false,
      canLogOut: true,
      encrypted: false,
      changesNeed: 'X-Requested-With',
      isOperator: true,
      isAdministrator: false,
      isBackupKeeper: false,
    });
  });

  test('over TLS its name and attributes keep it there', async () => {
    const h = world();
    expect((await h.logIn('kim', 'kim:pass', { ...OURS, ...SECURE })).headers.get('set-cookie')).toMatch(
      /^__Host-skua-session=[\w.-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
    );
    const response = await h.app(
      new Request(`https://node.example.test${PATH}`, {
        method: 'POST',
        headers: { ...JSON_TYPE, ...OURS },
        body: '{"user":"kim","password":"kim:pass"}',
      }),
    );
    expect([response.headers.get('set-cookie'), await response.json()]).toMatchObject([
      expect.stringMatching(/^__Host-.*; Secure$/),
      { encrypted: true },
    ]);
    // A cookie that came over plain HTTP is not believed there.
    const cookie = await h.cookie('olga', 'olga-pass');
    expect((await h.send('GET', PATH, { ...cookie, ...SECURE })).json().user).toBeNull();
  });

  test('that fails counts as every other, and opens no password box', async () => {
    const h = world();
    for (let i = 0; i < FAKE_FAILURES_MAX; i++) {
      const reply = await h.logIn('kim', 'wrong');
      expect([reply.status, reply.headers.get('www-authenticate'), reply.headers.get('set-cookie')]).toEqual([
        401,
        'X-Basic realm="Skua", charset="UTF-8"',
        null,
      ]);
    }
    const reply = await h.logIn();
    expect([reply.status, reply.json().code, reply.headers.get('retry-after')]).toEqual([
      429,
      'too_many_failures',
      '42',
    ]);
    expect((await h.send('GET', '/users/kim', AS.plain)).status).toBe(429);
  });

  test.each([
    ['{"user":"kim"}', 400],
    ['{"user":1,"password":"x"}', 400],
    ['[]', 400],
    ['null', 400],
    ['{', 400],
    [`{"user":"${'x'.repeat(20_000)}","password":"y"}`, 413],
  ])('of %.30j is none', async (body, status) => {
    const h = world();
    expect((await h.send('POST', PATH, { ...JSON_TYPE, ...OURS }, body)).status).toBe(status);
    expect((await h.send('POST', PATH, { 'content-type': 'text/plain', ...OURS }, body)).status).toBe(415);
    expect([h.security.logins, h.entries]).toEqual([[], []]);
  });

  test.each<Record<string, string>>([
    { origin: 'https://elsewhere.test' },
    { origin: 'http://127.0.0.1:9999', 'sec-fetch-site': 'same-site' },
    { origin: 'http://127.0.0.1:9999' },
  ])('is not made by a page from %j', async (headers) => {
    const h = world();
    expect([(await h.logIn('kim', 'kim:pass', { ...OURS, ...headers })).json().code, h.security.logins]).toEqual([
      'foreign_origin',
      [],
    ]);
  });
});

describe('a session', () => {
  test('is the caller, with the rights of the user', async () => {
    const h = world();
    const [kim, ada] = [await h.cookie(), await h.cookie('ada', 'ada-pass')];
    expect((await h.send('GET', '/users', kim)).status).toBe(403);
    const users = await h.send('GET', '/users', ada);
    expect([users.status, users.headers.get('vary')]).toEqual([200, expect.stringContaining('Cookie')]);
    expect((await h.send('GET', PATH, { cookie: `a=b; ${kim.cookie}; c=d` })).json()).toMatchObject({
      user: 'kim',
      isOperator: false,
    });
    // Credentials win.
    expect((await h.send('GET', PATH, { ...kim, ...AS.ops })).json()).toMatchObject({
      user: 'olga',
      endsAt: null,
      canLogOut: false,
    });
    expect((await h.send('GET', '/users', { ...ada, authorization: basic('kim', 'wrong') })).status).toBe(401);
  });

  test('wins over whom the connection proves', async () => {
    const h = world({ peerOf: () => ({ name: 'system', roles: ['$admins'] }) });
    expect((await h.send('GET', '/users', await h.cookie())).status).toBe(403);
  });

  test.each<[string, Record<string, string>, number, number]>([
    ['our own page', { 'sec-fetch-site': 'same-origin' }, 200, 200],
    ['an address that somebody types', { 'sec-fetch-site': 'none' }, 200, 200],
    ['a program at another port of the host', { 'sec-fetch-site': 'same-site' }, 401, 403],
    ['another site', { 'sec-fetch-site': 'cross-site' }, 401, 403],
    [
      'a page at another port that puts on our header',
      { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:9999', ...OURS },
      401,
      403,
    ],
    ['our own page, over plain HTTP', { origin: 'http://127.0.0.1:2113' }, 200, 200],
    ['our own page, over plain HTTP, without an origin', OURS, 200, 200],
    ['another port, over plain HTTP', { origin: 'http://127.0.0.1:9999', ...OURS }, 401, 403],
    ['a sandbox', { origin: 'null', ...OURS }, 401, 403],
    ['who knows, over plain HTTP', {}, 200, 401],
  ])('counts from %s as it should', async (_, headers, read, change) => {
    const h = world();
    const cookie = await h.cookie('ada', 'ada-pass');
    expect([
      (await h.send('GET', '/users', { ...cookie, ...headers })).status,
      (await h.send('POST', '/users/kim/command/enable', { ...cookie, ...headers })).status,
    ]).toEqual([read, change]);
  });

  test('does not go with the pages of origins that an operator has named', async () => {
    const h = world({ options: { corsOrigins: ['http://127.0.0.1:9999'] } });
    const cookie = await h.cookie('ada', 'ada-pass');
    for (const headers of [
      { origin: 'http://127.0.0.1:9999', ...OURS },
      { origin: 'http://127.0.0.1:9999', 'sec-fetch-site': 'same-site' },
    ] as Record<string, string>[]) {
      expect((await h.send('POST', '/users/kim/command/enable', { ...cookie, ...headers })).status).toBe(401);
      expect((await h.send('POST', '/users/kim/command/enable', { ...AS.admin, ...headers })).status).toBe(200);
      expect((await h.send('GET', '/users', { ...cookie, ...headers })).status).toBe(401);
    }
  });

  test('is neither begun nor ended by the pages of such origins, whose cookie would take its place', async () => {
    const h = world({ options: { corsOrigins: ['http://127.0.0.1:9999'] } });
    const { cookie } = await h.cookie('ada', 'ada-pass');
    const [logins, entries] = [h.security.logins.length, h.entries.length];
    for (const headers of [
      { origin: 'http://127.0.0.1:9999', ...OURS },
      { origin: 'http://127.0.0.1:9999', 'sec-fetch-site': 'same-site' },
    ] as Record<string, string>[]) {
      for (const reply of [
        await h.logIn('kim', 'kim:pass', { cookie, ...headers }),
        await h.send('DELETE', PATH, { cookie, ...headers }),
      ]) {
        expect([reply.status, reply.json().code, reply.headers.get('set-cookie')]).toEqual([
          403,
          'foreign_origin',
          null,
        ]);
      }
    }
    expect([h.security.logins.length, h.entries.length]).toEqual([logins, entries]);
    expect((await h.send('GET', '/users', { cookie })).status).toBe(200);
  });

  test('that is none is forgotten by the browser once our own page asks who is there', async () => {
    const h = world();
    const reply = await h.send('GET', PATH, { cookie: 'skua-session=1.forged.value' });
    expect([reply.json().user, reply.headers.get('set-cookie')]).toEqual([
      null,
      'skua-session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict',
    ]);
    expect(
      (await h.send('GET', PATH, { cookie: 'skua-session=1.forged.value', 'sec-fetch-site': 'same-site' })).headers.get(
        'set-cookie',
      ),
    ).toBeNull();
    expect((await h.send('GET', PATH)).headers.get('set-cookie')).toBeNull();
    expect((await h.send('GET', '/users', { cookie: 'skua-session=1.forged.value' })).status).toBe(401);
  });

  test('is found among cookies of the same name that another program of the host has set', async () => {
    const h = world();
    const { cookie } = await h.cookie();
    expect((await h.send('GET', PATH, { cookie: `skua-session=1.other.value; ${cookie}` })).json().user).toBe('kim');
  });
});

describe('a logout', () => {
  test('ends the session and has the browser forget it', async () => {
    const h = world();
    const cookie = await h.cookie();
    const reply = await h.send('DELETE', PATH, { ...cookie, ...OURS });
    expect([reply.status, reply.text, reply.headers.get('set-cookie')]).toEqual([
      204,
      '',
      'skua-session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict',
    ]);
    expect((await h.send('GET', PATH, cookie)).json().user).toBeNull();
    expect((await h.send('DELETE', PATH, OURS)).status).toBe(204);
  });

  test('is not made by others', async () => {
    const h = world();
    const cookie = await h.cookie();
    expect(
      (await h.send('DELETE', PATH, { ...cookie, 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:9999' }))
        .status,
    ).toBe(403);
    await h.send('DELETE', PATH, cookie);
    expect((await h.send('GET', PATH, cookie)).json().user).toBe('kim');
  });
});

describe('the audit', () => {
  test('is told of logins once in a while, of refused ones with the name that was tried, and of logouts', async () => {
    const h = world();
    const cookie = await h.cookie();
    await h.cookie();
    await h.send('GET', '/users', cookie);
    for (let i = 0; i < 3; i++) await h.logIn('olga', 'wrong');
    await h.send('DELETE', PATH, { ...cookie, ...OURS });
    await h.send('DELETE', PATH, OURS);
    const address = '192.0.2.7';
    expect(h.entries).toEqual([
      ownEntry('login', { user: 'kim', address, details: { by: 'page' } }),
      ownEntry('login', { outcome: 'refused', status: 401, code: 'not_authenticated', user: 'olga', address }),
      ownEntry('logout', { user: 'kim', address, status: 204 }),
    ]);
  });
});

describe('without security', () => {
  test('nobody logs in, and /ui/session says so', async () => {
    const h = harness({ page: fakePage() });
    expect((await h.get(PATH)).json()).toMatchObject({
      user: null,
      security: false,
      insecure: true,
      canLogOut: false,
      isOperator: true,
      isAdministrator: true,
    });
    expect(
      (await h.send('POST', PATH, { ...JSON_TYPE, ...OURS }, '{"user":"kim","password":"x"}')).json(),
    ).toMatchObject({ code: 'bad_request', detail: expect.stringContaining('without security') });
    expect((await h.send('DELETE', PATH, OURS)).status).toBe(204);
  });

  test('nor is there a session without a page', async () => {
    const h = secured({ page: fakePage(), options: { disableAdminUi: true } });
    for (const method of ['GET', 'POST', 'DELETE']) expect((await h.send(method, PATH, OURS)).status).toBe(404);
  });
});
