import { leaseOf, ScavengeOrders } from '../../core/auto-scavenge/orders/orders.ts';
import type { MemberLog, Membership } from '../../core/cluster/api.ts';
import { leadAuthority } from '../../core/cluster/authority/authority.ts';
import { createClusterNodes } from '../../core/cluster/nodes/nodes.ts';
import type { AdminCalls } from '../../core/ports/admin-calls.ts';
import {
  type AutoScavengeWorld,
  driven,
  nodeLostAfterMs,
  type OpenAutoScavenge,
  ordersTold,
} from './open-auto-scavenge.ts';

interface OpenClusterAutoScavengeOptions extends AutoScavengeWorld {
  readonly membership: Membership;
  readonly memberLog: MemberLog;
  /** To the other members. */
  readonly calls: AdminCalls;
}

/**
 * The auto-scavenge of a member of a cluster. The driver runs on each of them, and works on the one that leads. `open`
 * must stay the same while the copy is closed and opened again. To be called when it is open.
 */
export async function openClusterAutoScavenge({
  membership,
  memberLog,
  calls,
  ...world
}: OpenClusterAutoScavengeOptions): Promise<OpenAutoScavenge> {
  const {
    open: { scavenger, store },
    values,
    clock,
    log,
  } = world;
  const orders = new ScavengeOrders({
    scavenger,
    store,
    clock,
    log,
    refresh: () => memberLog.confirmFresh(0),
    leadsOthers: () => membership.isLeader && membership.clusterSize > 1,
    leaseMs: leaseOf(nodeLostAfterMs(values)),
  });
  const nodes = createClusterNodes({ membership, log: memberLog, orders: ordersTold(orders, world), calls, clock });
  return driven(world, orders, nodes, () => leadAuthority({ store, membership }));
}
