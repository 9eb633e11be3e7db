import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { createAutoScavenge } from '../../core/auto-scavenge/auto-scavenge.ts';
import { parseFact } from '../../core/auto-scavenge/facts.ts';
import { leaseOf, ScavengeOrders } from '../../core/auto-scavenge/orders/orders.ts';
import { CYCLES_STREAM } from '../../core/auto-scavenge/auto-scavenge-streams.ts';
import type { ClusterMember, Membership } from '../../core/cluster/api.ts';
import { createClusterNodes } from '../../core/cluster/nodes/nodes.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { AdminCalls } from '../../core/ports/admin-calls.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { NodeAddress, Nodes } from '../../core/ports/nodes.ts';
import type { MemberState } from '../../core/ports/peers.ts';
import { createSchedule } from '../../infra/cron-schedule.ts';
import { harness } from '../handlers/harness.ts';
import { FakeScavenger } from '../support/fake-scavenger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { LOST_MS, nodeOf, T0, textOf } from './kit.ts';
import { LightLog, LightStore } from './light-store.ts';

/**
 * Members of a cluster as processes that come and go: the real driver, orders, port and handlers of each; the log, and
 * who is alive and leads, are the test's.
 */
export class ClusterKit {
  readonly clock = new ManualClock(T0);
  readonly log = new LightLog();
  readonly members = new Map<string, KitMember>();
  leader: string;
  leadsSinceMs = T0;
  #shown = 0;
  readonly #shortIds = new Map<string, string>();

  constructor(names = 'A B C') {
    for (const [i, name] of names.split(' ').entries()) this.members.set(name, new KitMember(this, name, i));
    this.leader = names.split(' ')[0]!;
  }

  of(name: string): KitMember {
    return this.members.get(name)!;
  }

  leadBy(name: string): void {
    this.leader = name;
    this.leadsSinceMs = this.clock.nowMs();
  }

  /** Every member that is alive ticks once, `times` times with some seconds between. */
  async tick(times = 1): Promise<void> {
    for (let i = 0; i < times; i++) {
      await this.clock.advance(2_000);
      for (const member of this.members.values()) {
        if (!member.isAlive) continue;
        const ticked = member.driver.tick(this.clock.monotonicMs() + 10_000);
        await this.clock.advance(4_000);
        await ticked;
      }
    }
  }

  /** Time goes by, in steps in which everybody ticks. */
  async pass(ms: number): Promise<void> {
    for (const untilMs = this.clock.monotonicMs() + ms; this.clock.monotonicMs() < untilMs;) await this.tick();
  }

  /** Events of the cycles since this was last asked, in the notation of the scenarios. */
  stored(): string {
    const events = this.log.of(CYCLES_STREAM).slice(this.#shown);
    this.#shown += events.length;
    return events
      .map(({ type, data }) => textOf(parseFact(type, data)!).replace(/[0-9a-f-]{36}/, (id) => this.shortOf(id)))
      .join(' ');
  }

  shortOf(id: string): string {
    const short = this.#shortIds.get(id) ?? `#${this.#shortIds.size + 1}`;
    this.#shortIds.set(id, short);
    return short;
  }
}

export class KitMember {
  readonly name: string;
  readonly node: NodeAddress;
  readonly isReadOnlyReplica: boolean;
  readonly #kit: ClusterKit;
  readonly #number: number;
  #boots = 0;
  isAlive = true;
  state: MemberState = 'Follower';
  checkpoint: number;
  /** Whether the bucket answers it. */
  hasBucket = true;
  proofs = 0;
  resigns = 0;
  /** Who takes over when it resigns; null for nobody. */
  successor: string | null = null;
  scavenger!: FakeScavenger;
  orders!: ScavengeOrders;
  nodes!: Nodes;
  driver!: AutoScavenge;
  http!: ReturnType<typeof harness>;
  /** Requests that it got, such as `POST /admin/scavenge`. */
  readonly calls: string[] = [];
  /** How calls to it end instead of being answered. */
  trouble: SkuaError | 'hangs' | null = null;
  /** What it thinks of the lead, where that is not so. */
  believes: boolean | null = null;

  constructor(kit: ClusterKit, name: string, number: number) {
    this.#kit = kit;
    this.name = name;
    this.#number = number;
    this.node = nodeOf(name);
    this.isReadOnlyReplica = name.startsWith('r');
    this.checkpoint = 1_000 - number * 100;
    this.boot();
  }

  get isLeader(): boolean {
    return this.believes ?? this.#kit.leader === this.name;
  }

