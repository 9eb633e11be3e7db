import { SkuaError, isSkuaError } from '../core/errors.ts';
import { timestampText } from '../core/time.ts';
import type { DryRunReport, LastScavenge, ScavengeOptions } from '../core/scavenge/api.ts';
import { adminJson, adminReply } from './admin-reply.ts';
import type { App, Call, Handler } from './context.ts';
import { isDryRunOf, orderOf, scavengeOptionsOf } from './admin-scavenge-query.ts';
import { ordersOf } from './auto-scavenge-context.ts';
import type { AutoScavengeContext } from './auto-scavenge-context.ts';
import { ADMIN_KINDS, JSON_ONLY, negotiate } from './negotiate.ts';
import { decodeSegment } from './path.ts';

/** Scavenging over HTTP: scavenge.md sections 2.2 to 2.6. What differs from the reference is in design.md section 9. */

const NO_SCAVENGE_ID = '00000000-0000-0000-0000-000000000000';

/** POST `/admin/scavenge`: starts a run, or goes on with an unfinished one; with `dryRun=true` one that only counts. */
export const startScavenge: Handler = async (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const options = scavengeOptionsOf(call);
  try {
    const { scavengeId } = await started(call, app, options);
    return adminReply(call, chosen, { scavengeId }, `ScavengeId: ${scavengeId}`);
  } catch (error) {
    if (!isSkuaError(error, 'scavenge_in_progress')) throw error;
    throw new SkuaError('scavenge_in_progress', 'Scavenge is already running', {
      ...error.data, hint: 'Wait until it has ended, or stop it with DELETE /admin/scavenge/current: the next start goes on where it stopped.',
    });
  }
};

/** With an order of the cluster: a repeat is answered as the first one was, and a late one refused. */
function started(call: Call, app: App, options: ScavengeOptions): Promise<{ readonly scavengeId: string }> {
  const isDryRun = isDryRunOf(call);
  const order = orderOf(call);
  if (order === null) return isDryRun ? app.scavenger.startDryRun(options) : app.scavenger.start(options);
  if (isDryRun) throw new SkuaError('bad_request', 'A cluster orders no dry runs: leave out dryRun, or clusterScavengeId and attempt');
  return ordersOf(app).start(order, options);
}

/** DELETE `/admin/scavenge/{id}` and `/current`: answered when the run has stopped, however long that takes. */
export const stopScavenge: Handler = async (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const asked = decodeSegment(call.params['scavenge'] ?? 'current');
  const order = orderOf(call);
  try {
    const scavengeId = order === null ? await app.scavenger.stop(asked) : await ordersOf(app).stop(order, asked === 'current' ? null : asked);
    return adminReply(call, chosen, scavengeId, scavengeId);
  } catch (error) {
    if (!isSkuaError(error, 'scavenge_not_found')) throw error;
    throw new SkuaError('scavenge_not_found', 'Scavenge Id does not exist', { hint: 'GET /admin/scavenge/current shows the scavenge that is running, if any.' });
  }
};

/** GET `/admin/scavenge/current`: empty texts when none runs. */
export const currentScavenge: Handler = (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const scavengeId = app.scavenger.current() ?? '';
  const scavengeLink = linkOf(scavengeId);
  return adminReply(call, chosen, { scavengeId, scavengeLink }, `ScavengeId: ${scavengeId}, ScavengeLink: ${scavengeLink}`);
};

/** GET `/admin/scavenge/last`: the last run since the process started. `error` is there only for `Errored`. With an order its run goes on. */
export const lastScavenge: Handler = (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const order = orderOf(call);
  if (order !== null) ordersOf(app).asked(order);
  const last = lastFields(lastOf(app));
  return adminReply(call, chosen, last, `ScavengeId: ${last.scavengeId}, ScavengeLink: ${last.scavengeLink}, ScavengeResult: ${last.scavengeResult}`);
};

/** An order that nobody asks for any more was interrupted, whatever its run says. */
function lastOf(app: App & AutoScavengeContext): LastScavenge | null {
  return (app.scavengeOrders ?? app.scavenger).last();
}

function lastFields(last: LastScavenge | null) {
  if (last === null) return { scavengeId: NO_SCAVENGE_ID, scavengeLink: '', scavengeResult: 'Unknown' };
  const { scavengeId, result, error } = last;
  return { scavengeId, scavengeLink: linkOf(scavengeId), scavengeResult: result, ...(error !== null && { error }) };
}

function linkOf(scavengeId: string): string {
  return scavengeId === '' ? '' : `/admin/scavenge/${scavengeId}`;
}

/** GET `/admin/scavenge/progress`: how far the run is; 404 when none runs. */
export const scavengeProgress: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  const progress = app.scavenger.progress();
  if (progress === null) throw new SkuaError('scavenge_not_found', 'No scavenge is running.', { hint: 'GET /admin/scavenge/last shows how the last one ended.' });
  const { scavengeId, phase, chunksDone, chunksTotal, bytesDone, bytesTotal, bytesReclaimed, elapsedSeconds, remainingSeconds } = progress;
  return adminJson(call, 200, {
    scavengeId, phase, chunksDone, chunksTotal, bytesDone, bytesTotal, bytesReclaimed, startedAt: timestampText(progress.startedAtMs, 0), elapsedSeconds, remainingSeconds,
  });
};

/** GET `/admin/scavenge/dry-run/{id}`: 202 until it has ended, then what a scavenge would do. */
export const dryRunReport: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  const scavengeId = decodeSegment(call.params['scavenge']!);
  try {
    const report = await app.scavenger.dryRun(scavengeId);
    return report === null ? adminJson(call, 202, { scavengeId }) : adminJson(call, 200, dryRunDocument(report));
  } catch (error) {
    if (isSkuaError(error, 'aborted')) throw new SkuaError('scavenge_not_found', 'This dry run was stopped, so there is no report. Start another one with POST /admin/scavenge?dryRun=true.', { scavengeId });
    throw error;
  }
};

/** The report as it is sent. */
export function dryRunDocument({ scavengeId, threshold, point, chunks, totals }: DryRunReport) {
  const effectiveNow = timestampText(point.effectiveNowMs, point.effectiveNowTicks ?? 0);
  return { scavengeId, threshold, point: { position: point.position, eventNumber: point.eventNumber, effectiveNow }, chunks, totals };
}

/** GET `/admin/scavenge/explain/{stream}`: what a scavenge that began now would remove from a stream, and why. */
export const explainStream: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  return adminJson(call, 200, await app.scavenger.explain(decodeSegment(call.params['stream']!)));
};
