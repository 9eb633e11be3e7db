import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Authorize } from '../../core/streams/api.ts';
import type { WebhookIngest } from '../../core/webhook/api.ts';
import { ARRIVAL_LIMITS } from '../../core/webhook/arrivals/arrivals.ts';
import { readBody } from '../http/body.ts';
import { isForOthers } from '../http/forwarded.ts';
import type { App, Call, Handler, Reply, WebhookLimits, Webhooks } from '../http/context.ts';
import { mediaTypeOf } from '../http/negotiate.ts';
import { featureOf } from '../http/presence.ts';
import { failure } from '../http/problem-document.ts';
import type { Arrive } from '../http/route.ts';
import { commonHeaders, empty, PLAIN, withoutBody } from '../http/reply.ts';

/**
 * POST `/webhook/{connectorId}`. Replies have no body, since senders do not learn why, but for the reply to a form, and
 * that to a sender which asks whether a server is there.
 */

const WEBHOOK_LIMITS: WebhookLimits = { ...ARRIVAL_LIMITS, bodyBytesMax: 1_048_576, bodyReadMs: 30_000 };

/** As every failure, but for the body. */
export function webhookFailure(error: unknown, call: Call, app: App): Reply {
  const reply = withoutBody(failure(error, call, app));
  return reply.status === 503 ? { ...reply, headers: { ...RETRY_LATER, ...reply.headers } } : reply;
}

export const receiveWebhook: Handler = async (call, app) => {
  const arrivedMs = app.world.clock.nowMs();
  const webhooks = featureOf(call, app, 'webhooks');
  const { type } = mediaTypeOf(call.request.headers.get('content-type') ?? '');
  if (!JSON_TYPE.test(type)) return wrongType(call, app, webhooks.ingest, type);
  const connectorId = connectorOf(call);
  if (connectorId === null || !(await isActive(connectorId, app, webhooks))) return reply(call, 404);
  const body = await arrived(call, app, webhooks, connectorId);
  if (!(body instanceof Uint8Array)) return body;
  const { authorize, wasRefused } = leadOf(call);
  const answer = await webhooks.ingest.receive(
    {
      connectorId,
      path: call.path,
      headers: headersOf(call, app),
      query: queryOf(call),
      body,
      arrivedMs,
      ...(authorize !== null && { authorize }),
    },
    () => call.request.signal,
  );
  if (typeof answer !== 'number')
    return {
      ...reply(call, answer.status),
      headers: { ...commonHeaders(call.methods), 'content-type': PLAIN },
      body: answer.text,
    };
  if (answer >= 500 && wasRefused()) throw new SkuaError('not_leader', 'This member is no longer the leader.');
  return reply(call, answer);
};

/**
 * At a member that does not lead: what its own limits let arrive of a call, for the leader to judge; of a call that the
 * leader refuses unread it gets no body. What is no connector here is refused unread.
 */
export const webhookBody: Arrive = async (call, app) => {
  const connectorId = connectorOf(call);
  if (!JSON_TYPE.test(mediaTypeOf(call.request.headers.get('content-type') ?? '').type)) return new Uint8Array(0);
  const webhooks = featureOf(call, app, 'webhooks');
  if (connectorId === null || !(await isActive(connectorId, app, webhooks))) return reply(call, 404);
  return arrived(call, app, webhooks, connectorId);
};

/** Whether there is such a connector, which may have been made, or started, at another member a moment ago. */
async function isActive(connectorId: string, { features: { cluster } }: App, { ingest }: Webhooks): Promise<boolean> {
  if (await ingest.isActive(connectorId)) return true;
  const looking = cluster?.upToDate() ?? null;
  if (looking === null) return false;
  await looking;
  return ingest.isActive(connectorId);
}

/** The body, or the answer where it is too long or too slow, or too many are arriving. */
async function arrived(
  call: Call,
  app: App,
  { ingest, limits }: Webhooks,
  connectorId: string,
): Promise<Uint8Array | Reply> {
  const body = await bodyOf(call, app, connectorId, { ...WEBHOOK_LIMITS, ...limits });
  if (typeof body !== 'number') return body;
  const reason = REASONS[body];
  if (reason !== undefined)
    await ingest.refused?.(connectorId, body, reason, headersOf(call, app).keys()).catch(() => {});
  // What is left of the body is not read, so that nothing else can follow on the connection.
  return reply(call, body === GONE ? 503 : body, { connection: 'close' });
}

/**
 * Of a call that another member has passed on, what lets its event take its place, and whether it was refused so: then
 * it is certain that nothing was written.
 */
function leadOf({ guard }: Call): { readonly authorize: Authorize | null; readonly wasRefused: () => boolean } {
  let wasRefused = false;
  if (guard === null) return { authorize: null, wasRefused: () => false };
  const authorize: Authorize = (metadata, endOf) => {
    const refusal = guard.authorize(metadata, endOf);
    wasRefused ||= isForOthers(refusal);
    return refusal;
  };
  return { authorize, wasRefused: () => wasRefused };
}

