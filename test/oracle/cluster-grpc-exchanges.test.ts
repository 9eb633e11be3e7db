import { readFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import type { ClusterMember } from '../../core/cluster/api.ts';
import type { MemberStore } from '../../core/cluster/replica/replica.ts';
import type { MemberState } from '../../core/ports/peers.ts';
import { MemberInfoVNodeState as STATES } from '../../handlers/grpc/messages/gossip.ts';
import { ClusterNode } from '../../local/node/cluster-node.ts';
import { Members, newId } from '../cluster/forward/kit.ts';
import type { TestMember } from '../cluster/forward/kit.ts';
import { FakeMemberLog, FakeMembership } from '../support/fake-cluster.ts';
import { FakeNode } from '../support/fake-node.ts';
import { FakeSubscriptions } from '../support/fake-subscriptions.ts';
import { fixturePath } from '../support/fixtures.ts';

/**
 * The calls that were recorded at the leader, a follower and a read-only replica of a cluster of the reference, in
 * their order against members of ours over one log. Every deviation is listed here with its reason; one that is not
 * listed fails the test, and so does one that no longer occurs.
 */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  'Members are in the order of their addresses.': ['gossip order'],
  'Positions are those of another log.': ['append position'],
  'Who does not lead refers to the leader for all that persistent subscriptions are, as with everything else that is for the leader alone: its clients go there at once.':
    ['List at follower', 'List at readonlyreplica'],
};

interface Uuid {
  readonly structured: { readonly mostSignificantBits: string; readonly leastSignificantBits: string };
}

interface RecordedMember {
  readonly instanceId: Uuid;
  readonly timeStamp: string;
  readonly state: number;
  readonly isAlive: boolean;
  readonly httpEndPoint: { readonly address: string; readonly port: number };
}

interface Exchange {
  readonly phase: string;
  readonly at: 'leader' | 'follower' | 'readonlyreplica';
  readonly rpc?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly response?: {
    readonly membersList?: readonly RecordedMember[];
    readonly success?: { readonly currentRevision: string };
    readonly subscriptionsList?: readonly unknown[];
  };
  readonly error?: {
    readonly status: number;
    readonly details: string;
    readonly trailers: Readonly<Record<string, string>>;
  };
}

const recorded = (
  JSON.parse(readFileSync(fixturePath('cluster-exchanges.json'), 'utf8')) as readonly Exchange[]
).filter(({ rpc }) => rpc !== undefined);
const PORT_OF = { leader: 2_133, follower: 2_123, readonlyreplica: 2_143 } as const;
const TICKS_PER_MS = 10_000n;

const members = new Members();
afterAll(() => members.close());

