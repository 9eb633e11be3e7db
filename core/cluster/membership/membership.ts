import { isSkuaError, SkuaError } from '../../errors.ts';
import { type NodeAddress, nodeKey } from '../../ports/nodes.ts';
import type { CommitsReply, CommitsRequest, Epoch, Gossip, GossipEntry, LeadRequest, MemberState } from '../../ports/peers.ts';
import { newUuid } from '../../object-log/keys.ts';
import { type ClusterMember, sameNode } from '../api.ts';
import { Alarm } from './alarm.ts';
import { FORMAT_MAX, LOOK_MS, MEMBERS_MAX, type MembershipFigures, type MembershipOptions, type MembershipParts, RESIGN_WAIT_MS, RESIGNED_MS, type RunningMembership, STOP_WAIT_MS } from './api.ts';
import { Care } from './care.ts';
import { checkCommitsRequest, checkGossip, checkLeadRequest } from './check.ts';
import { bucketAnswers, type Candidate, Election, isBetter } from './election.ts';
import { Feed, FeedServer, otherLog } from './feed.ts';
import { type MemberRecord, MemberTable } from './gossip.ts';
import { type Hearing, listen, listenToEpoch, saysThatItLeads } from './hearing.ts';
import { giveLeadAway } from './resign.ts';
import { Rounds, saysAddressInUse } from './rounds.ts';

/** How often all are told while no leader is heard: so that what they say of it is fresh. */
const LEADERLESS_ROUND_MS = 200;
const LEADERLESS_SOON_MS = 10_000;
const LEADERLESS_LATER_MS = 500;
/** How often this member looks at itself, for what tells nobody: a bucket that falls silent, a copy that catches up. */
const STEP_MAX_MS = 250;
/** Members are dead when nothing was heard of them for a round and this many times the timeout of a call. */
const DEAD_TIMEOUTS = 2;
/** What another says of the leader it hears counts for at least so long. */
const VOTE_LEAST_MS = 1_000;
const STAND_WAIT_FIRST_MS = 250;
const STAND_WAIT_MAX_MS = 5_000;
/** How long it is waited for the answer of who may be behind an address, and that all were told of a stop. */
const ADDRESS_WAIT_MS = 500;
const PRIORITY_MAX = 2_147_483_647;

export function createMembership(parts: MembershipParts, options: MembershipOptions): RunningMembership {
  return new Member(parts, options);
}

class Member implements RunningMembership {
  readonly #parts: MembershipParts;
  readonly #options: MembershipOptions;
  readonly #instanceId: string;
  readonly #table: MemberTable;
  readonly #rounds: Rounds;
  readonly #feed: Feed;
  readonly #server: FeedServer;
  readonly #care: Care;
  readonly #election = new Election();
  readonly #alarm: Alarm;
  readonly #stopping = new AbortController();
  readonly #listeners: (() => void)[] = [];
  readonly #waitingForEpoch = new Set<() => void>();
  readonly #verifying = new Map<string, Promise<boolean>>();
  #loops: Promise<unknown> = Promise.resolve();
  #stage: 'initializing' | 'running' | 'leaving' | 'stopped' = 'initializing';
  #leaving: Promise<void> | null = null;
  #resigning: Promise<string> | null = null;
  #priority: number;
  #refusal: { readonly error: SkuaError; readonly by: string } | null = null;
  #sentMs = 0;
  #told = '';
  #shown = '';
  #epochSinceMs = -Infinity;
  #epochHeard = -1;
  #leadsSinceMs: number | null = null;
  #isStanding = false;
  #isGivingAway = false;
  #awayUntilMs = -Infinity;
  #notBeforeMs = -Infinity;
  #resignedUntilMs = -Infinity;
  #standWaitMs = STAND_WAIT_FIRST_MS;
  #leaderlessSinceMs: number | null = null;
  #nextRoundMs = 0;
  #nextBeatMs = 0;
  #takeovers = 0;
  #elections = 0;

