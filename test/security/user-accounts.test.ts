import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { contentOf, json, openWorld, outcome, setMetadata, type World } from './kit.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld({ passwordFormat: 'compatible' });
  world.writes.length = 0;
});
afterEach(() => world.close());

const KIM = { loginName: 'kim', fullName: 'Kim Doe', groups: ['pickers'], password: 'secret1!' };
const login = (name: string, password: string) =>
  outcome(() => world.security.authenticator.login(name, password, null));
const metadataOf = (stream: string) => contentOf(world.store, `$$${stream}`).then((all) => all.at(-1));
const NOTIFICATIONS = '$users-password-notifications';

describe('creating', () => {
  test('writes access list, record and list entry, as the reference database does', async () => {
    await world.security.users.create(KIM);
    expect(world.writes).toEqual(['append $$$user-kim', 'append $user-kim', 'append $users']);
    expect(await contentOf(world.store, '$$$user-kim')).toEqual([
      '$metadata {"$acl":{"$w":"$admins","$d":"$admins","$mw":"$admins"}}',
    ]);
    const [record] = await contentOf(world.store, '$user-kim');
    expect(record!.replace(/("salt"|"hash"): ".*"/g, '$1: "..."')).toBe(
      '$UserCreated {\n  "loginName": "kim",\n  "fullName": "Kim Doe",\n  "salt": "...",\n  "hash": "...",\n  "groups": [\n    "pickers"\n  ]\n}',
    );
    expect((await contentOf(world.store, '$users')).at(-1)).toBe('$User kim');
    expect((await world.store.readEvent('$users', 'last')).isJson).toBe(false);
    expect(await login('kim', 'secret1!')).toBe('ok');
  });

  test('leaves out a full name that is null, and writes no groups as []', async () => {
    await world.security.users.create({ ...KIM, fullName: null, groups: [] });
    const [record] = await contentOf(world.store, '$user-kim');
    expect(record).not.toContain('fullName');
    expect(record).toMatch(/"groups": \[\]\n\}$/);
    expect(await world.security.users.get('kim')).toMatchObject({ fullName: null, groups: [] });
  });

  test('again with the same password and groups changes nothing, with others is refused', async () => {
    await world.security.users.create(KIM);
    const { end } = world.store;
    expect(await outcome(() => world.security.users.create({ ...KIM, fullName: 'Other' }))).toBe('ok');
    expect(await outcome(() => world.security.users.create({ ...KIM, groups: [] }))).toBe('user_exists');
    expect(await outcome(() => world.security.users.create({ ...KIM, password: 'other' }))).toBe('user_exists');
    expect(world.store.end).toBe(end);
    expect(await world.security.users.get('kim')).toMatchObject({ fullName: 'Kim Doe', groups: ['pickers'] });
  });

  test('after a deletion continues the stream, without the old record coming back in between', async () => {
    await world.security.users.create(KIM);
    await world.security.users.delete('kim');
    world.beforeWrite = async (stream) => {
      if (stream === '$user-kim') expect(await login('kim', 'secret1!')).toBe('not_authenticated');
    };
    await world.security.users.create({ ...KIM, password: 'secret2!' });
    expect((await world.store.readEvent('$user-kim', 'last')).number).toBe(1);
    expect(await contentOf(world.store, '$user-kim')).toHaveLength(1);
    expect(await metadataOf('$user-kim')).toBe(
      '$metadata {"$tb":1,"$acl":{"$w":"$admins","$d":"$admins","$mw":"$admins"}}',
    );
    expect(await login('kim', 'secret2!')).toBe('ok');
    expect((await contentOf(world.store, '$users')).filter((line) => line.endsWith(' kim'))).toHaveLength(1);
  });

  test('a name whose stream was deleted for ever is refused', async () => {
    await world.store.deleteStream('$user-kim', -2, 'hard');
    expect(await outcome(() => world.security.users.create(KIM))).toBe('invalid_user');
    expect(await outcome(() => world.security.users.get('kim'))).toBe('user_not_found');
  });

  test.each([1, 2, 3])('is completed by the next attempt after a crash before write %i', async (n) => {
    let writes = 0;
    world.beforeWrite = () => {
      if (++writes === n) throw new SkuaError('io_error', 'crash');
    };
    expect(await outcome(() => world.security.users.create(KIM))).toBe('io_error');
    world.beforeWrite = () => {};
    expect((await world.security.users.list()).map(({ loginName }) => loginName)).not.toContain('kim');
    await world.security.users.create(KIM);
    expect(await contentOf(world.store, '$user-kim')).toHaveLength(1);
    expect((await world.security.users.list()).map(({ loginName }) => loginName)).toContain('kim');
    expect(await login('kim', 'secret1!')).toBe('ok');
  });

  test('again is completed after a crash between access list and record', async () => {
    await world.security.users.create(KIM);
    await world.security.users.delete('kim');
    world.beforeWrite = (stream) => {
      if (stream === '$user-kim') throw new SkuaError('io_error', 'crash');
    };
    expect(await outcome(() => world.security.users.create({ ...KIM, password: 'secret2!' }))).toBe('io_error');
    world.beforeWrite = () => {};
    expect(await login('kim', 'secret1!')).toBe('not_authenticated');
    expect(await outcome(() => world.security.users.get('kim'))).toBe('user_not_found');
    await world.security.users.create({ ...KIM, password: 'secret2!' });
    expect(await login('kim', 'secret2!')).toBe('ok');
  });

  test('twice at once: the same password is success for both, another is refused for one', async () => {
    expect(await Promise.all([1, 2].map(() => outcome(() => world.security.users.create(KIM))))).toEqual(['ok', 'ok']);
    const both = await Promise.all(
      ['a', 'b'].map((password) => outcome(() => world.security.users.create({ ...KIM, loginName: 'lee', password }))),
    );
    expect(both.toSorted()).toEqual(['ok', 'user_exists']);
    expect(await login('lee', both[0] === 'ok' ? 'a' : 'b')).toBe('ok');
    expect(await contentOf(world.store, '$user-lee')).toHaveLength(1);
  });

  test('many at once are all listed', async () => {
    const names = Array.from({ length: 30 }, (_, i) => `user${String(i).padStart(2, '0')}`);
    expect(
      new Set(
        await Promise.all(names.map((loginName) => outcome(() => world.security.users.create({ ...KIM, loginName })))),
      ),
    ).toEqual(new Set(['ok']));
    expect((await world.security.users.list()).map(({ loginName }) => loginName)).toEqual(['admin', 'ops', ...names]);
  });
});

