import { afterAll, afterEach, beforeEach, expect, TestRunner } from 'vitest';
import type { CyclesStore } from '../../../core/auto-scavenge/auto-scavenge-streams.ts';
import { createObjectNodes, scavengeStatus } from '../../../core/shared-log/control/control.ts';
import type { LastReply, NodeAddress, Nodes, NodesView, StartReply, StopReply } from '../../../core/ports/nodes.ts';
import { ANY } from '../../../core/streams/api.ts';
import type { AppendResult, NewEvent, ReadStreamOptions, StreamInfo, StreamPage } from '../../../core/streams/api.ts';
import { Kit, nodeOf } from '../../auto-scavenge/kit.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { CHUNK_BYTES, runTick, uuid } from '../tick-kit.ts';
import type { Place } from './place.ts';
import { StoreClock, TickingStore } from './ticking-store.ts';

const SELF = 'A';
const OPTIONS = { chunkSizeBytes: CHUNK_BYTES, cacheBytes: 4_194_304, streams: { recentIds: 1_024 } };
const SCAVENGE_TICKS_MAX = 20;

export interface AutoOptions {
  readonly seed: number;
  /** Names of scenarios that are to run. Default: all. */
  readonly only?: (test: string) => boolean;
}

/**
 * Plays the scenarios of auto-scavenge, imported afterwards, on objects: those with one node, which is what a store on
 * objects is.
 */
export function autoScavengeOn(place: Place, { seed, only = () => true }: AutoOptions): void {
  const open: TickingStore[] = [];
  let seeds = seed;
  let played = 0;
  beforeEach(({ task, skip }) => {
    if (!only(task.name)) skip('It is told beside the suite why this is left out on objects.');
  });
  Kit.elsewhere = (kit) => {
    if (kit.members.join() !== SELF) TestRunner.getCurrentTest()!.context.skip('There is one node on objects.');
    played++;
    const store = new TickingStore({
      objects: place.fresh(),
      clock: new StoreClock(kit.clock),
      seed: seeds++,
      options: OPTIONS,
      tickChance: 0,
    });
    open.push(store);
    return { store: new CyclesOnObjects(kit, store), nodes: new NodesOnObjects(kit, store) };
  };
  afterEach(async () => {
    for (const store of open.splice(0)) await store.close();
  });
  afterAll(async () => {
    Kit.elsewhere = null;
    await place.close();
    expect(played).toBeGreaterThan(0);
  });
}

/**
 * The events of the kit, and those that the driver adds, on objects and in the kit's list, which is what the scenarios
 * look at.
 */
class CyclesOnObjects implements CyclesStore {
  readonly #kit: Kit;
  readonly #ticking: TickingStore;
  readonly #ids = new SeededIds(41);
  /** Events of the kit's list that are on objects, by stream. */
  readonly #moved = new Map<string, number>();

  constructor(kit: Kit, ticking: TickingStore) {
    this.#kit = kit;
    this.#ticking = ticking;
  }

  /** What the scenario has put into the list as if it had been there already. */
  async #move(): Promise<void> {
    for (const [stream, events] of this.#kit.log.streams) {
      const moved = this.#moved.get(stream) ?? 0;
      this.#moved.set(stream, events.length);
      for (const { type, isJson, data, metadata } of events.slice(moved))
        await this.#ticking.store.append(stream, ANY, [{ id: uuid(this.#ids), type, isJson, data, metadata }]);
    }
  }

  async append(stream: string, expected: number, events: readonly NewEvent[]): Promise<AppendResult> {
    this.#kit.beforeAppend();
    await this.#move();
    const result = await this.#ticking.store.append(stream, expected, events);
    if (!result.isRepeat)
      this.#moved.set(stream, this.#kit.log.append(stream, ANY, events, this.#kit.clock.now).lastEventNumber + 1);
    return result;
  }

  async readStream(stream: string, options: ReadStreamOptions): Promise<StreamPage> {
    await this.#move();
    return this.#ticking.store.readStream(stream, options);
  }

  async streamInfo(stream: string): Promise<StreamInfo> {
    await this.#move();
    return this.#ticking.store.streamInfo(stream);
  }
}

/**
 * The store as its only node. Scavenges end before they are asked after, unless the scenario says that the node's go
 * on.
 */
class NodesOnObjects implements Nodes {
  readonly #kit: Kit;
  readonly #ticking: TickingStore;
  readonly #nodes: Nodes;
  #isStopped = false;

  constructor(kit: Kit, ticking: TickingStore) {
    this.#kit = kit;
    this.#ticking = ticking;
    this.#nodes = createObjectNodes({
      get world() {
        return ticking.world();
      },
      store: ticking.store,
      self: nodeOf(SELF),
    });
  }

  view(): NodesView {
    return this.#nodes.view();
  }

  async startScavenge(...args: Parameters<Nodes['startScavenge']>): Promise<StartReply> {
    this.#kit.calls.push(`start ${args[0].address}`);
    await this.#ticking.opened();
    this.#isStopped = false;
    return this.#nodes.startScavenge(...args);
  }

  async lastScavenge(...args: Parameters<Nodes['lastScavenge']>): Promise<LastReply> {
    const [node, order] = args;
    this.#kit.calls.push(order === null ? `probe ${node.address}` : `ask ${node.address}`);
    await this.#ticking.opened();
    if (this.#isStopped || !this.#goesOn(node)) await this.#toTheEnd();
    return this.#nodes.lastScavenge(...args);
  }

  async stopScavenge(...args: Parameters<Nodes['stopScavenge']>): Promise<StopReply> {
    this.#kit.calls.push(`stop ${args[0].address} ${args[2] ?? 'current'}`);
    await this.#ticking.opened();
    this.#isStopped = true;
    return this.#nodes.stopScavenge(...args);
  }

  async resign(): Promise<void> {
    this.#kit.calls.push('resign');
  }

  #goesOn(node: NodeAddress): boolean {
    const reply = this.#kit.behaviours.get(node.address)?.last('any');
    return reply?.kind === 'last' && reply.result === 'InProgress';
  }

  async #toTheEnd(): Promise<void> {
    for (let ticks = 0; ticks < SCAVENGE_TICKS_MAX; ticks++) {
      const status = await scavengeStatus(this.#ticking.world());
      if (status === null || status.state === 'ended') return;
      await runTick(this.#ticking.world());
    }
    throw new Error('The scavenge does not end.');
  }
}
