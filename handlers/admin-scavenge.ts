import { SkuaError, isSkuaError } from '../core/errors.ts';
import { timestampText } from '../core/time.ts';
import type { DryRunReport, LastScavenge } from '../core/scavenge/api.ts';
import { adminJson, adminReply } from './admin-reply.ts';
import type { Handler } from './context.ts';
import { isDryRunOf, scavengeOptionsOf } from './admin-scavenge-query.ts';
import { ADMIN_KINDS, JSON_ONLY, negotiate } from './negotiate.ts';
import { decodeSegment } from './path.ts';

/** Scavenging over HTTP: scavenge.md sections 2.2 to 2.6. What differs from the reference is in design.md section 9. */

const NO_SCAVENGE_ID = '00000000-0000-0000-0000-000000000000';

/** POST `/admin/scavenge`: starts a run, or goes on with an unfinished one; with `dryRun=true` one that only counts. */
export const startScavenge: Handler = async (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const options = scavengeOptionsOf(call);
  const { scavenger } = app;
  try {
    const { scavengeId } = isDryRunOf(call) ? await scavenger.startDryRun(options) : await scavenger.start(options);
    return adminReply(call, chosen, { scavengeId }, `ScavengeId: ${scavengeId}`);
  } catch (error) {
    if (!isSkuaError(error, 'scavenge_in_progress')) throw error;
    throw new SkuaError('scavenge_in_progress', 'Scavenge is already running', {
      ...error.data, hint: 'Wait until it has ended, or stop it with DELETE /admin/scavenge/current: the next start goes on where it stopped.',
    });
  }
};

/** DELETE `/admin/scavenge/{id}` and `/current`: answered when the run has stopped, however long that takes. */
export const stopScavenge: Handler = async (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  try {
    const scavengeId = await app.scavenger.stop(decodeSegment(call.params['scavenge'] ?? 'current'));
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

/** GET `/admin/scavenge/last`: the last run since the process started. `error` is there only for `Errored`. */
export const lastScavenge: Handler = (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const last = lastFields(app.scavenger.last());
  return adminReply(call, chosen, last, `ScavengeId: ${last.scavengeId}, ScavengeLink: ${last.scavengeLink}, ScavengeResult: ${last.scavengeResult}`);
};

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
