import { SkuaError } from '../../../core/base/errors.ts';
import type { NodeAddress, NoReply } from '../../../core/ports/nodes.ts';
import { ANY } from '../../../core/streams/api.ts';
import type { NewEvent } from '../../../core/streams/api.ts';
import { encodeText } from '../../../core/base/text.ts';
import { LightLog } from '../../auto-scavenge/light-store.ts';
import { Random } from '../../support/random.ts';
import { Judge } from './judge.ts';
import { CYCLES_STREAM, GONE, NOT_LEADER, SimNode } from './sim-node.ts';
import type { Pace, Run } from './sim-scavenger.ts';
import { Timeline } from './timeline.ts';

export interface SimOptions {
  /** Nodes forget what they were ordered: shows what late orders do. */
  readonly withoutOrders?: boolean;
  /** Runs go on although nobody asks for them: shows what lost nodes do. */
  readonly withoutLease?: boolean;
  /** Leaders take orders: shows what they do that arrive just after a change. */
  readonly withoutRefusal?: boolean;
  /** Keep every line of the trace, not just its hash. */
  readonly keepTrace?: boolean;
}

const NO_BYTES = new Uint8Array(0);
/** Longest time in milliseconds that a call lies about on its way. */
const LATE_MS = 60_000;
/** Members that were listed a moment ago need not be known yet. */
const NEWS_MS = 90_000;

/** The nodes, the network between them, the log that they share, and who leads in truth. */
export class Cluster {
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly seed: number;
  readonly options: SimOptions;
  readonly log = new LightLog();
  readonly nodes = new Map<string, SimNode>();
  readonly runs: Run[] = [];
  readonly pace: Pace = { runMs: [5_000, 60_000, 400_000, 2_400_000], stopMs: 20_000, failing: 0.1 };
  readonly judge: Judge;
  /** Directions that let nothing through. */
  readonly cut = new Set<string>();
  size = 1;
  leader: string | null = null;
  term = 0;
  /** Share of calls that come late. */
  lateness: number;
  /** Share of designations after which the lead changes soon. */
  overthrows = 0.04;
  /** Share of acknowledgements of writes that get lost. */
  lostWrites = 0.01;
  hash = 0x811c9dc5;
  readonly trace: string[] = [];
  #ids = 0;
  /** Resigned a moment ago. */
  #shy: string | null = null;

  constructor(seed: number, options: SimOptions) {
    this.seed = seed;
    this.options = options;
    this.random = new Random(seed);
    this.lateness = this.random.pick([0, 0.03, 0.3]);
    this.judge = new Judge({
      now: () => this.timeline.now,
      leader: () => (this.leader === null ? null : (this.nodes.get(this.leader)?.key ?? null)),
      livingMembers: () =>
        [...this.nodes.values()]
          .filter((node) => node.isAlive && this.timeline.now - node.listedAt > NEWS_MS)
          .map((node) => node.key),
      runs: this.runs,
    });
  }

  newId(): string {
    return `00000000-0000-4000-8000-${String(++this.#ids).padStart(12, '0')}`;
  }

