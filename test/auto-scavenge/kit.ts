import { createAutoScavenge } from '../../core/auto-scavenge/auto-scavenge.ts';
import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { formatFact, parseFact } from '../../core/auto-scavenge/facts.ts';
import type { Fact, NodeResult } from '../../core/auto-scavenge/facts.ts';
import { CONFIGURATION_STREAM, CYCLES_STREAM } from '../../core/auto-scavenge/auto-scavenge-streams.ts';
import type { CyclesStore } from '../../core/auto-scavenge/auto-scavenge-streams.ts';
import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { nodeKey } from '../../core/ports/nodes.ts';
import type {
  LastReply,
  NodeAddress,
  Nodes,
  NodesView,
  ScavengeOrder,
  StartReply,
  StopReply,
} from '../../core/ports/nodes.ts';
import { ANY } from '../../core/streams/api.ts';
import { createSchedule } from '../../infra/cron-schedule.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { LightLog, LightStore } from './light-store.ts';

/** What the scenarios have: one driver on node `self` with nodes that answer as a test says. */

/** 00:00 on a Monday. */
export const T0 = Date.UTC(2024, 0, 1);
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const LOST_MS = 30 * MINUTE;
export const HOURLY = '0 * * * *';
export const DAILY = '0 0 * * *';
export const WEEKLY = '0 0 * * 0';
const TICK_MS = 10_000;
const NO_BYTES = new Uint8Array(0);

export class TestClock implements Clock {
  now = T0;
  monotonic = 0;
  nowMs(): number {
    return this.now;
  }
  monotonicMs(): number {
    return this.monotonic;
  }
  async sleep(): Promise<void> {}
  async yield(): Promise<void> {}
  advance(ms: number): void {
    this.now += ms;
    this.monotonic += ms;
  }
}

export interface KitOptions {
  readonly self?: string;
  readonly leader?: string;
  /** Names of nodes; those that begin with `r` are read-only replicas. */
  readonly members?: string;
  readonly clusterSize?: number;
  readonly checkpoints?: Readonly<Record<string, number>>;
}

/** How a node answers. */
export interface Behaviour {
  start: (order: ScavengeOrder) => StartReply;
  last: (started: string | null) => LastReply;
  stop: () => StopReply;
}

export function nodeOf(name: string): NodeAddress {
  return { address: name, port: 2113 };
}

const UNREACHABLE = { kind: 'unreachable', reason: 'no connection' } as const;
export const unreachable = () => UNREACHABLE;

/** Where a kit's events are, and who scavenges, when it is not the kit itself. */
export interface Elsewhere {
  readonly store: CyclesStore;
  readonly nodes: Nodes;
}

export class Kit implements Nodes {
  /** Null: kits have their events and nodes themselves. */
  static elsewhere: ((kit: Kit) => Elsewhere) | null = null;
  readonly clock = new TestClock();
  readonly log = new LightLog();
  /** Called before every append. */
  beforeAppend: () => void = () => {};
  readonly store: LightStore = new LightStore(this.log, {
    before: () => this.beforeAppend(),
    nowMs: () => this.clock.now,
  });
  readonly lines: string[] = [];
  /** Calls to nodes, such as `start B`. */
  readonly calls: string[] = [];
  self: string;
  leader: string;
  members: string[];
  clusterSize: number;
  leadsSinceMs = T0;
  readonly dead = new Set<string>();
  readonly checkpoints: Record<string, number>;
  readonly behaviours = new Map<string, Behaviour>();
  readonly started = new Map<string, string>();
  isOff: string | null = null;
  driver: AutoScavenge;
  readonly #elsewhere: Elsewhere | null;
  readonly #shortIds = new Map<string, string>();
  #scavenges = 0;
  #shown = 0;

  constructor(options: KitOptions = {}) {
    this.self = options.self ?? 'A';
    this.leader = options.leader ?? this.self;
    this.members = (options.members ?? 'A B C').split(' ');
    this.clusterSize = options.clusterSize ?? this.members.filter((name) => !name.startsWith('r')).length;
    this.checkpoints = { B: 100, C: 200, A: 300, r1: 50, r2: 60, ...options.checkpoints };
    this.#elsewhere = Kit.elsewhere?.(this) ?? null;
    this.driver = this.newDriver();
  }

