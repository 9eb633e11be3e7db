import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { PersistentSubscriptions } from '../../core/persistent/api.ts';
import type { ErasureProofs } from '../../core/scavenge/scavenge.ts';
import type { App, AppFeatures, Call, ClusterFeature, Webhooks } from './context.ts';
import type { NodeControl } from './node-control.ts';
import type { Route } from './route.ts';

/** Whether what a route needs is there: connectors, schedules and backups are not everywhere. */
export function isPresent({ features, security }: Pick<App, 'features' | 'security'>, { feature }: Pick<Route, 'feature'>): boolean {
  if (feature === undefined) return true;
  return (feature === 'users' ? security : features[feature]) != null;
}

/** Errors: `not_found` where the node is a member of no cluster. */
export function clusterOf(call: Call, app: App): ClusterFeature {
  const { cluster } = app.features;
  if (cluster !== null && cluster !== undefined) return cluster;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: this node is a member of no cluster.`);
}

/** Errors: `not_found` where there are no persistent subscriptions. */
export function subscriptionsOf(call: Call, app: App): PersistentSubscriptions {
  const { subscriptions } = app.features;
  if (subscriptions !== null && subscriptions !== undefined) return subscriptions;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: persistent subscriptions are not here.`);
}

/** Errors: `not_found` where connectors are switched off: their paths are unknown then. */
export function webhooksOf(call: Call, app: App): Webhooks {
  const { webhooks } = app.features;
  if (webhooks !== null && webhooks !== undefined) return webhooks;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: connectors are switched off on this node.`);
}

/** Errors: `not_found` where nothing is scheduled. */
export function autoScavengeOf(call: Call, app: App): AutoScavenge {
  const { autoScavenge } = app.features;
  if (autoScavenge !== null && autoScavenge !== undefined) return autoScavenge;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: scavenges are not scheduled on this node.`);
}

/** Errors: `bad_request` where no cluster gives orders. */
export function ordersOf(app: App): NonNullable<AppFeatures['scavengeOrders']> {
  const { scavengeOrders } = app.features;
  if (scavengeOrders !== null && scavengeOrders !== undefined) return scavengeOrders;
  throw new SkuaError('bad_request', 'This node takes no orders of a cluster: leave out clusterScavengeId and attempt');
}

/** Errors: `not_found` where no backups are made. */
export function backupsOf(call: Call, app: App): NonNullable<AppFeatures['backups']> {
  const { backups } = app.features;
  if (backups !== null && backups !== undefined) return backups;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: this node makes no backups.`);
}

/** Errors: `not_found` where no files are searched. */
export function erasureOf(call: Call, app: App): ErasureProofs {
  const { erasure } = app.features;
  if (erasure !== null && erasure !== undefined) return erasure;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: this node has no files of its own to search.`);
}

/** The node around the handlers. Throws `not_found` where there is none: its routes are absent then. */
export function nodeOf(call: Call, app: App): NodeControl {
  if (app.node === null) throw new SkuaError('not_found', `There is nothing at ${call.path}.`);
  return app.node;
}
