import { afterEach, describe, expect, test } from 'vitest';
import { formatWrites, readWrites } from '../../../core/cluster/format/carried-writes.ts';
import type { CarriedWrite } from '../../../core/cluster/format/carried-writes.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { createSecurity } from '../../../core/security/security.ts';
import type { RunningSecurity } from '../../../core/security/security.ts';
import { ANY } from '../../../core/streams/api.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { FORWARDED_HEADER } from '../../../handlers/http/forwarded.ts';
import { encodeText } from '../../../core/base/text.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { event } from '../replica/kit.ts';
import { EVENTS, Members, newId, PATIENCE_MS, SECRET, unreachable } from './kit.ts';

let members: Members;

afterEach(() => members.close());

const as = (name: string) => ({
  authorization: `Basic ${btoa(`${name}:${name}-pass`)}`,
  'content-type': 'application/json',
});

/** A leader and a follower with users. */
async function secured() {
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
        },
        {
          passwordFormat: 'compatible',
          allowAnonymousStreamAccess: true,
          adminPassword: 'admin-pass',
          opsPassword: 'ops-pass',
        },
      );
      securities.push(security);
      return { security, isTrustedProxy: () => true, options: { trustedAuthHeader: 'es-trustedauth' } };
    });
  const leader = await open();
  await securities[0]!.start();
  await securities[0]!.users.create({ loginName: 'kim', fullName: null, groups: ['team'], password: 'kim-pass' });
  const follower = await open();
  await members.leads(leader, follower);
  await securities[1]!.start();
  const listed = await leader.send(
    'POST',
    '/streams/s/metadata',
    { ...as('admin'), 'es-eventid': newId() },
    '{"$acl":{"$w":["team"]}}',
  );
  expect(listed.status).toBe(201);
  await follower.store.log.refresh();
  members.forwarded.length = 0;
  const append = (headers: Record<string, string>) =>
    follower.send(
      'POST',
      '/streams/s',
      { ...headers, 'content-type': EVENTS },
      JSON.stringify([{ eventId: newId(), eventType: 't', data: {} }]),
    );
  const written = () => members.forwarded.map(({ request: { body } }) => readWrites(body).writes[0]!.by);
  return { leader, follower, users: securities[0]!.users, append, written };
}

