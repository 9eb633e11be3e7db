import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { createSecurity, type RunningSecurity } from '../../core/security/security.ts';
import { formatUserRecord, parseUserRecord } from '../../core/security/user-streams.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { installFiles, unpackSet } from '../support/fixtures.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';
import { CONFIG, outcome } from './kit.ts';

let opened: DirectoryStore;
let security: RunningSecurity;
let endAfterStart: number;

beforeAll(async () => {
  const storage = new MemoryStorage();
  await installFiles(storage, unpackSet('orders-1-before'));
  const clock = new ManualClock(Date.UTC(2026, 10, 21, 7, 28, 12), 'microtask');
  opened = await openTestStore({ storage, clock });
  security = createSecurity(
    { store: opened.store, keys: nodeKeys, clock, ids: new SeededIds(), log: silentLog, meter: silentMeter },
    CONFIG,
  );
  const before = opened.store.end;
  await security.start();
  endAfterStart = opened.store.end - before;
});
afterAll(() => opened.close());

describe('users of a directory of the reference database', () => {
  test('are all there, so that a start writes nothing', () => {
    expect(endAfterStart).toBe(0);
  });

  test.each([
    ['admin', 'changeit', ['$admins']],
    ['ops', 'changeit', ['$ops']],
    ['ouro', 'n3w-Pass', ['accounting']],
  ])('%s logs in', async (name, password, roles) => {
    expect(await security.authenticator.login(name, password, null)).toEqual({ name, roles });
  });

  test.each([
    ['admin', 'Changeit'],
    ['ouro', 'changeit'],
    ['gone', 'changeit'],
    ['gone', ''],
    ['Admin', 'changeit'],
    ['nobody', 'changeit'],
    ['', ''],
  ])('%s with %j does not', async (name, password) => {
    expect(await outcome(() => security.authenticator.login(name, password, null))).toBe('not_authenticated');
  });

  test('are listed as recorded', async () => {
    expect(
      (await security.users.list()).map(({ loginName, fullName, groups, isDisabled }) => [
        loginName,
        fullName,
        groups,
        isDisabled,
      ]),
    ).toEqual([
      ['admin', 'Event Store Administrator', ['$admins'], false],
      ['gone', 'Was Disabled', [], true],
      ['ops', 'Event Store Operations', ['$ops'], false],
      ['ouro', 'Ouro Boros', ['accounting'], false],
    ]);
    const { updatedMs, updatedTicks } = await security.users.get('ouro');
    expect([new Date(updatedMs).toISOString(), updatedTicks]).toEqual(['2026-11-21T07:18:51.400Z', 3_654]);
  });

  test('have records that we would write byte for byte', async () => {
    for (const name of ['admin', 'ops', 'ouro', 'gone']) {
      const { data } = await opened.store.readEvent(`$user-${name}`, 'last');
      expect(formatUserRecord(parseUserRecord(name, data)!)).toEqual(new Uint8Array(data));
    }
  });

  test('have the documented passwords', async () => {
    expect(await security.hasDefaultPasswords()).toBe(true);
  });
});
