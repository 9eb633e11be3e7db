import { describe, expect, test } from 'vitest';
import { USER_BODY_BYTES_MAX } from '../../../handlers/users/user-bodies.ts';
import { loadExchanges } from '../../support/exchanges.ts';
import { fixturePath } from '../../support/fixtures.ts';
import { harness, ORIGIN } from '../harness.ts';
import { AS, basic, LogLines, secured } from '../secured.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const UPDATED = { success: true, error: 'Success', msgTypeId: 259, label: 'Other' };
const SECRET = 's3cret-of-sam';
const NEW_USER = JSON.stringify({ loginName: 'sam', fullName: 'Sam Doe', groups: ['pickers'], password: SECRET });

type Secured = ReturnType<typeof secured>;

function post(
  h: Secured,
  path: string,
  body: string | null,
  headers: Record<string, string> = { ...AS.admin, ...JSON_TYPE },
  method = 'POST',
) {
  return h.send(method, path, headers, body);
}

describe('replies are those of the recording', () => {
  const recorded = loadExchanges(fixturePath('http-exchanges.json')).filter(({ request }) =>
    request.path.startsWith('/users'),
  );
  const ORIGIN_OF_RECORDING = 'https://127.0.0.1:2114';

  function recordedUsers(): Secured {
    const h = secured();
    h.security.entries.clear();
    h.security.add('admin', 'changeit', ['$admins'], { fullName: 'Event Store Administrator' });
    h.security.add('gone', 'x', [], { fullName: 'Was Disabled', isDisabled: true });
    h.security.add('ops', 'changeit', ['$ops'], { fullName: 'Event Store Operations' });
    h.security.add('ouro', 'n3w-Pass', ['accounting'], {
      fullName: 'Ouro Boros',
      updatedMs: Date.UTC(2026, 10, 21, 7, 18, 51, 400),
      updatedTicks: 3654,
    });
    return h;
  }

  test('there are some', () => expect(recorded.length).toBeGreaterThanOrEqual(4));

  test.each(recorded.map((exchange) => [`${exchange.request.method} ${exchange.request.path}`, exchange] as const))(
    '%s',
    async (_name, { request, response }) => {
      const reply = await recordedUsers().app(
        new Request(ORIGIN_OF_RECORDING + request.path, { method: request.method, headers: request.headers }),
      );
      expect(reply.status).toBe(response.status);
      expect(reply.headers.get('access-control-allow-methods')).toBe(response.headers['access-control-allow-methods']);
      expect(reply.headers.get('cache-control')).toBe(response.headers['cache-control'] ?? null);
      if (response.status === 200) {
        expect(reply.headers.get('content-type')).toBe(response.headers['content-type']);
        expect(await reply.text()).toBe(response.body);
      } else expect(await reply.json()).toMatchObject({ success: false, error: JSON.parse(response.body!).error });
    },
  );
});

