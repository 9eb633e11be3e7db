import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { ScavengeOrder } from '../../core/ports/nodes.ts';
import type {
  DryRunReport,
  Explanation,
  LastScavenge,
  ResumedPoint,
  ScavengeOptions,
  ScavengeProgress,
  ScavengeStarted,
  ScavengeTraces,
} from '../../core/scavenge/api.ts';
import { timestampText } from '../../core/base/time.ts';
import { noteForAudit, queryOf } from '../http/context.ts';
import type { App, Call, Handler } from '../http/context.ts';
import { ADMIN_KINDS, JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { ordersOf, scavengerOf } from '../http/presence.ts';
import { adminJson, adminReply } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import { decodeSegment, prefixOf } from '../http/url.ts';
import { checkInspection } from '../streams/access.ts';
import { SCAVENGE_DOCS } from '../openapi/administration-paths.ts';
import type {
  CurrentDocument,
  DryRunDocument,
  ExplanationDocument,
  LastDocument,
  ResumedPointDocument,
  ProgressDocument,
  StartedDocument,
  TracesMembers,
  WaitingMember,
} from '../documents/scavenging.ts';

/** Scavenging over HTTP. */

const NO_SCAVENGE_ID = '00000000-0000-0000-0000-000000000000';

/** POST `/admin/scavenge`: starts a run, or goes on with an unfinished one; with `dryRun=true` one that only counts. */
const startScavenge: Handler = async (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const options = scavengeOptionsOf(call);
  try {
    const { scavengeId, olderPoint } = await started(call, app, options);
    noteForAudit(call, { target: scavengeId, details: { ...options, dryRun: isDryRunOf(call) } });
    return adminReply(
      call,
      chosen,
      { scavengeId, ...resumedPointMember(olderPoint) } satisfies StartedDocument,
      `ScavengeId: ${scavengeId}`,
    );
  } catch (error) {
    if (!isSkuaError(error, 'scavenge_in_progress')) throw error;
    throw new SkuaError('scavenge_in_progress', 'Scavenge is already running', {
      ...error.data,
      hint: 'Wait until it has finished, or stop it with DELETE /admin/scavenge/current: the next start resumes where it stopped.',
    });
  }
};

/** With an order of the cluster: a repeat is answered as the first one was, and a late one refused. */
function started(call: Call, app: App, options: ScavengeOptions): Promise<ScavengeStarted> {
  const isDryRun = isDryRunOf(call);
  const order = orderOf(call);
  if (order === null) return isDryRun ? scavengerOf(app).startDryRun(options) : scavengerOf(app).start(options);
  if (options.startAfresh === true)
    throw new SkuaError(
      'bad_request',
      'A cluster resumes an unfinished scavenge: leave out startAfresh, or clusterScavengeId and attempt',
    );
  if (isDryRun)
    throw new SkuaError(
      'bad_request',
      'A cluster orders no dry runs: leave out dryRun, or clusterScavengeId and attempt',
    );
  return ordersOf(app).start(order, options);
}

/** DELETE `/admin/scavenge/{id}` and `/current`: answered when the run has stopped, however long that takes. */
const stopScavenge: Handler = async (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const asked = decodeSegment(call.params['scavenge'] ?? 'current');
  const order = orderOf(call);
  try {
    const scavengeId =
      order === null
        ? await scavengerOf(app).stop(asked)
        : await ordersOf(app).stop(order, asked === 'current' ? null : asked);
    noteForAudit(call, { target: scavengeId });
    return adminReply(call, chosen, scavengeId, scavengeId);
  } catch (error) {
    if (!isSkuaError(error, 'scavenge_not_found')) throw error;
    throw new SkuaError('scavenge_not_found', 'Scavenge Id does not exist', {
      hint: 'GET /admin/scavenge/current shows the scavenge that is running, if any.',
    });
  }
};

/**
 * GET `/admin/scavenge/current`: empty texts when none runs. What waits to go on, or the older point to which the run
 * goes, stands behind them.
 */
const currentScavenge: Handler = async (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const waiting = await waitingMember(app);
  const scavengeId = scavengerOf(app).current() ?? '';
  const scavengeLink = linkOf(call, scavengeId);
  const last = scavengerOf(app).last();
  const older = last !== null && last.scavengeId === scavengeId ? resumedPointMember(last.olderPoint) : {};
  const traces = tracesFields(scavengeId === '' ? last?.traces : undefined);
  return adminReply(
    call,
    chosen,
    { scavengeId, scavengeLink, ...older, ...waiting, ...traces } satisfies CurrentDocument,
    `ScavengeId: ${scavengeId}, ScavengeLink: ${scavengeLink}`,
  );
};

/**
 * GET `/admin/scavenge/last`: the last run since the process started. `error` is there only for `Errored`. With an
 * order its run goes on.
 */
const lastScavenge: Handler = async (call, app) => {
  const chosen = negotiate(call, ADMIN_KINDS);
  const waiting = await waitingMember(app);
  const order = orderOf(call);
  if (order !== null) ordersOf(app).asked(order);
  const last = lastFields(call, lastOf(app));
  return adminReply(
    call,
    chosen,
    { ...last, ...waiting } satisfies LastDocument,
    `ScavengeId: ${last.scavengeId}, ScavengeLink: ${last.scavengeLink}, ScavengeResult: ${last.scavengeResult}`,
  );
};

/** An order that is no longer asked for was interrupted, whatever its run reports. */
function lastOf(app: App): LastScavenge | null {
  return (app.features.scavengeOrders ?? scavengerOf(app)).last();
}

function lastFields(call: Call, last: LastScavenge | null): Omit<LastDocument, 'waiting'> {
  if (last === null) return { scavengeId: NO_SCAVENGE_ID, scavengeLink: '', scavengeResult: 'Unknown' };
  const { scavengeId, result, error, olderPoint, traces } = last;
  return {
    scavengeId,
    scavengeLink: linkOf(call, scavengeId),
    scavengeResult: result,
    ...(error !== null && { error }),
    ...resumedPointMember(olderPoint),
    ...tracesFields(traces),
  };
}

/** On object storage: until when traces remain of what the last run removed, or when none was left. */
function tracesFields(traces: ScavengeTraces | undefined): TracesMembers {
  if (traces === undefined) return {};
  return traces.goneMs === null
    ? { tracesUntil: timestampText(traces.untilMs, 0) }
    : { tracesGone: timestampText(traces.goneMs, 0) };
}

/** An older point as it is sent. */
export function resumedPointDocument({ why, point }: ResumedPoint): ResumedPointDocument {
  return {
    why,
    position: point.position,
    eventNumber: point.eventNumber,
    effectiveNow: timestampText(point.effectiveNowMs, point.effectiveNowTicks ?? 0),
    threshold: point.threshold,
  };
}

/** Behind the members that are recorded; absent where a run goes up to its start. */
function resumedPointMember(olderPoint: ResumedPoint | undefined): { readonly olderPoint?: ResumedPointDocument } {
  return olderPoint === undefined ? {} : { olderPoint: resumedPointDocument(olderPoint) };
}

/** Where a run waits to go on, the point to which the next start goes. */
export async function waitingMember(app: App): Promise<WaitingMember> {
  const waiting = await scavengerOf(app).waiting();
  return waiting === null ? {} : { waiting: resumedPointDocument(waiting) };
}

function linkOf(call: Call, scavengeId: string): string {
  return scavengeId === '' ? '' : `${prefixOf(call)}/admin/scavenge/${scavengeId}`;
}

/** GET `/admin/scavenge/progress`: how far the run is; 404 when none runs. */
const scavengeProgress: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  const progress = scavengerOf(app).progress();
  if (progress === null)
    throw new SkuaError('scavenge_not_found', 'No scavenge is running.', {
      hint: 'GET /admin/scavenge/last shows how the last one ended.',
    });
  return adminJson(call, 200, progressDocument(progress));
};

