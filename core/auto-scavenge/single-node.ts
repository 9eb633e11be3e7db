import { isSkuaError } from '../base/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { LastReply, NodeAddress, Nodes, NodesView, NoReply, ScavengeOrder, StartReply, StopReply } from '../ports/nodes.ts';
import { inTime } from '../ports/in-time.ts';
import type { ScavengeOrders } from './orders.ts';

/** What is asked of the orders of a node. */
export type AskedOrders = Pick<ScavengeOrders, 'start' | 'stop' | 'asked' | 'last'>;

interface SingleNodeParts {
  readonly orders: AskedOrders;
  readonly clock: Clock;
  /** Where others reach the node. */
  readonly self: () => NodeAddress;
  /** False until the store is open, and when it is being closed. */
  readonly isLeader: () => boolean;
  /** Wall-clock time of the node's start; see `NodesView.leadsSinceMs`. */
  readonly leadsSinceMs: number;
  readonly writerCheckpoint: () => number;
}

/** A cluster of one: this process. It is called directly rather than over HTTP, by the same rules. */
export function createSingleNode(parts: SingleNodeParts): Nodes {
  return new SingleNode(parts);
}

class SingleNode implements Nodes {
  readonly #parts: SingleNodeParts;

  constructor(parts: SingleNodeParts) {
    this.#parts = parts;
  }

  view(): NodesView {
    const { self, isLeader, leadsSinceMs, writerCheckpoint } = this.#parts;
    const node = self();
    return { self: node, clusterSize: 1, leadsSinceMs, members: [{ node, isLeader: isLeader(), isReadOnlyReplica: false, isAlive: true, writerCheckpoint: writerCheckpoint() }] };
  }

  startScavenge(_: NodeAddress, order: ScavengeOrder, timeoutMs: number): Promise<StartReply> {
    return inTime(this.#parts.clock, timeoutMs, () => startReply(this.#parts.orders, order), NO_ANSWER);
  }

  async lastScavenge(_: NodeAddress, order: ScavengeOrder | null): Promise<LastReply> {
    return lastReply(this.#parts.orders, order);
  }

  stopScavenge(_: NodeAddress, order: ScavengeOrder, scavengeId: string | null, timeoutMs: number): Promise<StopReply> {
    return inTime<StopReply>(this.#parts.clock, timeoutMs, () => stopReply(this.#parts.orders, order, scavengeId), { kind: 'stopping' });
  }

  /** There is no other that could lead. */
  async resign(): Promise<void> {}
}

export const NO_ANSWER: NoReply = { kind: 'unreachable', reason: 'no answer in time' };

/** What a node says to an order to start. Never rejects. */
export async function startReply(orders: AskedOrders, order: ScavengeOrder): Promise<StartReply> {
  try {
    return { kind: 'started', scavengeId: (await orders.start(order)).scavengeId };
  } catch (error) {
    if (isSkuaError(error, 'scavenge_in_progress') || isSkuaError(error, 'backup_running')) return { kind: 'busy' };
    return isSkuaError(error, 'late_order') && error.data['seen'] !== undefined ? { kind: 'late' } : { kind: 'failed', reason: String(error) };
  }
}

export function lastReply(orders: AskedOrders, order: ScavengeOrder | null): LastReply {
  if (order !== null) orders.asked(order);
  const last = orders.last();
  return { kind: 'last', scavengeId: last?.scavengeId ?? null, result: last?.result ?? 'Unknown' };
}

/** What a node says to an order to stop, when the run has ended. Never rejects. */
export async function stopReply(orders: AskedOrders, order: ScavengeOrder, scavengeId: string | null): Promise<StopReply> {
  try {
    await orders.stop(order, scavengeId);
    return { kind: 'stopped' };
  } catch (error) {
    return isSkuaError(error, 'scavenge_not_found') ? { kind: 'stopped' } : { kind: 'failed', reason: String(error) };
  }
}
