import { expect } from 'vitest';
import type { RunningMembership } from '../../../core/cluster/membership/api.ts';
import { createMembership } from '../../../core/cluster/membership/membership.ts';
import { isSkuaError, SkuaError } from '../../../core/base/errors.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import { type Log, silentLog } from '../../../core/ports/log.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { type NodeAddress, nodeKey } from '../../../core/ports/nodes.ts';
import type { Peers } from '../../../core/ports/peers.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { Random } from '../../support/random.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { type BucketLink, FakeCopy, type SharedLog } from './fake-log.ts';

/** Time of one process: its clock may be off, and it stands still where the process does. */
class ProcessClock implements Clock {
  readonly #base: ManualClock;
  readonly #process: Process;
  offsetMs = 0;

  constructor(base: ManualClock, process: Process) {
    this.#base = base;
    this.#process = process;
  }

  nowMs(): number {
    return this.#base.nowMs() + this.offsetMs;
  }
  monotonicMs(): number {
    return this.#base.monotonicMs();
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await this.#base.sleep(ms, signal);
    await this.#process.runs();
  }

  async yield(): Promise<void> {
    await this.#process.runs();
  }
}

export interface MemberSettings {
  readonly port: number;
  readonly clusterSize?: number;
  readonly priority?: number;
  readonly isReadOnlyReplica?: boolean;
  readonly log?: Log;
  readonly lookMs?: number;
  readonly deadMemberRemovalMs?: number;
}

/** One run of a member. */
export class Process {
  readonly node: NodeAddress;
  readonly clock: ProcessClock;
  readonly copy: FakeCopy;
  readonly bucket: BucketLink;
  readonly membership: RunningMembership;
  readonly settings: MemberSettings;
  readonly death = new AbortController();
  started: Promise<void> = Promise.resolve();
  #resume: (() => void) | null = null;
  #paused: Promise<void> | null = null;

  constructor(world: Net, settings: MemberSettings) {
    this.settings = settings;
    this.node = { address: 'member', port: settings.port };
    this.clock = new ProcessClock(world.clock, this);
    this.bucket = { isCut: false, latencyMs: () => world.random.int(1, world.bucketMs), loss: () => world.bucketLoss };
    this.copy = new FakeCopy(world.shared, this.clock, world.random, this.bucket);
    this.membership = createMembership(
      {
        copy: this.copy,
        peers: world.peersOf(this),
        objects: world.objectsOf(this),
        clock: this.clock,
        ids: world.ids,
        log: settings.log ?? silentLog,
        meter: silentMeter,
      },
      {
        self: this.node,
        clusterSize: settings.clusterSize ?? 3,
        priority: settings.priority ?? 0,
        isReadOnlyReplica: settings.isReadOnlyReplica ?? false,
        version: '1.0',
        gossipIntervalMs: 2_000,
        gossipTimeoutMs: 2_500,
        gossipAllowedDifferenceMs: 60_000,
        leaderElectionTimeoutMs: 1_000,
        deadMemberRemovalMs: settings.deadMemberRemovalMs ?? 1_800_000,
        ...(settings.lookMs !== undefined && { lookMs: settings.lookMs }),
      },
    );
  }

  get instanceId(): string {
    return this.membership.self.instanceId;
  }
  get isDead(): boolean {
    return this.death.signal.aborted;
  }
  get isPaused(): boolean {
    return this.#paused !== null;
  }

  pause(): void {
    this.#paused ??= new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  resume(): void {
    this.#resume?.();
    this.#paused = null;
  }

  /** Resolves when the process runs; never when it is dead. */
  async runs(): Promise<void> {
    while (this.#paused !== null) await this.#paused;
    if (this.isDead) await new Promise(() => {});
  }
}

/** Members, what lies between them, and the bucket. */
export class Net {
  readonly clock = new ManualClock();
  readonly random: Random;
  readonly ids: SeededIds;
  readonly objects = new MemoryObjects({ clock: this.clock });
  readonly shared: SharedLog = { commits: [] };
  readonly processes = new Map<number, Process>();
  /** Pairs of ports, one way each, between which nothing arrives. */
  readonly cuts = new Set<string>();
  /** Most milliseconds of one way between members, and to the bucket. */
  wayMs = 3;
  bucketMs = 10;
  /** Probability that a message between members is lost, or a reply of the bucket. */
  loss = 0;
  bucketLoss = 0;
  calls = 0;

  constructor(seed = 1) {
    this.random = new Random(seed);
    this.ids = new SeededIds(seed);
  }

  get alive(): Process[] {
    return [...this.processes.values()].filter((process) => !process.isDead);
  }

  add(settings: MemberSettings): Process {
    const process = new Process(this, settings);
    this.processes.set(settings.port, process);
    process.started = process.membership.start();
    return process;
  }

  kill(process: Process): void {
    process.death.abort();
    process.resume();
    if (this.processes.get(process.node.port) === process) this.processes.delete(process.node.port);
  }

  cut(a: Process, b: Process): void {
    this.cuts.add(`${a.node.port} ${b.node.port}`).add(`${b.node.port} ${a.node.port}`);
  }

