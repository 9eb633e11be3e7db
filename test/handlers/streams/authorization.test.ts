import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { ANONYMOUS, SYSTEM } from '../../../core/base/principal.ts';
import type { Principal } from '../../../core/base/principal.ts';
import { encodeText } from '../../../core/base/text.ts';
import { requireAccess } from '../../../handlers/http/authorization.ts';
import { DEFAULT_OPTIONS } from '../../../handlers/http/context.ts';
import type { Access, App, AppOptions, Call } from '../../../handlers/http/context.ts';
import { ATOM, EVENTS } from '../harness.ts';
import { AS, basic, secured } from '../secured.ts';

type Secured = ReturnType<typeof secured>;

const JSON_EVENT = { 'content-type': 'application/json', 'es-eventtype': 'made' };
let ids = 0;

function idHeader(): Record<string, string> {
  return { 'es-eventid': `10000000-0000-4000-8000-${String(++ids).padStart(12, '0')}` };
}

/** Writes below the handlers, as the node itself does. */
async function put(h: Secured, stream: string, type: string, data: string, isJson = true): Promise<void> {
  await h.store.append(stream, -2, [
    { id: idHeader()['es-eventid']!, type, isJson, data: encodeText(data), metadata: new Uint8Array(0) },
  ]);
}

async function restrict(h: Secured, stream: string, acl: Record<string, unknown>): Promise<void> {
  await put(h, `$$${stream}`, '$metadata', JSON.stringify({ $acl: acl }));
}

describe('reading', () => {
  const READS: readonly [string, string][] = [
    ['/streams/s', ATOM],
    ['/streams/s', 'application/x-ndjson'],
    ['/streams/s', 'text/event-stream'],
    ['/streams/s', 'application/vnd.eventstore.streamdesc+json'],
    ['/streams/s/0', ATOM],
    ['/streams/s/head', 'application/json'],
    ['/streams/s/head/5', ATOM],
    ['/streams/s/head/backward/5', ATOM],
    ['/streams/s/0/forward/5', ATOM],
    ['/streams/s/0/forward/5', 'application/x-ndjson'],
  ];

  test.each(READS)('%s as %s asks the access list', async (path, accept) => {
    const h = secured();
    await put(h, 's', 'made', '{}');
    await restrict(h, 's', { $r: 'olga' });
    const controller = new AbortController();
    for (const [headers, status] of [
      [AS.anonymous, 401],
      [AS.plain, 403],
      [AS.ops, 200],
      [AS.admin, 200],
    ] as const) {
      const response = await h.raw('GET', path, { ...headers, accept }, null, controller.signal);
      expect(response.status).toBe(status);
      await response.body?.cancel();
    }
    controller.abort();
  });

  test('a refusal tells nothing about the stream', async () => {
    const h = secured();
    await restrict(h, 'secret', { $r: [] });
    await restrict(h, 'gone', { $r: [] });
    const [there, absent] = await Promise.all(
      ['secret', 'gone'].map((stream) => h.get(`/streams/${stream}/nonsense/5`, ATOM, AS.plain)),
    );
    expect([there!.status, absent!.status]).toEqual([403, 403]);
    expect(there!.headers.get('access-control-allow-methods')).toBeNull();
    expect(there!.json()).toMatchObject({ code: 'access_denied', title: 'Forbidden' });
    expect((await h.get('/streams/none', ATOM, AS.plain)).status).toBe(404);
  });

  test('a held read asks again when it goes on', async () => {
    const h = secured();
    await put(h, 's', 'made', '{}');
    const held = h.raw('GET', '/streams/s/1/forward/5', { ...AS.plain, accept: ATOM, 'es-longpoll': '30' });
    await h.clock.yield();
    await restrict(h, 's', { $r: 'olga' });
    await put(h, 's', 'made', '{"secret":1}');
    expect((await held).status).toBe(403);
  });

  test('a subscription ends when the access list no longer allows it', async () => {
    const h = secured();
    await put(h, 's', 'made', '{"n":1}');
    const response = await h.raw('GET', '/streams/s', { ...AS.plain, accept: 'text/event-stream' });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('caught-up')) text += (await reader.read()).value;
    await restrict(h, 's', { $r: 'olga' });
    await put(h, 's', 'made', '{"secret":1}');
    let rest = '';
    for (let next = await reader.read(); !next.done; next = await reader.read()) rest += next.value;
    expect(rest).toContain('event: error');
    expect(rest).toContain('"code":"access_denied"');
    expect(rest).not.toContain('secret');
  });
});

