import { TOMBSTONE } from '../../core/log/format/records.ts';
import { encodeText } from '../../core/base/text.ts';
import { withoutCoding } from './encoding.ts';
import { jsonString } from './json-text.ts';
import type { App, Call, Reply, ReplyBody } from './context.ts';
import type { Representation } from './negotiate.ts';
import { numberText } from './url.ts';

/** Of what was written; after a read for a decision how far it looked, which is what `after` of a condition takes. */
export const POSITION_HEADER = 'es-position';
export const PLAIN = 'text/plain; charset=utf-8';

/** The response of the web platform. */
export function webResponse(reply: Reply): Response {
  return new Response(reply.body, reply);
}

/** 201 for an append. */
export function created(call: Call, location: string): Reply {
  const cors = commonHeaders(call.methods);
  return {
    status: 201,
    statusText: 'Created',
    headers: { ...cors, 'content-type': PLAIN, 'content-length': '0', location },
    body: null,
  };
}

/**
 * The reply to HEAD where this is the reply to GET: the same without the body, whose length is sent where it is known.
 * What would go on (server-sent events, lines, files) ends before it begins.
 */
export function headOf(reply: Reply): Reply {
  const { body, headers } = reply;
  if (body === null) return reply;
  if (body instanceof ReadableStream) {
    body.cancel().catch(() => {});
    return { ...reply, body: null };
  }
  const { length } = typeof body === 'string' ? encodeText(body) : body;
  return { ...reply, headers: { 'content-length': String(length), ...headers }, body: null };
}

/** A reply that caches keep for requests with the same value of a header only. */
export function withVary(reply: Reply, name: string): Reply {
  const { vary } = reply.headers;
  if (vary?.split(', ').includes(name) === true) return reply;
  return { ...reply, headers: { ...reply.headers, vary: vary === undefined ? name : `${vary}, ${name}` } };
}

/** A reply without a body. */
export function empty(call: Call, status: number, reason: string): Reply {
  const headers: Record<string, string> = { ...commonHeaders(call.methods), 'content-type': PLAIN };
  if (status !== 204) headers['content-length'] = '0';
  return { status, statusText: reason, headers, body: null };
}

/** The same reply without a body: senders of webhooks get no reason. */
export function withoutBody({ status, statusText, headers: { 'content-type': _, ...kept } }: Reply): Reply {
  return { status, statusText, headers: { ...kept, 'content-length': '0' }, body: null };
}

/** 307 to `location`, with a line of text. */
export function redirect(call: Call, location: string, text: string, cacheControl?: string): Reply {
  const headers: Record<string, string> = { ...commonHeaders(call.methods), 'content-type': PLAIN, location };
  if (cacheControl !== undefined) headers['cache-control'] = cacheControl;
  return { status: 307, statusText: 'Temporary Redirect', headers, body: text };
}

/** 200 with a representation. */
export function document(call: Call, body: ReplyBody, contentType: string, caching: Caching, reason = 'OK'): Reply {
  const headers: Record<string, string> = {
    ...commonHeaders(call.methods),
    'content-type': contentType,
    'cache-control': caching.cacheControl,
    vary: VARY,
  };
  if (caching.etag !== null) headers['etag'] = `"${caching.etag}"`;
  return { status: 200, statusText: reason, headers, body };
}

/** 200 with a value as JSON in one line. */
export function jsonReply(call: Call, value: object): Reply {
  return {
    status: 200,
    statusText: 'OK',
    headers: { ...commonHeaders(call.methods), 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify(value),
  };
}

const REASONS: Readonly<Record<number, string>> = { 200: 'OK', 202: 'Accepted' };

/** 200 with a value as JSON, or the plain text that stands for it. */
export function adminReply(call: Call, chosen: Representation, value: unknown, text: string): Reply {
  if (chosen.kind !== 'text') return adminJson(call, 200, value);
  return {
    status: 200,
    statusText: 'OK',
    headers: { ...commonHeaders(call.methods), 'content-type': chosen.contentType },
    body: text,
  };
}

/** A value as JSON, indented by two spaces. */
export function adminJson(call: Call, status: number, value: unknown): Reply {
  return {
    status,
    statusText: REASONS[status]!,
    headers: { ...commonHeaders(call.methods), 'content-type': 'application/json; charset=utf-8' },
    body: valueText(value, 0),
  };
}

/** `JSON.stringify` knows no numbers beyond 2^53, and the number of a tombstone is 2^63-1. */
function valueText(value: unknown, depth: number): string {
  if (typeof value === 'string') return jsonString(value);
  if (value === TOMBSTONE) return numberText(TOMBSTONE);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const isArray = Array.isArray(value);
  const members = isArray
    ? value.map((each) => valueText(each, depth + 1))
    : Object.entries(value)
        .filter(([, each]) => each !== undefined)
        .map(([name, each]) => `${jsonString(name)}: ${valueText(each, depth + 1)}`);
  const [open, close] = isArray ? '[]' : '{}';
  const before = `\n${'  '.repeat(depth + 1)}`;
  return members.length === 0
    ? `${open}${close}`
    : `${open}${before}${members.join(`,${before}`)}\n${'  '.repeat(depth)}${close}`;
}

/**
 * Second half of an `ETag`, one number a media type. Clients echo it; the first two are the ones the reference was
 * seen to send, so that replies can be compared byte for byte.
 */
const OPAQUE: ReadonlyMap<string, number> = new Map([
  ['application/vnd.eventstore.atom+json', 1_747_451_192],
  ['application/json', -166_502_420],
  ['application/vnd.kurrent.atom+json', 1_747_451_193],
  ['application/vnd.eventstore.event+json', 1_747_451_194],
  ['application/vnd.kurrent.event+json', 1_747_451_195],
  ['application/octet-stream', -166_502_421],
]);
const FEED_OPAQUE = 1_747_451_192;

/**
 * Without quotes. `redactions`: their version before what is answered was read, so that no answer that was made
 * before the next one counts as the same.
 */
export function etagOf(version: number | string, representation: Representation, redactions: number): string {
  const opaque = OPAQUE.get(representation.mediaType) ?? 0;
  return redactions === 0 ? `${version};${opaque}` : `${version}.${redactions};${opaque}`;
}

/** What a feed says of itself in `eTag`, whatever was negotiated. */
export function feedEtag(version: number): string {
  return `${version};${FEED_OPAQUE}`;
}

/** One tag of a list, with its quotes or, as the reference takes them, without. */
const TAG = /(?:W\/)?"([^"]*)"|[^\s,"]+/g;

