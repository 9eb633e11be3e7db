import type { AutoScavenge } from '../core/auto-scavenge/api.ts';
import type { ScavengeOrders } from '../core/auto-scavenge/orders.ts';
import { SkuaError } from '../core/errors.ts';
import type { App, Call } from './context.ts';

/** What the handlers of auto-scavenge need of the context. */
export interface AutoScavengeContext {
  /** The schedule of scavenges; null where there is none: its routes are absent then. */
  readonly autoScavenge?: AutoScavenge | null;
  /** What this node remembers of the cluster's orders; null where it takes none. */
  readonly scavengeOrders?: Pick<ScavengeOrders, 'start' | 'stop' | 'asked' | 'last'> | null;
  /**
   * Sends a request to the member (`host:port`) that leads, as this node and not as the caller, who was checked here, and
   * gives its answer whatever the status. Rejects where there is no answer in time. Absent where nobody else can lead.
   */
  readonly forwardToLeader?: (request: Request, leader: string) => Promise<Response>;
}

/** Whether the path is there only where scavenges can be scheduled. */
export function isAutoScavengePath(path: string): boolean {
  return path.startsWith('/auto-scavenge/');
}

/** Errors: `not_found` where nothing is scheduled. */
export function autoScavengeOf(call: Call, app: App & AutoScavengeContext): AutoScavenge {
  const { autoScavenge } = app;
  if (autoScavenge !== null && autoScavenge !== undefined) return autoScavenge;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: scavenges are not scheduled on this node.`);
}

/** Errors: `bad_request` where no cluster gives orders. */
export function ordersOf({ scavengeOrders }: App & AutoScavengeContext): NonNullable<AutoScavengeContext['scavengeOrders']> {
  if (scavengeOrders !== null && scavengeOrders !== undefined) return scavengeOrders;
  throw new SkuaError('bad_request', 'This node takes no orders of a cluster: leave out clusterScavengeId and attempt');
}