describe('limits', () => {
  test.each([
    [{ loginName: '' }],
    [{ loginName: 'svc:reader' }],
    [{ loginName: ':' }],
    [{ loginName: 'connector:parcels' }],
    [{ loginName: 'x'.repeat(1_017) }],
    [{ loginName: 'a\nb' }],
    [{ loginName: '\ud800' }],
    [{ fullName: 'x'.repeat(1_025) }],
    [{ groups: Array.from({ length: 101 }, (_, i) => `g${i}`) }],
    [{ groups: ['x'.repeat(257)] }],
    [{ groups: [''] }],
    [{ password: 'x'.repeat(1_025) }],
    [{ password: '€'.repeat(400) }],
    [{ password: '\udc00' }],
  ])('%j is refused before anything is written', async (over) => {
    expect(await outcome(() => world.security.users.create({ ...KIM, ...over }))).toBe('invalid_user');
    expect(world.writes).toEqual([]);
  });

  test('the largest of all is a user', async () => {
    const largest = {
      loginName: 'x'.repeat(1_016),
      fullName: 'x'.repeat(1_024),
      groups: Array.from({ length: 100 }, (_, i) => String(i).padStart(256, 'g')),
      password: 'x'.repeat(1_024),
    };
    expect(await outcome(() => world.security.users.create(largest))).toBe('ok');
    expect(await login(largest.loginName, largest.password)).toBe('ok');
    expect(await login(`${largest.loginName}x`, largest.password)).toBe('not_authenticated');
  });

  test('hold for changes too', async () => {
    await world.security.users.create(KIM);
    const { users } = world.security;
    expect(await outcome(() => users.update('kim', { fullName: null, groups: [''] }))).toBe('invalid_user');
    expect(await outcome(() => users.resetPassword('kim', 'x'.repeat(2_000)))).toBe('invalid_user');
    expect(await outcome(() => users.changePassword('kim', 'secret1!', 'x'.repeat(2_000)))).toBe('invalid_user');
  });
});