  /** A new process, which remembers nothing. */
  boot(): void {
    const { clock, log } = this.#kit;
    this.isAlive = true;
    this.scavenger = new FakeScavenger(this.#number + 4 * this.#boots++);
    const store = new LightStore(log, {
      nowMs: () => clock.nowMs(),
      before: () => {
        if (!this.hasBucket) throw unreachable();
      },
    });
    const proveFresh = async () => {
      this.proofs++;
      if (!this.hasBucket) throw unreachable();
    };
    const leads = () => this.isLeader;
    this.orders = new ScavengeOrders({
      scavenger: this.scavenger,
      store,
      clock,
      log: silentLog,
      refresh: proveFresh,
      leadsOthers: leads,
      leaseMs: leaseOf(LOST_MS),
    });
    this.nodes = createClusterNodes({
      membership: this.#membership(),
      log: { confirmFresh: proveFresh },
      orders: this.orders,
      calls: this.#calls(),
      clock,
    });
    const authority = async () => {
      const isByTheLog = this.#kit.leader === this.name;
      if (!leads()) throw new SkuaError('not_leader', 'Not here.');
      return () =>
        isByTheLog && this.#kit.leader === this.name ? null : new SkuaError('not_leader', 'Another leads.');
    };
    this.driver = createAutoScavenge(
      {
        store,
        nodes: this.nodes,
        schedule: createSchedule(),
        clock,
        ids: new SeededIds(10 + this.#number),
        log: silentLog,
        meter: silentMeter,
        orders: this.orders,
        authority,
      },
      { isOff: null, zone: 'UTC', nodeLostAfterMs: LOST_MS },
    );
    this.http = harness({ scavenger: this.scavenger, clock, scavengeOrders: this.orders });
  }

  kill(): void {
    this.isAlive = false;
    if (this.scavenger.current() !== null) this.scavenger.end('Interrupted');
  }

  #membership(): Membership {
    const kit = this.#kit;
    const entryOf = (other: KitMember): ClusterMember => ({
      node: other.node,
      instanceId: other.name,
      sentMs: 0,
      state: other.state,
      priority: 0,
      isReadOnlyReplica: other.isReadOnlyReplica,
      version: '1',
      applied: 0,
      lastCommitPosition: 0,
      writerCheckpoint: other.checkpoint,
      chaserCheckpoint: 0,
      epoch: null,
      hears: null,
      bucketSilentMs: 0,
      scavengeId: null,
      isAlive: other.isAlive,
      heardMs: 0,
    });
    const live = {
      self: () => entryOf(this),
      state: () => this.state,
      isLeader: () => this.isLeader,
      leadsSinceMs: () => (this.isLeader ? kit.leadsSinceMs : null),
      clusterSize: () => [...kit.members.values()].filter((other) => !other.isReadOnlyReplica).length,
    };
    const membership = {
      members: () => [...kit.members.values()].map(entryOf),
      leader: () => (kit.of(kit.leader).isAlive ? entryOf(kit.of(kit.leader)) : null),
      lost: () => {},
      newerEpoch: async () => false,
      onChange: () => {},
      setPriority: async () => {},
      resign: async () => {
        this.resigns++;
        if (this.successor !== null) kit.leadBy(this.successor);
        return 'done';
      },
    };
    return Object.defineProperties(
      membership,
      Object.fromEntries(Object.entries(live).map(([name, get]) => [name, { get }])),
    ) as unknown as Membership;
  }

  #calls(): AdminCalls {
    const kit = this.#kit;
    return {
      request: async (node, method, path, timeoutMs) => {
        const to = [...kit.members.values()].find((other) => other.node.address === node.address);
        if (to === undefined || !to.isAlive)
          throw new SkuaError('member_unreachable', 'Connection refused.', { node: 'a member', reason: 'refused' });
        if (to.trouble instanceof SkuaError) throw to.trouble;
        to.calls.push(`${method} ${path}`);
        const silent = kit.clock.sleep(timeoutMs).then(() => {
          throw new SkuaError('member_silent', 'No answer.', { node: 'a member', reason: 'time' });
        });
        if (to.trouble === 'hangs') return silent;
        return Promise.race([
          to.http
            .send(method, path, { accept: 'application/json' })
            .then(({ status, text }) => ({ status, body: new TextEncoder().encode(text) })),
          silent,
        ]);
      },
    };
  }
}

function unreachable(): SkuaError {
  return new SkuaError('storage_unreachable', 'The bucket does not answer.');
}
