import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { PersistentSubscriptions } from '../../core/persistent/api.ts';
import type { ErasureProofs } from '../../core/scavenge/scavenge.ts';
import type { App, AppFeatures, Call, ClusterFeature, Webhooks } from './context.ts';
import type { NodeControl } from './node-control.ts';

/** Whether what stands behind a path is there: connectors, schedules and backups are not everywhere. */
export function isPresent(app: App, path: string): boolean {
  if (isWebhookPath(path)) return app.features.webhooks != null;
  if (isAutoScavengePath(path)) return app.features.autoScavenge != null;
  if (isSubscriptionPath(path)) return app.features.subscriptions != null;
  if (path.startsWith('/admin/erasure')) return app.features.erasure != null;
  if (isClusterPath(path)) return app.features.cluster != null;
  if (isPagePath(path)) return app.features.page != null;
  return !isBackupPath(path) || app.features.backups != null;
}

/** Whether the path is one of connectors, whose failures have a body of their own. */
export function isConnectorPath(path: string): boolean {
  return path === '/connectors' || path.startsWith('/connectors/');
}

/** Whether the path is one of probes. */
export function isHealthPath(path: string): boolean {
  return path.startsWith('/health/');
}

const INGEST = '/webhook/';

/** Whether failures at this path have no body. */
export function isIngestPath(path: string): boolean {
  return path.startsWith(INGEST);
}

/** The connector that such a path names; null where it names none. */
export function senderOf(path: string): string | null {
  try {
    return decodeURIComponent(path.slice(INGEST.length));
  } catch {
    return null;
  }
}

/** Whether the path is there only where connectors are switched on. */
function isWebhookPath(path: string): boolean {
  return isConnectorPath(path) || isIngestPath(path) || path === '/admin/webhooks';
}

/** Whether the path is there only where scavenges can be scheduled. */
function isAutoScavengePath(path: string): boolean {
  return path.startsWith('/auto-scavenge/');
}

/** Whether the path is there only where backups are made. */
function isBackupPath(path: string): boolean {
  return path.startsWith('/admin/backup');
}

/** Whether the path is there only where there are persistent subscriptions. */
export function isSubscriptionPath(path: string): boolean {
  return path === '/subscriptions' || path.startsWith('/subscriptions/');
}

/** Whether the path is one of the page for browsers. */
export function isPagePath(path: string): boolean {
  return path === '/ui' || path.startsWith('/ui/');
}

/** Whether the path is one by which members speak with each other. */
function isClusterPath(path: string): boolean {
  return path.startsWith('/cluster/');
}

/** Errors: `not_found` where the node is a member of no cluster. */
export function clusterOf(call: Call, app: App): ClusterFeature {
  const { cluster } = app.features;
  if (cluster !== null && cluster !== undefined) return cluster;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: this node is not a cluster member.`);
}

/** Errors: `not_found` where there are no persistent subscriptions. */
export function subscriptionsOf(call: Call, app: App): PersistentSubscriptions {
  const { subscriptions } = app.features;
  if (subscriptions !== null && subscriptions !== undefined) return subscriptions;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: persistent subscriptions are not available.`);
}

/** Errors: `not_found` where connectors are switched off: their paths are unknown then. */
export function webhooksOf(call: Call, app: App): Webhooks {
  const { webhooks } = app.features;
  if (webhooks !== null && webhooks !== undefined) return webhooks;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: connectors are disabled on this node.`);
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
  throw new SkuaError('bad_request', 'This node accepts no orders from a cluster: leave out clusterScavengeId and attempt');
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