  newDriver(): AutoScavenge {
    const line = (message: string) => {
      this.lines.push(message);
    };
    const { clock } = this;
    const { store, nodes } = this.#elsewhere ?? { store: this.store, nodes: this };
    return createAutoScavenge(
      {
        store,
        nodes,
        schedule: createSchedule(),
        clock,
        ids: new SeededIds(7),
        log: { debug: line, info: line, warn: (message) => line(`warning: ${message}`), error: line },
        meter: silentMeter,
      },
      { isOff: () => this.isOff, zone: 'UTC', nodeLostAfterMs: LOST_MS },
    );
  }

  /** Another process takes the node's place, or another node leads. */
  leadBy(name: string): void {
    this.self = name;
    this.leader = name;
    this.leadsSinceMs = this.clock.now;
    this.driver = this.newDriver();
  }

  // The port.

  view(): NodesView {
    const members = this.members.map((name) => ({
      node: nodeOf(name),
      isLeader: name === this.leader,
      isReadOnlyReplica: name.startsWith('r'),
      isAlive: !this.dead.has(name),
      writerCheckpoint: this.checkpoints[name] ?? 0,
    }));
    return { self: nodeOf(this.self), clusterSize: this.clusterSize, members, leadsSinceMs: this.leadsSinceMs };
  }

  async startScavenge(node: NodeAddress, order: ScavengeOrder): Promise<StartReply> {
    this.calls.push(`start ${node.address}`);
    const reply = this.#of(node).start(order);
    if (reply.kind === 'started') this.started.set(node.address, reply.scavengeId);
    return reply;
  }

  async lastScavenge(node: NodeAddress, order: ScavengeOrder | null): Promise<LastReply> {
    this.calls.push(order === null ? `probe ${node.address}` : `ask ${node.address}`);
    return this.#of(node).last(this.started.get(node.address) ?? null);
  }

  async stopScavenge(node: NodeAddress, _: ScavengeOrder, scavengeId: string | null): Promise<StopReply> {
    this.calls.push(`stop ${node.address} ${scavengeId ?? 'current'}`);
    return this.#of(node).stop();
  }

  async resign(): Promise<void> {
    this.calls.push('resign');
  }

