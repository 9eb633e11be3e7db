import { SkuaError } from '../../base/errors.ts';
import { nodeKey } from '../../ports/nodes.ts';
import type {
  CommitsReply,
  CommitsRequest,
  Epoch,
  Gossip,
  GossipEntry,
  LeadRequest,
  MemberState,
} from '../../ports/peers.ts';
import type { ClusterMember } from '../api.ts';
import { WakeableSleep } from './wakeable-sleep.ts';
import {
  LOOK_MS,
  type MembershipOptions,
  type MembershipParts,
  RESIGN_WAIT_MS,
  type RunningMembership,
  STOP_WAIT_MS,
} from './api.ts';
import { RegistryUpkeep } from './registry-upkeep.ts';
import { checkCommitsRequest, checkLeadRequest } from '../format/peer-messages.ts';
import { bucketAnswers, isBetter } from './election.ts';
import { Feed, FeedServer, otherLog } from './commit-feed.ts';
import type { LeaderView } from './leader-view.ts';
import { giveLeadAway } from './resign.ts';
import { Candidacy } from './candidacy.ts';
import { GossipExchange } from './gossip-exchange.ts';
import { MemberView, notReady } from './view.ts';
import { background } from '../../base/background.ts';

/**
 * How often all are told while no leader is heard, so that what they say of it is fresh; less often when that goes on.
 */
const LEADERLESS_ROUND_MS = 200;
const LEADERLESS_SOON_MS = 10_000;
const LEADERLESS_LATER_MS = 500;
/** How often this member looks at itself, for what tells nobody: a bucket that falls silent, a copy that catches up. */
const STEP_MAX_MS = 250;
/** How long a stop waits until all were told, and until it is noted in the bucket. */
const FAREWELL_MS = 500;
const PRIORITY_MAX = 2_147_483_647;

export function createMembership(parts: MembershipParts, options: MembershipOptions): RunningMembership {
  return new Member(parts, options);
}

/** Puts the parts together, and does in one loop what follows from what is known and from time. */
class Member implements RunningMembership {
  readonly #parts: MembershipParts;
  readonly #view: MemberView;
  readonly #talk: GossipExchange;
  readonly #candidacy: Candidacy;
  readonly #feed: Feed;
  readonly #server: FeedServer;
  readonly #care: RegistryUpkeep;
  readonly #alarm: WakeableSleep;
  readonly #stopping = new AbortController();
  readonly #listeners: (() => void)[] = [];
  readonly #waitingForEpoch = new Set<() => void>();
  #loops: Promise<unknown> = Promise.resolve();
  #leaving: Promise<void> | null = null;
  #resigning: Promise<string> | null = null;
  #told = '';
  #shown = '';
  #leadsSinceMs: number | null = null;
  #leaderlessSinceMs: number | null = null;
  #nextRoundMs = 0;
  #nextBeatMs = 0;

