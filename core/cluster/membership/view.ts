import { SkuaError } from '../../base/errors.ts';
import { newUuid } from '../../shared-log/format/object-keys.ts';
import { nodeKey } from '../../ports/nodes.ts';
import type { Gossip, GossipEntry, MemberState } from '../../ports/peers.ts';
import type { ClusterMember } from '../api.ts';
import { MEMBERS_MAX, type MembershipOptions, type MembershipParts } from './api.ts';
import { bucketAnswers } from './election.ts';
import { type MemberRecord, MemberTable } from './member-table.ts';
import { type LeaderView, leaderViewOf, leaderByEpoch, claimsLead } from './leader-view.ts';

/** Members are dead when nothing was heard of them for a round and this many times the timeout of a call. */
const DEAD_TIMEOUTS = 2;

type ViewParts = Pick<MembershipParts, 'copy' | 'clock' | 'ids' | 'log' | 'positions' | 'scavengeId'>;

/**
 * What this member is and sees: which others are there, which member leads, and what it says of itself. Nothing here
 * waits or calls another member.
 */
export class MemberView {
  readonly instanceId: string;
  readonly table: MemberTable;
  readonly options: MembershipOptions;
  readonly #parts: ViewParts;
  stage: 'initializing' | 'running' | 'leaving' | 'stopped' = 'initializing';
  /** Why it takes no part, and the address of the member that said so. */
  refusal: { readonly error: SkuaError; readonly by: string } | null = null;
  priority: number;
  /** It asks others to take the lead. */
  isGivingAway = false;
  /** When the newest epoch came, and until when this process stood still; -Infinity for never. */
  epochSinceMs = -Infinity;
  awayUntilMs = -Infinity;
  #sentMs = 0;

  constructor(parts: ViewParts, options: MembershipOptions) {
    const { self, gossipIntervalMs, gossipTimeoutMs, gossipAllowedDifferenceMs, priority } = options;
    const { clock, log, ids } = parts;
    this.#parts = parts;
    this.options = options;
    this.priority = priority;
    this.instanceId = options.instanceId ?? newUuid(ids);
    this.table = new MemberTable({
      self,
      clock,
      log,
      aliveMs: gossipIntervalMs + DEAD_TIMEOUTS * gossipTimeoutMs,
      allowedDifferenceMs: gossipAllowedDifferenceMs,
    });
  }

  /** Number of the newest epoch in the copy; -1 for none. */
  get epochNumber(): number {
    return this.#parts.copy.epoch?.number ?? -1;
  }

  hearing(by: typeof leaderViewOf = leaderViewOf): LeaderView {
    const { copy, clock } = this.#parts;
    return by(this.table, {
      selfId: this.instanceId,
      canLead: this.canLead,
      epoch: copy.epoch,
      epochSinceMs: this.epochSinceMs,
      awayUntilMs: this.awayUntilMs,
      isMeeting: this.stage === 'initializing',
      timeoutMs: this.options.leaderElectionTimeoutMs,
      nowMs: clock.monotonicMs(),
    });
  }

  get canLead(): boolean {
    return !this.options.isReadOnlyReplica && this.#takesPart && bucketAnswers(this.#parts.copy.bucketSilentMs);
  }

  /**
   * The newest epoch in the copy is of this instance, and the copy takes commits. It leads then, whatever others know.
   */
  get leads(): boolean {
    return this.#parts.copy.epoch?.leaderInstanceId === this.instanceId && this.#takesPart;
  }

