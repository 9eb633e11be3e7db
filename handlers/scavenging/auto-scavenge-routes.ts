import { TIMES_MAX } from '../../core/auto-scavenge/api.ts';
import type { AutoScavenge, AutoScavengeStatus, NodeOutcome } from '../../core/auto-scavenge/api.ts';
import { isSkuaError, SkuaError, type SkuaErrorOf } from '../../core/base/errors.ts';
import { timeSpanText, timestampText } from '../../core/base/time.ts';
import type { AuditAction } from '../../core/ports/audit.ts';
import { readJson } from '../http/body.ts';
import { noteForAudit, queryOf } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { featureOf } from '../http/presence.ts';
import { empty, jsonReply } from '../http/reply.ts';
import { area, operation } from '../http/route.ts';
import type { OperationDoc, RouteOfArea } from '../http/route.ts';
import type { EnabledDocument, ScheduleDocument, TimesDocument } from '../documents/scavenging.ts';
import { waitingMember } from './scavenge-routes.ts';
import { AUTO_SCAVENGE_DOCS } from '../openapi/auto-scavenge-paths.ts';

/**
 * Scavenges on a schedule, over HTTP. Checked in this order: the caller, whether it is on (503), what is sent (400,
 * 413, 415), and then by the driver.
 */

/** GET `/auto-scavenge/enabled`: of this node, and never of another node. */
const autoScavengeEnabled: Handler = (call, app) => {
  const autoScavenge = featureOf(call, app, 'autoScavenge');
  negotiate(call, JSON_ONLY);
  return jsonReply(call, enabledDocument(autoScavenge.enabled()));
};

/** GET `/auto-scavenge/status`. */
const autoScavengeStatus: Handler = (call, app) => {
  const autoScavenge = enabledOf(call, app);
  return answered(async () =>
    jsonReply(call, {
      ...statusDocument(await autoScavenge.status()),
      ...(await waitingMember(app)),
    } satisfies ScheduleDocument),
  );
};

/** Times of an answer by default. */
const TIMES_DEFAULT = 5;
/** Longest name of a zone, in characters; those that there are are shorter. */
const ZONE_LENGTH_MAX = 64;

/** GET `/auto-scavenge/times?schedule=`: when an expression would come round that need not be saved. */
const scheduledTimes: Handler = (call, app) => {
  const autoScavenge = featureOf(call, app, 'autoScavenge');
  negotiate(call, JSON_ONLY);
  const given = queryOf(call, 'schedule');
  if (given === undefined || given === '')
    throw new SkuaError('bad_request', 'The query must name a schedule, such as schedule=30 2 * * 0.');
  return answered(async () => {
    const { schedule, zone, timesMs } = autoScavenge.times(given, timesCountOf(call), zoneOf(call));
    return jsonReply(call, { schedule, zone, times: timesMs.map(momentText) } satisfies TimesDocument);
  });
};

function timesCountOf(call: Call): number {
  const text = queryOf(call, 'count');
  if (text === undefined) return TIMES_DEFAULT;
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > TIMES_MAX) throw new SkuaError('bad_request', `count must be 1 to ${TIMES_MAX}.`);
  return count;
}

/** Undefined: that of the node. */
function zoneOf(call: Call): string | undefined {
  const zone = queryOf(call, 'zone');
  if (zone === undefined || (zone.length <= ZONE_LENGTH_MAX && isZone(zone))) return zone;
  throw new SkuaError('bad_request', 'zone must be the name of a time zone, such as UTC or Europe/Oslo.');
}