  constructor(parts: MembershipParts, options: MembershipOptions) {
    const { copy, peers, clock, log, meter, objects } = parts;
    const ring = () => {
      this.#alarm.ring();
    };
    const view = new MemberView(parts, options);
    this.#parts = parts;
    this.#view = view;
    this.#alarm = new WakeableSleep(clock);
    this.#talk = new GossipExchange({
      copy,
      peers,
      clock,
      log,
      meter,
      view,
      onNews: ring,
      onNewerEpoch: () => {
        this.#feed.poll();
      },
    });
    this.#candidacy = new Candidacy({
      copy,
      clock,
      log,
      meter,
      view,
      onEnd: ring,
      onLost: () => {
        this.#feed.poll();
      },
    });
    this.#feed = new Feed({
      copy,
      peers,
      clock,
      selfId: view.instanceId,
      source: () => view.feedSource(),
      isLeading: () => view.leads,
      onHeard: (instanceId) => {
        view.table.heardFrom(instanceId);
      },
      onLost: (instanceId) => {
        this.lost(instanceId);
      },
    });
    this.#server = new FeedServer(copy, clock, () => view.leads);
    this.#care = new RegistryUpkeep({
      objects,
      clock,
      log,
      table: view.table,
      self: () => this.self,
      isLeading: () => this.isLeader,
      isUrgent: () => view.hearing().kind === 'none' || view.refusal !== null,
      removeAfterMs: options.deadMemberRemovalMs,
      lookMs: options.lookMs ?? LOOK_MS,
      onLook: ring,
    });
    copy.onEpoch((epoch) => {
      this.#onEpoch(epoch);
    });
    let wasCaughtUp = copy.isCaughtUp;
    copy.onApplied(() => {
      if (copy.isCaughtUp !== wasCaughtUp) ring();
      wasCaughtUp = copy.isCaughtUp;
    });
  }

  get clusterSize(): number {
    return this.#view.options.clusterSize;
  }
  get refusal(): SkuaError | null {
    return this.#view.refusal?.error ?? null;
  }
  get isLeader(): boolean {
    return this.#view.leads && !this.#view.isGivingAway;
  }
  get leadsSinceMs(): number | null {
    return this.isLeader ? this.#leadsSinceMs : null;
  }
  get state(): MemberState {
    return this.#view.state();
  }
  get self(): GossipEntry {
    return this.#view.entry();
  }
  get instanceId(): string {
    return this.#view.instanceId;
  }

  members(): readonly ClusterMember[] {
    return this.#view.members();
  }
  leader(): ClusterMember | null {
    return this.#view.leader();
  }
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }
  lost(instanceId: string): void {
    this.#talk.lost(instanceId);
  }
  async onGossip(gossip: Gossip): Promise<Gossip> {
    return this.#talk.onGossip(gossip);
  }
  async onCommits(request: CommitsRequest, signal: AbortSignal): Promise<CommitsReply> {
    return this.#server.serve(checkCommitsRequest(request), signal);
  }

  async newerEpoch(than: number, signal: AbortSignal): Promise<boolean> {
    while (this.#view.epochNumber <= than) {
      if (signal.aborted) return false;
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#waitingForEpoch.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.#waitingForEpoch.add(wake);
        signal.addEventListener('abort', wake);
      });
    }
    return true;
  }

  async start(): Promise<void> {
    const view = this.#view;
    try {
      await this.#care.start(async () => this.#talk.refuseOwnAddressInUse());
      await this.#talk.sendToAllWithin(view.options.leaderElectionTimeoutMs);
      if (view.refusal !== null) throw view.refusal.error;
      // It was closed meanwhile.
      if (view.stage !== 'initializing') throw notReady();
    } catch (error) {
      view.stage = 'stopped';
      this.#talk.close();
      throw error;
    }
    view.stage = 'running';
    const { signal } = this.#stopping;
    this.#loops = Promise.all([this.#run(signal), this.#feed.run(signal), this.#care.run(signal)]);
  }

  leave(): Promise<void> {
    this.#leaving ??= this.#leave();
    return this.#leaving;
  }

  async #leave(): Promise<void> {
    if (this.#view.leads) await this.#giveAway(STOP_WAIT_MS);
    if (this.#view.stage === 'stopped') return;
    this.#view.stage = 'leaving';
    this.#alarm.ring();
    await this.#talk.sendToAllWithin(FAREWELL_MS);
  }

  async close(): Promise<void> {
    await this.leave();
    if (this.#view.stage === 'stopped') return;
    this.#view.stage = 'stopped';
    await Promise.all([this.#talk.sendToAllWithin(FAREWELL_MS), this.#care.stop(FAREWELL_MS)]);
    this.#talk.close();
    this.#server.release();
    this.#stopping.abort();
    await this.#loops;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      const dueMs = this.#step();
      const wakeMs = clock.monotonicMs() + Math.min(STEP_MAX_MS, Math.max(1, dueMs - clock.monotonicMs()));
      await this.#alarm.sleep(wakeMs - clock.monotonicMs(), signal);
      // A process that stood still has heard no member meanwhile, and that says nothing about the leader.
      if (clock.monotonicMs() - wakeMs > this.#view.options.leaderElectionTimeoutMs / 2)
        this.#view.awayUntilMs = clock.monotonicMs();
    }
  }

  /** Does what is due, and returns when something is due next. */
  #step(): number {
    const { clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    const hearing = this.#view.hearing();
    const { state, hears, epoch, priority, scavengeId, bucketSilentMs } = this.#view.entry();
    this.#leadsSinceMs = this.#view.leads ? (this.#leadsSinceMs ?? clock.nowMs()) : null;
    this.#leaderlessSinceMs = hearing.kind === 'none' ? (this.#leaderlessSinceMs ?? nowMs) : null;
    const told = [state, hears, epoch?.number, priority, scavengeId, bucketAnswers(bucketSilentMs)].join(' ');
    const intervalMs = this.#roundMs(nowMs);
    if (told !== this.#told || nowMs >= this.#nextRoundMs) {
      this.#told = told;
      this.#nextRoundMs = nowMs + intervalMs;
      background(this.#talk.sendToAll());
    }
    this.#nextRoundMs = Math.min(this.#nextRoundMs, nowMs + intervalMs);
    this.#show(hearing);
    return Math.min(
      this.#nextRoundMs,
      hearing.untilMs,
      this.#beat(hearing, nowMs),
      this.#candidacy.decide(hearing, nowMs),
    );
  }

  #roundMs(nowMs: number): number {
    const { gossipIntervalMs } = this.#view.options;
    if (this.#leaderlessSinceMs === null || this.refusal !== null) return gossipIntervalMs;
    return Math.min(
      nowMs - this.#leaderlessSinceMs < LEADERLESS_SOON_MS ? LEADERLESS_ROUND_MS : LEADERLESS_LATER_MS,
      gossipIntervalMs,
    );
  }

  /**
   * A leader that has not spoken for half of the time after which it counts as silent is asked whether it is there.
   * Returns when to look again.
   */
  #beat({ record }: LeaderView, nowMs: number): number {
    if (record === null) return Infinity;
    const afterMs = this.#view.options.leaderElectionTimeoutMs / 2;
    const dueMs = Math.max(record.heardFromMs + afterMs, this.#nextBeatMs);
    if (dueMs > nowMs) return dueMs;
    this.#nextBeatMs = nowMs + afterMs / 2;
    this.#talk.send(record.entry.node);
    return this.#nextBeatMs;
  }

  /** Tells the callers that asked when what they see has changed, and the feed when it may have another source. */
  #show({ instanceId }: LeaderView): void {
    const leader = this.leader();
    const members = this.members().map(
      (member) => `${nodeKey(member.node)} ${member.instanceId} ${member.state} ${member.isAlive}`,
    );
    const shown = [this.state, instanceId, leader?.instanceId, leader?.state, ...members].join('\n');
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#feed.wake();
    for (const listener of this.#listeners) listener();
  }

  #onEpoch({ number, leaderInstanceId }: Epoch): void {
    const { clock, log, copy } = this.#parts;
    // Its leader has a moment to speak up; that of an epoch which is only met while catching up had it long ago.
    if (this.#view.stage === 'running' && copy.isCaughtUp) this.#view.epochSinceMs = clock.monotonicMs();
    this.#candidacy.renew();
    if (leaderInstanceId === this.#view.instanceId) {
      this.#leadsSinceMs = clock.nowMs();
      log.info('this member leads', { epoch: number });
    } else {
      this.#leadsSinceMs = null;
      this.#server.release();
    }
    for (const wake of this.#waitingForEpoch) wake();
    this.#alarm.ring();
  }

  async onLead(request: LeadRequest): Promise<Epoch> {
    const { copy } = this.#parts;
    const { logId, epochNumber } = checkLeadRequest(request);
    if (logId !== copy.logId) throw otherLog(copy.logId, logId);
    if (!this.#view.canLead) throw notReady();
    return copy.lead(this.#view.instanceId, epochNumber);
  }

  async setPriority(priority: number): Promise<void> {
    if (!Number.isInteger(priority) || Math.abs(priority) > PRIORITY_MAX)
      throw new SkuaError(
        'bad_option',
        `The priority is ${priority}; it must be a whole number from -${PRIORITY_MAX} to ${PRIORITY_MAX}.`,
        { value: priority },
      );
    this.#view.priority = priority;
    this.#alarm.ring();
    this.#care.wake();
  }

  resign(): Promise<string> {
    this.#resigning ??= this.#resign().finally(() => {
      this.#resigning = null;
    });
    return this.#resigning;
  }

  async #resign(): Promise<string> {
    const { copy } = this.#parts;
    const leader = this.leader();
    if (!this.#view.leads)
      return `This member is not the leader; ${leader === null ? 'no leader is known at the moment' : `${nodeKey(leader.node)} is`}.`;
    const kept = await this.#giveAway(RESIGN_WAIT_MS);
    if (kept !== null)
      return `No other member became leader within ${RESIGN_WAIT_MS / 1_000} s (${kept}): this member is still the leader.`;
    const node = this.#view.table.byInstance(copy.epoch!.leaderInstanceId)?.entry.node;
    return `Leadership was handed over: epoch ${copy.epoch!.number} is that of ${node === undefined ? `instance ${copy.epoch!.leaderInstanceId}` : nodeKey(node)}.`;
  }

  /** Null when it worked, else why not. */
  async #giveAway(waitMs: number): Promise<string | null> {
    const { copy, peers, clock } = this.#parts;
    const view = this.#view;
    view.isGivingAway = true;
    this.#alarm.ring();
    const able = view.table
      .records()
      .filter(
        (record) =>
          record.entry.state === 'Follower' &&
          record.lost === 'no' &&
          view.table.isAlive(record) &&
          bucketAnswers(record.entry.bucketSilentMs),
      );
    // What a follower asked for tells how far it is, and is later than its gossip.
    const candidates = able
      .map(({ entry }) => ({
        ...entry,
        applied: Math.max(entry.applied, this.#server.progressOf(entry.instanceId) ?? 0),
      }))
      .sort((a, b) => (isBetter(a, b) ? -1 : 1));
    const outcome = await giveLeadAway(
      { copy, peers, clock, candidates, newerEpoch: async (than, signal) => this.newerEpoch(than, signal) },
      waitMs,
    ).finally(() => {
      view.isGivingAway = false;
    });
    this.#alarm.ring();
    if (outcome.kind === 'kept') return outcome.why;
    this.#candidacy.resigned();
    return null;
  }
}