describe('links', () => {
  async function linked(): Promise<Secured> {
    const h = secured();
    await put(h, 'secret', 'made', '{"salary":1}');
    await restrict(h, 'secret', { $r: 'olga' });
    await put(h, 'open', 'made', '{"lunch":1}');
    for (const target of ['0@secret', '0@open', '7@secret', '7@open', '0@$never'])
      await put(h, 'list', '$>', target, false);
    return h;
  }

  test.each(['/streams/list/head/backward/10', '/streams/list/0/forward/10'])(
    'to streams that the caller may not read stay links in %s',
    async (path) => {
      const h = await linked();
      const entries = async (headers: Record<string, string>) =>
        (await h.get(`${path}?embed=body`, ATOM, headers)).json().entries.toReversed() as Record<string, unknown>[];
      const plain = await entries(AS.plain);
      expect(plain.map((entry) => entry['title'])).toEqual(['0@list', '0@open', '2@list', '7@open', '4@list']);
      expect(plain[0]).toMatchObject({ eventType: '$>', streamId: 'list', data: null });
      expect(JSON.stringify(plain)).not.toContain('salary');
      const ops = await entries(AS.ops);
      expect(ops.map((entry) => entry['title'])).toEqual(['0@secret', '0@open', '7@secret', '7@open', '4@list']);
      expect(ops[0]).toMatchObject({ data: '{"salary":1}' });
      expect((await entries(AS.admin)).map((entry) => entry['title'])).toEqual([
        '0@secret',
        '0@open',
        '7@secret',
        '7@open',
        '0@$never',
      ]);
    },
  );

  test('one at a time', async () => {
    const h = await linked();
    const read = (n: number, headers: Record<string, string>) =>
      h.get(`/streams/list/${n}`, 'application/json', headers);
    expect((await read(0, AS.plain)).text).toBe('"0@secret"');
    expect((await read(2, AS.plain)).text).toBe('"7@secret"');
    expect((await read(1, AS.plain)).json()).toEqual({ lunch: 1 });
    expect((await read(3, AS.plain)).status).toBe(404);
    expect((await read(0, AS.ops)).json()).toEqual({ salary: 1 });
    expect((await read(2, AS.ops)).status).toBe(404);
  });

  test.each(['application/x-ndjson', 'text/event-stream'])('as %s', async (accept) => {
    const h = await linked();
    const response = await h.raw('GET', '/streams/list', { ...AS.plain, accept });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      text += next.value;
      if (text.includes('caught-up')) break;
    }
    await reader.cancel();
    expect(text).toContain('lunch');
    expect(text.match(/"eventType":"\$>"/g)).toHaveLength(4);
    expect(text).not.toContain('salary');
  });

  test('each stream is asked about once a page', async () => {
    const h = await linked();
    for (let i = 0; i < 20; i++) await put(h, 'list', '$>', '0@secret', false);
    const asked: string[] = [];
    const check = h.security.access.check;
    h.security.access.check = (principal, action, stream) => {
      asked.push(stream);
      return check(principal, action, stream);
    };
    await h.get('/streams/list/head/backward/100', ATOM, AS.plain);
    expect(asked.toSorted()).toEqual(['$never', 'list', 'open', 'secret']);
  });
});

describe('$all', () => {
  test.each([
    '/streams/$all',
    '/streams/$all/head/5',
    `/streams/%24all/${'0'.repeat(32)}/forward/5`,
    '/streams/$all/filtered?context=streamid&type=prefix&data=a',
  ])('%s is for administrators unless its own access list says otherwise', async (path) => {
    const h = secured();
    for (const accept of [ATOM, 'application/x-ndjson']) {
      if (accept !== ATOM && path.includes('/5')) continue;
      expect((await h.get(path, accept)).status).toBe(401);
      expect((await h.get(path, accept, AS.ops)).status).toBe(403);
      expect((await h.get(path, accept, AS.admin)).status).toBe(200);
    }
    await restrict(h, '$all', { $r: 'olga' });
    expect((await h.get(path, ATOM, AS.ops)).status).toBe(200);
  });

  test('a filter is looked at for those only who may read', async () => {
    const h = secured();
    const path = '/streams/$all/filtered?context=streamid&type=regex&data=(';
    expect((await h.get(path, ATOM, AS.plain)).status).toBe(403);
    expect((await h.get(path, ATOM, AS.admin)).status).toBe(400);
  });

  test('can neither be written nor deleted by anyone', async () => {
    const h = secured();
    for (const [headers, status] of [
      [AS.anonymous, 401],
      [AS.plain, 403],
      [AS.admin, 403],
    ] as const) {
      expect((await h.send('POST', '/streams/$all', { ...headers, ...JSON_EVENT, ...idHeader() }, '{}')).status).toBe(
        status,
      );
      expect((await h.send('DELETE', '/streams/$all', headers)).status).toBe(status);
      expect((await h.send('DELETE', '/streams/$$s', headers)).status).toBe(status);
      expect((await h.send('GET', '/streams/$$s/metadata', headers)).status).toBe(status);
    }
  });
});

