import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { CREDENTIALS_LENGTH_MAX, credentialsOf } from '../../handlers/authentication.ts';
import { AS, basic, LogLines, secured } from './secured.ts';
import { harness } from './harness.ts';

const CHALLENGE = 'Basic realm="Skua", charset="UTF-8"';
/** Needs a user, and says which one in its reply. */
const WHO = '/users/$current';

function base64(text: string | Uint8Array): string {
  return Buffer.from(text as string).toString('base64');
}

async function nameSeen(
  headers: Record<string, string>,
  context: Parameters<typeof secured>[0] = {},
): Promise<unknown> {
  const h = secured(context);
  const reply = await h.get(WHO, undefined, headers);
  return reply.status === 200 ? reply.json().data.loginName : reply.status;
}

describe('Basic credentials', () => {
  test.each([
    ['a name and a password', 'Basic a2ltOnBhc3M=', { name: 'kim', password: 'pass' }],
    ['an empty password', 'Basic a2ltOg==', { name: 'kim', password: '' }],
    ['an empty name', 'Basic OnBhc3M=', { name: '', password: 'pass' }],
    ['colons in the password', `Basic ${base64('kim:a:b:')}`, { name: 'kim', password: 'a:b:' }],
    ['letters beyond ASCII', `Basic ${base64('zoë:pässwörd✓')}`, { name: 'zoë', password: 'pässwörd✓' }],
    ['several blanks behind the scheme', 'Basic   a2ltOnBhc3M=', { name: 'kim', password: 'pass' }],
    [
      'a byte order mark, which is a part of the name',
      `Basic ${base64('\uFEFFkim:p')}`,
      { name: '\uFEFFkim', password: 'p' },
    ],
    [
      'bytes that are no UTF-8',
      `Basic ${base64(Uint8Array.from([0x6b, 0xff, 0x3a, 0x70]))}`,
      { name: 'k\uFFFD', password: 'p' },
    ],
    ['a NUL', `Basic ${base64('k\0:p')}`, { name: 'k\0', password: 'p' }],
  ])('%s', (_what, header, expected) => {
    expect(credentialsOf(header)).toEqual(expected);
  });

  test.each([
    ['another scheme', 'Bearer a2ltOnBhc3M='],
    ['the scheme in lower case', 'basic a2ltOnBhc3M='],
    ['a scheme that begins alike', 'BasicX a2ltOnBhc3M='],
    ['no colon', `Basic ${base64('kim')}`],
    ['two headers', 'Basic a2ltOnBhc3M=, Basic a2ltOnBhc3M='],
    ['two headers of other schemes', 'Basic a2ltOnBhc3M=, Bearer x'],
  ])('%s makes the caller anonymous', async (_what, authorization) => {
    expect(credentialsOf(authorization)).toBeNull();
    const h = secured();
    expect((await h.get('/', undefined, { authorization })).status).toBe(200);
    expect((await h.get(WHO, undefined, { authorization })).status).toBe(401);
    expect(h.security.logins).toEqual([]);
  });

  test.each([
    ['nothing', 'Basic'],
    ['blanks only', 'Basic    '],
    ['no Base64', 'Basic %%%%'],
    ['the alphabet of URLs', 'Basic a2l_a2l-'],
    ['no padding', 'Basic a2ltOnBhc3M'],
    ['padding in the middle', 'Basic a2lt=nBhc3M='],
    ['padding only', 'Basic ===='],
    ['too much padding', 'Basic a2ltO==='],
    ['blanks inside', 'Basic a2lt OnBhc3M='],
    ['more than the limit', `Basic ${'QUFB'.repeat(CREDENTIALS_LENGTH_MAX / 4)}`],
  ])('%s behind the scheme is 401', async (_what, authorization) => {
    const h = secured();
    const reply = await h.get('/', undefined, { authorization });
    expect(reply).toMatchObject({ status: 401, reason: 'Unauthorized' });
    expect(reply.headers.get('www-authenticate')).toBe(CHALLENGE);
    expect(reply.json()).toMatchObject({ code: 'not_authenticated', title: 'Unauthorized' });
    expect(reply.text).not.toContain('QUFB');
    expect(h.security.logins).toEqual([]);
  });

  test.each([false, true])('are verified (later: %s)', async (pending) => {
    const h = secured();
    h.security.pending = pending;
    expect((await h.get(WHO, undefined, AS.plain)).json().data.loginName).toBe('kim');
    expect(h.security.logins).toEqual([{ name: 'kim', password: 'kim:pass', address: null }]);
    for (const authorization of [
      basic('kim', 'other'),
      basic('KIM', 'kim:pass'),
      basic('nobody', 'x'),
      basic('kim', ''),
    ]) {
      const reply = await h.get('/', undefined, { authorization });
      expect(reply).toMatchObject({ status: 401, reason: 'Unauthorized' });
      expect(reply.headers.get('www-authenticate')).toBe(CHALLENGE);
      expect(reply.headers.get('access-control-allow-methods')).toBeNull();
    }
  });

  test.each(['/', '/nothing/here', '/streams/s', '/streams/$all', '/users/', '/streams/s/0/'])(
    'that are wrong are refused on %s',
    async (path) => {
      const h = secured();
      for (const method of ['GET', 'POST', 'OPTIONS', 'PUT']) {
        const reply = await h.send(method, path, AS.wrong);
        expect(reply.status).toBe(401);
        expect(reply.headers.get('www-authenticate')).toBe(CHALLENGE);
      }
    },
  );
});