describe('the life of a user', () => {
  test('created, looked at, changed, kept out, let in, deleted', async () => {
    const h = secured();
    const created = await post(h, '/users', NEW_USER);
    expect(created).toMatchObject({ status: 201, reason: 'Created' });
    expect(created.headers.get('location')).toBe(`${ORIGIN}/users/sam`);
    expect(created.text).toBe(JSON.stringify({ loginName: 'sam', ...UPDATED }, null, 2));
    const details = async () => (await h.get('/users/sam', undefined, AS.admin)).json().data;
    expect(await details()).toMatchObject({
      loginName: 'sam',
      fullName: 'Sam Doe',
      groups: ['pickers'],
      dateLastUpdated: null,
      disabled: false,
    });

    const put = await post(h, '/users/sam', '{"fullName":null}', { ...AS.admin, ...JSON_TYPE }, 'PUT');
    expect([put.status, put.json()]).toEqual([200, { loginName: 'sam', ...UPDATED }]);
    expect(await details()).toMatchObject({ fullName: null, groups: ['pickers'] });
    expect((await post(h, '/users/sam', '{}', { ...AS.admin, ...JSON_TYPE }, 'PUT')).status).toBe(200);
    expect(await details()).toMatchObject({ fullName: null, groups: ['pickers'] });
    expect((await post(h, '/users/sam', '{"groups":null}', { ...AS.admin, ...JSON_TYPE }, 'PUT')).status).toBe(200);
    expect(await details()).toMatchObject({ groups: [] });
    expect((await post(h, '/users/nobody', '{}', { ...AS.admin, ...JSON_TYPE }, 'PUT')).status).toBe(404);

    expect((await post(h, '/users/sam/command/disable', null, AS.admin)).status).toBe(200);
    expect((await details()).links.at(-1)).toEqual({ href: `${ORIGIN}/users/sam/command/enable`, rel: 'enable' });
    expect((await h.get('/', undefined, { authorization: basic('sam', SECRET) })).status).toBe(401);
    expect((await post(h, '/users/sam/command/enable', null, AS.admin)).status).toBe(200);
    expect((await h.get('/', undefined, { authorization: basic('sam', SECRET) })).status).toBe(200);

    expect((await h.send('DELETE', '/users/sam', AS.admin)).json()).toEqual({ loginName: 'sam', ...UPDATED });
    expect((await h.get('/users/sam', undefined, AS.admin)).status).toBe(404);
  });

  test('creating one again succeeds with the same password and groups only', async () => {
    const h = secured();
    for (let i = 0; i < 2; i++) expect((await post(h, '/users', NEW_USER)).status).toBe(201);
    for (const [from, to] of [
      ['"pickers"', '"$admins"'],
      ['"pickers"', ''],
    ] as const)
      expect(await post(h, '/users', NEW_USER.replace(from, to))).toMatchObject({ status: 409 });
    const conflict = await post(h, '/users', NEW_USER.replace(SECRET, 'other'));
    expect(conflict).toMatchObject({ status: 409, reason: 'Conflict' });
    expect(conflict.json()).toMatchObject({ code: 'user_exists', success: false, error: 'Conflict' });
  });

  test('the list may be asked for with a slash at its end', async () => {
    const h = secured();
    expect(
      (await h.get('/users/', undefined, AS.admin)).json().data.map((user: { loginName: string }) => user.loginName),
    ).toEqual(['kim', 'olga', 'ada']);
    expect((await post(h, '/users/', NEW_USER)).status).toBe(201);
    expect((await h.get('/users/kim/', undefined, AS.admin)).status).toBe(404);
  });

  test('names are escaped in links and found however they are escaped', async () => {
    const h = secured();
    const name = 'Zoë/a b?#%\u0000';
    const created = await post(h, '/users', JSON.stringify({ loginName: name, password: 'x' }));
    const location = created.headers.get('location')!;
    expect(location).toBe(`${ORIGIN}/users/Zo%C3%AB%2Fa%20b%3F%23%25%00`);
    expect((await h.get(location.replace(ORIGIN, ''), undefined, AS.admin)).json().data).toMatchObject({
      loginName: name,
      fullName: null,
      groups: [],
    });
  });
});

describe('the caller', () => {
  test.each(['/users/$current', '/users/%24current', '/users/%24%63urrent'])(
    "%s is the caller's own record",
    async (path) => {
      const h = secured();
      const reply = await h.get(path, undefined, AS.plain);
      expect(reply.json()).toEqual({
        data: {
          loginName: 'kim',
          fullName: 'User kim',
          groups: [],
          dateLastUpdated: '1970-01-01T00:00:00+00:00',
          disabled: false,
        },
        success: true,
        error: 'Success',
        msgTypeId: 262,
        label: 'Other',
      });
      expect((await h.get(path)).status).toBe(401);
      for (const method of ['PUT', 'DELETE']) {
        expect((await h.send(method, path, { ...AS.plain, ...JSON_TYPE }, '{}')).status).toBe(403);
        expect((await h.send(method, path, { ...AS.admin, ...JSON_TYPE }, '{}')).status).toBe(404);
      }
    },
  );

  test('may have no record', async () => {
    const reply = await secured({ peerOf: () => ({ name: 'system', roles: ['$admins'] }) }).get('/users/$current');
    expect([reply.status, reply.json().error]).toEqual([404, 'NotFound']);
  });

  test('sees itself and no one else', async () => {
    const h = secured();
    expect((await h.get('/users/kim', undefined, AS.plain)).json().data.loginName).toBe('kim');
    for (const path of ['/users/ada', '/users/KIM', '/users/nobody', '/users/kim%20'])
      expect((await h.get(path, undefined, AS.plain)).status).toBe(403);
    expect((await h.get('/users/kim', undefined, AS.ops)).status).toBe(403);
  });

  test('changes its password, which nobody does for it', async () => {
    const h = secured();
    const change = (headers: Record<string, string>, currentPassword: string) =>
      post(h, '/users/kim/command/change-password', JSON.stringify({ currentPassword, newPassword: 'n3w' }), {
        ...headers,
        ...JSON_TYPE,
      });
    for (const headers of [AS.ops, AS.admin]) expect((await change(headers, 'kim:pass')).status).toBe(403);
    const wrong = await change(AS.plain, 'guess');
    expect(wrong.status).toBe(401);
    expect(wrong.headers.get('www-authenticate')).toBe('Basic realm="Skua", charset="UTF-8"');
    expect(wrong.json()).toMatchObject({ code: 'wrong_password', success: false, error: 'Unauthorized' });
    expect((await change(AS.plain, 'kim:pass')).json()).toEqual({ loginName: 'kim', ...UPDATED });
    expect((await h.get('/', undefined, { authorization: basic('kim', 'n3w') })).status).toBe(200);
  });

  test('resets no password, its own neither', async () => {
    const h = secured();
    const reset = (headers: Record<string, string>) =>
      post(h, '/users/kim/command/reset-password', '{"newPassword":"n3w"}', { ...headers, ...JSON_TYPE });
    for (const headers of [AS.plain, AS.ops]) expect((await reset(headers)).status).toBe(403);
    expect((await reset(AS.admin)).status).toBe(200);
    expect((await h.get('/', undefined, { authorization: basic('kim', 'n3w') })).status).toBe(200);
  });
});