describe('writing', () => {
  const ROUTES: readonly [string, () => Parameters<Secured['send']>][] = [
    ['append', () => ['POST', '/streams/s', { ...JSON_EVENT, ...idHeader() }, '{}']],
    [
      'append of a batch',
      () => [
        'POST',
        '/streams/s',
        { 'content-type': EVENTS },
        JSON.stringify([{ eventId: idHeader()['es-eventid'], eventType: 'made', data: {} }]),
      ],
    ],
    ['append under an id', () => ['POST', `/streams/s/incoming/${idHeader()['es-eventid']}`, JSON_EVENT, '{}']],
    [
      'metadata',
      () => [
        'POST',
        '/streams/s/metadata',
        { 'content-type': 'application/json', ...idHeader() },
        '{"$acl":{"$w":"olga","$mw":"olga","$d":"olga"}}',
      ],
    ],
    [
      'append to the metadata stream',
      () => [
        'POST',
        '/streams/$$s',
        { 'content-type': 'application/json', 'es-eventtype': '$metadata', ...idHeader() },
        '{"$acl":{"$w":"olga","$mw":"olga","$d":"olga"}}',
      ],
    ],
    ['soft delete', () => ['DELETE', '/streams/s']],
    ['hard delete', () => ['DELETE', '/streams/s', { 'es-harddelete': 'true' }]],
  ];

  test.each(ROUTES)('%s hands the question to the store', async (_what, request) => {
    for (const [caller, status] of [
      [AS.anonymous, 401],
      [AS.plain, 403],
      [AS.ops, 'done'],
      [AS.admin, 'done'],
    ] as const) {
      const h = secured();
      await put(h, 's', 'made', '{}');
      await restrict(h, 's', { $w: 'olga', $mw: 'olga', $d: 'olga' });
      let asked = 0;
      for (const name of ['append', 'deleteStream'] as const)
        wrap(h, name, () => {
          asked++;
        });
      const [method, path, headers, body] = request();
      const reply = await h.send(method, path, { ...headers, ...caller }, body ?? null);
      if (status === 'done') expect(reply.status).toBeLessThan(300);
      else expect(reply.status).toBe(status);
      expect(asked).toBe(caller === AS.ops || caller === AS.plain ? 1 : 0);
    }
  });

  test('the right to write is looked at before what is written', async () => {
    const h = secured();
    for (const headers of [
      { 'content-type': 'application/json' },
      { ...JSON_EVENT, 'es-eventid': 'x' },
      { ...JSON_EVENT },
    ]) {
      expect((await h.send('POST', '/streams/s', headers, '{}')).status).toBe(401);
    }
    expect((await h.send('POST', '/streams/s', { 'content-type': 'text/xml' }, '<x/>')).status).toBe(415);
    expect((await h.send('POST', '/streams/s/incoming/x', JSON_EVENT, '{}')).status).toBe(401);
    expect((await h.send('DELETE', '/streams/s', { 'es-expectedversion': 'x' })).status).toBe(401);
  });

  test('a right that is taken away while the body arrives is gone', async () => {
    const h = secured();
    await put(h, 's', 'made', '{}');
    wrap(h, 'append', () => {});
    const { authorizeWrite } = h.security.access;
    let asked = 0;
    h.security.access.authorizeWrite = (principal, action, stream) => {
      const authorize = authorizeWrite(principal, action, stream);
      return asked++ === 0 ? authorize : () => new SkuaError('access_denied', 'Not any more.');
    };
    const reply = await h.send('POST', '/streams/s', { ...JSON_EVENT, ...idHeader(), ...AS.plain }, '{}');
    expect([reply.status, asked]).toEqual([403, 2]);
  });

  test('answers that come later are waited for', async () => {
    const h = secured();
    const { authorizeWrite } = h.security.access;
    h.security.access.authorizeWrite = async (principal, action, stream) => authorizeWrite(principal, action, stream);
    const post = (headers: Record<string, string>) =>
      h.send('POST', '/streams/s', { ...headers, ...JSON_EVENT, ...idHeader() }, '{}');
    expect((await post(AS.plain)).status).toBe(201);
    expect((await post(AS.anonymous)).status).toBe(401);
  });
});