describe('states of the authenticator', () => {
  test('too many failures are 429 with the time to wait', async () => {
    const h = secured();
    for (let i = 0; i < 10; i++) expect((await h.get('/', undefined, AS.wrong)).status).toBe(401);
    const reply = await h.get('/', undefined, AS.plain);
    expect(reply).toMatchObject({ status: 429, reason: 'Too Many Requests' });
    expect(reply.headers.get('retry-after')).toBe('42');
    expect(reply.json().code).toBe('too_many_failures');
  });

  test("users that can't be read yet are 503", async () => {
    const h = secured();
    h.security.loginError = new SkuaError('not_ready', 'The users are not readable yet. Try again.');
    const reply = await h.get('/', undefined, AS.plain);
    expect(reply).toMatchObject({ status: 503, reason: 'Server Is Not Ready' });
    expect(reply.headers.get('retry-after')).toBe('5');
  });

  test('the address of the caller is handed on', async () => {
    const h = secured({ addressOf: () => '192.0.2.7' });
    await h.get('/', undefined, AS.plain);
    expect(h.security.logins[0]!.address).toBe('192.0.2.7');
  });
});

describe('probes', () => {
  test('are answered before credentials are looked at', async () => {
    for (const headers of [AS.wrong, { authorization: 'Basic %' }, AS.anonymous]) {
      const h = secured();
      expect((await h.get('/health/live', undefined, headers)).status).toBe(204);
      expect((await h.get('/health/ready', undefined, headers)).status).not.toBe(401);
      expect(h.security.logins).toEqual([]);
    }
  });

  test('are exactly two paths', async () => {
    const h = secured();
    for (const path of ['/health/live/', '/health/other', '/health'])
      expect((await h.get(path, undefined, AS.wrong)).status).toBe(401);
  });
});

test('OPTIONS on a known path needs no user', async () => {
  const h = secured();
  for (const path of ['/streams/s', '/users', '/admin/scavenge', '/streams/$all'])
    expect((await h.send('OPTIONS', path)).status).toBe(200);
});

test('with security off, credentials are ignored, whatever they are', async () => {
  for (const headers of [
    AS.wrong,
    { authorization: 'Basic %%%' },
    { authorization: 'Basic' },
    { 'es-trustedauth': ';;;' },
  ]) {
    expect(
      (
        await harness({ isTrustedProxy: () => true, options: { trustedAuthHeader: 'ES-TrustedAuth' } }).get(
          '/',
          undefined,
          headers,
        )
      ).status,
    ).toBe(200);
  }
});

describe('the connection', () => {
  const peer = { name: 'kim', roles: [] };

  test('may prove who the caller is', async () => {
    expect(await nameSeen({}, { peerOf: () => peer })).toBe('kim');
    expect(await nameSeen({}, { peerOf: () => null })).toBe(401);
  });

  test('is not asked where there are credentials', async () => {
    expect(await nameSeen(AS.admin, { peerOf: () => peer })).toBe('ada');
    expect(await nameSeen(AS.wrong, { peerOf: () => peer })).toBe(401);
  });

  test('wins over the trusted header', async () => {
    expect(
      await nameSeen(
        { 'es-trustedauth': 'ada; $admins' },
        { peerOf: () => peer, isTrustedProxy: () => true, options: { trustedAuthHeader: 'ES-TrustedAuth' } },
      ),
    ).toBe('kim');
  });
});

