import { expect } from 'vitest';
import { isSkuaError } from '../../../core/base/errors.ts';
import { nodeKey } from '../../../core/ports/nodes.ts';
import { Random } from '../../support/random.ts';
import { BUCKET_TIMEOUT_MS } from './fake-log.ts';
import { Net, otherThan, type Process } from './kit.ts';

/** How often the simulation looks. */
const STEP_MS = 10;
/**
 * A majority in touch with each other and the bucket has a leader after this time at the latest: silence of an old one
 * (1 s), a member that waits longer since it could not reach the bucket before (5 s), and time for messages that are
 * lost.
 */
const LEADER_WITHIN_MS = 9_000;
const QUIET_MS = 12_000;
/**
 * A member that has heard of the next epoch, and not met it in the log yet, knows no leader: for a question to the new
 * leader, or to the bucket.
 */
const NO_LEADER_MAX_MS = 60;
/** Calls of one member to another in a second, while nothing happens. */
const QUIET_CALLS_A_SECOND = 8;

export interface SimulationReport {
  epochs: number;
  kills: number;
  pauses: number;
  cuts: number;
  resigns: number;
  slowestLeaderMs: number;
}

/**
 * Elections alone, over a log that holds nothing but epochs: times of trouble, in which anything may happen, and times
 * in which a majority is in touch and must agree on a leader, and keep it.
 */
export async function simulate(seed: number, rounds: number): Promise<SimulationReport> {
  const sim = new Simulation(seed);
  await sim.begin();
  for (let round = 0; round < rounds; round++) {
    await sim.trouble();
    await sim.calm();
  }
  await sim.end();
  return sim.report;
}

class Simulation {
  readonly #net: Net;
  readonly #random: Random;
  readonly #size: number;
  readonly #replicas: number;
  readonly report: SimulationReport = { epochs: 0, kills: 0, pauses: 0, cuts: 0, resigns: 0, slowestLeaderMs: 0 };

  constructor(seed: number) {
    this.#net = new Net(seed);
    this.#random = new Random(seed ^ 0x5eed);
    this.#size = this.#random.pick([1, 3, 3, 3, 5]);
    this.#replicas = this.#random.chance(0.3) ? 1 : 0;
  }

