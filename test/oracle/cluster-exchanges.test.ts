import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { ClusterMember } from '../../core/cluster/api.ts';
import type { MemberStore } from '../../core/cluster/replica/replica.ts';
import type { Epoch, MemberState } from '../../core/ports/peers.ts';
import { ClusterNode } from '../../local/node/cluster-node.ts';
import { FakeMemberLog, FakeMembership } from '../support/fake-cluster.ts';
import { fixturePath } from '../support/fixtures.ts';
import { FakeNode } from '../support/fake-node.ts';
import { harness } from '../handlers/harness.ts';
import type { Reply } from '../handlers/harness.ts';

/**
 * What was recorded of `/gossip`, `/info`, `/health/live`, priorities and resigns in a cluster of the reference,
 * against a member of ours that knows of the others what the recorded ones knew. Every deviation is listed here with
 * its reason; one that is not listed fails the test, and so does one that is listed and no longer occurs.
 */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  'Pages of other origins are let in only where an option names them.': ['header access-control-allow-origin'],
  'A reply varies by all that it depends on.': ['header vary'],
  'Nobody keeps what is true for a moment.': ['header cache-control of /health/live'],
  'Error bodies are problem documents; the recorded text is the detail.': [
    'header content-type of a refusal',
    'body of a refusal',
  ],
  'Both generations have their member for the version.': ['/info dbVersion'],
  'A resign is answered with what came of it, in words.': ['header content-type of a resign', 'body of a resign'],
  'Members are in the order of their addresses.': ['/gossip order'],
  'No other protocol is spoken: its ports are 0.': ['/gossip externalTcpPort', '/gossip internalTcpPort'],
  'Members tell how far their copy is, and what scavenge runs there.': [
    '/gossip appliedCommit',
    '/gossip scavengeId',
    '/gossip bucketSilentMs',
  ],
};

interface RecordedMember {
  readonly instanceId: string;
  readonly timeStamp: string;
  readonly state: MemberState;
  readonly isAlive: boolean;
  readonly httpEndPointIp: string;
  readonly httpEndPointPort: number;
  readonly lastCommitPosition: number;
  readonly writerCheckpoint: number;
  readonly chaserCheckpoint: number;
  readonly epochPosition: number;
  readonly epochNumber: number;
  readonly epochId: string;
  readonly nodePriority: number;
  readonly isReadOnlyReplica: boolean;
  readonly esVersion: string;
}

interface Exchange {
  readonly phase: string;
  readonly at?: string;
  readonly request?: { readonly method: string; readonly url: string | null; readonly headers: Record<string, string> };
  readonly response?: {
    readonly status: number;
    readonly reason: string;
    readonly headers: Record<string, string>;
    readonly body: unknown;
  };
}

const recorded = JSON.parse(readFileSync(fixturePath('cluster-exchanges.json'), 'utf8')) as readonly Exchange[];
const INTERFACE = /^\/(?:gossip|info|health\/live|admin\/node\/(?:priority\/\w+|resign))$/;
const chosen = recorded.filter(({ request }) => request !== undefined && INTERFACE.test(request.url ?? ''));

const NO_EPOCH_ID = '00000000-0000-0000-0000-000000000000';

/**
 * What was recorded of a member, as our membership would know it. One that leads and is gone still says in its last
 * word that it leads.
 */
function known(of: RecordedMember): ClusterMember {
  const epoch: Epoch | null =
    of.epochId === NO_EPOCH_ID
      ? null
      : { number: of.epochNumber, position: of.epochPosition, id: of.epochId, leaderInstanceId: of.instanceId };
  return {
    node: { address: of.httpEndPointIp, port: of.httpEndPointPort },
    instanceId: of.instanceId,
    sentMs: 0,
    state: of.state === 'Unknown' && !of.isAlive ? 'Leader' : of.state,
    priority: of.nodePriority,
    isReadOnlyReplica: of.isReadOnlyReplica,
    version: of.esVersion,
    applied: 7,
    lastCommitPosition: of.lastCommitPosition,
    writerCheckpoint: of.writerCheckpoint,
    chaserCheckpoint: of.chaserCheckpoint,
    epoch,
    hears: null,
    bucketSilentMs: 0,
    scavengeId: null,
    isAlive: of.isAlive,
    heardMs: Date.parse(of.timeStamp),
  };
}

