import { SkuaError } from '../core/errors.ts';
import type { Connectors, WebhookIngest } from '../core/webhook/api.ts';
import type { App, Call } from './context.ts';

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