  tell(line: string): void {
    const text = `${this.timeline.now} ${line}`;
    for (let i = 0; i < text.length; i++) this.hash = Math.imul(this.hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
    if (this.options.keepTrace === true) this.trace.push(text);
  }

  // The network.

  passes(from: string, to: string): boolean {
    return !this.cut.has(`${from}>${to}`);
  }

  areConnected(a: string, b: string): boolean {
    return (
      this.nodes.get(a)?.isAlive === true &&
      this.nodes.get(b)?.isAlive === true &&
      this.passes(a, b) &&
      this.passes(b, a)
    );
  }

  reaches(from: SimNode, { address }: NodeAddress): boolean {
    return from.name === address || this.areConnected(from.name, address);
  }

  /** A call to a node: it may be lost, come late, or its answer may be. Only the caller's time is limited. */
  call<T extends { readonly kind: string }>(
    from: SimNode,
    { address }: NodeAddress,
    timeoutMs: number,
    work: (node: SimNode) => Promise<T>,
  ): Promise<T | NoReply> {
    return new Promise((resolve) => {
      const cancel = this.timeline.in(timeoutMs, () => resolve(GONE));
      this.timeline.in(this.#delay(), () => {
        const node = this.nodes.get(address);
        if (node?.isAlive !== true || !this.passes(from.name, address)) return;
        const process = node.scavenger;
        void work(node).then((reply) => {
          if (process.isDead || !this.passes(address, from.name)) return;
          this.timeline.in(this.#delay(), () => {
            cancel();
            resolve(reply);
          });
        });
      });
    });
  }

  #delay(): number {
    return this.random.chance(this.lateness) ? this.random.int(1_000, LATE_MS) : this.random.int(1, 20);
  }

  // The log: a leader writes while no newer epoch is in it, and while it reaches the bucket, which a majority stands
  // for.

  beforeAppend(node: SimNode, stream: string): void {
    if (!node.isAlive) throw new SkuaError('store_closed', 'The process is gone.');
    if (!node.leadsAsFarAsItKnows)
      this.judge.problem(`${node.name} writes to ${stream} although it does not take itself for the leader`);
    if (this.term !== node.term || !this.hasMajority(node)) throw NOT_LEADER;
  }

  afterAppend(node: SimNode, stream: string, events: readonly NewEvent[]): void {
    for (const { type, data } of events) {
      this.tell(`${node.name} ${type} ${data.length}`);
      if (this.options.keepTrace === true) this.trace.push(`    ${new TextDecoder().decode(data)}`);
      if (stream === CYCLES_STREAM) this.judge.stored(type, data);
      // Orders are on their way when the lead changes.
      if (type === '$node-designated' && this.random.chance(this.overthrows))
        this.timeline.in(this.random.int(1, LATE_MS), () => this.usurp());
    }
    if (this.random.chance(this.lostWrites)) throw new SkuaError('writer_stopped', 'The acknowledgement got lost.');
  }

  /** The end of a run goes into its history, wherever the leader is reached. */
  recordRun(node: SimNode, run: Run): void {
    if (this.leader === null || (this.leader !== node.name && !this.areConnected(node.name, this.leader))) return;
    const data = encodeText(JSON.stringify({ scavengeId: run.id, result: run.result }));
    this.log.append(
      `$scavenges-${run.id}`,
      ANY,
      [{ id: '', type: '$scavengeCompleted', isJson: true, data, metadata: NO_BYTES }],
      this.timeline.now,
    );
  }

  // Who leads.

  voters(): SimNode[] {
    return [...this.nodes.values()].filter((node) => !node.isReplica);
  }

  hasMajority(node: SimNode): boolean {
    const heard = this.voters().filter((other) => other === node || this.areConnected(node.name, other.name)).length;
    return node.isAlive && heard * 2 > this.size;
  }

  /** Deposes a leader whom no majority hears, and elects one where none is. */
  elect(): void {
    const leader = this.leader === null ? undefined : this.nodes.get(this.leader);
    if (leader !== undefined && this.hasMajority(leader)) return;
    if (this.leader !== null) this.tell(`${this.leader} is deposed`);
    this.leader = null;
    const candidates = this.voters().filter((node) => this.hasMajority(node));
    const willing = candidates.filter((node) => node.name !== this.#shy || this.random.chance(0.1));
    if (willing.length === 0) {
      if (candidates.length > 0 && this.#shy !== null) this.#shy = null;
      return;
    }
    this.#crown(this.random.pick(willing));
  }

  #crown(node: SimNode): void {
    this.leader = node.name;
    this.#shy = null;
    node.elected(++this.term);
    this.tell(`${node.name} leads`);
  }

  /** A node whose process has ended is a member no more. */
  remove(node: SimNode): void {
    this.nodes.delete(node.name);
    if (this.leader === node.name) this.leader = null;
  }

  resign(node: SimNode): void {
    this.tell(`${node.name} resigns`);
    if (this.leader !== node.name || this.random.chance(0.1)) return;
    this.leader = null;
    this.#shy = node.name;
    node.believes = null;
  }

  /** Another node leads although nothing happened to the old one; where that can be, the one that is designated. */
  usurp(): void {
    if (this.leader === null) return;
    const designated = this.voters().find(
      (node) => node.key === this.judge.designated && node.name !== this.leader && this.hasMajority(node),
    );
    this.tell(`${this.leader} is overthrown`);
    this.#shy = this.leader;
    this.leader = null;
    if (designated === undefined) this.elect();
    else this.#crown(designated);
  }
}