/** The model does not ask `authorize`; this does, as the store does, and counts how often it was given one. */
function wrap(h: Secured, name: 'append' | 'deleteStream', given: () => void): void {
  const original = (h.store[name] as (...args: unknown[]) => Promise<unknown>).bind(h.store);
  const wrapped = async (
    stream: string,
    expected: number,
    what: unknown,
    authorize?: (metadata: unknown) => Error | null,
  ) => {
    if (authorize !== undefined) {
      given();
      const owner = stream.startsWith('$$') ? stream.slice(2) : stream;
      const error = authorize((await h.store.streamInfo(owner)).metadata);
      if (error !== null) throw error;
    }
    return original(stream, expected, what);
  };
  (h.store as unknown as Record<string, unknown>)[name] = wrapped;
}

describe('operations', () => {
  test('are open to whom the table says', () => {
    const callers: Record<string, Principal> = {
      anonymous: ANONYMOUS,
      plain: { name: 'kim', roles: ['$op', 'admins'] },
      ops: { name: 'olga', roles: ['$ops'] },
      admin: { name: 'ada', roles: ['$admins'] },
      system: SYSTEM,
    };
    const refused = (access: Access, options: Partial<AppOptions> = {}) =>
      Object.entries(callers)
        .filter(([, principal]) => {
          try {
            requireAccess({ principal } as Call, { options: { ...DEFAULT_OPTIONS, ...options } } as App, access);
            return false;
          } catch (error) {
            expect((error as SkuaError).code).toBe(principal === ANONYMOUS ? 'not_authenticated' : 'access_denied');
            return true;
          }
        })
        .map(([name]) => name);
    for (const access of ['probe', 'anyone', 'stream'] as const) expect(refused(access)).toEqual([]);
    for (const access of ['authenticated', 'self'] as const) expect(refused(access)).toEqual(['anonymous']);
    expect(refused('operators')).toEqual(['anonymous', 'plain']);
    expect(refused('administrators')).toEqual(['anonymous', 'plain', 'ops']);
    expect([refused('gossip'), refused('gossip', { allowAnonymousGossip: false })]).toEqual([[], ['anonymous']]);
    expect([refused('statistics'), refused('statistics', { allowAnonymousEndpointAccess: true })]).toEqual([
      ['anonymous'],
      [],
    ]);
  });

  test('the groups of the seeds and of the reference count', async () => {
    const h = secured();
    h.security.add('sam', 'x', ['$admin']);
    h.security.add('ops', 'x', []);
    h.security.add('admin', 'x', []);
    const status = async (name: string, path: string) =>
      (await h.get(path, undefined, { authorization: basic(name, 'x') })).status;
    expect([await status('sam', '/users'), await status('admin', '/users'), await status('ops', '/users')]).toEqual([
      200, 200, 403,
    ]);
    expect([
      await status('sam', '/admin/scavenge/current'),
      await status('admin', '/admin/scavenge/current'),
      await status('ops', '/admin/scavenge/current'),
    ]).toEqual([200, 200, 200]);
  });

  test('a refusal says what is missing', async () => {
    const h = secured();
    const anonymous = await h.get('/admin/scavenge/current');
    expect(anonymous.json()).toMatchObject({ code: 'not_authenticated', title: 'Unauthorized' });
    expect(anonymous.headers.get('www-authenticate')).toContain('charset="UTF-8"');
    const plain = await h.get('/admin/scavenge/current', undefined, AS.plain);
    expect(plain.json()).toMatchObject({ code: 'access_denied', title: 'Forbidden' });
    expect(plain.json().detail).toContain('$ops');
    expect(plain.headers.get('www-authenticate')).toBeNull();
  });

  test('the system user may do everything', async () => {
    const h = secured({ peerOf: () => SYSTEM });
    for (const path of ['/users', '/admin/scavenge/current', '/streams/$all'])
      expect((await h.get(path)).status).toBe(200);
  });
});
