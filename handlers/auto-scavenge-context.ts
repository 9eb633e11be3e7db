import type { AutoScavenge } from '../core/auto-scavenge/api.ts';
import { SkuaError } from '../core/errors.ts';
import type { App, Call } from './context.ts';

/** What the handlers of auto-scavenge need of the context. */
export interface AutoScavengeContext {
  /** The schedule of scavenges; null where there is none: its routes are absent then. */
  readonly autoScavenge?: AutoScavenge | null;
  /**
   * Sends a request to the member (`host:port`) that leads, as this node and not as the caller, who was checked here, and
   * gives its answer whatever the status. Rejects where there is no answer in time. Absent where nobody else can lead.
   */
  readonly forwardToLeader?: (request: Request, leader: string) => Promise<Response>;
}

/** Errors: `not_found` where nothing is scheduled. */
export function autoScavengeOf(call: Call, app: App & AutoScavengeContext): AutoScavenge {
  const { autoScavenge } = app;
  if (autoScavenge !== null && autoScavenge !== undefined) return autoScavenge;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: scavenges are not scheduled on this node.`);
}
