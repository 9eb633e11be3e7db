import type { ClusterMember, MemberLog, Membership } from '../../core/cluster/api.ts';
import type { RunningMembership } from '../../core/cluster/membership/api.ts';
import type { SkuaError } from '../../core/base/errors.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import type {
  CommitsReply,
  CommitsRequest,
  Epoch,
  Gossip,
  GossipEntry,
  LeadRequest,
  MemberState,
} from '../../core/ports/peers.ts';
import { AskLeader } from '../../core/cluster/ask-leader/ask-leader.ts';
import { Patience } from '../../core/cluster/patience/patience.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { systemClock } from '../../infra/system-clock.ts';
import type { EpochGuard } from '../../handlers/http/cluster-feature.ts';
import type { ClusterFeature } from '../../handlers/http/context.ts';

export const LOG_ID = '1d0f7c3e-1d3e-4c55-8a5a-53e2c1b6a0f4';
export const CLUSTER_SECRET = 's3cret between members';
export const EPOCH: Epoch = {
  number: 3,
  position: 4_000,
  id: '5d2c9f1e-0d6f-4f7a-b1a8-7a3c1d2e4f50',
  leaderInstanceId: instanceOf(1),
};

/** The instance of the n-th member. */
export function instanceOf(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

/** What the n-th member of a settled cluster says of itself: the first one leads. */
export function entryOf(n: number, more: Partial<GossipEntry> = {}): GossipEntry {
  return {
    node: { address: '127.0.0.1', port: 2110 + n },
    instanceId: instanceOf(n),
    sentMs: 1_700_000_000_000,
    state: n === 1 ? 'Leader' : 'Follower',
    priority: 0,
    isReadOnlyReplica: false,
    version: '0.1.0',
    applied: 7,
    lastCommitPosition: 5_000,
    writerCheckpoint: 5_200,
    chaserCheckpoint: 5_200,
    epoch: EPOCH,
    hears: instanceOf(1),
    bucketSilentMs: 0,
    scavengeId: null,
    ...more,
  };
}

export function memberOf(n: number, more: Partial<ClusterMember> = {}): ClusterMember {
  return { ...entryOf(n, more), isAlive: true, heardMs: 1_700_000_000_000, ...more };
}

/** A member that shows what a test gave it and remembers what it was told. */
export class FakeMembership implements Membership, Pick<RunningMembership, 'onGossip' | 'onCommits' | 'onLead'> {
  clusterSize = 3;
  list: ClusterMember[] = [memberOf(1), memberOf(2), memberOf(3)];
  /** Which of the members this one is. */
  index = 0;
  isLeader = true;
  leadsSinceMs: number | null = 0;
  resigned = 'Leadership was handed over.';
  /** When set, calls of other members reject with it. */
  error: SkuaError | null = null;
  readonly gossips: Gossip[] = [];
  readonly leads: LeadRequest[] = [];
  readonly lostOnes: string[] = [];
  /** What is asked for commits answers. */
  feed: (request: CommitsRequest, signal: AbortSignal) => Promise<CommitsReply> = () =>
    Promise.resolve({ kind: 'commits', bytes: new Uint8Array(0) });

  get self(): ClusterMember {
    return this.list[this.index]!;
  }
  get instanceId(): string {
    return this.self.instanceId;
  }
  get state(): MemberState {
    return this.self.state;
  }
  members(): readonly ClusterMember[] {
    return this.list;
  }
  leader(): ClusterMember | null {
    return this.list.find(({ state }) => state === 'Leader') ?? null;
  }
  lost(instanceId: string): void {
    this.lostOnes.push(instanceId);
  }
  newerEpoch(): Promise<boolean> {
    return Promise.resolve(false);
  }
  onChange(): void {}
  async setPriority(priority: number): Promise<void> {
    this.list[this.index] = { ...this.self, priority };
  }
  async resign(): Promise<string> {
    return this.resigned;
  }

  async onGossip(gossip: Gossip): Promise<Gossip> {
    if (this.error !== null) throw this.error;
    this.gossips.push(gossip);
    return {
      logId: LOG_ID,
      sender: this.self.node,
      entries: [this.self, ...this.list.filter((one) => one !== this.self)].map(entryOnly),
    };
  }

  onCommits(request: CommitsRequest, signal: AbortSignal): Promise<CommitsReply> {
    if (this.error !== null) return Promise.reject(this.error);
    return this.feed(request, signal);
  }

  async onLead(request: LeadRequest): Promise<Epoch> {
    if (this.error !== null) throw this.error;
    this.leads.push(request);
    return { ...EPOCH, number: request.epochNumber + 1 };
  }
}

function entryOnly({ isAlive: _, heardMs: _heard, ...entry }: ClusterMember): GossipEntry {
  return entry;
}

/** A log whose commits are the bytes that a test put there. */
export class FakeMemberLog implements MemberLog {
  readonly logId = LOG_ID;
  applied = 7;
  end = 5_200;
  epoch: Epoch | null = EPOCH;
  isCaughtUp = true;
  trouble: SkuaError | null = null;
  bucketSilentMs = 0;
  lag = { commits: 0, bytes: 0 };
  onEpoch(): void {}
  onApplied(): void {}
  lead(): Promise<Epoch> {
    return Promise.resolve(EPOCH);
  }
  async hold(): Promise<void> {}
  async refresh(): Promise<void> {}
  async confirmFresh(): Promise<void> {}
  takePushed(): Promise<number> {
    return Promise.resolve(this.applied);
  }

  recent(): Uint8Array | null {
    return null;
  }
  waitForCommit(): Promise<boolean> {
    return Promise.resolve(true);
  }
}

export function fakeCluster(): ClusterFeature & { readonly membership: FakeMembership; readonly log: FakeMemberLog } {
  const [membership, log, patience] = [new FakeMembership(), new FakeMemberLog(), new Patience(systemClock, 10_000)];
  const guard: EpochGuard = { isOpen: true, hasWritten: false, authorize: () => null };
  return {
    membership,
    log,
    patience,
    upToDate: () => null,
    isSecret: (text) => text === CLUSTER_SECRET,
    forward: { scheme: 'http', send: () => Promise.reject(new Error('nothing is passed on here')) },
    fence: { run: (_, _held, work) => work(guard), own: (_writer, _isGone, work) => work(), guard: () => guard },
    ask: new AskLeader({ membership, log, patience, clock: systemClock, meter: silentMeter }),
    copy: new FakeCopy(),
  };
}

/** Takes nothing. */
class FakeCopy implements Pick<EventStore, 'append' | 'appendToStreams' | 'deleteStream'> {
  readonly #refused = () => Promise.reject(new Error('nothing is written here'));
  readonly append = this.#refused;
  readonly appendToStreams = this.#refused;
  readonly deleteStream = this.#refused;
}

/** What member `n` would send. */
export function gossipOf(n: number, more: Partial<Gossip> = {}): Gossip {
  const entries = [entryOf(n), ...[1, 2, 3].filter((other) => other !== n).map((other) => entryOf(other))];
  return { logId: LOG_ID, sender: entries[0]!.node as NodeAddress, entries, ...more };
}
