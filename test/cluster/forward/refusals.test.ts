import { afterEach, describe, expect, test } from 'vitest';
import { UP_TO_DATE_MS, upToDateOf } from '../../../core/cluster/up-to-date/up-to-date.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { createSecurity } from '../../../core/security/security.ts';
import type { RunningSecurity } from '../../../core/security/security.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { basic } from '../../handlers/secured.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { Members } from './kit.ts';

let members: Members | null = null;
afterEach(async () => {
  await members?.close();
  members = null;
});

const ENABLE = '/users/kim/command/enable';

/** A leader and a follower with users, of which the follower hears only when it looks. */
async function two() {
  const all = (members = new Members());
  const securities: RunningSecurity[] = [];
  let looks = 0;
  const open = () =>
    all.open((store, index) => {
      const { log } = store;
      const upToDate = upToDateOf(
        {
          refresh: () => {
            if (index === 1) looks++;
            return log.refresh();
          },
        },
        all.cluster.clock,
      );
      const security = createSecurity(
        {
          store: store.store,
          keys: nodeKeys,
          clock: all.cluster.clock,
          ids: new SeededIds(80 + index),
          log: silentLog,
          meter: silentMeter,
          upToDate,
        },
        {
          passwordFormat: 'compatible',
          allowAnonymousStreamAccess: false,
          adminPassword: 'changeit',
          opsPassword: 'changeit',
        },
      );
      securities.push(security);
      return { security, addressOf: () => '192.0.2.1' };
    });
  const leader = await open();
  const [{ users }] = securities as [RunningSecurity];
  await securities[0]!.start();
  await users.create({ loginName: 'kim', fullName: null, groups: [], password: 'kim-pass' });
  const follower = await open();
  await all.leads(leader, follower);
  await securities[1]!.start();
  return { leader, follower, users, looks: () => looks, second: () => all.cluster.clock.advance(UP_TO_DATE_MS) };
}

describe('before a member that does not lead refuses somebody it looks what others have written', () => {
  test('a user who was made elsewhere a moment ago gets in, and so does a new password', async () => {
    const { follower, users, second, looks } = await two();
    await users.create({ loginName: 'ada', fullName: null, groups: ['$admins'], password: 'ada-pass' });
    expect((await follower.send('POST', ENABLE, { authorization: basic('ada', 'ada-pass') })).status).toBe(200);
    expect(looks()).toBe(1);
    await second();
    members!.isFed = false;
    await users.resetPassword('ada', 'new-pass');
    expect((await follower.send('GET', '/users', { authorization: basic('ada', 'new-pass') })).status).toBe(200);
  });

  test('a user who was given a group elsewhere a moment ago may what the group may', async () => {
    const { follower, users } = await two();
    const kim = { authorization: basic('kim', 'kim-pass') };
    expect((await follower.send('GET', '/streams/x', kim)).status).toBe(404);
    await users.update('kim', { groups: ['$admins'] });
    expect((await follower.send('POST', ENABLE, kim)).status).toBe(200);
  });

  test('who is wrong is refused there, at the price of one question a second and one failure each', async () => {
    const { follower, looks, second } = await two();
    const wrong = { authorization: basic('kim', 'guess') };
    for (let i = 0; i < 10; i++) expect((await follower.send('POST', ENABLE, wrong)).status).toBe(401);
    expect((await follower.send('POST', ENABLE, wrong)).status).toBe(429);
    expect([looks(), members!.forwarded]).toEqual([1, []]);
    await second();
    expect((await follower.send('POST', ENABLE, { authorization: basic('nobody', 'guess') })).status).toBe(401);
    expect(looks()).toBe(2);
  });

  test('where the caller says nothing there is nothing to look for', async () => {
    const { follower, looks } = await two();
    expect((await follower.append('x', '30000000-0000-4000-8000-000000000001')).status).toBe(401);
    expect((await follower.send('POST', ENABLE)).status).toBe(401);
    expect([looks(), members!.forwarded]).toEqual([0, []]);
  });
});

describe('what is asked for the end of the log', () => {
  test('is waited for for a second at most, and what came of it counts for the rest of that second', async () => {
    const clock = new ManualClock();
    let asked = 0;
    const upToDate = upToDateOf(
      {
        refresh: () => {
          asked++;
          return new Promise(() => {});
        },
      },
      clock,
    );
    const [one, other] = [upToDate(), upToDate()];
    expect([asked, one === other]).toEqual([1, true]);
    await clock.advance(UP_TO_DATE_MS - 1);
    expect(clock.sleeping).toBe(1);
    await clock.advance(1);
    await one;
    expect(clock.sleeping).toBe(0);
  });

  test('is asked again a second later, and never rejects', async () => {
    const clock = new ManualClock();
    let asked = 0;
    const upToDate = upToDateOf(
      {
        refresh: async () => {
          asked++;
          throw new Error('no bucket');
        },
      },
      clock,
    );
    await upToDate();
    expect([upToDate(), asked, clock.sleeping]).toEqual([null, 1, 0]);
    await clock.advance(UP_TO_DATE_MS);
    await upToDate();
    expect(asked).toBe(2);
  });
});