describe('the trusted header', () => {
  const options = { trustedAuthHeader: 'ES-TrustedAuth' };
  const ECHO = { isTrustedProxy: () => true, options };

  test.each([
    ['kim', 'kim'],
    ['  kim  ;', 'kim'],
    ['kim; a, b', 'kim'],
    ['ada;$admins', 'ada'],
  ])('%s', async (value, name) => {
    expect(await nameSeen({ 'es-trustedauth': value }, ECHO)).toBe(name);
    expect(await nameSeen({ 'x-caller': value }, { ...ECHO, options: { trustedAuthHeader: 'X-Caller' } })).toBe(name);
  });

  test('gives the groups, and the user need not exist', async () => {
    const h = secured(ECHO);
    expect((await h.get('/users', undefined, { 'es-trustedauth': 'stranger; x , $admins,' })).status).toBe(200);
    expect((await h.get('/users', undefined, { 'es-trustedauth': 'stranger; x' })).status).toBe(403);
    expect((await h.get('/users', undefined, { 'es-trustedauth': 'kim $admins' })).status).toBe(403);
  });

  test.each(['', ';', ' ; $admins', 'kim; a; b', 'kim, ada; $admins', 'kim; a, kim; a', `kim;${'g'.repeat(9_000)}`])(
    'is refused as "%s"',
    async (value) => {
      const h = secured(ECHO);
      const reply = await h.get('/', undefined, { 'es-trustedauth': value });
      expect(reply.status).toBe(401);
      expect(reply.json().code).toBe('not_authenticated');
    },
  );

  test('has the name that was configured, and no other', async () => {
    expect(await nameSeen({ 'kurrent-trustedauth': 'ada; $admins' }, ECHO)).toBe(401);
    expect(await nameSeen({ 'es-trustedauth': 'kim', 'kurrent-trustedauth': 'ada; $admins' }, ECHO)).toBe('kim');
    expect(
      await nameSeen(
        { 'es-trustedauth': 'ada; $admins' },
        { ...ECHO, options: { trustedAuthHeader: 'Kurrent-TrustedAuth' } },
      ),
    ).toBe(401);
    expect((await secured(ECHO).get('/', undefined, { 'kurrent-trustedauth': ';;;' })).status).toBe(200);
  });

  test('is believed from trusted proxies only, and from nobody where none are known', async () => {
    for (const isTrustedProxy of [() => false, undefined]) {
      expect(
        await nameSeen({ 'es-trustedauth': 'ada; $admins' }, { options, ...(isTrustedProxy && { isTrustedProxy }) }),
      ).toBe(401);
      expect(
        (
          await secured({ options, ...(isTrustedProxy && { isTrustedProxy }) }).get('/', undefined, {
            'es-trustedauth': ';;;',
          })
        ).status,
      ).toBe(200);
    }
  });

  test("is refused when it came twice: the second may be the client's, and would look like more groups", async () => {
    const twice = {
      ...ECHO,
      rawHeadersOf: () => ['Host', 'x', 'ES-TrustedAuth', 'kim; a', 'es-trustedauth', '$admins'],
    };
    expect(await nameSeen({ 'es-trustedauth': 'kim; a, $admins' }, twice)).toBe(401);
    expect(
      await nameSeen(
        { 'es-trustedauth': 'kim; a' },
        { ...ECHO, rawHeadersOf: () => ['Host', 'x', 'es-trustedauth', 'kim; a'] },
      ),
    ).toBe('kim');
  });

  test('means nothing without the option, or beside credentials', async () => {
    expect(await nameSeen({ 'es-trustedauth': 'ada; $admins' })).toBe(401);
    expect((await secured().get('/', undefined, { 'es-trustedauth': ';;;' })).status).toBe(200);
    expect(await nameSeen({ ...AS.plain, 'es-trustedauth': 'ada; $admins' }, ECHO)).toBe('kim');
    expect(await nameSeen({ ...AS.wrong, 'es-trustedauth': 'ada; $admins' }, ECHO)).toBe(401);
  });
});

