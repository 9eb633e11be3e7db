import { afterEach, describe, expect, test } from 'vitest';
import type { Forwarded } from '../../../handlers/http/cluster-feature.ts';
import { forwardedText, NOT_LEADER_HEADER } from '../../../handlers/http/forwarded.ts';
import { Patience } from '../../../core/cluster/patience/patience.ts';
import { EpochFence } from '../../../local/cluster/fence.ts';
import { ANY } from '../../../core/streams/api.ts';
import { event } from '../replica/kit.ts';
import { WritesElsewhere } from '../../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import { EVENTS, instanceOf, Members, newId, SECRET, unreachable } from './kit.ts';
import type { TestMember } from './kit.ts';

let members: Members;

afterEach(() => members.close());

async function one() {
  members = new Members();
  const leader = await members.open();
  await members.leads(leader);
  return leader;
}

const said = (epoch: number): Record<string, string> => ({
  'skua-member': SECRET,
  'skua-forwarded': forwardedText({
    epoch,
    base: 'http://asked.test:1',
    address: '192.0.2.9',
    isLocal: false,
    caller: null,
    certificate: null,
  } satisfies Forwarded),
});

describe('what another member has passed on', () => {
  test('is decided in the epoch in which it was sent, and refused for certain in every other one', async () => {
    const leader = await one();
    const inside = await leader.append('s', newId(), said(0));
    expect([inside.status, inside.headers.get('location'), Number(inside.headers.get('skua-log-end'))]).toEqual([
      201,
      'http://asked.test:1/streams/s/0',
      leader.store.log.end,
    ]);
    for (const epoch of [1, 7]) {
      const outside = await leader.append('s', newId(), said(epoch));
      expect([outside.status, outside.headers.get(NOT_LEADER_HEADER), outside.text]).toEqual([421, 'true', '']);
    }
    const other = await members.open();
    await members.leads(other, leader);
    for (const epoch of [0, 1]) expect((await leader.append('s', newId(), said(epoch))).status).toBe(421);
    expect(await leader.types('s')).toHaveLength(1);
    // A client's own request is nobody's but this member's.
    leader.lead.knows(null);
    expect((await leader.append('s', newId())).status).toBe(201);
  });

  test('is refused where it waited for its turn while a newer epoch came, and nothing of it is written', async () => {
    const leader = await one();
    const other = await members.open();
    const { objects } = members.cluster;
    // The first write is on its way to the bucket; the one behind it waits in the queue, passed on in epoch 0.
    const create = objects.create.bind(objects);
    const reached = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    objects.create = async (key, bytes) => {
      objects.create = create;
      reached.resolve();
      await goOn.promise;
      return create(key, bytes);
    };
    const first = leader.store.store.append('s', ANY, [event('first')]);
    await reached.promise;
    const id = newId();
    const waiting = leader.append('s', id, said(0));
    const deleting = leader.send('DELETE', '/streams/s', said(0));
    await other.store.log.refresh();
    await other.store.log.lead(instanceOf(1), 0);
    goOn.resolve();
    for (let i = 0; i < 20; i++) await members.cluster.clock.advance(50);
    await first;
    expect([(await waiting).status, (await deleting).status]).toEqual([421, 421]);
    expect(leader.store.log.epoch?.number).toBe(1);
    const written = await leader.types('s');
    expect(written).toHaveLength(1);
    expect(written).not.toContain(id);
  });

  test('a write that was begun in a request is refused when it is made behind it; others are not', async () => {
    const leader = await one();
    const { fence, held, patience } = fenceOf(leader);
    const store = fence.storeOf(
      leader.store.store,
      new WritesElsewhere({
        ask: leader.ask,
        carrier: { send: () => Promise.reject(unreachable()) },
        patience,
        breath: () => Promise.resolve(),
      }),
    );
    const other = await members.open();
    const goOn = Promise.withResolvers<void>();
    const late = fence.run(0, held(), async (guard) => {
      expect(guard.isOpen).toBe(true);
      await store.append('a', ANY, [event('in time')]);
      expect(guard.hasWritten).toBe(true);
      await goOn.promise;
      expect(guard.isOpen).toBe(false);
      await store.append('a', ANY, [event('late')]);
    });
    await other.store.log.refresh();
    await other.store.log.lead(instanceOf(1), 0);
    await leader.store.log.refresh();
    goOn.resolve();
    await expect(late).rejects.toMatchObject({ code: 'not_leader', data: { epoch: 0, isFinal: true } });
    // An epoch that the copy lacks may still come into it.
    await expect(fence.run(2, held(), () => store.append('a', ANY, [event('early')]))).rejects.toMatchObject({
      code: 'not_leader',
      data: { epoch: 2, isFinal: false },
    });
    await store.append('a', ANY, [event('own')]);
    expect(
      (await store.readStream('a', { direction: 'forward', from: 0, count: 9 })).events.map(({ type }) => type),
    ).toEqual(['in time', 'own']);
  });

  test('what the caller may do is asked behind the fence', async () => {
    const leader = await one();
    const { fence, held, patience } = fenceOf(leader);
    const store = fence.storeOf(
      leader.store.store,
      new WritesElsewhere({
        ask: leader.ask,
        carrier: { send: () => Promise.reject(unreachable()) },
        patience,
        breath: () => Promise.resolve(),
      }),
    );
    const asked: string[] = [];
    const authorize = () => {
      asked.push('asked');
      return null;
    };
    await fence.run(0, held(), () => store.append('a', ANY, [event('x')], authorize));
    await expect(fence.run(3, held(), () => store.append('a', ANY, [event('x')], authorize))).rejects.toMatchObject({
      code: 'not_leader',
    });
    await expect(fence.run(3, held(), () => store.deleteStream('a', ANY, 'hard', authorize))).rejects.toMatchObject({
      code: 'not_leader',
    });
    expect(asked).toHaveLength(1);
  });
});