  #add(port: number): Process {
    const process = this.#net.add({
      port,
      clusterSize: this.#size,
      isReadOnlyReplica: port > this.#size,
      priority: port % 2,
    });
    process.clock.offsetMs = this.#random.int(-3_600_000, 3_600_000);
    // What is refused at a start is a finding, but for a bucket that does not answer, and for one that is closed
    // meanwhile.
    process.started = process.started.catch((error: unknown) => {
      if (!isSkuaError(error, 'storage_unreachable') && !isSkuaError(error, 'not_ready')) throw error;
      this.#net.kill(process);
    });
    return process;
  }

  async begin(): Promise<void> {
    for (let port = 1; port <= this.#size + this.#replicas; port++) {
      this.#add(port);
      if (this.#random.chance(0.5)) await this.#net.clock.advance(this.#random.int(0, 200));
    }
    await this.#agree(this.#net.alive);
  }

  async trouble(): Promise<void> {
    const net = this.#net;
    const random = this.#random;
    net.loss = random.pick([0, 0.02, 0.2]);
    net.bucketLoss = random.pick([0, 0.05]);
    net.wayMs = random.pick([2, 20, 300]);
    net.bucketMs = random.pick([5, 60, 400]);
    for (let i = random.int(1, 12); i > 0; i--) {
      if (net.alive.length === 0) this.#add(1);
      const some = random.pick(net.alive);
      const act = random.int(0, 8);
      if (act <= 1) this.#kill(some);
      else if (act === 2) this.#pause(some);
      else if (act === 3) some.resume();
      else if (act === 4) this.#cutOff(some, random.pick(net.alive));
      else if (act === 5) some.bucket.isCut = !some.bucket.isCut;
      else if (act === 6) void some.membership.resign();
      else if (act === 7) some.clock.offsetMs += random.int(-600_000, 600_000);
      else net.heal();
      await this.#advance(random.pick([5, 50, 500, 3_000, 12_000]));
      if (random.chance(0.5)) this.#restartOne();
    }
  }

  /** A majority gets in touch, or all do. The others are cut off, or dead. */
  async calm(): Promise<void> {
    const net = this.#net;
    net.heal();
    Object.assign(net, { loss: 0, bucketLoss: 0, wayMs: 3, bucketMs: 20 });
    for (const process of net.alive) process.resume();
    for (const process of net.alive) process.bucket.isCut = false;
    // Until the last request has failed that began while the bucket did not answer, and with it the start of a member.
    await this.#advance(2 * BUCKET_TIMEOUT_MS);
    for (let port = 1; port <= this.#size; port++) if (!net.processes.has(port)) this.#add(port);
    let inTouch = net.alive;
    const voting = net.alive.filter(({ settings }) => settings.isReadOnlyReplica !== true);
    const mayMiss = voting.length - Math.floor(this.#size / 2) - 1;
    for (const out of this.#random.shuffle(voting).slice(0, this.#random.int(0, mayMiss))) {
      inTouch = otherThan(inTouch, out);
      const how = this.#random.int(0, 2);
      if (how === 0) this.#kill(out);
      else if (how === 1) this.#pause(out);
      else for (const other of net.alive) if (other !== out) net.cut(out, other);
    }
    await this.#agree(inTouch);
    await this.#quiet(inTouch);
    if (this.#random.chance(0.5)) await this.#resign(inTouch);
  }

  async end(): Promise<void> {
    const numbers = this.#net.epochs();
    expect(numbers).toEqual(numbers.map((_, i) => i));
    this.report.epochs = numbers.length;
    await Promise.all(
      this.#net.alive.map(async (process) => {
        process.resume();
        const closing = process.membership.close();
        for (let closed = false; !closed;)
          closed = await Promise.race([closing.then(() => true), this.#net.clock.advance(100).then(() => false)]);
      }),
    );
  }

  async #agree(processes: readonly Process[]): Promise<void> {
    const tookMs = await this.#net.untilLeader(LEADER_WITHIN_MS, processes, true);
    this.report.slowestLeaderMs = Math.max(this.report.slowestLeaderMs, tookMs);
  }

  /** Nothing happens, so nothing changes: no other leader, nobody without it at any moment, and few calls. */
  async #quiet(processes: readonly Process[]): Promise<void> {
    const net = this.#net;
    await this.#advance(3_000);
    const epochs = net.epochs().length;
    const calls = net.calls;
    for (let ms = 0; ms < QUIET_MS; ms += STEP_MS) {
      expect(net.leaderOf(processes), `all hear one leader: ${describe(processes)}`).not.toBeNull();
      await net.clock.advance(STEP_MS);
    }
    expect(net.epochs().length, 'epochs while nothing happens').toBe(epochs);
    const pairs = net.alive.length * (this.#size + this.#replicas);
    expect(net.calls - calls, 'calls while nothing happens').toBeLessThanOrEqual(
      (pairs * QUIET_CALLS_A_SECOND * QUIET_MS) / 1_000,
    );
  }

  /** Nobody is without a leader for longer than the next epoch takes from one member to another. */
  async #resign(processes: readonly Process[]): Promise<void> {
    const net = this.#net;
    const old = net.leaderOf(processes)!;
    const others = processes.filter(
      ({ node, settings }) => nodeKey(node) !== nodeKey(old.node) && settings.isReadOnlyReplica !== true,
    );
    const epochs = net.epochs().length;
    let answer: string | null = null;
    void old.membership.resign().then((text) => {
      answer = text;
    });
    this.report.resigns++;
    const since = new Map<Process, number>();
    for (let ms = 0; ms < 6_000; ms += ms < 500 ? 1 : 100) {
      for (const process of processes) {
        if (process.membership.leader() !== null) since.delete(process);
        else if (!since.has(process)) since.set(process, ms);
        expect(
          ms - (since.get(process) ?? ms),
          `${process.node.port} without a leader while ${old.node.port} resigns: ${describe(processes)}`,
        ).toBeLessThanOrEqual(NO_LEADER_MAX_MS);
      }
      await net.clock.advance(ms < 500 ? 1 : 100);
    }
    expect(answer).not.toBeNull();
    expect(net.epochs().length, String(answer)).toBe(others.length === 0 ? epochs : epochs + 1);
    expect(net.leaderOf(processes) === old).toBe(others.length === 0);
  }

  #kill(process: Process): void {
    this.#net.kill(process);
    this.report.kills++;
  }

  #pause(process: Process): void {
    process.pause();
    this.report.pauses++;
  }

  #cutOff(a: Process, b: Process): void {
    if (a === b) return;
    if (this.#random.chance(0.5)) this.#net.cut(a, b);
    else this.#net.cuts.add(`${a.node.port} ${b.node.port}`);
    this.report.cuts++;
  }

  #restartOne(): void {
    for (let port = 1; port <= this.#size + this.#replicas; port++) {
      if (this.#net.processes.has(port)) continue;
      this.#add(port);
      return;
    }
  }

  async #advance(ms: number): Promise<void> {
    await this.#net.clock.advance(ms);
  }
}

function describe(processes: readonly Process[]): string {
  return processes
    .map(
      ({ node, membership, copy }) =>
        `${node.port} is ${membership.state}, hears ${membership.self.hears}, epoch ${copy.epoch?.number} of ${copy.epoch?.leaderInstanceId}`,
    )
    .join('; ');
}
