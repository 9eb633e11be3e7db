import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StreamAction } from '../../core/security/api.ts';
import { ANONYMOUS, type Principal, SYSTEM } from '../../core/base/principal.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { type AccessList, ANY } from '../../core/streams/api.ts';
import { UNREADABLE_LIST } from '../../core/streams/format/metadata.ts';
import { json, leave, openWorld, outcome, principal, setMetadata, type World } from './kit.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const ADMIN = principal('admin', '$admins');
const OPS = principal('ops', '$ops');
const KIM = principal('kim', 'pickers');
const LEAD = principal('lee', 'leads');
const ACTIONS: readonly StreamAction[] = ['read', 'write', 'delete', 'metadataRead', 'metadataWrite'];
const NO = 'access_denied';
const WHO = 'not_authenticated';

function check(who: Principal, action: StreamAction, stream: string, security = world.security): Promise<string> {
  return outcome(() => security.access.check(who, action, stream));
}

/** What each of the five actions comes to: r, w, d, m (metadata read), M (metadata write) where allowed, else a dot. */
async function rights(who: Principal, stream: string, security = world.security): Promise<string> {
  let text = '';
  for (const [i, action] of ACTIONS.entries())
    text += (await check(who, action, stream, security)) === 'ok' ? 'rwdmM'[i]! : '.';
  return text;
}

describe('examples', () => {
  test.each<[string, Principal, StreamAction, string]>([
    ['orders-1', KIM, 'read', 'ok'],
    ['orders-1', KIM, 'write', 'ok'],
    ['orders-1', KIM, 'delete', 'ok'],
    ['orders-1', ANONYMOUS, 'read', WHO],
    ['$scavenges', OPS, 'read', 'ok'],
    ['$scavenges', KIM, 'read', NO],
    ['$scavenges', OPS, 'write', NO],
    ['$settings', OPS, 'read', NO],
    ['$all', OPS, 'read', NO],
    ['$all', ADMIN, 'read', 'ok'],
  ])('%s, %o, %s: %s', async (stream, who, action, expected) => {
    await setMetadata(world.store, '$scavenges', {
      $maxAge: 2_592_000,
      $acl: { $r: '$ops', $w: [], $d: [], $mr: [], $mw: [] },
    });
    expect(await check(who, action, stream)).toBe(expected);
    // The second time all that is needed is in memory.
    expect(await check(who, action, stream)).toBe(expected);
  });
});