  heal(): void {
    this.cuts.clear();
  }

  /** The leader on which all of these agree; null when they do not, or one hears none. */
  leaderOf(processes: readonly Process[] = this.alive): Process | null {
    const leaders = new Set(processes.map(({ membership }) => membership.leader()?.instanceId ?? null));
    const [only = null] = leaders;
    return leaders.size === 1 && only !== null
      ? (this.alive.find(({ instanceId }) => instanceId === only) ?? null)
      : null;
  }

  /** Milliseconds until all of these agree on a leader, which is one of them where that is asked. */
  async untilLeader(withinMs: number, processes?: readonly Process[], isOneOfThem = false): Promise<number> {
    const startMs = this.clock.monotonicMs();
    for (
      let leader = this.leaderOf(processes);
      leader === null || (isOneOfThem && !processes!.includes(leader));
      leader = this.leaderOf(processes)
    ) {
      if (this.clock.monotonicMs() - startMs >= withinMs) {
        expect.fail(
          `No leader within ${withinMs} ms: ${(processes ?? this.alive).map(({ node, membership, copy }) => `${node.port} is ${membership.state}, hears ${membership.self.hears}, epoch ${copy.epoch?.number} of ${copy.epoch?.leaderInstanceId}`).join('; ')}`,
        );
      }
      await this.clock.advance(1);
    }
    return this.clock.monotonicMs() - startMs;
  }

  epochs(): number[] {
    return this.shared.commits.flatMap(({ epoch }) => (epoch === null ? [] : [epoch.number]));
  }

  peersOf(from: Process): Peers {
    const call = async <T>(
      to: NodeAddress,
      timeoutMs: number,
      signal: AbortSignal | null,
      work: (target: Process, over: AbortSignal) => Promise<T>,
    ): Promise<T> => {
      this.calls++;
      const ending = new AbortController();
      const over = AbortSignal.any([ending.signal, from.death.signal, ...(signal === null ? [] : [signal])]);
      const silent = (async () => {
        await this.clock.sleep(timeoutMs, over);
        await from.runs();
        throw new SkuaError('member_silent', 'No answer came.', { node: 'a member', reason: 'time' });
      })();
      silent.catch(() => {});
      const way = async () => this.clock.sleep(this.random.int(1, this.wayMs));
      const isLost = (a: number, b: number) => this.cuts.has(`${a} ${b}`) || this.random.chance(this.loss);
      const answered = (async () => {
        await way();
        if (isLost(from.node.port, to.port)) return silent;
        const target = this.processes.get(to.port);
        if (target === undefined) {
          await from.runs();
          throw new SkuaError('member_unreachable', 'The connection was refused.', {
            node: 'a member',
            reason: 'refused',
          });
        }
        const broken = new Promise<never>((_, reject) => {
          target.death.signal.addEventListener('abort', () => {
            reject(new SkuaError('member_silent', 'The connection broke.', { node: 'a member', reason: 'broken' }));
          });
        });
        broken.catch(() => {});
        await Promise.race([target.runs(), broken]);
        // Bytes are what goes over a network: nobody shares an object with another.
        const result = await Promise.race([
          broken,
          work(target, over).catch((error: unknown) => {
            if (!isSkuaError(error)) throw error;
            throw new SkuaError('member_refused', error.message, { node: 'a member', status: 400, code: error.code });
          }),
        ]);
        await way();
        if (isLost(to.port, from.node.port)) return silent;
        await from.runs();
        return result;
      })();
      answered.catch(() => {});
      try {
        return await Promise.race([answered, silent]);
      } finally {
        ending.abort();
        await from.runs();
      }
    };
    return {
      gossip: async (to, gossip, timeoutMs) =>
        structuredClone(
          await call(to, timeoutMs, null, async (target) => target.membership.onGossip(structuredClone(gossip))),
        ),
      commits: async (to, request, signal) =>
        call(to, 3_600_000, signal, async (target, over) => target.membership.onCommits(request, over)),
      lead: async (to, request, timeoutMs) =>
        call(to, timeoutMs, null, async (target) => target.membership.onLead(request)),
    };
  }

  /** The bucket, as a process reaches it. */
  objectsOf(process: Process): MemoryObjects {
    const { objects } = this;
    const clock = () => process.clock;
    return new Proxy(objects, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]): Promise<unknown> => {
          await clock().sleep(process.bucket.latencyMs());
          if (process.bucket.isCut) {
            await clock().sleep(2_000);
            throw new SkuaError('storage_unreachable', 'The bucket does not answer.', {});
          }
          return (value as (...values: unknown[]) => unknown).apply(target, args);
        };
      },
    });
  }
}

/** So many members on ports from 1 on, that have started. */
export async function cluster(net: Net, count: number, settings: Partial<MemberSettings> = {}): Promise<Process[]> {
  const processes = Array.from({ length: count }, (_, i) => net.add({ port: i + 1, ...settings }));
  await net.untilLeader(3_000);
  return processes;
}

export function otherThan(processes: readonly Process[], process: Process): Process[] {
  return processes.filter((other) => nodeKey(other.node) !== nodeKey(process.node));
}