describe('the log of failures', () => {
  test.each([false, true])(
    'has one line with user and address, and never the password (later: %s)',
    async (pending) => {
      const log = new LogLines();
      const h = secured({ log, addressOf: () => '192.0.2.7', options: { logFailedAuthenticationAttempts: true } });
      h.security.pending = pending;
      await h.get('/', undefined, AS.wrong);
      await h.get('/', undefined, AS.plain);
      expect(log.lines).toEqual([
        {
          level: 'warn',
          message: 'authentication failed',
          fields: { user: 'kim', address: '192.0.2.7', reason: 'not_authenticated' },
        },
      ]);
      expect(JSON.stringify(log.lines)).not.toContain('wr0ng-secret');
    },
  );

  test('cuts long names, at whole characters', async () => {
    const log = new LogLines();
    const h = secured({ log, options: { logFailedAuthenticationAttempts: true } });
    await h.get('/', undefined, { authorization: basic(`x${'😀'.repeat(500)}`, 'secret') });
    const user = String(log.lines[0]!.fields['user']);
    expect([user.length, user.isWellFormed()]).toEqual([64, true]);
  });

  test('is off by default', async () => {
    const log = new LogLines();
    await secured({ log }).get('/', undefined, AS.wrong);
    expect(log.lines).toEqual([]);
  });
});

describe('names that want to be something else', () => {
  test.each([
    '../admin',
    '..',
    'a/b',
    '%2e%2e',
    'a\0b',
    '$all',
    '$$$',
    '',
    'x'.repeat(2_000),
    '__proto__',
    '\u202Eada',
  ])('%j is just unknown', async (name) => {
    const h = secured();
    expect((await h.get('/streams/s', undefined, { authorization: basic(name, 'x') })).status).toBe(401);
  });
});

describe('credentials that come again over one connection', () => {
  const connection = {};
  const again = (other: object = connection) =>
    secured({ connectionOf: (request) => (request.headers.has('x-other') ? other : connection) });

  test('are not verified anew while the login is known', async () => {
    const h = again();
    await h.get('/streams/s', undefined, AS.plain);
    expect(h.security.logins).toHaveLength(1);
    await h.get('/streams/s', undefined, AS.plain);
    expect(h.security.logins).toHaveLength(2);
    h.security.knows = true;
    await h.get('/streams/s', undefined, AS.plain);
    expect(h.security.logins).toHaveLength(2);
  });

  test('are verified when they are others, or come over another connection', async () => {
    const h = again({});
    h.security.knows = true;
    await h.get('/streams/s', undefined, AS.plain);
    await h.get('/streams/s', undefined, AS.plain);
    expect(h.security.logins.map(({ name }) => name)).toEqual(['kim']);
    expect((await h.get('/users/kim', undefined, AS.wrong)).status).toBe(401);
    await h.get('/streams/s', undefined, AS.ops);
    await h.get('/streams/s', undefined, { ...AS.ops, 'x-other': '1' });
    expect(h.security.logins.map(({ name }) => name)).toEqual(['kim', 'kim', 'olga', 'olga']);
    expect((await h.get('/streams/%24all', undefined, AS.plain)).status).toBe(403);
  });

  test('are verified when they come from another client of the same proxy', async () => {
    const h = secured({ connectionOf: () => connection, addressOf: (request) => request.headers.get('x-from') });
    h.security.knows = true;
    for (const from of ['a', 'a', 'b', 'b', 'a']) await h.get('/streams/s', undefined, { ...AS.plain, 'x-from': from });
    expect(h.security.logins.map(({ address }) => address)).toEqual(['a', 'b', 'a']);
  });

  test('are verified anew after ten others came over it, which may be guesses', async () => {
    const h = again();
    h.security.knows = true;
    for (let i = 0; i < 9; i++) {
      await h.get('/streams/s', undefined, AS.plain);
      await h.get('/streams/s', undefined, { authorization: basic('kim', `guess${i}`) });
    }
    await h.get('/streams/s', undefined, AS.plain);
    expect(h.security.logins).toHaveLength(10);
    await h.get('/streams/s', undefined, { authorization: basic('nobody', 'x') });
    await h.get('/streams/s', undefined, AS.plain);
    expect(h.security.logins).toHaveLength(12);
  });
});