describe('for whom something is written', () => {
  test('a user goes by name, and the leader asks who he is there now; who is known otherwise goes as the member found him', async () => {
    const { users, append, written } = await secured();
    expect((await append(as('kim'))).status).toBe(201);
    expect((await append({ 'es-trustedauth': 'zoe; team' })).status).toBe(201);
    expect([(await append({})).status, (await append({ 'es-trustedauth': 'zoe; other' })).status]).toEqual([401, 403]);
    expect(written()).toEqual([
      { name: 'kim', roles: null, asks: 'list' },
      { name: 'zoe', roles: ['team'], asks: 'list' },
      { name: null, roles: [], asks: 'list' },
      { name: 'zoe', roles: ['other'], asks: 'list' },
    ]);
    // The follower is not fed, and still believes what was.
    members.isFed = false;
    await users.update('kim', { groups: ['other'] });
    const [refused] = await Promise.all([append(as('kim')), members.cluster.clock.advance(5_000)]);
    expect(refused.status).toBe(403);
    await users.disable('kim');
    const [gone] = await Promise.all([append(as('kim')), members.cluster.clock.advance(5_000)]);
    expect(gone.status).toBe(401);
  });

  test('a condition goes with its write, and the leader decides it', async () => {
    const { leader, follower } = await secured();
    const seat = { type: 'Enrolled', tags: ['course:1'], data: '{}' };
    const appendIf = (condition: unknown) =>
      follower.send('POST', '/dcb/append', as('admin'), JSON.stringify({ events: [seat], condition }));
    const after = leader.store.store.end - 1;
    const all = { failIfEventsMatch: { items: [] }, after };
    expect(JSON.parse((await appendIf(all)).text)).toMatchObject({ appendConditionFailed: false });
    expect(JSON.parse((await appendIf(all)).text)).toMatchObject({
      appendConditionFailed: true,
      matched: { stream: 'dcb', number: 0 },
    });
    const carried = members.forwarded.flatMap(({ request: { body } }) => readWrites(body).writes);
    expect(carried.filter(({ kind }) => kind === 'conditional')).toMatchObject([
      { condition: { failIfEventsMatch: { items: [] }, after } },
      { condition: { failIfEventsMatch: { items: [] }, after } },
    ]);
  });

  test('appends to several streams with what is expected of each are decided by the leader', async () => {
    const { leader, follower } = await secured();
    const post = (body: unknown) => follower.send('POST', '/streams', as('admin'), JSON.stringify(body));
    const appends = [
      { stream: 'together-1', expected: 'none', events: [{ type: 'T', data: 'one' }] },
      { stream: 'together-2', expected: 'none', events: [{ type: 'T', dataBase64: 'AP8=' }] },
    ];
    expect(JSON.parse((await post({ appends })).text)).toMatchObject({
      streams: [
        { stream: 'together-1', version: 0 },
        { stream: 'together-2', version: 0 },
      ],
      isRepeat: false,
    });
    const refused = await post({ appends });
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
      409,
      { code: 'consistency_violation', data: { violations: [{ stream: 'together-1' }, { stream: 'together-2' }] } },
    ]);
    const one = { stream: 'together-1', expected: 0, events: [{ type: 'T' }] };
    expect(JSON.parse((await post(one)).text)).toMatchObject({ streams: [{ stream: 'together-1', version: 1 }] });
    expect((await post(one)).status).toBe(400);
    expect((await leader.store.store.streamInfo('together-1')).lastEventNumber).toBe(1);
  });

  test('a user who is changed while his write waits for its turn is asked for again', async () => {
    const { users, append } = await secured();
    const held = members.hold();
    const disabling = users.disable('kim');
    await held.begun;
    const arrived = Promise.withResolvers<void>();
    members.wire = (deliver) => {
      const delivered = deliver();
      arrived.resolve();
      return delivered;
    };
    const appending = append(as('kim'));
    await arrived.promise;
    // The leader has looked him up, and found what is not so any more when his write has its turn.
    for (let i = 0; i < 10; i++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    held.go();
    await disabling;
    const [gone] = await Promise.all([appending, members.cluster.clock.advance(5_000)]);
    expect(gone.status).toBe(401);
  });

  test('a member that does not lead in the epoch of a write says nothing of its users', async () => {
    const { leader } = await secured();
    const body = formatWrites(99, [
      {
        by: { name: 'nobody', roles: null, asks: 'list' },
        kind: 'append',
        writes: [{ stream: 's', expectedVersion: ANY, events: [event('t')] }],
        checks: [],
        isRepeatable: true,
        unchanged: [],
        atMs: null,
      },
    ]);
    const reply = await leader.app(
      new Request('http://127.0.0.1:2113/cluster/append', {
        method: 'POST',
        headers: {
          host: '127.0.0.1:2113',
          'content-type': 'application/octet-stream',
          authorization: `Cluster ${SECRET}`,
        },
        body: body as Uint8Array<ArrayBuffer>,
      }),
    );
    expect([reply.status, await reply.json()]).toMatchObject([200, { outcomes: [null] }]);
  });

  test("the list of the stream is the leader's, of the moment", async () => {
    const { leader, follower, append } = await secured();
    members.wire = async (deliver, request) => {
      if (request.headers[FORWARDED_HEADER] === undefined)
        await leader.send(
          'POST',
          '/streams/s/metadata',
          { ...as('admin'), 'es-eventid': newId() },
          '{"$acl":{"$w":["nobody"]}}',
        );
      return deliver();
    };
    expect((await append(as('kim'))).status).toBe(403);
    expect(await follower.store.store.streamInfo('s')).toMatchObject({ lastEventNumber: -1 });
  });
});