  #of({ address }: NodeAddress): Behaviour {
    let behaviour = this.behaviours.get(address);
    if (behaviour === undefined) {
      behaviour = {
        start: () => ({ kind: 'started', scavengeId: this.nextId() }),
        last: (scavengeId) => ({ kind: 'last', scavengeId, result: 'Success' }),
        stop: () => ({ kind: 'stopped' }),
      };
      this.behaviours.set(address, behaviour);
    }
    return behaviour;
  }

  nextId(): string {
    return `#${++this.#scavenges}`;
  }

  /** Changes how a node answers. */
  node(name: string, change: Partial<Behaviour>): void {
    Object.assign(this.#of(nodeOf(name)), change);
  }

  /** The node's scavenges go on without end. */
  running(...names: string[]): void {
    for (const name of names)
      this.node(name, {
        last: (scavengeId) => ({ kind: 'last', scavengeId, result: scavengeId === null ? 'Unknown' : 'InProgress' }),
      });
  }

  says(name: string, result: string, scavengeId?: string): void {
    this.node(name, { last: (started) => ({ kind: 'last', scavengeId: scavengeId ?? started, result }) });
  }

  // What happens.

  /** Stores events as if they had been there already. `at` is their time after T0. */
  given(text: string, at = 0): void {
    for (const word of text.split(' ')) {
      const fact = factOf(word, T0 + at);
      const stream = fact.type === '$configuration-updated' ? CONFIGURATION_STREAM : CYCLES_STREAM;
      this.log.append(
        stream,
        ANY,
        [{ id: '', type: fact.type, isJson: true, data: formatFact(fact), metadata: NO_BYTES }],
        fact.type === '$cluster-members-changed' ? T0 : fact.atMs,
      );
      if (fact.type === '$node-scavenge-started') this.started.set(fact.node.address, fact.scavengeId);
    }
    this.#shown = this.log.position;
  }

  history(scavengeId: string, ...results: string[]): void {
    for (const result of results) {
      this.log.append(
        `$scavenges-${scavengeId}`,
        ANY,
        [
          {
            id: '',
            type: '$scavengeCompleted',
            isJson: true,
            data: new TextEncoder().encode(JSON.stringify({ scavengeId, result })),
            metadata: NO_BYTES,
          },
        ],
        0,
      );
    }
    this.#shown = this.log.position;
  }

  /** One tick, `times` times. */
  async g(times = 1): Promise<void> {
    for (let i = 0; i < times; i++) await this.driver.tick(this.clock.monotonic + TICK_MS);
  }

  async after(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.g();
  }

  /** What a command is answered with, or the code of its error. */
  async answer(command: Promise<unknown>): Promise<unknown> {
    try {
      return (await command) ?? 'done';
    } catch (error) {
      if (isSkuaError(error)) return error.code;
      throw error;
    }
  }

  /** Events stored since this was last asked, in the notation of the scenarios. */
  stored(): string {
    const events = [...this.log.streams]
      .filter(([stream]) => stream === CYCLES_STREAM || stream === CONFIGURATION_STREAM)
      .flatMap(([, stored]) => stored)
      .filter((event) => event.position >= this.#shown);
    this.#shown = this.log.position;
    return events
      .sort((a, b) => a.position - b.position)
      .map((event) => this.#short(textOf(parseFact(event.type, event.data)!)))
      .join(' ');
  }

  /** Ids of real scavenges become `#1`, `#2`, ... too. */
  #short(text: string): string {
    return text.replace(/[0-9a-f-]{36}/, (id) => {
      const short = this.#shortIds.get(id) ?? this.nextId();
      this.#shortIds.set(id, short);
      return short;
    });
  }

  async state(): Promise<string> {
    return (await this.driver.status()).state;
  }

  /** State, schedule and time to the next start in minutes. */
  async status(): Promise<unknown[]> {
    const { state, schedule, untilNextCycleMs } = await this.driver.status();
    return [state, schedule, untilNextCycleMs === null ? null : untilNextCycleMs / MINUTE];
  }
}

const names = (nodes: readonly NodeAddress[]) => nodes.map((node) => nodeKey(node).replace(':2113', '')).join(',');

export function textOf(fact: Fact): string {
  switch (fact.type) {
    case '$configuration-updated':
      return 'cfg';
    case '$cluster-scavenge-started':
      return `started{${names(fact.members)}}`;
    case '$cluster-scavenge-completed':
      return `done{${names(fact.members)}}`;
    case '$cluster-members-changed':
      return `members(+${names(fact.added)},-${names(fact.removed)})`;
    case '$node-designated':
      return `des(${names([fact.node])})`;
    case '$node-scavenge-started':
      return `nstart(${names([fact.node])},${fact.scavengeId})`;
    case '$node-scavenge-completed':
      return `ndone(${names([fact.node])}${fact.result === 'Success' ? '' : `,${fact.result}`})`;
    case '$pause-requested':
      return 'preq';
    default:
      return fact.type.slice(1);
  }
}

/** `cfg(H)`, `started{A,B}`, `des(B)`, `nstart(B,#1)`, `ndone(B)`, `done{A,B}`, `preq`, `paused`, `resumed`. */
function factOf(word: string, atMs: number): Fact {
  const match = /^(\w+)(?:[({](.*)[)}])?$/.exec(word);
  const [, name = '', inner = ''] = match ?? [];
  const list = inner.split(',').filter((part) => part !== '');
  const node = nodeOf(list[0] ?? '');
  switch (name) {
    case 'cfg':
      return { type: '$configuration-updated', schedule: { H: HOURLY, D: DAILY, Wk: WEEKLY }[inner] ?? inner, atMs };
    case 'started':
      return { type: '$cluster-scavenge-started', clusterScavengeId: 'K', members: list.map(nodeOf), atMs };
    case 'done':
      return { type: '$cluster-scavenge-completed', clusterScavengeId: 'K', members: list.map(nodeOf), atMs };
    case 'des':
      return { type: '$node-designated', node, atMs };
    case 'nstart':
      return { type: '$node-scavenge-started', node, scavengeId: list[1]!, atMs };
    case 'ndone':
      return { type: '$node-scavenge-completed', node, result: (list[1] ?? 'Success') as NodeResult, atMs };
    case 'preq':
      return { type: '$pause-requested', atMs };
    case 'paused':
    case 'resumed':
      return { type: `$${name}`, atMs };
    default:
      throw new SkuaError('bad_request', `No such event: ${word}`);
  }
}
