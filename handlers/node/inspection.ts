import { SkuaError } from '../../core/base/errors.ts';
import { readJson } from '../http/body.ts';
import { noteForAudit, queryOf } from '../http/context.ts';
import type { App, Call, Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { LOG_LEVELS } from '../http/node-control.ts';
import type { LogLineLevel } from '../http/node-control.ts';
import { nodeOf, webhooksOf } from '../http/presence.ts';
import { adminJson, jsonReply } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { operation } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { CHUNK_MAP_DOC, LOG_DOCS, OVERVIEW_DOC, WEBHOOK_ACTIVITY_DOC } from '../openapi/inspection.ts';

/** What shows a node from inside: how it is, its chunk files, its log, and the calls of senders. */

/** GET `/admin/overview`: how the node is, in one answer for whoever looks every few seconds. */
const overview: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  return jsonReply(call, await nodeOf(call, app).overview());
};

/** The path of the overview. */
export const OVERVIEW_ROUTES: readonly Route[] = [
  { path: '/admin/overview', methods: 'GET, OPTIONS', operations: { GET: operation('operators', 'here', inRoom(overview), OVERVIEW_DOC) } },
];

/** Longest version of a chunk map in characters; those that are given are shorter. */
const VERSION_LENGTH_MAX = 64;

/** GET `/admin/chunks?since=`: every chunk file in log order, in one line, since there may be ten thousand; without them where the caller knows them. */
const chunkMap: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  const node = nodeOf(call, app);
  const since = queryOf(call, 'since') ?? null;
  if (since !== null && since.length > VERSION_LENGTH_MAX) throw new SkuaError('bad_request', 'since must be the version of an earlier answer. Leave it out for all chunks.');
  return jsonReply(call, node.chunkMap(since));
};

/** The path of the chunk files. */
export const CHUNK_MAP_ROUTES: readonly Route[] = [
  { path: '/admin/chunks', methods: 'GET, OPTIONS', operations: { GET: operation('operators', 'here', inRoom(chunkMap), CHUNK_MAP_DOC) } },
];

/** Lines of an answer: where nothing is said, and at most. */
const COUNT_DEFAULT = 200;
const COUNT_MAX = 1_000;
/** Largest body of PUT `/admin/log/level`, in bytes. */
const BODY_BYTES_MAX = 1_024;

/** GET `/admin/log`: the last lines of the log of this node. */
const lastLines: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  const node = nodeOf(call, app);
  const level = queryOf(call, 'level');
  return jsonReply(call, node.log({
    count: integerOf(call, 'count', 1, COUNT_MAX) ?? COUNT_DEFAULT, since: integerOf(call, 'since', 0, Number.MAX_SAFE_INTEGER), level: level === undefined ? 'debug' : levelOf(level),
  }));
};

/** PUT `/admin/log/level`: counts from the next line on. */
const setLevel: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  const node = nodeOf(call, app);
  const level = await givenLevel(call, app);
  noteForAudit(call, { target: level });
  node.setLogLevel(level);
  return adminJson(call, 200, { level });
};

async function givenLevel(call: Call, app: App): Promise<LogLineLevel> {
  const body = await readJson(call, app, Math.min(BODY_BYTES_MAX, app.options.bodyBytesMax));
  const level = typeof body === 'object' && body !== null && Object.hasOwn(body, 'level') ? (body as { readonly level: unknown }).level : undefined;
  return levelOf(level);
}

function levelOf(given: unknown): LogLineLevel {
  const level = LOG_LEVELS.find((each) => each === given);
  if (level === undefined) throw new SkuaError('bad_request', `level must be ${LOG_LEVELS.slice(0, -1).join(', ')} or ${LOG_LEVELS.at(-1)}.`);
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
export const LOG_ROUTES: readonly Route[] = [
  { path: '/admin/log', methods: 'GET, OPTIONS', operations: { GET: operation('operators', 'here', inRoom(lastLines), LOG_DOCS.lines) } },
  { path: '/admin/log/level', methods: 'PUT, OPTIONS', operations: { PUT: operation('operators', 'here', setLevel, LOG_DOCS.level, 'log.level') } },
];

/** GET `/admin/webhooks`: calls of senders by connector and outcome, and how many there are a second. */
const activity: Handler = (call, app) => {
  webhooksOf(call, app);
  negotiate(call, JSON_ONLY);
  return jsonReply(call, nodeOf(call, app).webhooks());
};

/** The path of the calls of senders; that of a connector could not be told from its id. */
export const WEBHOOK_ACTIVITY_ROUTES: readonly Route[] = [
  { path: '/admin/webhooks', methods: 'GET, OPTIONS', operations: { GET: operation('operators', 'here', inRoom(activity), WEBHOOK_ACTIVITY_DOC) } },
];
