import { createAutoScavenge } from '../../../core/auto-scavenge/auto-scavenge.ts';
import type { AutoScavenge } from '../../../core/auto-scavenge/api.ts';
import { type AskedOrders, leaseOf, ScavengeOrders } from '../../../core/auto-scavenge/orders/orders.ts';
import { CYCLES_STREAM } from '../../../core/auto-scavenge/auto-scavenge-streams.ts';
import type { Membership } from '../../../core/cluster/api.ts';
import { createClusterNodes } from '../../../core/cluster/nodes/nodes.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import type { AdminReply } from '../../../core/ports/admin-calls.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { NodeAddress, Nodes, NodesView, NoReply } from '../../../core/ports/nodes.ts';
import { nodeKey } from '../../../core/ports/nodes.ts';
import type { Schedule } from '../../../core/ports/schedule.ts';
import { LightStore } from '../../auto-scavenge/light-store.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import type { Cluster } from './cluster.ts';
import { adminReply } from './sim-admin.ts';
import { SimScavenger } from './sim-scavenger.ts';

export const LOST_MS = 600_000;
/** How long a leader that has lost touch still thinks that it leads. */
const BELIEF_MS = 40_000;
/** 2024-01-01. */
const EPOCH_MS = 1_704_067_200_000;

/** `* /N` minutes; the rest of the syntax does not matter here. */
const schedule: Schedule = {
  next(expression, afterMs) {
    const period = Number(/^\*\/(\d+)/.exec(expression)?.[1] ?? 60) * 60_000;
    return (Math.floor(afterMs / period) + 1) * period;
  },
};

/** One node: its process, what it believes of the cluster, and its way to the others. */
export class SimNode implements Clock {
  readonly name: string;
  readonly address: NodeAddress;
  readonly isReplica: boolean;
  readonly checkpoint: number;
  readonly #cluster: Cluster;
  isAlive = true;
  /** It never comes back. */
  hasLeft = false;
  /** Wall clock beyond simulated time. */
  skewMs = 0;
  /** Whom it takes for the leader. */
  believes: string | null = null;
  term = -1;
  #leadsSinceMs = 0;
  #heardAt = 0;
  /** Its copy of the log ends here. */
  seenTo = 0;
  /** When it became a member. */
  readonly listedAt: number;
  scavenger!: SimScavenger;
  orders!: ScavengeOrders;
  driver!: AutoScavenge;
  /** Processes so far. */
  boots = 0;
  #view: NodesView | null = null;
  #viewKey = '';

  constructor(cluster: Cluster, name: string, isReplica: boolean) {
    this.#cluster = cluster;
    this.name = name;
    this.address = { address: name, port: 1 };
    this.isReplica = isReplica;
    this.checkpoint = cluster.random.int(0, 9);
    this.listedAt = cluster.timeline.now;
    this.boot();
  }

  get key(): string {
    return nodeKey(this.address);
  }
  get leadsAsFarAsItKnows(): boolean {
    return this.isAlive && this.believes === this.name;
  }

  /** A new process. */
  boot(): void {
    const cluster = this.#cluster;
    const { timeline, random, pace, runs, options } = cluster;
    this.isAlive = true;
    this.believes = null;
    this.scavenger = new SimScavenger(this.key, {
      timeline,
      random,
      pace,
      runs,
      newId: () => cluster.newId(),
      onEnd: (run) => cluster.recordRun(this, run),
    });
    const scavenger = this.scavenger;
    const store = new LightStore(cluster.log, {
      seenTo: () => (this.name === cluster.leader ? cluster.log.position : this.seenTo),
      nowMs: () => timeline.now,
      before: (stream) => cluster.beforeAppend(this, stream),
      after: (stream, events) => cluster.afterAppend(this, stream, events),
    });
    this.orders = new ScavengeOrders({
      scavenger,
      store,
      clock: this,
      log: silentLog,
      refresh: () => this.proveFresh(),
      leaseMs: options.withoutLease === true ? null : leaseOf(LOST_MS),
      leadsOthers: () => options.withoutRefusal !== true && cluster.size > 1 && this.believes === this.name,
    });
    const ids = new SeededIds(cluster.seed * 1_000 + cluster.nodes.size * 50 + this.boots++);
    this.driver = createAutoScavenge(
      {
        store,
        nodes: this.#port(),
        schedule,
        clock: this,
        ids,
        log: silentLog,
        meter: silentMeter,
        orders: this.orders,
      },
      { isOff: null, zone: 'UTC', nodeLostAfterMs: LOST_MS },
    );
  }

  kill(): void {
    this.isAlive = false;
    this.believes = null;
    this.scavenger.kill();
  }

  elected(term: number): void {
    this.believes = this.name;
    this.term = term;
    this.#leadsSinceMs = this.nowMs();
    this.#heardAt = this.#cluster.timeline.now;
    this.seenTo = this.#cluster.log.position;
  }

