import type { Clock } from '../../ports/clock.ts';
import type {
  LastReply,
  NodeAddress,
  Nodes,
  NodesView,
  ScavengeOrder,
  StartReply,
  StopReply,
} from '../../ports/nodes.ts';
import { inTime } from '../../ports/in-time.ts';
import { type AskedOrders, lastReply, NO_ANSWER, startReply, stopReply } from '../orders/orders.ts';

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
    return {
      self: node,
      clusterSize: 1,
      leadsSinceMs,
      members: [
        { node, isLeader: isLeader(), isReadOnlyReplica: false, isAlive: true, writerCheckpoint: writerCheckpoint() },
      ],
    };
  }

  startScavenge(_: NodeAddress, order: ScavengeOrder, timeoutMs: number): Promise<StartReply> {
    return inTime(this.#parts.clock, timeoutMs, () => startReply(this.#parts.orders, order), NO_ANSWER);
  }

  async lastScavenge(_: NodeAddress, order: ScavengeOrder | null): Promise<LastReply> {
    return lastReply(this.#parts.orders, order);
  }

  stopScavenge(_: NodeAddress, order: ScavengeOrder, scavengeId: string | null, timeoutMs: number): Promise<StopReply> {
    return inTime<StopReply>(this.#parts.clock, timeoutMs, () => stopReply(this.#parts.orders, order, scavengeId), {
      kind: 'stopping',
    });
  }

  /** There is no other that could lead. */
  async resign(): Promise<void> {}
}