const REASONS: Readonly<Record<number, string>> = {
  408: 'The body took too long to arrive.',
  413: 'The body is too long.',
  503: 'Too many bodies are arriving at once.',
};
/** Stands for a status where the sender is gone and can't read one. */
const GONE = 0;
/** A sender comes again by itself, and should know when that makes sense. */
const RETRY_LATER = { 'retry-after': '1' };
const PHRASES: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No Content',
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  408: 'Request Timeout',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};

function reply(call: Call, status: number, headers?: Readonly<Record<string, string>>): Reply {
  const bare = empty(call, status, PHRASES[status]!);
  return { ...bare, headers: { ...bare.headers, ...(status === 503 && RETRY_LATER), ...headers } };
}

const JSON_TYPE = /^(?:application\/json|[^\s/,]+\/[^\s/,]+\+json)$/;
/** What GitHub sends unless told otherwise, and Slack for interactions and commands. */
const FORM_TYPE = 'application/x-www-form-urlencoded';
const FORM_REASON = `The call is form-encoded (${FORM_TYPE}), and connectors accept JSON only. Set the content type of the webhook to application/json at its sender (on GitHub: Settings, Webhooks, Content type). Slack sends the events of its Events API as JSON, and interactions and slash commands as forms, which are not taken.`;
/** Characters of a media type in a reason. */
const TYPE_LENGTH_MAX = 100;

/** The body is not read, and the status does not show whether there is such a connector. */
async function wrongType(call: Call, app: App, ingest: WebhookIngest, type: string): Promise<Reply> {
  const connectorId = connectorOf(call);
  const reason =
    type === FORM_TYPE
      ? FORM_REASON
      : `The content type is ${type === '' ? 'missing' : `'${type.slice(0, TYPE_LENGTH_MAX)}'`}, but connectors accept JSON only. Have the sender send application/json.`;
  if (connectorId !== null)
    await ingest.refused?.(connectorId, 415, reason, headersOf(call, app).keys()).catch(() => {});
  // The person who set the webhook up reads this text at the sender, and can learn in no other way what to choose
  // there. The text reveals nothing of the connector.
  return type === FORM_TYPE ? failure(new SkuaError('unsupported_media_type', reason), call, app) : reply(call, 415);
}

function connectorOf(call: Call): string | null {
  try {
    return decodeURIComponent(call.params['connector']!);
  } catch {
    return null;
  }
}

/** Lower-cased names; empty values left out, several of one name joined with a comma. */
function headersOf({ request }: Call, app: App): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  const raw = app.server.rawHeadersOf?.(request);
  if (raw === undefined) for (const [name, value] of request.headers) put(headers, name, value);
  else for (let i = 0; i + 1 < raw.length; i += 2) put(headers, raw[i]!.toLowerCase(), raw[i + 1]!);
  return headers;
}

function queryOf(call: Call): ReadonlyMap<string, string> {
  const query = new Map<string, string>();
  const start = call.url.indexOf('?');
  if (start >= 0) for (const [name, value] of new URLSearchParams(call.url.slice(start))) put(query, name, value);
  return query;
}

function put(values: Map<string, string>, name: string, value: string): void {
  if (value === '') return;
  const before = values.get(name);
  values.set(name, before === undefined ? value : `${before},${value}`);
}

/** The whole body, or the status that refuses it. Nothing is held for it but what has arrived. */
async function bodyOf(call: Call, app: App, connectorId: string, limits: WebhookLimits): Promise<Uint8Array | number> {
  let isDropped: 408 | 503 | null = null;
  let onDropped: (status: number) => void = () => {};
  const arrival = app.arrivals.begin(connectorId, app.server.addressOf?.(call.request) ?? null, (why) => {
    isDropped = why === 'slow' ? 408 : 503;
    onDropped(isDropped);
  });
  const here = new Ends();
  try {
    if (isDropped !== null) return isDropped;
    return await new Promise<Uint8Array | number>((resolve, reject) => {
      onDropped = resolve;
      readBody(call, app, limits.bodyBytesMax, arrival.arrived).then(resolve, reject);
      tooLate(app.world.clock, limits.bodyReadMs, here).then(() => {
        if (!here.isOver) resolve(408);
      }, reject);
    });
  } catch (error) {
    if (isSkuaError(error, 'body_too_large')) return 413;
    return GONE;
  } finally {
    here.end();
    arrival.end();
  }
}

/**
 * Resolves after so many milliseconds, or at the end. Most bodies are here before the next turn of the event loop, and
 * need no timer and nothing to abort it with.
 */
async function tooLate(clock: Clock, ms: number, end: Ends): Promise<void> {
  const untilMs = clock.monotonicMs() + ms;
  await clock.yield();
  if (!end.isOver) await clock.sleep(untilMs - clock.monotonicMs(), end.signal);
}

/** An end that may be waited for, which costs nothing where no caller waits. */
class Ends {
  #controller: AbortController | null = null;
  isOver = false;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  end(): void {
    this.isOver = true;
    // Without a reason `abort` would make an error, which is never looked at.
    this.#controller?.abort('over');
  }
}
