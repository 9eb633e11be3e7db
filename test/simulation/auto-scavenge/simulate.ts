import { isSkuaError } from '../../../core/base/errors.ts';
import { Cluster } from './cluster.ts';
import type { SimOptions } from './cluster.ts';
import { LOST_MS, SimNode } from './sim-node.ts';

/**
 * A cluster of 1 to 7 nodes through an hour of losses, restarts, partitions in one direction or both, slow and failing
 * scavenges, those of users, late calls, lost acknowledgements, changes of leader, commands and clock jumps at any
 * moment; then peace, in which all must come to its end. Time is simulated and chance is seeded: the same seed gives
 * the same trace.
 *
 * What is taken for granted, as a cluster must provide it: a leader writes nothing once there is a newer epoch; who
 * reaches the log and asks it knows of that; a call that is on its way for longer than a minute does not arrive; a node
 * that runs and can't be reached stays listed.
 */
export interface SimResult {
  readonly problems: readonly string[];
  readonly hash: number;
  readonly trace: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

const MINUTE = 60_000;
const TICK_MS = 20_000;
const ELECTION_MS = 10_000;
const CHAOS_MS = 60 * MINUTE;
/** In peace a cycle takes this long at most, the wait for one that was lost included. */
const PEACE_MS = LOST_MS + 25 * MINUTE;
/** What ticks, calls and stops add to a limit. */
const SLACK_MS = 150_000;
const DAY_MS = 86_400_000;
const SCHEDULES = ['*/10 * * * *', '*/20 * * * *', '*/15 * * * *'];

export type { SimOptions };

export async function simulate(seed: number, options: SimOptions = {}): Promise<SimResult> {
  const cluster = new Cluster(seed, options);
  const world = new Chaos(cluster);
  world.begin();
  await cluster.timeline.runTo(CHAOS_MS);
  world.peace();
  await cluster.timeline.runTo(CHAOS_MS + PEACE_MS);
  await world.end();
  const { judge, hash, trace } = cluster;
  return { problems: judge.problems.map((problem) => `seed ${seed}, ${problem}`), hash, trace, counts: judge.counts };
}

class Chaos {
  readonly #cluster: Cluster;
  #isPeace = false;
  #names = 0;
  #watched = { key: '', since: 0 };

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  begin(): void {
    const { random, timeline } = this.#cluster;
    const nodes = random.int(1, 7);
    const replicas = nodes > 2 ? random.int(0, 2) : nodes === 2 ? 1 : 0;
    this.#cluster.size = nodes - replicas;
    for (let i = 0; i < nodes; i++) this.#add(i >= nodes - replicas);
    this.#cluster.elect();
    this.#every(ELECTION_MS, () => this.#cluster.elect());
    this.#every(30_000, () => this.#watch());
    this.#command(() => 'configure');
    const next = () => {
      if (this.#isPeace) return;
      this.#trouble();
      timeline.in(random.int(1_000, 240_000), next);
    };
    timeline.in(5_000, next);
  }

  #every(ms: number, work: () => void): void {
    this.#cluster.timeline.in(
      ms,
      () => {
        work();
        this.#every(ms, work);
      },
      true,
    );
  }

