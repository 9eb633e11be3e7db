import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentMeter } from '../../core/ports/meter.ts';
import { isBlankPassword, isEmptyPassword } from '../../core/security/format/user.ts';
import { Passwords } from '../../core/security/passwords.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { giveEmptyPassword, openWorld, outcome, type World } from './kit.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
  await world.security.users.create({ loginName: 'kim', fullName: null, groups: ['pickers'], password: 'secret' });
});
afterEach(() => world.close());

const login = (password: string, address: string | null, isLocal?: boolean) =>
  outcome(() => world.security.authenticator.login('kim', password, address, isLocal));

test('nobody is given one', async () => {
  const { users } = world.security;
  world.writes.length = 0;
  for (const password of ['', ' ', '\t \n', '\u00a0', '\0', '\0'.repeat(64), ' \0']) {
    expect(await outcome(() => users.create({ loginName: 'ann', fullName: null, groups: [], password }))).toBe(
      'invalid_user',
    );
    expect(await outcome(() => users.resetPassword('kim', password))).toBe('invalid_user');
    expect(await outcome(() => users.changePassword('kim', 'secret', password))).toBe('invalid_user');
  }
  expect(world.writes).toEqual([]);
  expect(await outcome(() => users.resetPassword('kim', ' x '))).toBe('ok');
});

describe('who has one', () => {
  beforeEach(() => giveEmptyPassword(world, 'kim'));

  test('is let in on this machine, and nowhere else', async () => {
    expect(await login('', '127.0.0.1', true)).toBe('ok');
    expect(await login('', '127.0.0.1', true)).toBe('ok');
    world.keys.derivations = [];
    for (const address of ['127.0.0.1', '192.0.2.7', '::1', null])
      expect(await login('', address)).toBe('not_authenticated');
    // Nobody learns by the time of the answer who has an empty password, or who is there.
    expect(await outcome(() => world.security.authenticator.login('nobody', '', '192.0.2.7'))).toBe(
      'not_authenticated',
    );
    expect(world.keys.derivations).toEqual([]);
    expect(await login('', '127.0.0.1', true)).toBe('ok');
  });

  test('is not let in by a password that is derived to the same bytes', async () => {
    for (const password of ['\0', '\0\0', '\0'.repeat(64), '\0'.repeat(65)])
      expect(await login(password, '192.0.2.7')).toBe('not_authenticated');
  });

  test('changes it from this machine only', async () => {
    const { users } = world.security;
    expect(await outcome(() => users.changePassword('kim', '', 'new', '192.0.2.7'))).toBe('wrong_password');
    expect(await outcome(() => users.changePassword('kim', '', 'new', '127.0.0.1', true))).toBe('ok');
    expect(await login('new', '192.0.2.7')).toBe('ok');
    expect(await login('', '127.0.0.1', true)).toBe('not_authenticated');
  });

  test('gets another one by an administrator', async () => {
    await world.security.users.resetPassword('kim', 'new');
    expect(await login('new', '192.0.2.7')).toBe('ok');
  });
});

test('real derivations of nothing and of U+0000 are the same, so both count as empty', async () => {
  const passwords = new Passwords(nodeKeys, silentMeter, 'compatible');
  const secret = await passwords.create('');
  expect(await passwords.matches(secret, '\0\0\0')).toBe(true);
  expect(['', '\0', '\0\0', ' ', 'x\0'].map(isEmptyPassword)).toEqual([true, true, true, false, false]);
  expect(['', '\0', ' ', '\u2003\0\n', 'x\0', ' x'].map(isBlankPassword)).toEqual([
    true,
    true,
    true,
    true,
    false,
    false,
  ]);
});