function isZone(name: string): boolean {
  try {
    Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/**
 * POST `/auto-scavenge/pause`: 200 when nothing runs any more, 202 while a node scavenge is being stopped. A body is
 * ignored.
 */
const pauseAutoScavenge: Handler = (call, app) => {
  const autoScavenge = enabledOf(call, app);
  return answered(async () =>
    (await autoScavenge.pause()) === 'paused' ? jsonReply(call, {}) : empty(call, 202, 'Accepted'),
  );
};

/** POST `/auto-scavenge/resume`: a cycle goes on with the nodes that are not done. A body is ignored. */
const resumeAutoScavenge: Handler = (call, app) => {
  const autoScavenge = enabledOf(call, app);
  return answered(async () => {
    await autoScavenge.resume();
    return jsonReply(call, {});
  });
};

/** POST `/auto-scavenge/configure`. */
const configureAutoScavenge: Handler = async (call, app) => {
  const autoScavenge = enabledOf(call, app);
  const schedule = await scheduleOf(call, app);
  noteForAudit(call, { details: { schedule } });
  return answered(async () => {
    await autoScavenge.configure(schedule);
    return jsonReply(call, {});
  });
};

/** Errors: `auto_scavenge_off`, before anything that is sent is looked at. */
function enabledOf(call: Call, app: App): AutoScavenge {
  const autoScavenge = featureOf(call, app, 'autoScavenge');
  const { enabled, reason } = autoScavenge.enabled();
  if (!enabled) throw autoScavengeOff(reason);
  negotiate(call, JSON_ONLY);
  return autoScavenge;
}

/** The documented text, with the reason as the hint. */
function autoScavengeOff(reason: string | null): SkuaError {
  return new SkuaError('auto_scavenge_off', 'AutoScavenge is not enabled', reason === null ? {} : { hint: reason });
}

async function answered(answer: () => Promise<Reply>): Promise<Reply> {
  try {
    return await answer();
  } catch (error) {
    throw documented(error);
  }
}

/** Texts that are documented, and what else there is to say as the hint. */
const TEXTS = {
  invalid_schedule: 'Invalid CRON expression',
  auto_scavenge_pausing: 'Auto scavenge process is currently pausing',
  auto_scavenge_busy: 'AutoScavenge queue is full',
} as const;

function documented(error: unknown): unknown {
  if (!(error instanceof SkuaError)) return error;
  if (isSkuaError(error, 'not_leader')) return notLeader(error);
  if (isSkuaError(error, 'auto_scavenge_off')) return autoScavengeOff(error.data.reason ?? error.message);
  const text = Object.hasOwn(TEXTS, error.code) ? TEXTS[error.code as keyof typeof TEXTS] : error.message;
  return text === error.message ? error : new SkuaError(error.code, text, { hint: error.message, ...error.data });
}

/**
 * Requests for the leader are passed on to it before they come here (`handlers/forward.ts`): it is not known, or was
 * another one a moment ago.
 */
function notLeader({ data: { leader = null } }: SkuaErrorOf<'not_leader'>): SkuaError {
  if (leader === null)
    return new SkuaError('no_leader', 'No leader node was found in the cluster', {
      hint: 'Try again when a leader has been elected.',
    });
  return new SkuaError('not_leader', 'Node is not the leader', {
    leader,
    hint: `The leader is ${leader}. Try again, or ask that node.`,
  });
}

/** Largest body of POST `/auto-scavenge/configure`. */
export const SCHEDULE_BODY_BYTES_MAX = 16_384;

/** The schedule in the body; texts of refusals are those of the reference. Names are case-sensitive. */
async function scheduleOf(call: Call, app: App): Promise<string> {
  const body = await readJson(call, app, Math.min(SCHEDULE_BODY_BYTES_MAX, app.options.bodyBytesMax));
  if (body === null)
    throw new SkuaError('bad_json', 'Invalid payload', {
      hint: 'Send an object with a schedule, such as {"schedule": "30 2 * * 0"}.',
    });
  if (typeof body !== 'object' || !Object.hasOwn(body, 'schedule')) {
    throw new SkuaError(
      'bad_json',
      'The body must be a JSON object with the member schedule, spelt exactly so, such as {"schedule": "30 2 * * 0"}.',
    );
  }
  const { schedule } = body as { readonly schedule: unknown };
  if (typeof schedule !== 'string') throw new SkuaError('invalid_schedule', 'CRON expression can only be a string');
  return schedule;
}

/** Documents of auto-scavenge: the documented members first and in their order, what is ours behind them. */

function enabledDocument({
  enabled,
  reason,
}: {
  readonly enabled: boolean;
  readonly reason: string | null;
}): EnabledDocument {
  return { enabled, ...(reason !== null && { reason }) };
}

function statusDocument({
  state,
  schedule,
  untilNextCycleMs,
  cycle,
  lastCycle,
}: AutoScavengeStatus): Omit<ScheduleDocument, 'waiting'> {
  return {
    state,
    schedule,
    timeUntilNextCycle: untilNextCycleMs === null ? null : timeSpanText(untilNextCycleMs),
    cycle:
      cycle === null
        ? null
        : {
            clusterScavengeId: cycle.clusterScavengeId,
            startedAt: momentText(cycle.startedAtMs),
            nodes: cycle.nodes.map(nodeFields),
          },
    lastCycle:
      lastCycle === null
        ? null
        : {
            clusterScavengeId: lastCycle.clusterScavengeId,
            completedAt: momentText(lastCycle.completedAtMs),
            nodes: lastCycle.nodes.map(nodeFields),
          },
  };
}

function nodeFields({ node, state, scavengeId, result }: NodeOutcome): NodeOutcome {
  return { node, state, scavengeId, result };
}

function momentText(ms: number): string {
  return timestampText(Math.floor(ms), 0);
}

/** The paths of auto-scavenge. */
export const AUTO_SCAVENGE_ROUTES = area({ tag: 'Scavenging', feature: 'autoScavenge' }, [
  {
    path: '/auto-scavenge/enabled',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('authenticated', 'here', autoScavengeEnabled, AUTO_SCAVENGE_DOCS.enabled) },
  },
  {
    path: '/auto-scavenge/status',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('authenticated', 'leader', autoScavengeStatus, AUTO_SCAVENGE_DOCS.status) },
  },
  {
    path: '/auto-scavenge/times',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('authenticated', 'here', scheduledTimes, AUTO_SCAVENGE_DOCS.times) },
  },
  command('pause', pauseAutoScavenge, AUTO_SCAVENGE_DOCS.pause, 'auto-scavenge.pause'),
  command('resume', resumeAutoScavenge, AUTO_SCAVENGE_DOCS.resume, 'auto-scavenge.resume'),
  command('configure', configureAutoScavenge, AUTO_SCAVENGE_DOCS.configure, 'auto-scavenge.configure'),
]);

function command(name: string, handler: Handler, doc: OperationDoc, audit: AuditAction): RouteOfArea {
  return {
    path: `/auto-scavenge/${name}`,
    methods: 'POST, OPTIONS',
    operations: { POST: operation('operators', 'leader', handler, doc, audit) },
  };
}