/** The fence of a member, and writes that have just come. */
function fenceOf(member: TestMember) {
  const patience = new Patience(members.cluster.clock, 10_000);
  return {
    patience,
    fence: new EpochFence(member.store.log, instanceOf(member.index), patience),
    held: () => patience.begin(() => false),
  };
}

describe('what a request says of its client', () => {
  test('is not heard from anybody but a member', async () => {
    members = new Members();
    const { FakeSecurity } = await import('../../support/fake-security.ts');
    const seen: (string | null)[] = [];
    const leader = await members.open((store) => {
      const security = new FakeSecurity({ streamInfo: (stream) => store.store.streamInfo(stream) });
      security.add('kim', 'kim:pass', []);
      const login = security.authenticator.login.bind(security.authenticator);
      security.authenticator.login = (name, password, address, isLocal) => {
        seen.push(address);
        return login(name, password, address, isLocal);
      };
      return { security, addressOf: () => '10.0.0.2' };
    });
    await members.leads(leader);
    const body = () => JSON.stringify([{ eventId: newId(), eventType: 't' }]);
    const headers = { 'content-type': EVENTS, authorization: `Basic ${btoa('kim:kim:pass')}` };
    const forged = { ...headers, ...said(7), 'skua-member': 'guessed' };
    expect(JSON.parse((await leader.send('POST', '/streams/s', forged, body())).text)).toMatchObject({
      code: 'not_a_member',
    });
    expect((await leader.send('POST', '/streams/s', { ...headers, ...said(0) }, body())).headers.get('location')).toBe(
      'http://asked.test:1/streams/s/0',
    );
    expect(seen).toEqual(['192.0.2.9']);
    // Nobody has the rights of the member that passes the request on; whom that has seen proved has his own.
    const anonymous = await leader.send('POST', '/streams/%24x', { 'content-type': EVENTS, ...said(0) }, body());
    expect(anonymous.status).toBe(401);
    const proved = {
      'skua-member': SECRET,
      'skua-forwarded': forwardedText({
        epoch: 0,
        base: 'http://asked.test:1',
        address: null,
        isLocal: false,
        caller: { name: 'Zoë', roles: ['$admins'] },
        certificate: 'node',
      }),
    };
    expect((await leader.send('POST', '/streams/%24x', { 'content-type': EVENTS, ...proved }, body())).status).toBe(
      201,
    );
  });
});
