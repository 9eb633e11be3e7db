import { afterEach, expect, test } from 'vitest';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { createSecurity } from '../../../core/security/security.ts';
import type { RunningSecurity } from '../../../core/security/security.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { fakePage } from '../../support/fake-page.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { Members } from './kit.ts';
import type { TestMember } from './kit.ts';

let members: Members;
afterEach(() => members.close());

const OURS = { 'x-requested-with': 'skua', 'content-type': 'application/json' };
const CHANGE = '/users/ops/command/disable';

/** A leader and a follower, each with what the keys of sessions are sealed under. */
async function two(...tokens: readonly [string, string]) {
  members = new Members();
  const securities: RunningSecurity[] = [];
  const open = () =>
    members.open((_, index, store) => {
      const security = createSecurity(
        {
          store,
          keys: nodeKeys,
          clock: members.cluster.clock,
          ids: new SeededIds(80 + index),
          log: silentLog,
          meter: silentMeter,
          sessions: { secrets: async () => [tokens[index]!] },
        },
        {
          passwordFormat: 'compatible',
          allowAnonymousStreamAccess: false,
          adminPassword: 'changeit',
          opsPassword: 'changeit',
        },
      );
      securities.push(security);
      return { security, page: fakePage() };
    });
  const leader = await open();
  await securities[0]!.start();
  await securities[0]!.users.create({ loginName: 'kim', fullName: null, groups: [], password: 'kim-pass' });
  await securities[0]!.users.create({ loginName: 'ada', fullName: null, groups: ['$admins'], password: 'ada-pass' });
  const follower = await open();
  await members.leads(leader, follower);
  await securities[1]!.start();
  return { leader, follower, users: securities[0]!.users };
}

async function cookieOf(member: TestMember, user = 'ada', password = 'ada-pass'): Promise<{ readonly cookie: string }> {
  const reply = await member.send('POST', '/ui/session', OURS, JSON.stringify({ user, password }));
  expect([reply.status, reply.text]).toEqual([200, expect.stringContaining(`"user":"${user}"`)]);
  return { cookie: reply.headers.get('set-cookie')!.split(';')[0]! };
}

test.each([
  ['with the same token', 'shared', 'shared', 200],
  ['with tokens of their own', 'one', 'other', 401],
] as const)(
  'members %s: a session decides changes at the leader as its user, and counts at the other member as it should',
  async (_, one, other, elsewhere) => {
    const { leader, follower } = await two(one, other);
    const ada = await cookieOf(follower);
    expect((await follower.send('GET', '/users', ada)).status).toBe(200);
    expect((await follower.send('POST', CHANGE, { ...ada, ...OURS })).status).toBe(200);
    expect(new Set(members.forwarded.map(({ to, request }) => `${to} ${request.target}`))).toEqual(
      new Set(['0 /cluster/append']),
    );
    expect(JSON.stringify(members.forwarded)).not.toContain('skua-session');
    await leader.store.log.refresh();
    expect((await leader.send('GET', '/users', ada)).status).toBe(elsewhere);
    const kim = await cookieOf(follower, 'kim', 'kim-pass');
    expect((await follower.send('POST', CHANGE, { ...kim, ...OURS })).status).toBe(403);
  },
);

test('a session that does not come from our own page is not passed on', async () => {
  const { follower } = await two('shared', 'shared');
  const ada = await cookieOf(follower);
  expect((await follower.send('POST', CHANGE, ada)).status).toBe(401);
  expect(
    (await follower.send('POST', CHANGE, { ...ada, origin: 'http://127.0.0.1:9999', 'sec-fetch-site': 'same-site' }))
      .status,
  ).toBe(403);
  expect(members.forwarded).toEqual([]);
});

test('the leader asks who the user is now, whatever the member still believes', async () => {
  const { follower, users } = await two('shared', 'shared');
  const ada = await cookieOf(follower);
  await users.update('ada', { groups: [] });
  expect((await follower.send('POST', CHANGE, { ...ada, ...OURS })).status).toBe(403);
});

test('nobody but a member says whose session a request is of', async () => {
  const { leader } = await two('shared', 'shared');
  const forwarded = JSON.stringify({
    epoch: 0,
    base: 'http://127.0.0.1:2113',
    address: null,
    isLocal: false,
    caller: null,
    certificate: null,
    session: { user: 'ada', lastEventNumber: 0, metadataVersion: 0 },
  });
  expect((await leader.send('POST', CHANGE, { 'skua-forwarded': forwarded, ...OURS })).status).toBe(401);
});

test('a logout at one member ends the session at the others', async () => {
  const { leader, follower } = await two('shared', 'shared');
  const ada = await cookieOf(follower);
  await leader.store.log.refresh();
  expect((await leader.send('GET', '/users', ada)).status).toBe(200);
  expect((await leader.send('DELETE', '/ui/session', { ...ada, ...OURS })).status).toBe(204);
  await follower.store.log.refresh();
  for (const member of [leader, follower]) expect((await member.send('GET', '/users', ada)).status).toBe(401);
});