describe('rules', () => {
  test('1: an empty name is $all, which nobody writes or deletes', async () => {
    for (const stream of ['', '$all']) {
      expect([await rights(ADMIN, stream), await rights(SYSTEM, stream), await rights(KIM, stream)]).toEqual([
        'r..mM',
        'r..mM',
        '.....',
      ]);
      expect(await check(ADMIN, 'write', stream)).toBe(NO);
      expect(await check(ANONYMOUS, 'write', stream)).toBe(WHO);
    }
  });

  test('2: a metadata stream has the metadata rights of its stream, and is deleted by nobody', async () => {
    await setMetadata(world.store, 'x', { $acl: { $mr: 'kim', $mw: 'leads' } });
    expect([
      await check(KIM, 'read', '$$x'),
      await check(KIM, 'write', '$$x'),
      await check(LEAD, 'read', '$$x'),
      await check(LEAD, 'write', '$$x'),
    ]).toEqual(['ok', NO, NO, 'ok']);
    for (const who of [ADMIN, SYSTEM, KIM]) expect(await check(who, 'delete', '$$x')).toBe(NO);
    await setMetadata(world.store, '$x', { $acl: { $mr: 'kim' } });
    expect([
      await check(KIM, 'read', '$$$x'),
      await check(LEAD, 'read', '$$$x'),
      await check(KIM, 'read', '$x'),
      await check(KIM, 'metadataRead', '$x'),
    ]).toEqual(['ok', NO, NO, 'ok']);
    // The metadata of a metadata stream is fixed: it is a system stream without a list.
    expect([await rights(KIM, '$$$$x'), await rights(ADMIN, '$$$$x')]).toEqual(['.....', 'rw.mM']);
    await setMetadata(world.store, '$all', { $acl: { $r: 'kim', $mr: 'lee' } });
    expect([
      await check(KIM, 'read', '$all'),
      await check(LEAD, 'read', '$$$all'),
      await check(KIM, 'read', '$$$all'),
    ]).toEqual(['ok', 'ok', NO]);
  });

  test('3: the anonymous caller is refused, unless the option lets everybody in', async () => {
    await setMetadata(world.store, 'open', { $acl: { $r: '$all', $w: ['kim', '$all'], $d: 'kim' } });
    expect([
      await rights(ANONYMOUS, 'open'),
      await rights(ANONYMOUS, 'plain'),
      await rights(ANONYMOUS, '$all'),
    ]).toEqual(['.....', '.....', '.....']);
    const open = world.another({ allowAnonymousStreamAccess: true });
    expect([
      await rights(ANONYMOUS, 'open', open),
      await rights(ANONYMOUS, 'plain', open),
      await rights(ANONYMOUS, '$x', open),
    ]).toEqual(['rw.mM', 'rwdmM', '.....']);
    expect(await check(ANONYMOUS, 'read', '$x', open)).toBe(WHO);
    expect(await check(KIM, 'read', '$x', open)).toBe(NO);
  });

  test.each([ADMIN, SYSTEM, principal('admin'), principal('x', '$admins'), principal('x', '$admin')])(
    '4: %o may do everything, at once',
    async (who) => {
      await setMetadata(world.store, 'x', { $acl: { $r: [], $w: [], $d: [], $mr: [], $mw: [] } });
      for (const stream of ['x', '$y', '$settings']) {
        for (const action of ACTIONS) expect(world.security.access.check(who, action, stream)).toBeUndefined();
        expect(world.security.access.authorizeWrite(who, 'write', stream)).toBeNull();
      }
    },
  );

  test('5: action by action, the list of the stream, then the configured one, then the built-in one', async () => {
    await setMetadata(world.store, 'x', { $acl: { $r: 'kim' } });
    expect([await rights(KIM, 'x'), await rights(LEAD, 'x')]).toEqual(['rwdmM', '.wdmM']);
    await world.store.append('$settings', -2, [
      json('anything', { $userStreamAcl: { $r: '$all', $w: 'leads', $d: [] } }),
    ]);
    expect([await rights(KIM, 'x'), await rights(LEAD, 'x'), await rights(KIM, 'other')]).toEqual([
      'r..mM',
      '.w.mM',
      'r..mM',
    ]);
    expect([await rights(KIM, '$x'), await rights(ADMIN, 'x')]).toEqual(['.....', 'rwdmM']);
  });

  test('6 and 7: names and groups are compared alike; nobody is named by nothing', async () => {
    await setMetadata(world.store, 'x', { $acl: { $r: ['pickers', 'lee'], $w: [], $d: '', $mr: '*', $mw: ['', '*'] } });
    expect([
      await rights(KIM, 'x'),
      await rights(LEAD, 'x'),
      await rights(principal('no'), 'x'),
      await rights(principal(''), 'x'),
      await rights(principal('ops'), 'x'),
    ]).toEqual(['r....', 'r....', '.....', '.....', '.....']);
  });

  test('a list that can not be understood, as another program may have left it, lets in administrators only', async () => {
    for (const acl of [7, 'kim', ['kim'], { $r: 7 }, { $r: [7] }, { $r: 'kim', $w: {} }]) {
      expect(await outcome(() => setMetadata(world.store, 'x', { $maxCount: 3, $acl: acl }))).toBe('invalid_metadata');
      await leave(world.store, '$$x', { $maxCount: 3, $acl: acl });
      expect([await rights(LEAD, 'x'), await rights(KIM, 'x'), await rights(ADMIN, 'x')]).toEqual([
        '.....',
        '.....',
        'rwdmM',
      ]);
    }
    expect(world.log.at('warn').length).toBeGreaterThan(0);
  });

  test('what else is odd in metadata takes nothing away from the list', async () => {
    await leave(world.store, '$$x', { $maxCount: '3', $acl: { $r: 'kim' } });
    expect([await rights(LEAD, 'x'), await rights(KIM, 'x')]).toEqual(['.wdmM', 'rwdmM']);
    await leave(world.store, '$$x', { $maxCount: '3' });
    expect(await rights(LEAD, 'x')).toBe('rwdmM');
  });

  test('such lists are told in the log, at most twenty times a minute', async () => {
    await leave(world.store, '$$x', { $acl: 7 });
    for (let i = 0; i < 30; i++) await check(KIM, 'read', 'x');
    expect(world.log.at('warn')).toHaveLength(20);
    await world.clock.advance(60_000);
    await check(KIM, 'read', 'x');
    expect(world.log.at('warn')).toHaveLength(21);
  });

  test('a soft deletion takes the access list with it', async () => {
    await world.store.append('x', -1, [json('made', {})]);
    await setMetadata(world.store, 'x', { $acl: { $r: 'lee' } });
    expect(await check(KIM, 'read', 'x')).toBe(NO);
    await world.store.deleteStream('x', -2, 'soft');
    await world.store.append('x', -2, [json('made', {})]);
    expect(await check(KIM, 'read', 'x')).toBe('ok');
  });

  test('a hard-deleted stream says so to everyone who is known', async () => {
    await world.store.append('$x', -1, [json('made', {})]);
    await world.store.deleteStream('$x', -2, 'hard');
    for (const stream of ['$x', '$$$x'])
      expect([await check(KIM, 'read', stream), await check(ANONYMOUS, 'read', stream)]).toEqual(['ok', WHO]);
    expect(await outcome(() => world.store.readStream('$x', { direction: 'forward', from: 0, count: 1 }))).toBe(
      'stream_deleted',
    );
  });

  test('names that no stream can have are refused as such', async () => {
    for (const stream of ['$$', '\ud800']) expect(await check(KIM, 'read', stream)).toBe('invalid_stream_name');
    expect(await check(ANONYMOUS, 'read', '$$')).toBe(WHO);
  });
});

