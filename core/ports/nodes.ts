/**
 * The members of the cluster, which of them leads, and calls to a node, through the same admin interface that users
 * have. A single node is a cluster of one.
 */
export interface Nodes {
  /** What this node knows of the cluster by now. */
  view(): NodesView;
  /**
   * Starts a scavenge with default options. The order that is repeated has the same answer; an order older than one
   * that the node has seen is `late`.
   */
  startScavenge(node: NodeAddress, order: ScavengeOrder, timeoutMs: number): Promise<StartReply>;
  /**
   * The last run since the node's process started. With `order` the node learns that the cluster still waits for the
   * run of that order: the node ends a run that the leader has not asked for in a long time
   * (core/auto-scavenge/orders/orders.ts).
   */
  lastScavenge(node: NodeAddress, order: ScavengeOrder | null, timeoutMs: number): Promise<LastReply>;
  /**
   * Stops the run of the order's cycle, and makes every older order of that cycle late. `scavengeId` is null when it is
   * not known whether there is a run, and which. Stopping a run takes time: the call ends before it has been used up.
   */
  stopScavenge(
    node: NodeAddress,
    order: ScavengeOrder,
    scavengeId: string | null,
    timeoutMs: number,
  ): Promise<StopReply>;
  /** Asks this node, which leads, to give the lead away. Whether that worked shows in the view, later. */
  resign(): Promise<void>;
}

/**
 * Where the HTTP interface of a node is; its identity: a node that comes back under the same address is the same
 * member.
 */
export interface NodeAddress {
  readonly address: string;
  readonly port: number;
}

export interface NodesView {
  readonly self: NodeAddress;
  /** Members with a vote that the cluster is meant to have. */
  readonly clusterSize: number;
  /**
   * Includes this node. One that can't be reached stays here, not alive, for longer than any run goes on without being
   * asked for (a quarter of the time after which a node counts as lost).
   */
  readonly members: readonly Member[];
  /**
   * Wall-clock time since which this node leads without a break; starts that were due before are not made up for. 0
   * where the lead never changes, however often processes do (functions).
   */
  readonly leadsSinceMs: number;
}

export interface Member {
  readonly node: NodeAddress;
  readonly isLeader: boolean;
  readonly isReadOnlyReplica: boolean;
  readonly isAlive: boolean;
  /** Position in the log that the node has reached. */
  readonly writerCheckpoint: number;
}

/**
 * An order of the cluster to a node. `attempt` is the number of the event in `$auto-scavenges` that decided it, so it
 * grows from order to order whichever member leads, and survives every restart.
 */
export interface ScavengeOrder {
  readonly clusterScavengeId: string;
  readonly attempt: number;
}

export type StartReply =
  | { readonly kind: 'started'; readonly scavengeId: string }
  /** Another run goes on there, such as one that a user started, or a backup. */
  | { readonly kind: 'busy' }
  /** The node has seen a newer order of this cycle. */
  | { readonly kind: 'late' }
  | NoReply;

export type LastReply =
  /** `scavengeId` is null and the result `Unknown` where there was none. */
  { readonly kind: 'last'; readonly scavengeId: string | null; readonly result: string } | NoReply;

export type StopReply =
  /** No run of the order's cycle goes on, whether or not one did. */
  | { readonly kind: 'stopped' }
  /** The run is being stopped and still goes on. */
  | { readonly kind: 'stopping' }
  | NoReply;

/** `unreachable`: it is not known whether the call arrived. `failed`: the node refused, for a reason of its own. */
export type NoReply = { readonly kind: 'unreachable' | 'failed'; readonly reason: string };

/** `host:port`, the name of a node in logs and replies, and its key. */
export function nodeKey({ address, port }: NodeAddress): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** The member that leads, or null. */
export function leaderOf(view: NodesView): NodeAddress | null {
  return view.members.find((member) => member.isLeader)?.node ?? null;
}

export function leads(view: NodesView): boolean {
  const leader = leaderOf(view);
  return leader !== null && nodeKey(leader) === nodeKey(view.self);
}