  constructor(parts: MembershipParts, options: MembershipOptions) {
    const { copy, peers, clock, ids, log, meter, objects } = parts;
    const { self, gossipIntervalMs, gossipTimeoutMs, gossipAllowedDifferenceMs } = options;
    this.#parts = parts;
    this.#options = options;
    this.#priority = options.priority;
    this.#instanceId = options.instanceId ?? newUuid(ids);
    this.#alarm = new Alarm(clock);
    this.#table = new MemberTable({ self, clock, log, aliveMs: gossipIntervalMs + DEAD_TIMEOUTS * gossipTimeoutMs, allowedDifferenceMs: gossipAllowedDifferenceMs });
    this.#rounds = new Rounds({
      peers, clock, meter, timeoutMs: gossipTimeoutMs, say: () => this.#say(),
      onAnswer: (to, answer) => { this.#onAnswer(to, answer); }, onFailure: (to, error, startMs) => { this.#onFailure(to, error, startMs); },
    });
    this.#feed = new Feed({
      copy, peers, clock, selfId: this.#instanceId, source: () => this.#feedSource(), isLeading: () => this.#leadsByCopy(), isRefused: () => isSkuaError(this.refusal, 'format_too_new'),
      onHeard: (instanceId) => { this.#table.said(instanceId); }, onLost: (instanceId) => { this.lost(instanceId); },
    });
    this.#server = new FeedServer(copy, clock, () => this.#leadsByCopy());
    this.#care = new Care({
      objects, clock, log, table: this.#table, self: () => this.self, isLeading: () => this.isLeader, isUrgent: () => this.#hearing().kind === 'none' || this.#refusal !== null,
      removeAfterMs: options.deadMemberRemovalMs, formatMax: options.formatMax ?? FORMAT_MAX, lookMs: options.lookMs ?? LOOK_MS,
      onLook: () => { this.#alarm.ring(); }, onRefused: (error) => { this.#refuse(error, 'format'); },
    });
    copy.onEpoch((epoch) => { this.#onEpoch(epoch); });
    let wasCaughtUp = copy.isCaughtUp;
    copy.onApplied(() => {
      if (copy.isCaughtUp !== wasCaughtUp) this.#alarm.ring();
      wasCaughtUp = copy.isCaughtUp;
    });
  }

  // What is known

  get clusterSize(): number { return this.#options.clusterSize; }
  get format(): number { return this.#care.format; }
  get refusal(): SkuaError | null { return this.#refusal?.error ?? null; }
  get isLeader(): boolean { return this.#leadsByCopy() && !this.#isGivingAway; }
  get leadsSinceMs(): number | null { return this.isLeader ? this.#leadsSinceMs : null; }

  get state(): MemberState { return this.#stateNow(this.#hearing()); }

  get self(): GossipEntry { return this.#entry(this.#sentMs); }

  members(): readonly ClusterMember[] {
    const { clock } = this.#parts;
    const others = this.#table.records().map((record) => ({ ...record.entry, isAlive: this.#table.isAlive(record), heardMs: record.heardMs }));
    return [...others, { ...this.self, isAlive: this.#stage !== 'stopped', heardMs: clock.nowMs() }].sort((a, b) => (nodeKey(a.node) < nodeKey(b.node) ? -1 : 1));
  }

  leader(): ClusterMember | null {
    if (this.#leadsByCopy()) return { ...this.self, isAlive: true, heardMs: this.#parts.clock.nowMs() };
    const { kind, record } = this.#hearing(listenToEpoch);
    if (record === null || (kind !== 'heard' && !this.#isNewLeader(record))) return null;
    return { ...record.entry, isAlive: true, heardMs: record.heardMs };
  }

  /** It wrote the newest epoch a moment ago, and spoke a moment ago: that it leads is on the way, and nobody need do without a leader until then. */
  #isNewLeader({ entry, lost, saidMs }: MemberRecord): boolean {
    const { copy, clock } = this.#parts;
    return entry.instanceId === copy.epoch?.leaderInstanceId && lost === 'no' && (entry.state === 'Follower' || entry.state === 'Unknown') && clock.monotonicMs() - saidMs <= this.#options.leaderElectionTimeoutMs;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  async newerEpoch(than: number, signal: AbortSignal): Promise<boolean> {
    const { copy } = this.#parts;
    while ((copy.epoch?.number ?? -1) <= than) {
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

  figures(): MembershipFigures {
    const alive = this.members().filter(({ isAlive }) => isAlive).length;
    return {
      state: this.state, epoch: this.#parts.copy.epoch?.number ?? -1, takeovers: this.#takeovers, elections: this.#elections,
      membersAlive: alive, membersDead: this.members().length - alive, followers: this.#server.followers, pushes: this.#feed.pushes, polls: this.#feed.polls,
    };
  }

  #hearing(by: typeof listen = listen): Hearing {
    const { copy, clock } = this.#parts;
    return by(this.#table, {
      selfId: this.#instanceId, canLead: this.#canLead(), epoch: copy.epoch, epochSinceMs: this.#epochSinceMs, awayUntilMs: this.#awayUntilMs, isMeeting: this.#stage === 'initializing',
      timeoutMs: this.#options.leaderElectionTimeoutMs, nowMs: clock.monotonicMs(),
    });
  }

  #canLead(): boolean {
    const { copy } = this.#parts;
    return this.#stage === 'running' && !this.#options.isReadOnlyReplica && this.#refusal === null && copy.isCaughtUp && copy.trouble === null && bucketAnswers(copy.bucketSilentMs);
  }

  /** The newest epoch in the copy is of this instance, and the copy takes commits. It leads then, whatever others know. */
  #leadsByCopy(): boolean {
    const { copy } = this.#parts;
    return copy.epoch?.leaderInstanceId === this.#instanceId && this.#stage === 'running' && this.#refusal === null && copy.isCaughtUp && copy.trouble === null;
  }

  #stateNow({ kind, record }: Hearing): MemberState {
    const { copy } = this.#parts;
    if (this.#stage === 'stopped') return 'Shutdown';
    if (this.#stage === 'leaving') return 'ShuttingDown';
    if (this.#stage === 'initializing') return 'Initializing';
    if (this.#refusal !== null) return 'Unknown';
    if (!copy.isCaughtUp || copy.trouble !== null) return 'CatchingUp';
    const hears = kind === 'heard' || (kind === 'expected' && record !== null);
    if (this.#options.isReadOnlyReplica) return hears ? 'ReadOnlyReplica' : 'ReadOnlyLeaderless';
    if (this.#leadsByCopy()) return this.#isGivingAway ? 'ResigningLeader' : 'Leader';
    return hears ? 'Follower' : 'Unknown';
  }

  #entry(sentMs: number): GossipEntry {
    const { copy, positions, scavengeId } = this.#parts;
    const { self, isReadOnlyReplica, version, formatMax } = this.#options;
    const hearing = this.#hearing();
    const at = positions?.() ?? { lastCommitPosition: copy.end, writerCheckpoint: copy.end, chaserCheckpoint: copy.end };
    return {
      node: self, instanceId: this.#instanceId, sentMs, state: this.#stateNow(hearing), priority: this.#priority, isReadOnlyReplica, version, formatMax: formatMax ?? FORMAT_MAX,
      applied: copy.applied, ...at, epoch: copy.epoch, hears: hearing.instanceId, bucketSilentMs: copy.bucketSilentMs, scavengeId: scavengeId?.() ?? null,
    };
  }

  /** Who feeds this member: the one that leads under its epoch, or says that it leads under a newer one. */
  #feedSource(): MemberRecord | null {
    const { record } = this.#hearing();
    return record !== null && record.lost === 'no' && saysThatItLeads(record.entry) ? record : null;
  }

  // Start and stop

  async start(): Promise<void> {
    const { clock } = this.#parts;
    const { leaderElectionTimeoutMs } = this.#options;
    try {
      await this.#care.start(async () => this.#refuseOwnAddressInUse());
      const met = new AbortController();
      await Promise.race([this.#tellAll(), clock.sleep(leaderElectionTimeoutMs, met.signal)]);
      met.abort();
      if (this.#refusal !== null) throw this.#refusal.error;
    } catch (error) {
      this.#stage = 'stopped';
      this.#rounds.close();
      throw error;
    }
    this.#stage = 'running';
    const { signal } = this.#stopping;
    this.#loops = Promise.all([this.#run(signal), this.#feed.run(signal), this.#care.run(signal)]);
  }

  leave(): Promise<void> {
    this.#leaving ??= this.#leave();
    return this.#leaving;
  }

  async #leave(): Promise<void> {
    if (this.#leadsByCopy()) await this.#giveAway(STOP_WAIT_MS);
    if (this.#stage === 'stopped') return;
    this.#stage = 'leaving';
    this.#alarm.ring();
    await this.#tellInTime();
  }

  async close(): Promise<void> {
    await this.leave();
    if (this.#stage === 'stopped') return;
    this.#stage = 'stopped';
    await Promise.all([this.#tellInTime(), this.#care.stop(ADDRESS_WAIT_MS)]);
    this.#rounds.close();
    this.#server.release();
    this.#stopping.abort();
    await this.#loops;
    for (const wake of this.#waitingForEpoch) wake();
  }

  /** Tells all others, but waits for those only that answer soon. */
  async #tellInTime(): Promise<void> {
    const told = new AbortController();
    await Promise.race([this.#tellAll(), this.#parts.clock.sleep(ADDRESS_WAIT_MS, told.signal)]);
    told.abort();
  }

  // The loop: everything that follows from what is known and from time

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { clock } = this.#parts;
      const dueMs = this.#step();
      const wakeMs = clock.monotonicMs() + Math.min(STEP_MAX_MS, Math.max(1, dueMs - clock.monotonicMs()));
      await this.#alarm.sleep(wakeMs - clock.monotonicMs(), signal);
      // A process that stood still has heard nobody meanwhile, and that says nothing about the leader.
      if (clock.monotonicMs() - wakeMs > this.#options.leaderElectionTimeoutMs / 2) this.#awayUntilMs = clock.monotonicMs();
    }
  }

  /** Does what is due, and returns when something is due next. */
  #step(): number {
    const { clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    const hearing = this.#hearing();
    const entry = this.#entry(this.#sentMs);
    this.#leadsSinceMs = this.#leadsByCopy() ? (this.#leadsSinceMs ?? clock.nowMs()) : null;
    const told = [entry.state, entry.hears, entry.epoch?.number, entry.priority, entry.scavengeId, bucketAnswers(entry.bucketSilentMs)].join(' ');
    if (hearing.kind !== 'none') this.#leaderlessSinceMs = null;
    else this.#leaderlessSinceMs ??= nowMs;
    const intervalMs = this.#roundMs(nowMs);
    if (told !== this.#told || nowMs >= this.#nextRoundMs) {
      this.#told = told;
      this.#nextRoundMs = nowMs + intervalMs;
      void this.#tellAll();
    }
    this.#nextRoundMs = Math.min(this.#nextRoundMs, nowMs + intervalMs);
    this.#show(hearing);
    return Math.min(this.#nextRoundMs, hearing.untilMs, this.#beat(hearing, nowMs), this.#decide(hearing, nowMs));
  }

  #roundMs(nowMs: number): number {
    const { gossipIntervalMs } = this.#options;
    if (this.#leaderlessSinceMs === null || this.#refusal !== null) return gossipIntervalMs;
    return Math.min(nowMs - this.#leaderlessSinceMs < LEADERLESS_SOON_MS ? LEADERLESS_ROUND_MS : LEADERLESS_LATER_MS, gossipIntervalMs);
  }

  /** A leader that has not spoken for half of the time after which it counts as silent is asked whether it is there. Returns when to look again. */
  #beat({ record }: Hearing, nowMs: number): number {
    if (record === null) return Infinity;
    const afterMs = this.#options.leaderElectionTimeoutMs / 2;
    const dueMs = Math.max(record.saidMs + afterMs, this.#nextBeatMs);
    if (dueMs > nowMs) return dueMs;
    this.#nextBeatMs = nowMs + afterMs / 2;
    void this.#rounds.tell(record.entry.node);
    return this.#nextBeatMs;
  }

  #decide({ kind }: Hearing, nowMs: number): number {
    const { copy } = this.#parts;
    const voteMs = Math.max(VOTE_LEAST_MS, this.#options.leaderElectionTimeoutMs);
    const entry = this.#entry(this.#sentMs);
    const self = { ...candidate(entry), hearsNone: kind === 'none' && this.#stage === 'running', canLead: this.#canLead() };
    const others = this.#table.records().map(({ entry: other, saidMs }) => ({ ...candidate(other), saidMs }));
    const decision = this.#election.decide({ clusterSize: this.#options.clusterSize, self, others, epochSinceMs: this.#epochSinceMs, notBeforeMs: this.#notBeforeMs, resignedUntilMs: this.#resignedUntilMs, voteMs }, nowMs);
    if (decision.kind === 'none' || this.#isStanding) return Infinity;
    if (decision.atMs > nowMs) return decision.atMs;
    void this.#stand(copy.epoch?.number ?? -1);
    return Infinity;
  }

  async #stand(after: number): Promise<void> {
    const { copy, clock, log, meter } = this.#parts;
    this.#isStanding = true;
    this.#elections++;
    meter.count('eventstore_elections_count_total');
    try {
      await copy.lead(this.#instanceId, after);
    } catch (error) {
      // Somebody else's epoch was the next one, mostly. Where none of that comes into the copy it is not tried in a circle.
      this.#notBeforeMs = clock.monotonicMs() + this.#standWaitMs;
      this.#standWaitMs = Math.min(2 * this.#standWaitMs, STAND_WAIT_MAX_MS);
      if (isSkuaError(error, 'epoch_lost')) this.#feed.poll();
      else log.warn('this member stood for leader and could not commit an epoch', { error: String(error) });
    } finally {
      this.#isStanding = false;
      this.#alarm.ring();
    }
  }

  #onEpoch({ number, leaderInstanceId }: Epoch): void {
    const { clock, log, copy } = this.#parts;
    // Its leader has a moment to speak up; that of an epoch which is only met while catching up had it long ago.
    if (this.#stage === 'running' && copy.isCaughtUp) this.#epochSinceMs = clock.monotonicMs();
    this.#standWaitMs = STAND_WAIT_FIRST_MS;
    if (leaderInstanceId === this.#instanceId) {
      this.#takeovers++;
      this.#leadsSinceMs = clock.nowMs();
      log.info('this member leads', { epoch: number });
    } else {
      this.#leadsSinceMs = null;
      this.#server.release();
    }
    for (const wake of this.#waitingForEpoch) wake();
    this.#alarm.ring();
  }

  /** Tells those who asked when what they see has changed, and the feed when it has another source. */
  #show({ instanceId }: Hearing): void {
    const leader = this.leader();
    const shown = [this.state, instanceId, leader?.instanceId, leader?.state, ...this.members().map((member) => `${nodeKey(member.node)} ${member.instanceId} ${member.state} ${member.isAlive}`)].join('\n');
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#feed.wake();
    for (const listener of this.#listeners) listener();
  }

  // Gossip

  tell(): void {
    this.#told = '';
    this.#alarm.ring();
  }

  async #tellAll(): Promise<void> {
    await Promise.all(this.#table.records().map(async ({ entry }) => this.#rounds.tell(entry.node)));
  }

  #say(): Gossip {
    const { copy, clock } = this.#parts;
    // A clock that is set back does not make this member silent.
    this.#sentMs = Math.max(clock.nowMs(), this.#sentMs + 1);
    // The dead are not told of: what is of no use would go round for ever.
    const others = this.#table.records().filter((record) => this.#table.isAlive(record)).map(({ entry }) => entry);
    return { logId: copy.logId, sender: this.#options.self, entries: [this.#entry(this.#sentMs), ...others].slice(0, MEMBERS_MAX) };
  }

  #onAnswer(to: NodeAddress, { sender, entries: [own, ...others] }: Gossip): void {
    if (own === undefined || !sameNode(to, sender)) return;
    if (this.#refusal?.by === nodeKey(to)) this.#refusal = null;
    this.#table.merge(own, 'answer');
    this.#relay(others);
  }

  #relay(entries: readonly GossipEntry[]): void {
    for (const entry of entries) {
      // Who is behind an address is known by asking there.
      if (this.#table.merge(entry, 'relay') === 'conflict') void this.#rounds.tell(entry.node);
    }
    const newest = Math.max(-1, ...this.#table.records().map(({ entry }) => entry.epoch?.number ?? -1));
    if (newest > this.#epochHeard && newest > (this.#parts.copy.epoch?.number ?? -1)) this.#feed.poll();
    this.#epochHeard = Math.max(this.#epochHeard, newest);
    this.#alarm.ring();
  }

  #onFailure(to: NodeAddress, error: unknown, startMs: number): void {
    const record = this.#table.get(to);
    if (saysAddressInUse(error)) this.#refuse(addressInUse(this.#options.self), nodeKey(to));
    if (record === null || record.saidMs > startMs) return;
    if (isSkuaError(error, 'member_unreachable')) record.isOut = true;
    if (isSkuaError(error, 'member_unreachable') || isSkuaError(error, 'member_silent')) this.lost(record.entry.instanceId);
    this.#alarm.ring();
  }

  #refuse(error: SkuaError, by: string): void {
    if (this.#refusal === null && this.#stage === 'running') this.#parts.log.error('this member does not take part any more', { error: error.message });
    this.#refusal ??= { error, by };
    this.#alarm.ring();
  }

  lost(instanceId: string): void {
    const record = this.#table.byInstance(instanceId);
    if (record === null || record.lost !== 'no') return;
    // Connections break for other reasons too, such as a certificate that was renewed; so it is asked once, and until then nobody votes against it.
    record.lost = 'asking';
    void this.#rounds.probe(record.entry.node, this.#options.leaderElectionTimeoutMs).then(() => {
      if (record.lost === 'asking') record.lost = 'yes';
      this.#alarm.ring();
    });
    this.#alarm.ring();
  }

  async onGossip(gossip: Gossip): Promise<Gossip> {
    const { clock, meter, copy } = this.#parts;
    const startMs = clock.monotonicMs();
    let status: 'successful' | 'failed' = 'failed';
    try {
      const { logId, sender, entries: [own, ...others] } = checkGossip(gossip);
      if (logId !== copy.logId) throw otherLog(copy.logId, logId);
      if (this.#stage === 'stopped') throw notReady();
      if (sameNode(sender, this.#options.self)) {
        if (own!.instanceId !== this.#instanceId) throw addressInUse(sender);
      } else if (this.#table.merge(own!, 'call') === 'conflict' && !(await this.#isBehind(own!))) throw addressInUse(sender);
      this.#relay(others);
      status = 'successful';
      return this.#say();
    } finally {
      meter.observe('eventstore_gossip_processing_duration_seconds', (clock.monotonicMs() - startMs) / 1_000, { activity: 'push-from-peer', status });
    }
  }

  /** Another instance was there a moment ago: whoever answers at the address is the one that counts. Where nobody does, it has gone. */
  async #isBehind(entry: GossipEntry): Promise<boolean> {
    const key = nodeKey(entry.node);
    let verifying = this.#verifying.get(key);
    if (verifying === undefined) {
      verifying = this.#rounds.probe(entry.node, ADDRESS_WAIT_MS).finally(() => { this.#verifying.delete(key); });
      this.#verifying.set(key, verifying);
    }
    if (!(await verifying)) this.#table.merge(entry, 'answer');
    return this.#table.get(entry.node)?.entry.instanceId === entry.instanceId;
  }

  /** At a start: the note of another instance is under this address, and it answers there. */
  async #refuseOwnAddressInUse(): Promise<void> {
    const { peers } = this.#parts;
    const { self } = this.#options;
    const answer = await peers.gossip(self, this.#say(), ADDRESS_WAIT_MS).then(checkGossip).catch((error: unknown) => {
      if (saysAddressInUse(error)) throw addressInUse(self);
      return null;
    });
    if (answer !== null && answer.logId === this.#parts.copy.logId && answer.entries[0]!.instanceId !== this.#instanceId) throw addressInUse(self);
  }

  // The lead

  async onCommits(request: CommitsRequest, signal: AbortSignal): Promise<CommitsReply> {
    return this.#server.serve(checkCommitsRequest(request), signal);
  }

  async onLead(request: LeadRequest): Promise<Epoch> {
    const { copy } = this.#parts;
    const { logId, epochNumber } = checkLeadRequest(request);
    if (logId !== copy.logId) throw otherLog(copy.logId, logId);
    if (!this.#canLead()) throw notReady();
    return copy.lead(this.#instanceId, epochNumber);
  }

  async setPriority(priority: number): Promise<void> {
    if (!Number.isInteger(priority) || Math.abs(priority) > PRIORITY_MAX) throw new SkuaError('bad_option', `The priority is ${priority}; it must be a whole number from -${PRIORITY_MAX} to ${PRIORITY_MAX}.`, { value: priority });
    this.#priority = priority;
    this.#alarm.ring();
    this.#care.wake();
  }

  resign(): Promise<string> {
    this.#resigning ??= this.#resign().finally(() => { this.#resigning = null; });
    return this.#resigning;
  }

  async #resign(): Promise<string> {
    const leader = this.leader();
    if (!this.#leadsByCopy()) return `This member does not lead; ${leader === null ? 'no leader is known at the moment' : `${nodeKey(leader.node)} does`}.`;
    const kept = await this.#giveAway(RESIGN_WAIT_MS);
    if (kept !== null) return `No other member took the lead within ${RESIGN_WAIT_MS / 1_000} s (${kept}): this member still leads.`;
    return `The lead was given away: epoch ${this.#parts.copy.epoch!.number} is that of ${this.#nameOf(this.#parts.copy.epoch!.leaderInstanceId)}.`;
  }

  /** Null when it worked, else why not. */
  async #giveAway(waitMs: number): Promise<string | null> {
    const { copy, peers, clock } = this.#parts;
    this.#isGivingAway = true;
    this.#alarm.ring();
    const candidates = this.#table.records().filter((record) => record.entry.state === 'Follower' && record.lost === 'no' && this.#table.isAlive(record) && bucketAnswers(record.entry.bucketSilentMs))
      .map(({ entry }) => ({ ...entry, applied: Math.max(entry.applied, this.#server.progressOf(entry.instanceId) ?? 0) })).sort((a, b) => (isBetter(a, b) ? -1 : 1));
    const outcome = await giveLeadAway({ copy, peers, clock, candidates, newerEpoch: async (than, signal) => this.newerEpoch(than, signal) }, waitMs).finally(() => { this.#isGivingAway = false; });
    this.#alarm.ring();
    if (outcome.kind === 'kept') return outcome.why;
    this.#resignedUntilMs = clock.monotonicMs() + RESIGNED_MS;
    return null;
  }

  #nameOf(instanceId: string): string {
    const node = this.#table.byInstance(instanceId)?.entry.node;
    return node === undefined ? `instance ${instanceId}` : nodeKey(node);
  }
}

/** What an entry says that elections ask about. */
function candidate(entry: GossipEntry): Candidate {
  const { node, applied, priority, isReadOnlyReplica, state, hears, epoch, bucketSilentMs } = entry;
  return {
    node, applied, priority, isReadOnlyReplica, epochNumber: epoch?.number ?? -1,
    // One that starts has not heard anybody yet, and one that stops takes no interest.
    hearsNone: hears === null && state !== 'Initializing' && state !== 'ShuttingDown' && state !== 'Shutdown',
    canLead: (state === 'Unknown' || state === 'Follower') && bucketAnswers(bucketSilentMs),
  };
}

function addressInUse(node: NodeAddress): SkuaError {
  return new SkuaError('address_in_use', `Another member that is running has the address ${nodeKey(node)}: give each member an address of its own with --node-ip, --node-port or --node-host-advertise-as.`, { address: nodeKey(node) });
}

function notReady(): SkuaError {
  return new SkuaError('not_ready', 'This member can not take the lead, or answer other members, now: it starts, stops, catches up, does not reach the bucket, or is a read-only replica.', {});
}