function textOf({ structured: { mostSignificantBits, leastSignificantBits } }: Uuid): string {
  const hex = [mostSignificantBits, leastSignificantBits]
    .map((bits) => BigInt.asUintN(64, BigInt(bits)).toString(16).padStart(16, '0'))
    .join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The node of a member with what it knew of the others when it was asked. */
function nodeAt(port: number): { readonly node: ClusterNode; readonly membership: FakeMembership } {
  const membership = new FakeMembership();
  const fake = new FakeNode();
  const node = new ClusterNode({
    version: '23.10.8.0',
    instanceId: 'of the test',
    authenticationType: 'insecure',
    host: '127.0.0.1',
    port: () => port,
    isSecure: false,
    priority: 0,
    options: () => fake.options,
    startUpWork: () => null,
    stats: () => fake.stats(),
    metrics: (accept) => fake.metrics(accept),
    reload: () => fake.reload(),
    audit: () => null,
    log: { recent: (query) => fake.log(query), setLevel: () => {} },
    overview: () => fake.overview(),
    history: fake.history,
    webhooks: () => fake.webhooks(),
  });
  node.joined({ log: new FakeMemberLog() } as unknown as MemberStore, Object.assign(membership, { refusal: null }));
  return { node, membership };
}

function known({ instanceId, timeStamp, state, isAlive, httpEndPoint: node }: RecordedMember): ClusterMember {
  return {
    node,
    instanceId: textOf(instanceId),
    sentMs: 0,
    state: stateOf(state),
    priority: 0,
    isReadOnlyReplica: node.port === PORT_OF.readonlyreplica,
    version: '23.10.8',
    applied: 7,
    lastCommitPosition: 0,
    writerCheckpoint: 0,
    chaserCheckpoint: 0,
    epoch: null,
    hears: null,
    bucketSilentMs: 0,
    scavengeId: null,
    isAlive,
    heardMs: Number(BigInt(timeStamp) / TICKS_PER_MS) + Number(BigInt(timeStamp) % TICKS_PER_MS) / 10_000,
  };
}

function stateOf(number: number): MemberState {
  return Object.entries(STATES).find(([, value]) => value === number)![0] as MemberState;
}

/** As the recorded requests were. */
function requestsOf(method: string): readonly object[] {
  const stream = { stream_identifier: { stream_name: Buffer.from('recorded').toString('base64') } };
  switch (method) {
    case 'Append':
      return [
        { options: { ...stream, any: {} } },
        {
          proposed_message: {
            id: { string: newId() },
            metadata: { type: 't', 'content-type': 'application/json' },
            data: Buffer.from('{}').toString('base64'),
          },
        },
      ];
    case 'List':
      return [{ options: { list_all_subscriptions: {} } }];
    case 'Read':
      return [
        { options: { stream: { ...stream, start: {} }, count: '10', no_filter: {}, uuid_option: { string: {} } } },
      ];
    default:
      return [{}];
  }
}

async function differences(
  { rpc, metadata = {}, response, error, at }: Exchange,
  member: TestMember,
): Promise<string[]> {
  const [service, method] = rpc!.split('/') as [string, string];
  const isGossip = service.endsWith('.Gossip');
  const seen = await member.grpc.call(`/${rpc}`, isGossip ? {} : requestsOf(method), metadata);
  if (error !== undefined) {
    const ours = { status: seen.status, details: seen.message, trailers: seen.trailers };
    expect(seen.received).toEqual([]);
    return JSON.stringify(ours) ===
      JSON.stringify({ status: error.status, details: error.details, trailers: error.trailers })
      ? []
      : [`${method} at ${at}`];
  }
  expect(seen).toMatchObject({ status: 0, trailers: {} });
  const [answer] = seen.received as readonly any[];
  if (isGossip) {
    const theirs = response!.membersList!.map(
      ({ instanceId, timeStamp, state, isAlive, httpEndPoint: { address, port } }) => [
        textOf(instanceId),
        stateOf(state),
        isAlive,
        address,
        port,
        shortened(timeStamp),
      ],
    );
    const ours = answer.members.map(
      ({
        instance_id: {
          structured: { most_significant_bits: mostSignificantBits, least_significant_bits: leastSignificantBits },
        },
        time_stamp,
        state,
        is_alive,
        http_end_point: { address, port },
      }: any) => [
        textOf({ structured: { mostSignificantBits, leastSignificantBits } }),
        state,
        is_alive,
        address,
        port,
        shortened(time_stamp),
      ],
    );
    expect(ours.toSorted()).toEqual(theirs.toSorted());
    return JSON.stringify(ours) === JSON.stringify(theirs) ? [] : ['gossip order'];
  }
  if (method === 'List') {
    expect(answer.subscriptions ?? []).toEqual(response!.subscriptionsList);
    return [];
  }
  const { position, ...success } = answer.success;
  expect(success).toEqual({ current_revision: response!.success!.currentRevision });
  expect(position.commit_position).toBe(position.prepare_position);
  return ['append position'];
}

/** Ours knows milliseconds and a part of them. */
function shortened(ticks: string): string {
  return String(BigInt(ticks) / TICKS_PER_MS);
}

test('members answer calls of gRPC as recorded, but for the listed deviations', async () => {
  const nodes = new Map<number, ReturnType<typeof nodeAt>>();
  const byPort = new Map<number, TestMember>();
  for (const port of [2_113, 2_123, 2_133, 2_143]) {
    nodes.set(port, nodeAt(port));
    byPort.set(
      port,
      await members.open(() => ({ node: nodes.get(port)!.node, subscriptions: new FakeSubscriptions() })),
    );
  }
  const others = (port: number) => [...byPort].filter(([each]) => each !== port).map(([, member]) => member);
  await members.leads(byPort.get(PORT_OF.leader)!, ...others(PORT_OF.leader));
  const found = new Set<string>();
  let phase = 'settled';
  for (const exchange of recorded) {
    if (exchange.phase !== phase) {
      // Killed, and the one that is asked has heard of the next leader: of the follower that was asked the recording
      // says that itself.
      phase = exchange.phase;
      await members.leads(byPort.get(2_123)!, ...others(2_123).filter((member) => member !== byPort.get(2_133)));
    }
    const port = phase === 'settled' ? PORT_OF[exchange.at] : 2_113;
    if (exchange.response?.membersList !== undefined) {
      const { membership } = nodes.get(port)!;
      membership.list = exchange.response.membersList.map(known).sort((a, b) => a.node.port - b.node.port);
      membership.index = membership.list.findIndex(({ node }) => node.port === port);
    }
    for (const each of await differences(exchange, byPort.get(port)!)) found.add(each);
  }
  expect([...found].sort()).toEqual(Object.values(EXPECTED).flat().sort());
  expect(recorded.length).toBe(19);
});