describe('$settings', () => {
  const write = (data: unknown) => world.store.append('$settings', -2, [json('$settings', data)]);

  test('is in force at once, and only its last event is', async () => {
    expect(await rights(OPS, '$x')).toBe('.....');
    await write({ $systemStreamAcl: { $r: '$ops', $mr: ['$ops'] }, $userStreamAcl: { $w: 'nobody' } });
    expect([await rights(OPS, '$x'), await rights(OPS, 'x')]).toEqual(['r..m.', 'r.dmM']);
    await write({ $systemStreamAcl: { $d: '$ops' } });
    expect([await rights(OPS, '$x'), await rights(OPS, 'x')]).toEqual(['..d..', 'rwdmM']);
    await world.store.deleteStream('$settings', -2, 'soft');
    expect([await rights(OPS, '$x'), await rights(OPS, 'x')]).toEqual(['.....', 'rwdmM']);
  });

  test.each([
    ['7', '.....'],
    ['[]', '.....'],
    ['not json', '.....'],
    ['{"$userStreamAcl": 7}', '.....'],
    ['{"$systemStreamAcl": {"$r": 1}, "$userStreamAcl": {"$r": []}}', '.wdmM'],
  ])(
    '%s, as another program may have left it, is for administrators only where it can not be understood, with one error in the log',
    async (data, expected) => {
      await write({ $userStreamAcl: { $r: 'leads' } });
      expect(await rights(KIM, 'x')).toBe('.wdmM');
      expect(await outcome(() => write(data))).toBe('invalid_metadata');
      expect(await rights(KIM, 'x')).toBe('.wdmM');
      await leave(world.store, '$settings', data);
      expect([await rights(KIM, 'x'), await rights(KIM, '$x'), await rights(ADMIN, 'x')]).toEqual([
        expected,
        '.....',
        'rwdmM',
      ]);
      expect(world.log.at('error')).toHaveLength(1);
      await write({ $userStreamAcl: { $r: 'leads' } });
      expect(await rights(KIM, 'x')).toBe('.wdmM');
      expect(world.log.at('error')).toHaveLength(1);
    },
  );

  test('may hold what we do not know', async () => {
    await write({ comment: ['x'], $userStreamAcl: { $r: 'leads' } });
    expect(await rights(KIM, 'x')).toBe('.wdmM');
    expect(world.log.at('error')).toEqual([]);
  });
});

