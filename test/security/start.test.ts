import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { contentOf, giveEmptyPassword, openWorld, outcome } from './kit.ts';

describe('a first start', () => {
  test('creates the default users with their groups and passwords', async () => {
    const world = await openWorld({ adminPassword: 'a!', opsPassword: 'o!' });
    expect((await world.security.users.list()).map(({ loginName, groups }) => [loginName, groups])).toEqual([
      ['admin', ['$admins']],
      ['ops', ['$ops']],
    ]);
    expect(world.writes).toEqual([
      'append $$$user-admin',
      'append $user-admin',
      'append $users',
      'append $$$user-ops',
      'append $user-ops',
      'append $users',
    ]);
    expect(await outcome(() => world.security.authenticator.login('admin', 'a!', null))).toBe('ok');
    expect(await outcome(() => world.security.authenticator.login('ops', 'o!', null))).toBe('ok');
    expect(await contentOf(world.store, '$users')).toEqual(['$User admin', '$User ops']);
    await world.close();
  });

  test('answers nobody before it is done', async () => {
    const world = await openWorld({}, { start: false });
    expect(await outcome(() => world.security.authenticator.login('admin', 'changeit', null))).toBe('not_ready');
    await world.security.start();
    expect(await outcome(() => world.security.authenticator.login('admin', 'changeit', null))).toBe('ok');
    await world.close();
    expect(await outcome(() => world.another().authenticator.login('admin', 'changeit', null))).toBe('not_ready');
  });

  test.each([1, 2, 3, 4, 5, 6])('that ends before write %i is completed by the next', async (n) => {
    const world = await openWorld({}, { start: false });
    let writes = 0;
    world.beforeWrite = () => {
      if (++writes === n) throw new SkuaError('io_error', 'crash');
    };
    expect(await outcome(() => world.security.start())).toBe('io_error');
    expect(await outcome(() => world.security.authenticator.login('admin', 'changeit', null))).toBe('not_ready');
    world.beforeWrite = () => {};
    const next = world.another();
    await next.start();
    expect((await next.users.list()).map(({ loginName }) => loginName)).toEqual(['admin', 'ops']);
    expect(world.writes.length).toBe(6);
    await world.close();
  });
});

describe('a later start', () => {
  test('writes nothing, whatever the passwords of the options are', async () => {
    const storage = new MemoryStorage();
    const first = await openWorld({}, { storage });
    await first.close();
    const world = await openWorld({ adminPassword: 'other' }, { storage });
    expect(world.writes).toEqual([]);
    expect(await outcome(() => world.security.authenticator.login('admin', 'changeit', null))).toBe('ok');
    expect(await outcome(() => world.security.authenticator.login('admin', 'other', null))).toBe('not_authenticated');
    await world.close();
  });

  test.each(['soft', 'hard'] as const)('does not create again what was deleted (%s), and says so', async (kind) => {
    const world = await openWorld();
    await world.store.deleteStream('$user-ops', -2, kind);
    world.writes.length = 0;
    const next = world.another();
    await next.start();
    expect(world.writes).toEqual([]);
    expect(world.log.at('info').at(-1)).toMatch(/deleted and is not created again/);
    expect((await next.users.list()).map(({ loginName }) => loginName)).toEqual(['admin']);
    await world.close();
  });

  test('goes on although $users is gone for ever', async () => {
    const world = await openWorld();
    await world.store.deleteStream('$users', -2, 'hard');
    const next = world.another();
    await next.start();
    expect(world.log.at('warn')).toHaveLength(2);
    expect(await outcome(() => next.authenticator.login('admin', 'changeit', null))).toBe('ok');
    await world.close();
  });
});

describe('default passwords', () => {
  test('an empty one that another program has given counts as one', async () => {
    const world = await openWorld({ adminPassword: 'a', opsPassword: 'b' });
    expect(await world.security.hasDefaultPasswords()).toBe(false);
    await giveEmptyPassword(world, 'ops');
    expect(await world.security.hasDefaultPasswords()).toBe(true);
    await world.security.users.disable('ops');
    expect(await world.security.hasDefaultPasswords()).toBe(false);
    await world.close();
  });

  test.each(['', ' ', '\t\n', '\0'])('%j would be given to nobody: the start is refused', async (adminPassword) => {
    const world = await openWorld({ adminPassword, opsPassword: 'b' }, { start: false });
    expect(await world.security.hasDefaultPasswords()).toBe(true);
    expect(await outcome(() => world.security.start())).toBe('invalid_user');
    await world.close();
  });

  test('are in force until both users have others, are disabled or deleted', async () => {
    const world = await openWorld();
    const { users } = world.security;
    expect(await world.security.hasDefaultPasswords()).toBe(true);
    await users.resetPassword('admin', 'better');
    expect(await world.security.hasDefaultPasswords()).toBe(true);
    await users.disable('ops');
    expect(await world.security.hasDefaultPasswords()).toBe(false);
    await users.enable('ops');
    expect(await world.security.hasDefaultPasswords()).toBe(true);
    await users.delete('ops');
    expect(await world.security.hasDefaultPasswords()).toBe(false);
    await world.close();
  });

  test('are not in force where the options set others', async () => {
    const world = await openWorld({ adminPassword: 'a', opsPassword: 'b' });
    expect(await world.security.hasDefaultPasswords()).toBe(false);
    await world.close();
  });
});
