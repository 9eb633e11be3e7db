import { orderInStream } from '../auto-scavenge/orders.ts';
import type { CyclesStore } from '../auto-scavenge/streams.ts';
import { isSkuaError } from '../errors.ts';
import type { LastReply, NodeAddress, Nodes, NodesView, ScavengeOrder, StartReply, StopReply } from '../ports/nodes.ts';
import type { ObjectWorld } from './api.ts';
import { askToStop, scavengeStatus, startScavenge } from './tick-control.ts';
import { derivedId } from './tick-slice.ts';

export interface ObjectNodesParts {
  readonly world: Pick<ObjectWorld, 'objects' | 'digests' | 'clock' | 'ids'>;
  readonly store: CyclesStore & { readonly end: number };
  /** Under which the store's only member appears in cycles. */
  readonly self: NodeAddress;
}

/**
 * A store on object storage as a cluster of one, for auto-scavenge: orders become notes that ticks carry out. Any process may drive
 * it, several at once too: the streams of auto-scavenge decide between them, and the id of a run is made of its order, so that an
 * order that is repeated finds the run that it has started.
 */
export function createObjectNodes(parts: ObjectNodesParts): Nodes {
  return new ObjectNodes(parts);
}

class ObjectNodes implements Nodes {
  readonly #parts: ObjectNodesParts;

  constructor(parts: ObjectNodesParts) {
    this.#parts = parts;
  }

  view(): NodesView {
    const { self, store } = this.#parts;
    return { self, clusterSize: 1, leadsSinceMs: 0, members: [{ node: self, isLeader: true, isReadOnlyReplica: false, isAlive: true, writerCheckpoint: store.end }] };
  }

  async startScavenge(_: NodeAddress, order: ScavengeOrder): Promise<StartReply> {
    const { world, store } = this.#parts;
    try {
      const known = await orderInStream(store, order);
      if (known.isLate) return { kind: 'late' };
      const scavengeId = known.scavengeId ?? derivedId(`scavenge ${order.clusterScavengeId} ${order.attempt}`, world.digests);
      return { kind: 'started', scavengeId: (await startScavenge(world, {}, scavengeId)).scavengeId };
    } catch (error) {
      return isSkuaError(error, 'scavenge_in_progress') ? { kind: 'busy' } : { kind: 'failed', reason: String(error) };
    }
  }

  async lastScavenge(): Promise<LastReply> {
    const status = await this.#status();
    if (typeof status === 'string') return { kind: 'unreachable', reason: status };
    return { kind: 'last', scavengeId: status?.scavengeId ?? null, result: status === null ? 'Unknown' : status.result ?? 'InProgress' };
  }

  async stopScavenge(_: NodeAddress, __: ScavengeOrder, scavengeId: string | null): Promise<StopReply> {
    const status = await this.#status();
    if (typeof status === 'string') return { kind: 'unreachable', reason: status };
    if (scavengeId === null || status === null || status.scavengeId !== scavengeId || status.state === 'ended') return { kind: 'stopped' };
    try {
      await askToStop(this.#parts.world, scavengeId);
      return { kind: 'stopping' };
    } catch (error) {
      return { kind: 'unreachable', reason: String(error) };
    }
  }

  /** There is no other that could lead. */
  async resign(): Promise<void> {}

  /** A text says why it can't be told. */
  #status(): ReturnType<typeof scavengeStatus> | Promise<string> {
    return scavengeStatus(this.#parts.world).catch((error: unknown) => String(error)) as ReturnType<typeof scavengeStatus> | Promise<string>;
  }
}
