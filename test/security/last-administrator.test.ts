import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Users } from '../../core/security/api.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { createSecurity } from '../../core/security/security.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { Bucket, HookedObjects } from '../shared-log/setup.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { CONFIG, contentOf, FakeKeys, json, openWorld, outcome, type World } from './kit.ts';

let world: World;
let users: Users;
beforeEach(async () => {
  world = await openWorld();
  ({ users } = world.security);
});
afterEach(() => world.close());

const add = (loginName: string, groups: readonly string[]) =>
  users.create({ loginName, fullName: null, groups, password: 'secret' });

/** Everything by which a user stops being an administrator who can log in. */
const WAYS: readonly (readonly [string, (users: Users, name: string) => Promise<void>])[] = [
  ['deleted', (each, name) => each.delete(name)],
  ['disabled', (each, name) => each.disable(name)],
  ['put out of $admins', (each, name) => each.update(name, { groups: [] })],
];

describe.each(WAYS)('the last one is not %s', (_, remove) => {
  test('as the user admin', async () => {
    // Whoever is called admin is one, whatever the groups say.
    const expected = remove === WAYS[2]![1] ? 'ok' : 'last_administrator';
    world.writes.length = 0;
    expect(await outcome(() => remove(users, 'admin'))).toBe(expected);
    if (expected !== 'ok') expect(world.writes).toEqual([]);
  });

  test('as another one', async () => {
    await add('ann', ['$admins', 'pickers']);
    await users.delete('admin');
    expect(await outcome(() => remove(users, 'ann'))).toBe('last_administrator');
    expect(await outcome(() => world.security.authenticator.login('ann', 'secret', null))).toBe('ok');
    await add('bob', ['$admins']);
    expect(await outcome(() => remove(users, 'ann'))).toBe('ok');
    expect(await outcome(() => remove(users, 'bob'))).toBe('last_administrator');
  });

  test('while the others can not log in', async () => {
    await add('ann', ['$admins']);
    await users.delete('admin');
    await add('off', ['$admins']);
    await users.disable('off');
    await add('gone', ['$admins']);
    await users.delete('gone');
    await add('broken', ['$admins']);
    await world.store.append('$user-broken', -2, [
      json('$UserUpdated', { loginName: 'broken', groups: ['$admins'], salt: '', hash: '' }),
    ]);
    expect(await outcome(() => remove(users, 'ann'))).toBe('last_administrator');
    // These are none, and may go.
    for (const name of ['off', 'broken']) expect(await outcome(() => remove(users, name))).toBe('ok');
    await users.enable('off').catch(() => {});
  });

  test('by two who remove each other at the same time, here or on two nodes', async () => {
    const others = world.another();
    for (const [first, second] of [
      [users, users],
      [users, others.users],
    ] as const) {
      await add('ann', ['$admins']);
      await add('bob', ['$admins']);
      await users.delete('admin').catch(() => {});
      const outcomes = await Promise.all([outcome(() => remove(first, 'ann')), outcome(() => remove(second, 'bob'))]);
      expect(outcomes.toSorted()).toEqual(['last_administrator', 'ok']);
      const left = (await users.list()).filter(({ groups, isDisabled }) => groups.includes('$admins') && !isDisabled);
      expect(left.map(({ loginName }) => loginName)).toHaveLength(1);
      // Begin anew.
      await users.create({ loginName: 'admin', fullName: null, groups: ['$admins'], password: 'secret' });
      for (const name of ['ann', 'bob']) await users.delete(name).catch(() => {});
    }
  });
});

test('changes that leave the administrator one write as before', async () => {
  world.writes.length = 0;
  await users.update('admin', { fullName: 'A. D.' });
  await users.resetPassword('admin', 'new');
  expect(world.writes.filter((write) => write.endsWith('$user-admin'))).toHaveLength(2);
  expect((await contentOf(world.store, '$user-admin')).at(-1)).toContain('"fullName": "A. D."');
});

describe('on a bucket, where every function and node writes to the same log', () => {
  test.each(WAYS)(
    'one that was %s by another process between the decision and the commit counts',
    async (_, remove) => {
      const bucket = new Bucket();
      const hooks = new HookedObjects(bucket.objects);
      const [one, other] = [await bucket.open({}, () => hooks), await bucket.open()];
      const keys = new FakeKeys();
      const over = (store: EventStore, seed: number) =>
        createSecurity(
          { store, keys, clock: bucket.clock, ids: new SeededIds(seed), log: silentLog, meter: silentMeter },
          CONFIG,
        );
      const [first, second] = [over(one.store, 7), over(other.store, 8)];
      await first.start();
      for (const loginName of ['ann', 'bob'])
        await first.users.create({ loginName, fullName: null, groups: ['$admins'], password: 'secret' });
      await first.users.delete('admin');
      let isDone = false;
      hooks.onCreate = async (__, create) => {
        if (!isDone) {
          isDone = true;
          await remove(second.users, 'bob');
        }
        return create();
      };
      expect(await outcome(() => remove(first.users, 'ann'))).toBe('last_administrator');
      expect(isDone).toBe(true);
      expect(
        (await second.users.list())
          .filter(({ groups, isDisabled }) => groups.includes('$admins') && !isDisabled)
          .map(({ loginName }) => loginName),
      ).toEqual(['ann']);
      await one.close();
      await other.close();
    },
  );
});
