import type { MemberStore } from '../../../core/cluster/replica/replica.ts';
import type { RunningMembership } from '../../../core/cluster/membership/api.ts';
import { createMembership } from '../../../core/cluster/membership/membership.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { type NodeAddress, nodeKey } from '../../../core/ports/nodes.ts';
import type { Peers } from '../../../core/ports/peers.ts';
import { ANY } from '../../../core/streams/api.ts';
import { CountingObjects } from '../../support/counting-objects.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openMember as openMemberOver } from '../../cluster/replica/kit.ts';
import { events } from '../object-stores.ts';
import { requestsOf } from './model.ts';
import type { Requests } from './model.ts';

const MEMBERS = 3;
const EVENT_BYTES = 1_000;
const APPENDS = 50;
const HOUR_MS = 3_600_000;
/** Longest until the members have a leader, and in which what was appended has come everywhere, in milliseconds. */
const SETTLE_MS = 5_000;
const NOTHING: Requests = { puts: 0, gets: 0, bytesIn: 0, bytesOut: 0 };

/** What a cluster of three asks of its bucket, all members together. */
export interface ClusterMeasured {
  readonly members: number;
  /** One event in a commit of its own, at the leader, with all that the followers need to have it too. */
  readonly append: Requests;
  /** An hour without a write, without the ticks. */
  readonly idleHour: Requests;
}

interface CostMember {
  readonly node: NodeAddress;
  readonly counting: CountingObjects;
  readonly store: MemberStore;
  readonly membership: RunningMembership;
}

/**
 * Members in this process over a store in memory, by a clock that is moved on by hand, so that an hour takes no time.
 */
export async function measureCluster(): Promise<ClusterMeasured> {
  const objects = new MemoryObjects();
  const clock = new ManualClock();
  const members: CostMember[] = [];
  for (let i = 0; i < MEMBERS; i++) members.push(await openMember(objects, clock, members, i));
  for (const { membership } of members) await moving(clock, membership.start());
  await clock.advance(SETTLE_MS);
  const leader = members.find(({ membership }) => membership.isLeader);
  if (leader === undefined) throw new Error('There is no leader.');
  await moving(clock, leader.store.store.append('known', ANY, events(1, EVENT_BYTES)));
  await clock.advance(SETTLE_MS);
  const count = (): Requests => members.map(({ counting }) => requestsOf(counting.counts())).reduce(sum, NOTHING);
  const idleHour = await counted(members, count, () => clock.advance(HOUR_MS));
  const { puts, gets, bytesIn, bytesOut } = await counted(members, count, async () => {
    for (let i = 0; i < APPENDS; i++)
      await moving(clock, leader.store.store.append('known', ANY, events(1, EVENT_BYTES)));
    await clock.advance(SETTLE_MS);
  });
  for (const member of members)
    if (member.store.log.applied !== leader.store.log.applied)
      throw new Error(`${nodeKey(member.node)} has not taken in all commits.`);
  for (const { membership, store } of members) {
    await moving(clock, membership.close());
    await moving(clock, store.close());
  }
  return {
    members: MEMBERS,
    append: { puts: puts / APPENDS, gets: gets / APPENDS, bytesIn: bytesIn / APPENDS, bytesOut: bytesOut / APPENDS },
    idleHour,
  };
}

async function counted(
  members: readonly CostMember[],
  count: () => Requests,
  work: () => Promise<unknown>,
): Promise<Requests> {
  for (const { counting } of members) counting.reset();
  await work();
  return count();
}

function sum(a: Requests, b: Requests): Requests {
  return {
    puts: a.puts + b.puts,
    gets: a.gets + b.gets,
    bytesIn: a.bytesIn + b.bytesIn,
    bytesOut: a.bytesOut + b.bytesOut,
  };
}

/** Moves time on until it is done. */
async function moving<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  done.catch(() => {});
  await clock.advance(0);
  while (!isDone) await clock.advance(1);
  return done;
}

async function openMember(
  objects: MemoryObjects,
  clock: ManualClock,
  members: readonly CostMember[],
  i: number,
): Promise<CostMember> {
  const counting = new CountingObjects(objects);
  const store = await moving(
    clock,
    openMemberOver({
      storage: new MemoryStorage(),
      objects: counting,
      clock,
      seed: i + 1,
      log: { chunkSizeBytes: 16_777_216 },
    }),
  );
  const node = { address: 'member', port: i + 1 };
  const membership = createMembership(
    {
      copy: store.log,
      peers: peersIn(members),
      objects: counting,
      clock,
      ids: new SeededIds(MEMBERS + i + 1),
      log: silentLog,
      meter: silentMeter,
    },
    {
      self: node,
      clusterSize: MEMBERS,
      priority: 0,
      isReadOnlyReplica: false,
      version: '1.0',
      gossipIntervalMs: 2_000,
      gossipTimeoutMs: 2_500,
      gossipAllowedDifferenceMs: 60_000,
      leaderElectionTimeoutMs: 1_000,
      deadMemberRemovalMs: 1_800_000,
    },
  );
  return { node, counting, store, membership };
}

/** Calls without a network. */
function peersIn(members: readonly CostMember[]): Peers {
  const at = (to: NodeAddress): RunningMembership => {
    const found = members.find(({ node }) => nodeKey(node) === nodeKey(to));
    if (found === undefined)
      throw new SkuaError('member_unreachable', 'Nobody is there.', { node: 'a member', reason: 'refused' });
    return found.membership;
  };
  return {
    gossip: async (to, gossip) => structuredClone(await at(to).onGossip(structuredClone(gossip))),
    commits: async (to, request, signal) => at(to).onCommits(request, signal),
    lead: async (to, request) => at(to).onLead(request),
  };
}