describe('bad requests', () => {
  const BODIES: readonly [string, string][] = [
    ['POST', '/users'],
    ['PUT', '/users/kim'],
    ['POST', '/users/kim/command/reset-password'],
  ];

  test.each(BODIES)('%s %s takes JSON only', async (method, path) => {
    const h = secured();
    for (const type of [
      'text/xml',
      'application/xml',
      'text/plain',
      'application/json; charset=latin1',
      'application/jsonx',
      '',
    ]) {
      const reply = await post(h, path, '{}', { ...AS.admin, 'content-type': type }, method);
      expect([reply.status, reply.json().code]).toEqual([415, 'unsupported_media_type']);
    }
    for (const type of ['APPLICATION/JSON', 'application/json;charset=UTF-8', 'application/json; charset="utf-8"']) {
      expect((await post(h, path, '{', { ...AS.admin, 'content-type': type }, method)).json().code).toBe('bad_json');
    }
    expect((await post(h, path, NEW_USER, { ...AS.admin, ...JSON_TYPE, accept: 'text/xml' }, method)).status).toBe(406);
  });

  test.each(BODIES)('%s %s refuses what is no object', async (method, path) => {
    const log = new LogLines();
    const h = secured({ log });
    for (const body of [
      '',
      '{',
      '[]',
      'null',
      '1',
      '"x"',
      '[{"loginName":"x"}]',
      '{"loginName":"x",}',
      `{"password":"${SECRET}"`,
      '{"a":NaN}',
    ]) {
      const reply = await post(h, path, body, { ...AS.admin, ...JSON_TYPE }, method);
      expect([reply.status, reply.json().code]).toEqual([400, 'bad_json']);
      expect(reply.text).not.toContain(SECRET);
    }
    const notUtf8 = await h.send(
      method,
      path,
      { ...AS.admin, ...JSON_TYPE },
      Uint8Array.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    );
    expect([notUtf8.status, notUtf8.json().code]).toEqual([400, 'bad_json']);
    expect(log.lines).toEqual([]);
  });

  test.each([
    ['/users', '{}', 'loginName'],
    ['/users', '{"loginName":null,"password":"x"}', 'loginName'],
    ['/users', '{"loginName":"x"}', 'password'],
    ['/users', '{"loginName":1,"password":"x"}', 'loginName'],
    ['/users', '{"loginName":["x"],"password":"x"}', 'loginName'],
    ['/users', '{"loginName":"x","password":{}}', 'password'],
    ['/users', '{"loginName":"x","password":"x","fullName":7}', 'fullName'],
    ['/users', '{"loginName":"x","password":"x","groups":"a"}', 'groups'],
    ['/users', '{"loginName":"x","password":"x","groups":[1]}', 'groups'],
    ['/users', '{"loginName":"x","password":"x","groups":{"0":"a"}}', 'groups'],
    ['/users/kim/command/reset-password', '{}', 'newPassword'],
    ['/users/kim/command/reset-password', '{"newPassword":false}', 'newPassword'],
  ])('POST %s %s names the member %s', async (path, body, member) => {
    const h = secured();
    const reply = await post(h, path, body);
    expect([reply.status, reply.json()]).toMatchObject([400, { code: 'invalid_user', success: false }]);
    expect(reply.json().detail).toContain(member);
    expect(h.security.entries.size).toBe(3);
  });

  test('change-password needs both passwords', async () => {
    const h = secured();
    for (const body of [
      '{}',
      '{"currentPassword":"kim:pass"}',
      '{"newPassword":"x"}',
      '{"currentPassword":"kim:pass","newPassword":null}',
    ]) {
      expect((await post(h, '/users/kim/command/change-password', body, { ...AS.plain, ...JSON_TYPE })).status).toBe(
        400,
      );
    }
  });

  test('members are found in any case, and unknown ones mean nothing', async () => {
    const h = secured();
    expect(
      (
        await post(
          h,
          '/users',
          '{"LoginName":"sam","PASSWORD":"x","__proto__":{"groups":["$admins"]},"disabled":true,"roles":["$admins"]}',
        )
      ).status,
    ).toBe(201);
    expect(h.security.entries.get('sam')!.user).toMatchObject({ groups: [], isDisabled: false });
  });

  test('., .. and $current, by which a path means something else, are no names', async () => {
    const h = secured();
    for (const loginName of ['.', '..', '$current']) {
      const reply = await post(h, '/users', JSON.stringify({ loginName, password: 'x' }));
      expect([reply.status, reply.json().code]).toEqual([400, 'invalid_user']);
      expect(h.security.entries.has(loginName)).toBe(false);
    }
  });

  test('bodies have a limit', async () => {
    const h = secured();
    const long = `{"newPassword":"${'x'.repeat(USER_BODY_BYTES_MAX)}"}`;
    for (const headers of [{}, { 'content-length': String(long.length) }] as Record<string, string>[]) {
      const reply = await post(h, '/users/kim/command/reset-password', long, { ...AS.admin, ...JSON_TYPE, ...headers });
      expect([reply.status, reply.json().code]).toEqual([413, 'body_too_large']);
    }
  });

  test.each([
    '..',
    '.',
    '%2e%2e',
    '%2E',
    '%2e%2e%2fadmin',
    '..%2f..%2fetc%2fpasswd',
    '%00',
    'a%00b',
    '%2F',
    'a%2Fb',
    '%5c..%5c',
    '%zz',
    '%ff',
    'x'.repeat(4_000),
    '%24users',
    'constructor',
  ])('the user %s is no way to anything', async (segment) => {
    const log = new LogLines();
    const h = secured({ log });
    const isDots = /^(\.|%2e)+$/i.test(segment);
    for (const [method, path] of [
      ['GET', ''],
      ['PUT', ''],
      ['DELETE', ''],
      ['POST', '/command/enable'],
      ['POST', '/command/reset-password'],
      ['POST', '/command/change-password'],
    ] as const) {
      for (const caller of [AS.plain, AS.admin]) {
        // A request as a server passes it on: URL parsers would resolve some of these first.
        const request = {
          url: `${ORIGIN}/users/${segment}${path}`,
          method,
          headers: new Headers({ ...caller, ...JSON_TYPE }),
          arrayBuffer: async () => new TextEncoder().encode('{"newPassword":"x","currentPassword":"y"}').buffer,
          body: null,
        };
        const reply = await h.app(request as unknown as Request);
        // Dots alone are resolved away, and lead to routes with rights of their own.
        if (isDots) expect(reply.status).toBeLessThan(500);
        else expect([400, 403, 404, 405]).toContain(reply.status);
      }
    }
    expect(log.lines).toEqual([]);
  });
});

test('there are no users while security is off', async () => {
  const h = harness();
  for (const [method, path] of [
    ['GET', '/users'],
    ['POST', '/users'],
    ['GET', '/users/$current'],
    ['GET', '/users/kim'],
    ['POST', '/users/kim/command/enable'],
  ] as const) {
    const reply = await h.send(method, path);
    expect([reply.status, reply.headers.get('access-control-allow-methods')]).toEqual([404, null]);
  }
});

test('no reply holds a password', async () => {
  const h = secured();
  await post(h, '/users', NEW_USER);
  for (const path of ['/users', '/users/sam'])
    expect((await h.get(path, undefined, AS.admin)).text).not.toMatch(/s3cret|hash|salt/);
});