/** The progress as it is sent. */
export function progressDocument(progress: ScavengeProgress): ProgressDocument {
  const {
    scavengeId,
    phase,
    chunksDone,
    chunksTotal,
    bytesDone,
    bytesTotal,
    bytesReclaimed,
    elapsedSeconds,
    remainingSeconds,
    phaseShare,
    olderPoint,
    tracesRemainSeconds,
  } = progress;
  return {
    scavengeId,
    phase,
    chunksDone,
    chunksTotal,
    bytesDone,
    bytesTotal,
    bytesReclaimed,
    startedAt: timestampText(progress.startedAtMs, 0),
    elapsedSeconds,
    remainingSeconds,
    ...(phaseShare !== undefined && { phaseShare }),
    ...resumedPointMember(olderPoint),
    ...(tracesRemainSeconds !== undefined && { tracesRemainSeconds }),
  };
}

/** GET `/admin/scavenge/dry-run/{id}`: 202 until it has ended, then what a scavenge would do. */
const dryRunReport: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  const scavengeId = decodeSegment(call.params['scavenge']!);
  try {
    const report = await scavengerOf(app).dryRun(scavengeId);
    return report === null
      ? adminJson(call, 202, { scavengeId } satisfies StartedDocument)
      : adminJson(call, 200, dryRunDocument(report));
  } catch (error) {
    if (isSkuaError(error, 'aborted'))
      throw new SkuaError(
        'scavenge_not_found',
        'This dry run was stopped, so there is no report. Start another one with POST /admin/scavenge?dryRun=true.',
        { scavengeId },
      );
    throw error;
  }
};