/** The member that answered, with what it knew then: the gossip recorded there last, or else next. */
function memberThen(index: number): {
  readonly membership: FakeMembership;
  readonly send: (exchange: Exchange) => Promise<Reply>;
} {
  const { phase, at } = chosen[index]!;
  const isLike = (one: Exchange): boolean => one.request!.url === '/gossip' && one.phase === phase && one.at === at;
  const gossip =
    chosen.slice(index).find(isLike) ??
    chosen.slice(0, index).findLast(isLike) ??
    chosen.findLast((one, i) => i < index && one.request!.url === '/gossip')!;
  const { members, serverPort } = gossip.response!.body as {
    readonly members: readonly RecordedMember[];
    readonly serverPort: number;
  };
  const membership = new FakeMembership();
  membership.list = members.map(known).sort((a, b) => a.node.port - b.node.port);
  const isGossip = chosen[index]!.request!.url === '/gossip';
  const answering = membership.list.find(({ node, state }) =>
    isGossip ? node.port === serverPort : state.toLowerCase() === at,
  );
  membership.index = membership.list.indexOf(answering!);
  const fake = new FakeNode();
  const node = new ClusterNode({
    version: '23.10.8.0',
    instanceId: membership.self.instanceId,
    authenticationType: 'insecure',
    host: '127.0.0.1',
    port: () => membership.self.node.port,
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
  const h = harness({ node });
  return { membership, send: ({ request }) => h.send(request!.method, request!.url!, request!.headers) };
}

const HEADERS = [
  'content-type',
  'cache-control',
  'vary',
  'access-control-allow-methods',
  'access-control-allow-origin',
];

/** What differs, by its name in the table. */
function differences({ request, response }: Exchange, reply: Reply): string[] {
  const url = request!.url!;
  const kind = response!.status >= 400 ? ' of a refusal' : url.endsWith('/resign') ? ' of a resign' : '';
  const found: string[] = [];
  if (reply.status !== response!.status || reply.reason !== response!.reason)
    found.push(`status ${reply.status} ${reply.reason} of ${url}`);
  for (const name of HEADERS) {
    if ((response!.headers[name] ?? null) !== reply.headers.get(name) && !isPlain(name, response!, reply))
      found.push(`header ${name}${name === 'content-type' ? kind : name === 'cache-control' ? ` of ${url}` : ''}`);
  }
  if (kind === ' of a refusal') {
    expect(reply.json().detail).toBe(response!.body);
    found.push(`body${kind}`);
  } else if (typeof response!.body === 'string') {
    if (response!.body !== reply.text) found.push(`body${kind}`);
  } else found.push(...differingMembers(url, response!.body, reply.json()));
  return found;
}

/** An empty body says nothing of its type in the recording. */
function isPlain(name: string, { headers, body }: NonNullable<Exchange['response']>, reply: Reply): boolean {
  return name === 'content-type' && headers[name] === undefined && body === '' && reply.text === '';
}

type Json = Readonly<Record<string, unknown>>;

function differingMembers(url: string, expected: unknown, actual: unknown): string[] {
  if (url !== '/gossip') return differing(url, expected as Json, actual as Json);
  const { members: theirs, ...rest } = expected as Json & { readonly members: readonly RecordedMember[] };
  const { members: ours, ...ourRest } = actual as typeof rest & { readonly members: readonly RecordedMember[] };
  const ids = (list: readonly RecordedMember[]) => list.map(({ instanceId }) => instanceId);
  expect(ids(ours).toSorted()).toEqual(ids(theirs).toSorted());
  const found = differing(url, rest, ourRest);
  if (ids(ours).join() !== ids(theirs).join()) found.push('/gossip order');
  for (const one of theirs) {
    const our = ours.find(({ instanceId }) => instanceId === one.instanceId)!;
    // The time has fewer digits where they are zeros, and ours knows milliseconds.
    expect(our.timeStamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?Z$/);
    found.push(...differing(url, one as unknown as Json, { ...our, timeStamp: one.timeStamp }));
  }
  return found;
}

/** Members that are missing, are more, differ, or stand elsewhere. */
function differing(url: string, expected: Json, actual: Json): string[] {
  const both = (names: readonly string[]) => names.filter((name) => name in expected && name in actual);
  expect(both(Object.keys(actual))).toEqual(both(Object.keys(expected)));
  return [...new Set([...Object.keys(expected), ...Object.keys(actual)])]
    .filter((name) => JSON.stringify(expected[name]) !== JSON.stringify(actual[name]))
    .map((name) => `${url} ${name}`);
}

test('members answer as recorded, but for the listed deviations', async () => {
  const found = new Set<string>();
  for (const [index, exchange] of chosen.entries()) {
    const { membership, send } = memberThen(index);
    const reply = await send(exchange);
    for (const each of differences(exchange, reply)) found.add(each);
    const priority = /priority\/(\d+)$/.exec(exchange.request!.url!);
    if (priority !== null) expect(membership.self.priority).toBe(Number(priority[1]));
  }
  expect([...found].sort()).toEqual(Object.values(EXPECTED).flat().sort());
  expect(chosen.length).toBe(25);
});
