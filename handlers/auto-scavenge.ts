import type { AutoScavenge } from '../core/auto-scavenge/api.ts';
import { SkuaError } from '../core/errors.ts';
import { scheduleOf } from './auto-scavenge-body.ts';
import { autoScavengeOf } from './auto-scavenge-context.ts';
import type { AutoScavengeContext } from './auto-scavenge-context.ts';
import { leaderReply } from './auto-scavenge-forward.ts';
import { enabledDocument, jsonReply, statusDocument } from './auto-scavenge-reply.ts';
import type { App, Call, Handler } from './context.ts';
import { JSON_ONLY, negotiate } from './negotiate.ts';
import { empty } from './reply.ts';

/**
 * Scavenges on a schedule, over HTTP: maintenance-interface.md parts 2 to 5, auto-scavenge.md sections 3 and 4. Checked in
 * this order: who calls, whether it is on (503), what is sent (400, 413, 415), and then by whoever leads.
 */

/** GET `/auto-scavenge/enabled`: of this node, and never another one's. */
export const autoScavengeEnabled: Handler = (call, app) => {
  const autoScavenge = autoScavengeOf(call, app);
  negotiate(call, JSON_ONLY);
  return jsonReply(call, enabledDocument(autoScavenge.enabled()));
};

/** GET `/auto-scavenge/status`. */
export const autoScavengeStatus: Handler = (call, app) => {
  const autoScavenge = enabledOf(call, app);
  return answered(call, app, null, async () => jsonReply(call, statusDocument(await autoScavenge.status())));
};

/** POST `/auto-scavenge/pause`: 200 when nothing runs any more, 202 while a node scavenge is being stopped. A body is ignored. */
export const pauseAutoScavenge: Handler = (call, app) => {
  const autoScavenge = enabledOf(call, app);
  return answered(call, app, null, async () => (await autoScavenge.pause() === 'paused' ? jsonReply(call, {}) : empty(call, 202, 'Accepted')));
};

/** POST `/auto-scavenge/resume`: a cycle goes on with the nodes that are not done. A body is ignored. */
export const resumeAutoScavenge: Handler = (call, app) => {
  const autoScavenge = enabledOf(call, app);
  return answered(call, app, null, async () => {
    await autoScavenge.resume();
    return jsonReply(call, {});
  });
};

/** POST `/auto-scavenge/configure`. */
export const configureAutoScavenge: Handler = async (call, app) => {
  const autoScavenge = enabledOf(call, app);
  const schedule = await scheduleOf(call, app);
  return answered(call, app, JSON.stringify({ schedule }), async () => {
    await autoScavenge.configure(schedule);
    return jsonReply(call, {});
  });
};

/** Errors: `auto_scavenge_off`, before anything that is sent is looked at. */
function enabledOf(call: Call, app: App & AutoScavengeContext): AutoScavenge {
  const autoScavenge = autoScavengeOf(call, app);
  const { enabled, reason } = autoScavenge.enabled();
  if (!enabled) throw autoScavengeOff(reason);
  negotiate(call, JSON_ONLY);
  return autoScavenge;
}

/** The documented text, with the reason as the hint. */
function autoScavengeOff(reason: string | null): SkuaError {
  return new SkuaError('auto_scavenge_off', 'AutoScavenge is not enabled', reason === null ? {} : { hint: reason });
}

async function answered(call: Call, app: App, body: string | null, answer: () => Promise<Response>): Promise<Response> {
  try {
    return await leaderReply(call, app, body, answer);
  } catch (error) {
    throw documented(error);
  }
}

/** Texts that are documented, and what else there is to say as the hint. */
const TEXTS = { invalid_schedule: 'Invalid CRON expression', auto_scavenge_pausing: 'Auto scavenge process is currently pausing', auto_scavenge_busy: 'AutoScavenge queue is full' } as const;

function documented(error: unknown): unknown {
  if (!(error instanceof SkuaError)) return error;
  if (error.code === 'auto_scavenge_off') return autoScavengeOff(typeof error.data['reason'] === 'string' ? error.data['reason'] : error.message);
  const text = Object.hasOwn(TEXTS, error.code) ? TEXTS[error.code as keyof typeof TEXTS] : error.message;
  return text === error.message ? error : new SkuaError(error.code, text, { hint: error.message, ...error.data });
}