/** The report as it is sent. */
export function dryRunDocument({
  scavengeId,
  threshold,
  point,
  chunks,
  totals,
  waiting,
}: DryRunReport): DryRunDocument {
  const effectiveNow = timestampText(point.effectiveNowMs, point.effectiveNowTicks ?? 0);
  return {
    scavengeId,
    threshold,
    point: { position: point.position, eventNumber: point.eventNumber, effectiveNow },
    chunks,
    totals,
    ...(waiting !== undefined && { waiting: resumedPointDocument(waiting) }),
  };
}

/** The explanation as it is sent. */
export function explanationDocument({ waiting, ...explanation }: Explanation): ExplanationDocument {
  return {
    ...explanation,
    ...(waiting !== undefined && { waiting: { ...resumedPointDocument(waiting), leaves: waiting.leaves } }),
  };
}

/**
 * GET `/admin/scavenge/explain/{stream}`: what a scavenge that began now would remove from a stream, and why; for
 * operators who may read the stream and its metadata.
 */
const explainStream: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  const stream = decodeSegment(call.params['stream']!);
  await checkInspection(call, app, stream);
  return adminJson(call, 200, explanationDocument(await scavengerOf(app).explain(stream)));
};

const INT32_MAX = 2_147_483_647;
const INT32_MIN = -2_147_483_648;

/**
 * The query of POST `/admin/scavenge`, checked in the order of the reference; the first failure is thrown as
 * `bad_request` with its text. Other parameters are ignored, and so is `startFromChunk` once checked.
 */