describe('what is in memory is decided without a promise', () => {
  test('allowed and refused', async () => {
    await setMetadata(world.store, 'x', { $acl: { $w: 'leads' } });
    await check(KIM, 'read', 'x');
    expect(world.security.access.check(KIM, 'read', 'x')).toBeUndefined();
    expect(() => world.security.access.check(KIM, 'write', 'x')).toThrow(SkuaError);
    expect(world.security.access.authorizeWrite(KIM, 'write', 'y')).toBeInstanceOf(Function);
  });
});

describe('writes are decided where they take their place', () => {
  async function write(who: Principal, stream: string, type = 'made', data: unknown = {}): Promise<string> {
    return outcome(async () =>
      world.store.append(
        stream,
        -2,
        [json(type, data)],
        (await world.security.access.authorizeWrite(who, 'write', stream)) ?? undefined,
      ),
    );
  }

  test('by the list of the stream, or for its metadata stream by the same list', async () => {
    await setMetadata(world.store, 'x', { $acl: { $w: 'leads', $mw: 'kim' } });
    expect([
      await write(KIM, 'x'),
      await write(LEAD, 'x'),
      await write(LEAD, '$$x'),
      await write(KIM, '$x'),
      await write(ADMIN, '$x'),
    ]).toEqual([NO, 'ok', NO, NO, 'ok']);
    expect(await write(KIM, '$$x', '$metadata', { $acl: { $w: 'kim' } })).toBe('ok');
    expect([await write(KIM, 'x'), await write(LEAD, 'x')]).toEqual(['ok', NO]);
    expect([
      await write(ADMIN, '$all'),
      await write(ANONYMOUS, 'x'),
      await outcome(() => world.security.access.authorizeWrite(ADMIN, 'delete', '$$x')),
    ]).toEqual([NO, WHO, NO]);
  });

  test('by the list that was written just before them', async () => {
    const authorize = await world.security.access.authorizeWrite(KIM, 'write', 'x');
    const list = setMetadata(world.store, 'x', { $acl: { $w: 'leads' } });
    const event = outcome(() => world.store.append('x', -2, [json('made', {})], authorize ?? undefined));
    await list;
    expect(await event).toBe(NO);
  });

  test('by the configured defaults of now', async () => {
    await world.store.append('$settings', -2, [json('$settings', { $userStreamAcl: { $w: 'leads' } })]);
    expect([await write(KIM, 'x'), await write(LEAD, 'x')]).toEqual([NO, 'ok']);
  });

  test('deletions too', async () => {
    await world.store.append('x', -1, [json('made', {})]);
    await setMetadata(world.store, 'x', { $acl: { $d: 'leads' } });
    const remove = (who: Principal) =>
      outcome(async () =>
        world.store.deleteStream(
          'x',
          -2,
          'soft',
          (await world.security.access.authorizeWrite(who, 'delete', 'x')) ?? undefined,
        ),
      );
    expect([await remove(KIM), await remove(LEAD)]).toEqual([NO, 'ok']);
  });
});

test('who reads many streams is asked by the list of each, with what is configured when the page begins', async () => {
  const { access } = world.security;
  expect(access.readerOf(ADMIN)).toBeNull();
  expect(await outcome(async () => access.readerOf(ANONYMOUS))).toBe(WHO);
  const kim = access.readerOf(KIM)!;
  await kim.begin();
  const seen = (acl?: AccessList, stream = 'orders-1') => kim.allows(stream, acl === undefined ? {} : { acl });
  expect([seen(), seen({ read: ['pickers'] }), seen({ read: ['kim'] }), seen({ read: [] })]).toEqual([
    true,
    true,
    true,
    false,
  ]);
  // Metadata by the list of the stream they belong to, as everywhere.
  expect([seen(undefined, '$$orders-1'), seen({ metadataRead: [] }, '$$orders-1')]).toEqual([true, false]);
  expect([seen(undefined, '$x'), seen(UNREADABLE_LIST)]).toEqual([false, false]);
  await world.store.append('$settings', ANY, [json('settings', { $userStreamAcl: { $r: 'leads' } })]);
  await kim.begin();
  expect([seen(), seen({ read: ['kim'] })]).toEqual([false, true]);
});
