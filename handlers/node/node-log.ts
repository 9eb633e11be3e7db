import { SkuaError } from '../../core/base/errors.ts';
import type { LogLevelDocument, LogLineLevel } from '../documents/node.ts';
import { readJson } from '../http/body.ts';
import { noteForAudit, queryOf } from '../http/context.ts';
import type { App, Call, Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { LOG_LEVELS } from '../http/node-control.ts';
import { nodeOf } from '../http/presence.ts';
import { adminJson, jsonReply } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import { LOG_DOCS } from '../openapi/inspection-paths.ts';

/** Lines of an answer: by default, and at most. */
const COUNT_DEFAULT = 200;
const COUNT_MAX = 1_000;
/** Largest body of PUT `/admin/log/level`, in bytes. */
const BODY_BYTES_MAX = 1_024;

/** GET `/admin/log`: the last lines of the log of this node. */
const lastLines: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  const node = nodeOf(call, app);
  const level = queryOf(call, 'level');
  return jsonReply(
    call,
    node.log({
      count: integerOf(call, 'count', 1, COUNT_MAX) ?? COUNT_DEFAULT,
      since: integerOf(call, 'since', 0, Number.MAX_SAFE_INTEGER),
      level: level === undefined ? 'debug' : levelOf(level),
    }),
  );
};

/** PUT `/admin/log/level`: counts from the next line on. */
const setLevel: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  const node = nodeOf(call, app);
  const level = await givenLevel(call, app);
  noteForAudit(call, { target: level });
  node.setLogLevel(level);
  return adminJson(call, 200, { level } satisfies LogLevelDocument);
};

async function givenLevel(call: Call, app: App): Promise<LogLineLevel> {
  const body = await readJson(call, app, Math.min(BODY_BYTES_MAX, app.options.bodyBytesMax));
  const level =
    typeof body === 'object' && body !== null && Object.hasOwn(body, 'level')
      ? (body as { readonly level: unknown }).level
      : undefined;
  return levelOf(level);
}

function levelOf(given: unknown): LogLineLevel {
  const level = LOG_LEVELS.find((each) => each === given);
  if (level === undefined)
    throw new SkuaError('bad_request', `level must be ${LOG_LEVELS.slice(0, -1).join(', ')} or ${LOG_LEVELS.at(-1)}.`);
  return level;
}

/** Null where it is not given. */
function integerOf(call: Call, name: string, min: number, max: number): number | null {
  const text = queryOf(call, name);
  if (text === undefined) return null;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new SkuaError('bad_request', `${name} must be a whole number from ${min} to ${max}.`);
}

/** The paths of the log. */
export const LOG_ROUTES = area({ tag: 'Administration', offBy: 'disableAdminUi' }, [
  {
    path: '/admin/log',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(lastLines), LOG_DOCS.lines) },
  },
  {
    path: '/admin/log/level',
    methods: 'PUT, OPTIONS',
    operations: { PUT: operation('operators', 'here', setLevel, LOG_DOCS.level, 'log.level') },
  },
]);