function scavengeOptionsOf(call: Call): ScavengeOptions {
  integerOf(call, 'startFromChunk', 0, INT32_MAX, 'startFromChunk must be a positive integer');
  const threads = integerOf(call, 'threads', 1, INT32_MAX, 'threads must be a 1 or above');
  const threshold = integerOf(call, 'threshold', INT32_MIN, INT32_MAX, 'threshold must be an integer');
  const throttlePercent = integerOf(
    call,
    'throttlePercent',
    1,
    100,
    'throttlePercent must be between 1 and 100 inclusive',
  );
  if (throttlePercent !== undefined && throttlePercent !== 100 && threads !== undefined && threads > 1) {
    throw new SkuaError('bad_request', 'throttlePercent must be 100 for a multi-threaded scavenge');
  }
  const syncOnly = booleanOf(call, 'syncOnly');
  const startAfresh = booleanOf(call, 'startAfresh');
  if (startAfresh === true && syncOnly === true)
    throw new SkuaError(
      'bad_request',
      'startAfresh writes a scavenge point and syncOnly uses an existing one: leave one of them out',
    );
  return {
    ...(threads !== undefined && { threads }),
    ...(threshold !== undefined && { threshold }),
    ...(throttlePercent !== undefined && { throttlePercent }),
    ...(syncOnly !== undefined && { syncOnly }),
    ...(startAfresh !== undefined && { startAfresh }),
  };
}

/** Whether only a dry run is asked for. */
function isDryRunOf(call: Call): boolean {
  return booleanOf(call, 'dryRun') ?? false;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The order of a cluster that the request stands for; null for one of a user. */
function orderOf(call: Call): ScavengeOrder | null {
  const clusterScavengeId = queryOf(call, 'clusterScavengeId');
  const attempt = integerOf(call, 'attempt', 0, Number.MAX_SAFE_INTEGER, 'attempt must be an integer of 0 or above');
  if (clusterScavengeId === undefined && attempt === undefined) return null;
  if (clusterScavengeId === undefined || attempt === undefined)
    throw new SkuaError('bad_request', 'clusterScavengeId and attempt belong together: give both or none');
  if (!UUID.test(clusterScavengeId)) throw new SkuaError('bad_request', 'clusterScavengeId must be a UUID');
  return { clusterScavengeId: clusterScavengeId.toLowerCase(), attempt };
}

function integerOf(call: Call, name: string, min: number, max: number, refusal: string): number | undefined {
  const text = queryOf(call, name);
  if (text === undefined) return undefined;
  const value = /^[+-]?\d{1,20}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value === 0 ? 0 : value;
  throw new SkuaError('bad_request', refusal);
}

function booleanOf(call: Call, name: string): boolean | undefined {
  const text = queryOf(call, name)?.toLowerCase();
  if (text === undefined) return undefined;
  if (text === 'true' || text === 'false') return text === 'true';
  throw new SkuaError('bad_request', `${name} must be a boolean`);
}

const SCAVENGE = '/admin/scavenge';
const STOP = operation('operators', 'here', stopScavenge, SCAVENGE_DOCS.stop, 'scavenge.stop');

/** The paths of manual scavenging. */
export const SCAVENGE_ROUTES = area({ tag: 'Scavenging', offBy: 'disableAdminUi' }, [
  {
    path: SCAVENGE,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('operators', 'here', startScavenge, SCAVENGE_DOCS.start, 'scavenge.start') },
  },
  {
    path: `${SCAVENGE}/current`,
    methods: 'DELETE, GET, OPTIONS',
    operations: { GET: operation('operators', 'here', currentScavenge, SCAVENGE_DOCS.current), DELETE: STOP },
  },
  {
    path: `${SCAVENGE}/last`,
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', lastScavenge, SCAVENGE_DOCS.last) },
  },
  {
    path: `${SCAVENGE}/progress`,
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', scavengeProgress, SCAVENGE_DOCS.progress) },
  },
  { path: `${SCAVENGE}/:scavenge`, methods: 'DELETE, OPTIONS', operations: { DELETE: STOP } },
  {
    path: `${SCAVENGE}/dry-run/:scavenge`,
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(dryRunReport), SCAVENGE_DOCS.dryRun) },
  },
  {
    path: `${SCAVENGE}/explain/:stream`,
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(explainStream), SCAVENGE_DOCS.explain) },
  },
]);