  get #takesPart(): boolean {
    const { copy } = this.#parts;
    return this.stage === 'running' && this.refusal === null && copy.isCaughtUp && copy.trouble === null;
  }

  state({ kind, record }: LeaderView = this.hearing()): MemberState {
    const { copy } = this.#parts;
    if (this.stage === 'stopped') return 'Shutdown';
    if (this.stage === 'leaving') return 'ShuttingDown';
    if (this.stage === 'initializing') return 'Initializing';
    if (this.refusal !== null) return 'Unknown';
    if (!copy.isCaughtUp || copy.trouble !== null) return 'CatchingUp';
    const hears = kind === 'heard' || (kind === 'expected' && record !== null);
    if (this.options.isReadOnlyReplica) return hears ? 'ReadOnlyReplica' : 'ReadOnlyLeaderless';
    if (this.leads) return this.isGivingAway ? 'ResigningLeader' : 'Leader';
    return hears ? 'Follower' : 'Unknown';
  }

  entry(): GossipEntry {
    const { copy, positions, scavengeId } = this.#parts;
    const { self, isReadOnlyReplica, version } = this.options;
    const hearing = this.hearing();
    const at = positions?.() ?? {
      lastCommitPosition: copy.end,
      writerCheckpoint: copy.end,
      chaserCheckpoint: copy.end,
    };
    return {
      node: self,
      instanceId: this.instanceId,
      sentMs: this.#sentMs,
      state: this.state(hearing),
      priority: this.priority,
      isReadOnlyReplica,
      version,
      applied: copy.applied,
      ...at,
      epoch: copy.epoch,
      hears: hearing.instanceId,
      bucketSilentMs: copy.bucketSilentMs,
      scavengeId: scavengeId?.() ?? null,
    };
  }

  /** What is told to another member now. */
  say(): Gossip {
    const { copy, clock } = this.#parts;
    // A clock that is set back does not make this member silent.
    this.#sentMs = Math.max(clock.nowMs(), this.#sentMs + 1);
    // The dead are not told of: what is of no use would go round for ever.
    const others = this.table
      .records()
      .filter((record) => this.table.isAlive(record))
      .map(({ entry }) => entry);
    return { logId: copy.logId, sender: this.options.self, entries: [this.entry(), ...others].slice(0, MEMBERS_MAX) };
  }

  members(): readonly ClusterMember[] {
    const others = this.table.records().map((record) => ({
      ...record.entry,
      isAlive: this.table.isAlive(record),
      heardMs: record.heardMs,
      aheadMs: record.aheadMs,
    }));
    return [...others, this.#self()].sort((a, b) => (nodeKey(a.node) < nodeKey(b.node) ? -1 : 1));
  }

  leader(): ClusterMember | null {
    if (this.leads) return this.#self();
    const { kind, record } = this.hearing(leaderByEpoch);
    if (record === null || (kind !== 'heard' && !this.#isNewLeader(record))) return null;
    return { ...record.entry, isAlive: true, heardMs: record.heardMs, aheadMs: record.aheadMs };
  }

  /** The member that feeds this one: the one that leads under its epoch, or says that it leads under a newer one. */
  feedSource(): MemberRecord | null {
    const { record } = this.hearing();
    return record !== null && record.lost === 'no' && claimsLead(record.entry) ? record : null;
  }

  /**
   * It wrote the newest epoch a moment ago, and spoke a moment ago: that it leads is on the way, and nobody need do
   * without a leader until then.
   */
  #isNewLeader({ entry, lost, heardFromMs: saidMs }: MemberRecord): boolean {
    const { copy, clock } = this.#parts;
    return (
      entry.instanceId === copy.epoch?.leaderInstanceId &&
      lost === 'no' &&
      (entry.state === 'Follower' || entry.state === 'Unknown') &&
      clock.monotonicMs() - saidMs <= this.options.leaderElectionTimeoutMs
    );
  }

  #self(): ClusterMember {
    return { ...this.entry(), isAlive: this.stage !== 'stopped', heardMs: this.#parts.clock.nowMs() };
  }
}

export function notReady(): SkuaError {
  return new SkuaError(
    'not_ready',
    'This member cannot become leader or answer other members now: it is starting, stopping, catching up, cut off from the bucket, or a read-only replica.',
    {},
  );
}
