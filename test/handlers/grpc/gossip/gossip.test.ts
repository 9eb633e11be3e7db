import { expect, test } from 'vitest';
import { MemberInfoVNodeState } from '../../../../handlers/grpc/messages/gossip.ts';
import type { NodeState } from '../../../../handlers/documents/node.ts';
import type { GossipMember } from '../../../../handlers/http/node-control.ts';
import { securedGrpc } from '../../../grpc/harness.ts';
import { FAKE_INSTANCE_ID, FakeNode } from '../../../support/fake-node.ts';
import { AS } from '../../secured.ts';

const READ = '/event_store.client.gossip.Gossip/Read';
/** 2031-04-02T09:15:30Z, the time of the tests, in ticks. */
const NOW_TICKS = String(BigInt(Date.UTC(2031, 3, 2, 9, 15, 30)) * 10_000n);

function uuidText({
  most_significant_bits: most,
  least_significant_bits: least,
}: {
  most_significant_bits: string;
  least_significant_bits: string;
}): string {
  const digits = [most, least].map((half) => BigInt.asUintN(64, BigInt(half)).toString(16).padStart(16, '0')).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

test('a single node is its leader, and tells anybody', async () => {
  const h = securedGrpc({ node: new FakeNode() });
  for (const who of [AS.anonymous, AS.admin]) {
    const { status, received } = await h.call(READ, {}, who);
    const { instance_id: id, ...rest } = received[0]!['members'][0];
    expect(status).toBe(0);
    expect(uuidText(id.structured)).toBe(FAKE_INSTANCE_ID);
    expect(rest).toEqual({
      time_stamp: NOW_TICKS,
      state: 'Leader',
      is_alive: true,
      http_end_point: { address: '127.0.0.1', port: 2113 },
    });
  }
});

test('members come with their states, as clients choose by them', async () => {
  const node = new FakeNode();
  const states: NodeState[] = [
    'Initializing',
    'CatchingUp',
    'Unknown',
    'Follower',
    'Leader',
    'ResigningLeader',
    'ReadOnlyReplica',
    'ReadOnlyLeaderless',
    'ShuttingDown',
    'Shutdown',
  ];
  node.members = () =>
    states.map((state, i): GossipMember => ({
      ...node.member(),
      state,
      host: `node${i}.example.test`,
      port: 3_000 + i,
      asMember: {
        isAlive: i % 2 === 0,
        isReadOnlyReplica: false,
        version: '1',
        heardMs: i + 0.25,
        appliedCommit: 0,
        scavengeId: null,
        bucketSilentMs: 0,
      },
    }));
  const { received } = await securedGrpc({ node }).call(READ, {});
  const [{ members }] = received as unknown as [{ members: Record<string, unknown>[] }];
  expect(
    members.map(({ state, is_alive, time_stamp, http_end_point }) => ({ state, is_alive, time_stamp, http_end_point })),
  ).toEqual(
    states.map((state, i) => ({
      state: MemberInfoVNodeState[state] === 0 ? undefined : state,
      is_alive: i % 2 === 0 ? true : undefined,
      time_stamp: String(i * 10_000 + 2_500),
      http_end_point: { address: `node${i}.example.test`, port: 3_000 + i },
    })),
  );
});

test('a node that starts names nobody', async () => {
  const node = new FakeNode();
  node.work = { phase: 'recovering-log', bytesDone: 0, bytesTotal: 1, elapsedSeconds: 0, remainingSeconds: null };
  expect(await securedGrpc({ node }).call(READ, {})).toMatchObject({ status: 14, message: 'Server Is Not Ready' });
});

test('wrong credentials are refused, and so is everybody where the option says so', async () => {
  const node = new FakeNode();
  expect(await securedGrpc({ node }).call(READ, {}, AS.wrong)).toMatchObject({
    status: 16,
    message: 'Unauthenticated',
    trailers: {},
  });
  const closed = securedGrpc({ node, options: { allowAnonymousGossip: false } });
  expect(await closed.call(READ, {})).toMatchObject({ status: 7 });
  expect(await closed.call(READ, {}, AS.plain)).toMatchObject({ status: 0 });
});

test('what members of the reference say to each other is for nobody', async () => {
  const h = securedGrpc({ node: new FakeNode() });
  for (const who of [AS.anonymous, AS.admin])
    expect(await h.call('/event_store.cluster.Gossip/Read', {}, who)).toMatchObject({
      status: 7,
      message: 'Access Denied',
      trailers: { exception: 'access-denied' },
    });
});
