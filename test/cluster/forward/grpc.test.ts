import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { AuditEntry } from '../../../core/ports/audit.ts';
import type { Authenticator, Security } from '../../../core/security/api.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import type { Principal } from '../../../core/base/principal.ts';
import { LEADER_WAIT_MS } from '../../../core/cluster/ask-leader/ask-leader.ts';
import { FakeNode } from '../../support/fake-node.ts';
import { event, Members, named, newId, silent, STREAMS } from './kit.ts';
import type { TestMember } from './kit.ts';

const appending = (stream: string, id: string, expected: object = { any: {} }) => [
  { options: { ...named(stream), ...expected } },
  { proposed_message: event(id) },
];

let members: Members;
let leader: TestMember;
let follower: TestMember;

beforeEach(async () => {
  members = new Members();
  leader = await members.open();
  follower = await members.open();
  await members.leads(leader, follower);
});

afterEach(() => members.close());

describe('a call at a member that does not lead', () => {
  test('is decided by the one that does, and answered as there', async () => {
    const id = newId();
    const seen = await follower.grpc.call(`${STREAMS}/Append`, appending('s', id));
    expect(seen).toMatchObject({ status: 0, received: [{ success: { current_revision: '0' } }] });
    expect(members.forwarded).toHaveLength(1);
    expect(follower.store.log.lag.commits).toBe(0);
    expect(await leader.types('s')).toEqual([id]);
    const conflict = await follower.grpc.call(`${STREAMS}/Append`, appending('s', newId(), { no_stream: {} }));
    expect(conflict).toMatchObject({
      status: 0,
      received: [{ wrong_expected_version: { current_revision: '0', expected_no_stream: {} } }],
    });
    const deleted = await follower.grpc.call(`${STREAMS}/Tombstone`, { options: { ...named('s'), any: {} } });
    expect(deleted).toMatchObject({ status: 0 });
    const after = await follower.grpc.call(`${STREAMS}/Append`, appending('s', newId()));
    expect(after).toMatchObject({
      status: 9,
      trailers: { exception: 'stream-deleted', 'stream-name': 's' },
      received: [],
    });
  });

  test('has an unknown outcome where nobody knows whether it was carried out, and is no append', async () => {
    await follower.grpc.call(`${STREAMS}/Append`, appending('s', newId()));
    members.wire = () => Promise.reject(silent());
    expect(await follower.grpc.call(`${STREAMS}/Delete`, { options: { ...named('s'), any: {} } })).toMatchObject({
      status: 10,
    });
  });

  test('is refused with the address of the leader where it is for the leader alone', async () => {
    const metadata = { 'requires-leader': 'True' };
    for (const [path, requests] of [
      ['Append', appending('s', newId())],
      ['Tombstone', { options: { ...named('s'), any: {} } }],
    ] as const) {
      expect(await follower.grpc.call(`${STREAMS}/${path}`, requests, metadata)).toEqual({
        status: 5,
        message: 'Leader info available',
        trailers: { exception: 'not-leader', 'leader-endpoint-host': '127.0.0.1', 'leader-endpoint-port': '2113' },
        received: [],
      });
    }
    expect(await leader.grpc.call(`${STREAMS}/Append`, appending('s', newId()), metadata)).toMatchObject({ status: 0 });
    expect(
      await follower.grpc.call(`${STREAMS}/Append`, appending('s', newId()), { 'requires-leader': 'perhaps' }),
    ).toMatchObject({ status: 0 });
  });

  test('of the second generation goes there, too, and is sent there in the words of both', async () => {
    const path = '/kurrentdb.protocol.v2.streams.StreamsService/AppendSession';
    const record = (id: string) => ({
      record_id: id,
      schema: { format: 1, name: 't' },
      data: Buffer.from('{}').toString('base64'),
    });
    const ids = [newId(), newId()];
    const seen = await follower.grpc.call(path, [
      { stream: 'a', records: [record(ids[0]!)] },
      { stream: 'b', records: [record(ids[1]!)] },
    ]);
    expect(seen).toMatchObject({ status: 0, received: [{ output: [{ stream: 'a' }, { stream: 'b' }] }] });
    expect([await leader.types('a'), await leader.types('b'), members.forwarded.length]).toEqual([
      [ids[0]],
      [ids[1]],
      1,
    ]);
    const conflict = await follower.grpc.call(path, [
      { stream: 'a', expected_revision: 7, records: [record(newId())] },
    ]);
    expect(conflict).toEqual(
      await leader.grpc.call(path, [{ stream: 'a', expected_revision: 7, records: [record(newId())] }]),
    );
    expect(conflict.status).toBe(9);
    const referred = await follower.grpc.call(path, [{ stream: 'a', records: [record(newId())] }], {
      'requires-leader': 'true',
    });
    expect(referred).toMatchObject({
      status: 9,
      trailers: { exception: 'not-leader', 'leader-endpoint-port': '2113' },
    });
    expect(Buffer.from(referred.trailers['grpc-status-details-bin']!, 'base64').toString('latin1')).toContain(
      'kurrent.rpc.NotLeaderNodeErrorDetails',
    );
  });

  test('is a call of the leader alone where it asks for it there: reads are answered from what was proved a moment ago', async () => {
    const metadata = { 'requires-leader': 'true' };
    const read = {
      options: { stream: { ...named('s'), start: {} }, count: 10, no_filter: {}, uuid_option: { string: {} } },
    };
    await leader.grpc.call(`${STREAMS}/Append`, appending('s', newId()));
    expect(await follower.grpc.call(`${STREAMS}/Read`, read, metadata)).toMatchObject({
      status: 5,
      trailers: { exception: 'not-leader' },
      received: [],
    });
    expect((await leader.grpc.call(`${STREAMS}/Read`, read, metadata)).received).toHaveLength(1);
    // The bucket does not answer the leader any more: somebody else may lead, and have written.
    const { objects, clock } = members.cluster;
    objects.get = () => Promise.reject(new SkuaError('storage_unreachable', 'The test has cut it off.'));
    await clock.advance(2_000);
    expect(await leader.grpc.call(`${STREAMS}/Read`, read, metadata)).toMatchObject({ status: 14, received: [] });
    expect((await leader.grpc.call(`${STREAMS}/Read`, read)).received).toHaveLength(1);
  });

  test('is about the member that has it where clients look for the leader, also when they ask for that with all calls', async () => {
    const seen = await follower.grpc.call(
      '/event_store.client.server_features.ServerFeatures/GetSupportedMethods',
      {},
      { 'requires-leader': 'true' },
    );
    expect(seen).toMatchObject({ status: 0, received: [expect.anything()] });
    const node = new FakeNode();
    const there = await members.open(() => ({ node }));
    await members.leads(leader, there);
    expect(
      await there.grpc.call('/event_store.client.gossip.Gossip/Read', {}, { 'requires-leader': 'true' }),
    ).toMatchObject({ status: 0 });
    expect(
      await there.grpc.call(
        '/event_store.client.operations.Operations/MergeIndexes',
        {},
        { 'requires-leader': 'true' },
      ),
    ).toMatchObject({ status: 0 });
  });

  test('waits a moment for somebody who leads, where it is for that one alone', async () => {
    follower.lead.knows(null);
    const call = follower.grpc.call(`${STREAMS}/Append`, appending('s', newId()), { 'requires-leader': 'true' });
    await members.cluster.clock.advance(LEADER_WAIT_MS);
    expect(await call).toMatchObject({ status: 14, message: 'No leader info available in response', trailers: {} });
  });

  test('is carried out as it would be here when its client leaves behind the last message, and not before', async () => {
    let arrived = (): void => {};
    let goOn = (): void => {};
    const isThere = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const may = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    members.wire = async (deliver) => {
      arrived();
      await may;
      return deliver();
    };
    const early = follower.grpc.open(`${STREAMS}/Append`, appending('early', newId()), { isOpen: true });
    early.cancel();
    expect(await early.ended).toMatchObject({ status: 1 });
    const late = follower.grpc.open(`${STREAMS}/Append`, appending('late', newId()));
    await isThere;
    late.cancel();
    goOn();
    await late.ended;
    expect([await leader.types('late'), members.forwarded.length]).toEqual([[expect.any(String)], 1]);
  });

  test('is judged by the member that has it, which tells of it, and then by the leader, who asks its own users and lists', async () => {
    const kim: Principal = { name: 'kim', roles: [] };
    const unknown = { here: false, there: false };
    let isListed = true;
    const security = (at: 'here' | 'there', store: Pick<EventStore, 'streamInfo'>) => ({
      security: {
        authenticator: {
          login: () => {
            if (!unknown[at]) return kim;
            throw new SkuaError('not_authenticated', 'Unknown.');
          },
          isUser: (principal) => principal === kim,
          hasChanged: () => false,
          userNow: async (name) =>
            unknown[at]
              ? null
              : {
                  principal: { name, roles: [] },
                  unchanged: { stream: '$user-kim', ...(await store.streamInfo('$user-kim')) },
                },
        } satisfies Partial<Authenticator>,
        access: {
          check: () => {},
          authorizeWrite: () =>
            at === 'here' ? null : () => (isListed ? null : new SkuaError('access_denied', 'Not listed.')),
        },
      } as unknown as Security,
      audit: { record: (entry: AuditEntry) => told.push(`${at} ${entry.action} ${entry.target} ${entry.outcome}`) },
    });
    const told: string[] = [];
    const [there, here] = [
      await members.open((_, __, store) => security('there', store)),
      await members.open((_, __, store) => security('here', store)),
    ];
    await members.leads(there, here);
    const metadata = { authorization: 'Basic YTpi' };
    expect(
      await here.grpc.call(`${STREAMS}/Tombstone`, { options: { ...named('s'), any: {} } }, metadata),
    ).toMatchObject({ status: 0 });
    isListed = false;
    expect(await here.grpc.call(`${STREAMS}/Append`, appending('t', newId()), metadata)).toMatchObject({ status: 7 });
    isListed = true;
    unknown.there = true;
    expect(await here.grpc.call(`${STREAMS}/Append`, appending('t', newId()), metadata)).toMatchObject({ status: 7 });
    const { length } = members.forwarded;
    unknown.here = true;
    expect(await here.grpc.call(`${STREAMS}/Append`, appending('t', newId()), metadata)).toMatchObject({ status: 16 });
    expect(members.forwarded).toHaveLength(length);
    expect(told.filter((line) => line.startsWith('there') && !line.includes(' login '))).toEqual([]);
    expect(told).toContain('here stream.tombstone s success');
  });
});