describe('changing', () => {
  beforeEach(async () => {
    await world.security.users.create(KIM);
    world.writes.length = 0;
  });
  const last = async () => (await contentOf(world.store, '$user-kim')).at(-1)!;

  test('is in no other groups because somebody created it again', async () => {
    await world.security.users.create({ loginName: 'ann', fullName: 'Ann', groups: ['a', 'b'], password: 'secret' });
    const again = (more: object) =>
      outcome(() =>
        world.security.users.create({
          loginName: 'ann',
          fullName: 'Ann',
          groups: ['a', 'b'],
          password: 'secret',
          ...more,
        }),
      );
    expect(await again({ groups: ['b', 'a'] })).toBe('ok');
    for (const other of [{ groups: ['a'] }, { groups: ['a', 'b', '$admins'] }, { groups: [] }])
      expect(await again(other)).toBe('user_exists');
    expect((await world.security.users.get('ann')).groups).toEqual(['a', 'b']);
  });

  test('keeps what a change leaves out, and a change of nothing writes nothing', async () => {
    const { users } = world.security;
    await users.create({ loginName: 'ann', fullName: 'Ann', groups: ['a'], password: 'secret' });
    await users.update('ann', { fullName: 'Ann B.' });
    expect(await users.get('ann')).toMatchObject({ fullName: 'Ann B.', groups: ['a'] });
    await users.update('ann', { groups: ['b'] });
    const { end } = world.store;
    await users.update('ann', {});
    expect(world.store.end).toBe(end);
    expect(await users.get('ann')).toMatchObject({ fullName: 'Ann B.', groups: ['b'] });
    expect(await outcome(() => users.update('nobody', {}))).toBe('user_not_found');
  });

  test('updates names and groups, and nothing else', async () => {
    const before = await last();
    await world.security.users.update('kim', { fullName: 'Kim D.', groups: ['pickers', 'leads'] });
    expect(await last()).toBe(
      before
        .replace('$UserCreated', '$UserUpdated')
        .replace('Kim Doe', 'Kim D.')
        .replace('    "pickers"', '    "pickers",\n    "leads"'),
    );
    expect(await login('kim', 'secret1!')).toBe('ok');
  });

  test('disables and enables, once each', async () => {
    await world.security.users.disable('kim');
    expect(await last()).toMatch(/"hash": ".*",\n {2}"disabled": true,\n {2}"groups"/);
    expect(await login('kim', 'secret1!')).toBe('not_authenticated');
    await world.security.users.disable('kim');
    await world.security.users.enable('kim');
    await world.security.users.enable('kim');
    expect(await last()).not.toContain('disabled');
    expect(await login('kim', 'secret1!')).toBe('ok');
    expect((await world.store.readEvent('$user-kim', 'last')).number).toBe(2);
  });

  test('resets a password', async () => {
    await world.security.users.resetPassword('kim', 'secret2!');
    expect([await login('kim', 'secret1!'), await login('kim', 'secret2!')]).toEqual(['not_authenticated', 'ok']);
  });

  test('changes a password for whoever knows the old one', async () => {
    expect(await outcome(() => world.security.users.changePassword('kim', 'wrong', 'secret2!'))).toBe('wrong_password');
    expect(await outcome(() => world.security.users.changePassword('kim', 'secret1!', 'secret2!'))).toBe('ok');
    expect([await login('kim', 'secret1!'), await login('kim', 'secret2!')]).toEqual(['not_authenticated', 'ok']);
  });

  test('tells whoever does not know the password nothing of who there is, neither by the answer nor by what it costs', async () => {
    const {
      security: { users },
      keys,
    } = world;
    const asked = async (name: string, isLocal: boolean, password: string) => {
      keys.derivations = [];
      const told: unknown = await users
        .changePassword(name, password, 'x', '10.0.0.3', isLocal)
        .catch((refusal: unknown) => refusal);
      const { code, message } = told as { readonly code: string; readonly message: string };
      return [code, message, keys.derivations];
    };
    for (const [isLocal, password] of [
      [false, 'wrong'],
      [true, 'wrong'],
      [false, ''],
      [true, ''],
    ] as const) {
      const known = await asked('kim', isLocal, password);
      expect(known[0]).toBe('wrong_password');
      for (const name of ['no', 'x'.repeat(5_000), '\ud800', ''])
        expect(await asked(name, isLocal, password)).toEqual(known);
    }
    // Guesses at what is not there are limited alike.
    for (let i = 0; i < 10; i++) await asked('nobody', false, 'wrong');
    expect((await asked('nobody', false, 'wrong'))[0]).toBe('too_many_failures');
  });

  test('counts wrong passwords there with those of logins', async () => {
    for (let i = 0; i < 5; i++)
      expect(await outcome(() => world.security.users.changePassword('kim', 'wrong', 'x', '10.0.0.1'))).toBe(
        'wrong_password',
      );
    for (let i = 0; i < 5; i++)
      expect(await outcome(() => world.security.authenticator.login('kim', 'wrong', '10.0.0.1'))).toBe(
        'not_authenticated',
      );
    expect(await outcome(() => world.security.users.changePassword('kim', 'secret1!', 'x', '10.0.0.1'))).toBe(
      'too_many_failures',
    );
    expect(await outcome(() => world.security.authenticator.login('kim', 'secret1!', '10.0.0.1'))).toBe(
      'too_many_failures',
    );
    expect(await outcome(() => world.security.authenticator.login('kim', 'secret1!', '10.0.0.2'))).toBe('ok');
  });

  test('deletes softly', async () => {
    await world.security.users.delete('kim');
    expect(await world.store.streamInfo('$user-kim')).toMatchObject({ isSoftDeleted: true, isTombstoned: false });
    expect(await login('kim', 'secret1!')).toBe('not_authenticated');
    expect((await world.security.users.list()).map(({ loginName }) => loginName)).toEqual(['admin', 'ops']);
  });

  test('is announced, but for enabling', async () => {
    const { users } = world.security;
    await users.update('kim', { fullName: null, groups: [] });
    expect(world.writes).toEqual(['append $user-kim', `append $$${NOTIFICATIONS}`, `append ${NOTIFICATIONS}`]);
    expect(await metadataOf(NOTIFICATIONS)).toBe('$metadata {"$maxAge":3600}');
    expect(await contentOf(world.store, NOTIFICATIONS)).toEqual(['$PasswordChanged {\n  "loginName": "kim"\n}']);
    await users.disable('kim');
    await users.enable('kim');
    await users.resetPassword('kim', 'a');
    await users.changePassword('kim', 'a', 'b');
    await users.delete('kim');
    expect(await contentOf(world.store, NOTIFICATIONS)).toHaveLength(5);
    expect(await contentOf(world.store, `$$${NOTIFICATIONS}`)).toHaveLength(1);
  });

  test('stands although it could not be announced', async () => {
    world.beforeWrite = (stream) => {
      if (stream === NOTIFICATIONS) throw new SkuaError('disk_full', 'full');
    };
    await world.security.users.resetPassword('kim', 'secret2!');
    expect(await login('kim', 'secret2!')).toBe('ok');
    expect(world.log.at('warn')).toHaveLength(1);
  });

  test('nobody there is told so', async () => {
    const { users } = world.security;
    for (const action of [
      () => users.get('no'),
      () => users.update('no', { fullName: null, groups: [] }),
      () => users.delete('no'),
      () => users.enable('no'),
      () => users.disable('no'),
      () => users.resetPassword('no', 'x'),
      () => users.get('x'.repeat(5_000)),
      () => users.get('\ud800'),
    ]) {
      expect(await outcome(action)).toBe('user_not_found');
    }
  });

  test('two changes at once both count', async () => {
    await Promise.all([
      world.security.users.update('kim', { fullName: 'K', groups: ['new'] }),
      world.security.users.disable('kim'),
      world.security.users.resetPassword('kim', 'z'),
    ]);
    expect(await world.security.users.get('kim')).toMatchObject({ fullName: 'K', groups: ['new'], isDisabled: true });
    await world.security.users.enable('kim');
    expect(await login('kim', 'z')).toBe('ok');
  });

  test('does not bring a user back who was deleted meanwhile', async () => {
    const { users } = world.security;
    for (const change of [
      () => users.update('kim', { fullName: 'K' }),
      () => users.disable('kim'),
      () => users.resetPassword('kim', 'x'),
      () => users.changePassword('kim', 'secret1!', 'x'),
    ]) {
      await users.create(KIM);
      world.beforeWrite = async (stream) => {
        if (stream !== '$user-kim') return;
        world.beforeWrite = () => {};
        await users.delete('kim');
      };
      expect(await outcome(change)).toMatch(/^user_not_found$|^wrong_password$/);
      expect(await outcome(() => users.get('kim'))).toBe('user_not_found');
    }
  });

  test('gives up against someone who never stops', async () => {
    world.beforeWrite = async (stream) => {
      if (stream !== '$user-kim') return;
      const intruder = world.beforeWrite;
      world.beforeWrite = () => {};
      await world.store.append('$user-kim', -2, [json('$UserUpdated', { loginName: 'kim', salt: '', hash: '' })]);
      world.beforeWrite = intruder;
    };
    expect(await outcome(() => world.security.users.update('kim', { fullName: null, groups: [] }))).toBe(
      'wrong_expected_version',
    );
  });
});

test('a record that is none is no user, and damages no list', async () => {
  await world.security.users.create(KIM);
  for (const data of ['[]', 'null', '7', '{"loginName":']) {
    await world.store.append('$user-kim', -2, [json('$UserUpdated', data)]);
    expect(await login('kim', 'secret1!')).toBe('not_authenticated');
    expect((await world.security.users.list()).map(({ loginName }) => loginName)).toEqual(['admin', 'ops']);
  }
  await world.store.append('$user-kim', -2, [json('$UserUpdated', { groups: ['a', 7, null], disabled: 'yes' })]);
  expect(await world.security.users.get('kim')).toMatchObject({ fullName: null, groups: ['a'], isDisabled: true });
});

test('names listed twice are shown once, in order', async () => {
  for (const name of ['ops', 'zoe', 'admin', 'ops'])
    await world.store.append('$users', -2, [{ ...json('$User', name), isJson: false }]);
  await setMetadata(world.store, 'unrelated', {});
  expect((await world.security.users.list()).map(({ loginName }) => loginName)).toEqual(['admin', 'ops']);
});