describe('users at a member that does not lead', () => {
  test('are written at the leader, each write in an exchange of its own, and are there at once', async () => {
    const { follower, leader } = await secured();
    const made = await follower.send(
      'POST',
      '/users',
      as('admin'),
      JSON.stringify({ loginName: 'ada', fullName: 'Ada', groups: ['$admins'], password: 'ada-pass' }),
    );
    expect([
      made.status,
      (await follower.send('GET', '/users/ada', as('ada'))).status,
      (await leader.send('GET', '/users/ada', as('ada'))).status,
    ]).toEqual([201, 200, 200]);
    for (const [method, path, body, status] of [
      ['PUT', '/users/ada', '{"fullName":"A.","groups":["$admins"]}', 200],
      ['POST', '/users/ada/command/disable', null, 200],
      ['POST', '/users/ada/command/enable', null, 200],
      ['POST', '/users/ada/command/reset-password', '{"newPassword":"new"}', 200],
      ['DELETE', '/users/ada', null, 200],
      ['DELETE', '/users/ada', null, 404],
    ] as const)
      expect([path, (await follower.send(method, path, as('admin'), body)).status]).toEqual([path, status]);
    expect(await follower.send('DELETE', '/users/admin', as('admin'))).toMatchObject({
      status: 409,
      text: expect.stringContaining('last_administrator'),
    });
    expect(new Set(members.forwarded.map(({ to, request }) => `${to} ${request.target}`))).toEqual(
      new Set(['0 /cluster/append']),
    );
  });

  test('of two administrators who are removed at two members at once one remains', async () => {
    const { follower, leader } = await secured();
    await follower.send(
      'POST',
      '/users',
      as('admin'),
      JSON.stringify({ loginName: 'ada', fullName: 'Ada', groups: ['$admins'], password: 'ada-pass' }),
    );
    let isFirst = true;
    members.wire = async (deliver) => {
      if (!isFirst) return deliver();
      isFirst = false;
      expect((await leader.send('POST', '/users/admin/command/disable', as('admin'))).status).toBe(200);
      return deliver();
    };
    expect(await follower.send('POST', '/users/ada/command/disable', as('admin'))).toMatchObject({ status: 401 });
    expect((await follower.send('GET', '/users/ada', as('ada'))).status).toBe(200);
  });

  test('of two whom another administrator removes at two members at once one remains', async () => {
    const { follower, leader } = await secured();
    const zoe = { 'es-trustedauth': 'zoe; $admins', 'content-type': 'application/json' };
    await follower.send(
      'POST',
      '/users',
      zoe,
      JSON.stringify({ loginName: 'ada', fullName: 'Ada', groups: ['$admins'], password: 'ada-pass' }),
    );
    let isFirst = true;
    members.wire = async (deliver) => {
      if (!isFirst) return deliver();
      isFirst = false;
      expect((await leader.send('POST', '/users/admin/command/disable', zoe)).status).toBe(200);
      return deliver();
    };
    expect(await follower.send('POST', '/users/ada/command/disable', zoe)).toMatchObject({
      status: 409,
      text: expect.stringContaining('last_administrator'),
    });
    expect((await follower.send('GET', '/users/ada', as('ada'))).status).toBe(200);
  });

  test('who is no administrator any more at the leader changes nobody', async () => {
    const { follower, users } = await secured();
    await users.create({ loginName: 'ada', fullName: null, groups: ['$admins'], password: 'ada-pass' });
    await follower.store.log.refresh();
    expect((await follower.send('GET', '/users', as('ada'))).status).toBe(200);
    await users.update('ada', { groups: [] });
    expect((await follower.send('POST', '/users/kim/command/disable', as('ada'))).status).toBe(403);
  });
});

describe('what a member writes for itself', () => {
  async function two() {
    members = new Members();
    const [leader, follower] = [await members.open(), await members.open()];
    await members.leads(leader, follower);
    return {
      leader,
      follower,
      own: () => follower.elsewhere.append(follower.store.store, '$own', ANY, [event('t', '{"a":1}')]),
    };
  }

  test('goes to the leader as the system user, byte for byte, and is decided here where nobody leads', async () => {
    const { leader, follower, own } = await two();
    expect(await own()).toMatchObject({ firstEventNumber: 0, isRepeat: false });
    expect(readWrites(members.forwarded[0]!.request.body).writes[0]).toMatchObject({
      by: { name: 'system', asks: 'nothing' },
      writes: [{ stream: '$own', events: [{ type: 't', data: encodeText('{"a":1}') }] }],
    });
    follower.lead.knows(null);
    expect(await own()).toMatchObject({ firstEventNumber: 1 });
    expect([members.forwarded.length, (await leader.types('$own')).length]).toEqual([1, 2]);
  });

  test('is begun again where it has waited for too long, and is certainly not in the log', async () => {
    const { leader, own } = await two();
    let tries = 0;
    members.wire = async (deliver) => {
      if (tries++ > 0) return deliver();
      await members.cluster.clock.sleep(PATIENCE_MS + 1_000);
      throw Object.assign(unreachable(), { data: { reason: 'time' } });
    };
    const writing = own();
    await members.cluster.clock.advance(PATIENCE_MS + 1_000);
    expect(await writing).toMatchObject({ firstEventNumber: 0, isRepeat: false });
    expect([tries, (await leader.types('$own')).length]).toEqual([2, 1]);
  });
});

