import { SkuaError } from '../core/errors.ts';
import type { App, Call } from './context.ts';
import type { NodeControl } from './node-control.ts';

/** The node around the handlers. Throws `not_found` where there is none: its routes are absent then. */
export function nodeOf(call: Call, app: App): NodeControl {
  if (app.node === null) throw new SkuaError('not_found', `There is nothing at ${call.path}.`);
  return app.node;
}

/** Replies that must not be kept: gossip, metrics, health. */
export const ASK_AGAIN = { cacheControl: 'max-age=0, no-cache, must-revalidate', etag: null } as const;