  /** Gossip: what it believes becomes what is so, where it reaches that. */
  look(): void {
    const cluster = this.#cluster;
    const { leader, timeline } = cluster;
    const canHear = leader !== null && (leader === this.name || cluster.areConnected(this.name, leader));
    if (canHear) {
      if (leader !== this.name || cluster.term === this.term) this.believes = leader;
      this.#heardAt = timeline.now;
      this.seenTo = cluster.log.position;
    } else if (timeline.now - this.#heardAt > BELIEF_MS) {
      this.believes = null;
    }
  }

  // The clock. Simulated time never goes back, so it is the monotonic one.

  nowMs(): number {
    return EPOCH_MS + this.#cluster.timeline.now + this.skewMs;
  }
  monotonicMs(): number {
    return this.#cluster.timeline.now;
  }
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#cluster.timeline.in(ms, resolve);
      signal?.addEventListener('abort', () => {
        cancel();
        resolve();
      });
    });
  }
  async yield(): Promise<void> {}

  // The cluster as this node sees it.

  view(): NodesView {
    const cluster = this.#cluster;
    // Within a moment it is asked for many times.
    const key = `${cluster.timeline.now} ${this.believes} ${cluster.nodes.size} ${this.#leadsSinceMs}`;
    if (this.#view === null || this.#viewKey !== key) {
      this.#viewKey = key;
      this.#view = this.#looked();
    }
    return this.#view;
  }

  #looked(): NodesView {
    const cluster = this.#cluster;
    const members = [...cluster.nodes.values()].map((node) => ({
      node: node.address,
      isLeader: node.name === this.believes,
      isReadOnlyReplica: node.isReplica,
      writerCheckpoint: node.checkpoint,
      isAlive: node === this || (node.isAlive && cluster.areConnected(this.name, node.name)),
    }));
    return { self: this.address, clusterSize: cluster.size, members, leadsSinceMs: this.#leadsSinceMs };
  }

  // The real port, over calls that are lost and come late.

  #port(): Nodes {
    const live = {
      self: () => ({ node: this.address }),
      clusterSize: () => this.#cluster.size,
      isLeader: () => this.leadsAsFarAsItKnows,
      leadsSinceMs: () => this.#leadsSinceMs,
    };
    const membership = {
      members: () => this.view().members.map((member) => ({ ...member, state: 'Follower' })),
      leader: () => this.view().members.find((member) => member.isLeader) ?? null,
      resign: async () => {
        this.#cluster.resign(this);
        return '';
      },
    };
    Object.defineProperties(membership, Object.fromEntries(Object.entries(live).map(([name, get]) => [name, { get }])));
    return createClusterNodes({
      membership: membership as unknown as Membership,
      log: { confirmFresh: () => this.proveFresh() },
      orders: this.#asked(),
      calls: { request: (to, method, path, timeoutMs) => this.#request(to, method, path, timeoutMs) },
      clock: this,
    });
  }

  /** Its orders, or what stands in for them, told to the judge. */
  #asked(): AskedOrders {
    const { options, judge } = this.#cluster;
    const { orders, scavenger } = this;
    return {
      start: async (order) => {
        const started = await (options.withoutOrders === true ? scavenger.start() : orders.start(order));
        judge.orderedRun(this.key, started.scavengeId, order.clusterScavengeId);
        return started;
      },
      stop: (order, scavengeId) =>
        options.withoutOrders === true ? scavenger.stop(scavengeId ?? 'current') : orders.stop(order, scavengeId),
      asked: (order) => orders.asked(order),
      last: () => orders.last(),
    };
  }

  async #request(to: NodeAddress, method: string, path: string, timeoutMs: number): Promise<AdminReply> {
    const reply = await this.#cluster.call(this, to, timeoutMs, async (node) => ({
      kind: 'reply' as const,
      ...(await adminReply(node.#asked(), method, path)),
    }));
    if (reply.kind !== 'reply')
      throw new SkuaError('member_silent', reply.reason, { node: 'a member', reason: 'time' });
    return reply;
  }

  /**
   * Asks the bucket, which a node reaches that hears a majority: then it has all that is in the log, and knows of a
   * newer epoch.
   */
  async proveFresh(): Promise<void> {
    const cluster = this.#cluster;
    if (!cluster.hasMajority(this)) throw new SkuaError('storage_unreachable', 'The bucket does not answer.');
    this.seenTo = cluster.log.position;
    if (this.believes === this.name && cluster.term !== this.term) this.believes = null;
  }
}

export const GONE: NoReply = { kind: 'unreachable', reason: 'no answer' };
export const NOT_LEADER = new SkuaError('not_leader', 'Not leader');
export { CYCLES_STREAM };