test('what several callers write within one breath goes together, and one that is refused fails no other', async () => {
  members = new Members();
  const [leader, follower] = [await members.open(), await members.open()];
  await members.leads(leader, follower);
  const post = (expected: string) =>
    follower.send(
      'POST',
      '/streams/s',
      { 'content-type': EVENTS, 'es-expectedversion': expected },
      JSON.stringify([{ eventId: newId(), eventType: 't', data: {} }]),
    );
  const replies = await Promise.all([post('-1'), post('7'), post('0'), follower.send('DELETE', '/streams/none')]);
  expect(replies.map(({ status, headers }) => [status, headers.get('es-currentversion')])).toEqual([
    [201, null],
    [400, '0'],
    [201, null],
    [400, '-1'],
  ]);
  // What can't be repeated goes by itself.
  expect(
    members.forwarded.map(({ request: { body } }) => readWrites(body).writes.map(({ kind }) => kind)).toSorted(),
  ).toEqual([['append', 'append', 'append'], ['soft']]);
});

test('a group that is so long that the leader reads it in its turn is written as any other', async () => {
  members = new Members();
  const [leader, follower] = [await members.open(), await members.open()];
  await members.leads(leader, follower);
  const long = () =>
    follower.send(
      'POST',
      '/streams/s',
      { 'content-type': EVENTS },
      JSON.stringify([{ eventId: newId(), eventType: 't', data: 'x'.repeat(6_000) }]),
    );
  const [replies] = await Promise.all([
    Promise.all(Array.from({ length: 60 }, long)),
    members.cluster.clock.advance(1_000),
  ]);
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
  expect(members.forwarded.map(({ request: { body } }) => body.length > 262_144)).toEqual([true]);
});

describe('the form', () => {
  const write: CarriedWrite = {
    by: { name: 'kim', roles: null, asks: 'list' },
    kind: 'append',
    writes: [
      {
        stream: 'é',
        expectedVersion: -2,
        events: [{ id: 'a', type: 't', isJson: false, data: Buffer.from([0, 255]), metadata: Buffer.from('m') }],
      },
    ],
    checks: [],
    isRepeatable: true,
    unchanged: [{ stream: 'u', lastEventNumber: 1, metadataVersion: 0 }],
    atMs: 7,
  };

  test('holds what was written, byte for byte', () => {
    members = new Members();
    const many = [
      write,
      {
        ...write,
        kind: 'streams',
        writes: [...write.writes, ...write.writes],
        checks: [{ stream: 'c', expectedVersion: -1, isAsked: true }],
        unchanged: [],
        atMs: null,
        isRepeatable: false,
      },
    ] as const;
    expect(JSON.stringify(readWrites(formatWrites(3, many)))).toBe(
      JSON.stringify({
        epoch: 3,
        writes: many.map(({ checks, unchanged, writes, ...rest }) => ({
          ...rest,
          checks,
          unchanged,
          writes: writes.map(({ events, ...each }) => ({
            ...each,
            events: events.map(({ data, metadata, ...event }) => ({
              ...event,
              data: Uint8Array.from(data),
              metadata: Uint8Array.from(metadata),
            })),
          })),
        })),
      }),
    );
  });

  test.each([
    ['a user without a name', { by: { name: null, roles: null, asks: 'list' } }],
    ['rights of another kind', { by: { name: 'a', roles: [], asks: 'all' } }],
    ['groups that are none', { by: { name: 'a', roles: [1], asks: 'list' } }],
    ['another kind', { kind: 'x' }],
    ['two streams of an append', { writes: [...write.writes, ...write.writes] }],
  ])('%s is refused', (_, other) => {
    members = new Members();
    expect(() => readWrites(formatWrites(3, [{ ...write, ...other } as CarriedWrite]))).toThrow(
      expect.objectContaining({ code: 'bad_request' }),
    );
  });

  test('so is what is cut off, or goes on', () => {
    members = new Members();
    const body = formatWrites(3, [write]);
    for (const cut of [
      body.subarray(0, 2),
      body.subarray(0, -1),
      Buffer.concat([body, Buffer.of(1)]),
      Buffer.from('\0\0\0\x02{}'),
    ])
      expect(() => readWrites(cut)).toThrow(expect.objectContaining({ code: 'bad_request' }));
  });
});