  #add(isReplica: boolean): void {
    const cluster = this.#cluster;
    const name = `n${++this.#names}`;
    const node = new SimNode(cluster, name, isReplica);
    cluster.nodes.set(name, node);
    cluster.tell(`${name} joins`);
    const tick = () => {
      if (cluster.nodes.get(name) !== node) return;
      if (node.isAlive) {
        node.look();
        void node.driver.tick(cluster.timeline.now + 5_000);
      }
      cluster.timeline.in(TICK_MS + cluster.random.int(-2_000, 2_000), tick);
    };
    cluster.timeline.in(cluster.random.int(10, TICK_MS), tick);
  }

  // Trouble.

  #trouble(): void {
    const { random, nodes } = this.#cluster;
    if (nodes.size === 0) return;
    const node = random.pick([...nodes.values()]);
    switch (random.int(0, 13)) {
      case 0:
        return this.#kill(node, random.int(2_000, 3 * MINUTE));
      case 1:
        return this.#kill(node, random.int(1, 30) * MINUTE);
      case 2:
        return this.#partition();
      case 3:
        return this.#partition();
      case 4:
        return this.#cluster.usurp();
      case 5:
        return this.#jump(node);
      case 6:
        return this.#userRun(node);
      case 7:
        return this.#replace(node);
      case 8:
        return this.#userStop(node);
      default:
        return this.#command(() => random.pick(['pause', 'resume', 'resume', 'resume', 'status', 'configure']));
    }
  }

  #kill(node: SimNode, forMs: number): void {
    if (!node.isAlive) return;
    this.#cluster.tell(`${node.name} dies for ${forMs}`);
    node.kill();
    this.#cluster.timeline.in(forMs, () => this.#boot(node));
  }

  #boot(node: SimNode): void {
    if (node.isAlive || node.hasLeft || this.#cluster.nodes.get(node.name) !== node) return;
    this.#cluster.tell(`${node.name} is back`);
    node.boot();
    this.#watch();
  }

  /** Cuts some nodes off from the others, in both directions or one. */
  #partition(): void {
    const { random, nodes, cut, timeline, judge } = this.#cluster;
    const names = random.shuffle([...nodes.keys()]);
    // Now and then it is the node whose turn it is, and for long.
    const designated = random.chance(0.4) ? [...nodes.values()].find(({ key }) => key === judge.designated) : undefined;
    const apart =
      designated === undefined ? names.slice(0, random.int(1, Math.max(1, names.length >> 1))) : [designated.name];
    const direction = random.int(0, 3);
    const lines: string[] = [];
    for (const a of apart) {
      for (const b of names) {
        if (apart.includes(b)) continue;
        if (direction !== 0) lines.push(`${a}>${b}`);
        if (direction !== 1) lines.push(`${b}>${a}`);
      }
    }
    this.#cluster.tell(`cut ${lines.join(' ')}`);
    for (const line of lines) cut.add(line);
    timeline.in(
      designated === undefined && random.chance(0.5) ? random.int(1_000, 60_000) : random.int(1, 25) * MINUTE,
      () => {
        for (const line of lines) cut.delete(line);
        this.#watch();
      },
    );
  }

  #jump(node: SimNode): void {
    const { random } = this.#cluster;
    node.skewMs = random.chance(0.3)
      ? 0
      : random.chance(0.5)
        ? random.int(-10, 10) * MINUTE
        : random.int(-2, 2) * DAY_MS;
    this.#cluster.tell(`the clock of ${node.name} is off by ${node.skewMs}`);
  }

  #userRun(node: SimNode): void {
    if (!node.isAlive) return;
    this.#cluster.tell(`a user scavenges ${node.name}`);
    node.scavenger.start().catch(() => {});
  }

  #userStop(node: SimNode): void {
    if (!node.isAlive) return;
    this.#cluster.tell(`a user stops the scavenge of ${node.name}`);
    node.scavenger.stop('current').catch(() => {});
  }

  /** A node is gone for good. A voting one gets a successor, at once or later; replicas come and go. */
  #replace(node: SimNode): void {
    const { nodes, timeline, random } = this.#cluster;
    if (nodes.size < 2 || !node.isAlive) return;
    this.#cluster.tell(`${node.name} leaves`);
    node.kill();
    node.hasLeft = true;
    const remove = () => {
      if (nodes.get(node.name) !== node) return;
      this.#cluster.remove(node);
      const join = () => this.#add(node.isReplica);
      if (!node.isReplica && random.chance(0.5)) join();
      else timeline.in(random.int(1, 25) * MINUTE, join);
    };
    if (random.chance(0.5)) remove();
    else timeline.in(random.int(1, 25) * MINUTE, remove);
  }

  #command(choose: () => string): void {
    const { random, nodes, leader } = this.#cluster;
    const command = choose();
    const node = leader === null || random.chance(0.2) ? random.pick([...nodes.values()]) : nodes.get(leader)!;
    if (node.isAlive) void this.#tell(node, command);
  }

  async #tell(node: SimNode, command: string): Promise<void> {
    const { judge, random } = this.#cluster;
    const { driver } = node;
    try {
      switch (command) {
        case 'configure':
          await driver.configure(random.pick(SCHEDULES));
          break;
        case 'resume':
          await driver.resume();
          break;
        case 'status':
          await driver.status();
          break;
        default: {
          const answer = await driver.pause();
          // The acknowledgement of the last write may have got lost.
          if (judge.phase !== 'paused' && (answer === 'paused' || judge.phase !== 'pausing'))
            judge.problem(`a pause was answered with ${answer}, and the phase is ${judge.phase}`);
        }
      }
      this.#cluster.tell(`${command} of ${node.name}: done`);
    } catch (error) {
      if (!isSkuaError(error)) throw error;
      this.#cluster.tell(`${command} of ${node.name}: ${error.code}`);
    }
  }

  // Limits.

  /**
   * While the same process leads, and the same node is away or the same members are listed, no step takes longer than
   * its limit.
   */
  #watch(): void {
    const { judge, leader, term, nodes, timeline } = this.#cluster;
    const { phase, designated, cycle } = judge;
    const limited = phase === 'choosing' || phase === 'starting' || phase === 'monitoring' || phase === 'pausing';
    const boss = leader === null ? undefined : nodes.get(leader);
    const node = [...nodes.values()].find(({ key }) => key === designated);
    const isLost =
      boss !== undefined &&
      designated !== null &&
      node !== boss &&
      (node === undefined || !this.#cluster.areConnected(boss.name, node.name));
    // A node that is there may take as long as it wants; to stop it may not.
    const isWaited = phase === 'choosing' || phase === 'pausing' || isLost;
    const key =
      limited && boss?.leadsAsFarAsItKnows === true && this.#cluster.hasMajority(boss) && isWaited
        ? `${phase} ${designated} ${isLost} ${cycle?.id} ${cycle?.done.size} ${term} ${boss.boots} ${[...nodes.keys()].join()}`
        : '';
    if (key !== this.#watched.key || key === '') this.#watched = { key, since: timeline.now };
    const limitMs = phase === 'pausing' && !isLost && this.#cluster.lateness < 0.1 ? 0 : LOST_MS;
    if (timeline.now - this.#watched.since > limitMs + SLACK_MS) {
      judge.problem(`nothing goes on: ${key}`);
      this.#watched = { key: '', since: timeline.now };
    }
  }

  // Peace.

  /** All is well from now on: members that are missing come, nobody interferes. */
  peace(): void {
    const cluster = this.#cluster;
    this.#isPeace = true;
    cluster.tell('peace');
    cluster.cut.clear();
    cluster.lateness = 0;
    cluster.lostWrites = 0;
    cluster.overthrows = 0;
    cluster.pace.runMs = [60_000];
    for (const node of cluster.nodes.values()) {
      node.skewMs = 0;
      if (node.hasLeft) cluster.remove(node);
      else this.#boot(node);
      node.scavenger.finishIn(60_000);
    }
    for (let missing = cluster.size - cluster.voters().length; missing > 0; missing--) this.#add(false);
    // A voting node that joins in peace as well would be one too many.
    this.#every(30_000, () => {
      const voters = cluster.voters();
      for (const extra of voters.slice(cluster.size)) {
        extra.kill();
        extra.hasLeft = true;
        cluster.remove(extra);
      }
    });
    cluster.timeline.in(5 * MINUTE, () => void this.#insist('resume', 40));
  }

  async #insist(command: 'resume', times: number): Promise<void> {
    const { leader, nodes, timeline, judge } = this.#cluster;
    if (leader !== null) await this.#tell(nodes.get(leader)!, command);
    if (judge.phase === 'paused' || judge.phase === 'pausing' || leader === null) {
      if (times > 0) timeline.in(30_000, () => void this.#insist(command, times - 1));
    }
  }

  async end(): Promise<void> {
    const { judge, leader } = this.#cluster;
    if (leader === null) judge.problem('nobody leads in peace');
    if (judge.phase === 'paused' || judge.phase === 'pausing')
      judge.problem(`still ${judge.phase}, although resumed in peace`);
    const { cycle } = judge;
    // With a short schedule a new cycle may have begun, but no old one is left.
    if (cycle !== null && cycle.startedAt < CHAOS_MS)
      judge.problem(
        `the cycle of ${cycle.startedAt / 1_000} s has not come to its end: ${judge.phase} ${judge.designated}`,
      );
  }
}