/**
 * Whether the caller has this, by any of the tags that it names (RFC 9110, 13.1.2): weak ones count, and `*` is
 * whatever there is. A compressed page is the same page.
 */
export function matchesEtag(request: Request, etag: string): boolean {
  const value = request.headers.get('if-none-match');
  if (value === null) return false;
  if (value === '*') return true;
  for (const [whole, quoted = whole] of value.matchAll(TAG)) if (withoutCoding(quoted) === etag) return true;
  return false;
}

/** How a reply may be cached. */
export interface Caching {
  readonly cacheControl: string;
  /** Without quotes; null where none is sent. */
  readonly etag: string | null;
}

/**
 * What a reply to a read depends on beside its address: no other caller, and no other form of it, may get it from a
 * cache.
 */
export const VARY = 'Accept, Accept-Encoding, Authorization, ES-ResolveLinkTos, Kurrent-ResolveLinkTos';

const NOT_KEPT = 'max-age=0, no-cache, must-revalidate';
/** `must-revalidate` alone would let caches that many use keep what was sent to one caller. */
const NOT_KEPT_PRIVATE = `${NOT_KEPT}, private`;
/**
 * Pages away from the head and single events change only when something is erased, or a user loses the right to read
 * them. Then they must not live on in a cache, so that they are kept for seconds, and not for the year that the
 * reference gives them.
 */
const KEPT_BRIEFLY = 'max-age=60, private';

/** Replies that must not be kept: gossip and metrics. */
export const ASK_AGAIN: Caching = { cacheControl: NOT_KEPT, etag: null };

/** What changes only by being erased: pages away from the head, events by number. */
export function unchanging(app: App): Caching {
  return { cacheControl: app.options.disableHttpCaching ? NOT_KEPT_PRIVATE : KEPT_BRIEFLY, etag: null };
}

/** What can change. `seconds` is the stream's `$cacheControl`. */
export function changing(app: App, etag: string | null, seconds?: number): Caching {
  return {
    cacheControl:
      seconds === undefined || app.options.disableHttpCaching ? NOT_KEPT_PRIVATE : `max-age=${seconds}, private`,
    etag,
  };
}

/**
 * The headers that pages of other origins may send and see. Both families of names are accepted, so both are announced.
 */
const OWN_HEADERS = [
  'LongPoll',
  'ExpectedVersion',
  'EventId',
  'EventType',
  'RequireMaster',
  'RequireLeader',
  'HardDelete',
  'ResolveLinkTos',
];
const ALLOWED_HEADERS = [
  'Content-Type',
  'X-Requested-With',
  'X-Forwarded-Host',
  'X-Forwarded-Prefix',
  'X-PINGOTHER',
  'Authorization',
  ...OWN_HEADERS.map((name) => `ES-${name}`),
  ...OWN_HEADERS.filter((name) => name !== 'RequireMaster').map((name) => `Kurrent-${name}`),
  'Last-Event-ID',
].join(', ');
const EXPOSED_HEADERS = 'Location, Link, ES-Position, ES-CurrentVersion, Kurrent-Position, Kurrent-CurrentVersion';

const known = new Map<string, Readonly<Record<string, string>>>();

/**
 * The headers of every reply at a path with these methods, made once; '' for a path that no route knows, or that says
 * nothing of its methods. `methods` comes from the route table, so the map stays small. What the path takes is told as
 * the reference tells it; only origins that an option names are let in by it (browsers.ts).
 */
export function commonHeaders(methods: string): Readonly<Record<string, string>> {
  let headers = known.get(methods);
  if (headers === undefined) {
    headers = Object.freeze({
      ...(methods !== '' && {
        'access-control-allow-methods': methods,
        'access-control-allow-headers': ALLOWED_HEADERS,
        'access-control-expose-headers': EXPOSED_HEADERS,
      }),
      // Events hold whatever their writers liked: no browser is to guess that one is a page.
      'x-content-type-options': 'nosniff',
    });
    known.set(methods, headers);
  }
  return headers;
}
