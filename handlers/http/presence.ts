import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import type { ScavengeOrders } from '../../core/auto-scavenge/orders.ts';
import type { Holds } from '../../core/backup/holds.ts';
import type { Backups } from '../../core/backup/node-backups-api.ts';
import { SkuaError } from '../../core/errors.ts';
import type { Connectors, WebhookIngest } from '../../core/webhook/api.ts';
import type { App, Call } from './context.ts';
import type { NodeControl } from './node-control.ts';

/** Whether what stands behind a path is there: connectors, schedules and backups are not everywhere. */
export function isPresent(app: App, path: string): boolean {
  if (isWebhookPath(path)) return app.webhooks != null;
  if (isAutoScavengePath(path)) return app.autoScavenge != null;
  return !isBackupPath(path) || app.backups != null;
}

/** What handlers need of webhooks; null in the context where connectors are switched off. */
export interface Webhooks {
  readonly connectors: Connectors;
  readonly ingest: WebhookIngest;
  readonly limits?: Partial<WebhookLimits>;
}

export interface WebhookLimits {
  /** Largest body of a call. */
  readonly bodyBytesMax: number;
  /** How long a body may take to arrive. */
  readonly bodyReadMs: number;
  /** Bytes of bodies that may be arriving at once. */
  readonly arrivingBytesMax: number;
}

/** Whether the path is one of connectors, whose failures have a body of their own. */
export function isConnectorPath(path: string): boolean {
  return path === '/connectors' || path.startsWith('/connectors/');
}

/** Whether the path is there only where connectors are switched on. */
export function isWebhookPath(path: string): boolean {
  return isConnectorPath(path) || path.startsWith('/webhook/');
}

/** Errors: `not_found` where connectors are switched off: their paths are unknown then. */
export function webhooksOf(call: Call, app: App): Webhooks {
  const { webhooks } = app;
  if (webhooks !== null && webhooks !== undefined) return webhooks;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: connectors are switched off on this node.`);
}

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

/** What the handlers of backups need of the context. */
export interface BackupContext {
  /** Null, or absent, where files are not given away and no backups made: the routes are absent then. */
  readonly backups?: { readonly holds: Holds; readonly node: Backups } | null;
}

/** Whether the path is there only where backups are made. */
export function isBackupPath(path: string): boolean {
  return path.startsWith('/admin/backup');
}

/** Errors: `not_found` where no backups are made. */
export function backupsOf(call: Call, { backups }: App): NonNullable<BackupContext['backups']> {
  if (backups !== null && backups !== undefined) return backups;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: this node makes no backups.`);
}

/** The node around the handlers. Throws `not_found` where there is none: its routes are absent then. */
export function nodeOf(call: Call, app: App): NodeControl {
  if (app.node === null) throw new SkuaError('not_found', `There is nothing at ${call.path}.`);
  return app.node;
}

/** Replies that must not be kept: gossip, metrics, health. */
export const ASK_AGAIN = { cacheControl: 'max-age=0, no-cache, must-revalidate', etag: null } as const;
