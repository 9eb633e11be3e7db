import { SkuaError } from '../../core/base/errors.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import type { AllPosition } from '../../core/streams/api.ts';
import { withoutTrailing } from '../../core/base/text.ts';
import type { Call } from './context.ts';

/** Where the path of an absolute URL begins. */
export function pathStart(url: string): number {
  const at = url.indexOf('/', url.indexOf('://') + 3);
  return at < 0 ? url.length : at;
}

/** The path of an absolute URL, as sent, without query and fragment. */
export function pathOf(url: string, start: number): string {
  const query = url.indexOf('?', start);
  const path = query < 0 ? url.slice(start) : url.slice(start, query);
  return path === '' ? '/' : path;
}

const STREAMS = '/streams/';

/** The one segment behind `/streams/` where the path has no other; null for every other path. */
export function streamSegment(path: string): string | null {
  if (!path.startsWith(STREAMS) || path.length === STREAMS.length || path.indexOf('/', STREAMS.length) >= 0)
    return null;
  return path.slice(STREAMS.length);
}

/**
 * A path segment decoded; `%2F` becomes part of the name. `.` and `..` are refused because URL parsers on the way
 * resolve them, so that such a stream could not be reached by all clients alike.
 */
export function decodeSegment(segment: string): string {
  let name = segment;
  if (segment.includes('%')) {
    try {
      name = decodeURIComponent(segment);
    } catch {
      throw new SkuaError(
        'bad_request',
        `The path has malformed percent-encoding: '${segment}'. Encode names as UTF-8.`,
      );
    }
  }
  if (name === '.' || name === '..')
    throw new SkuaError(
      'invalid_stream_name',
      `A stream can't be named '${name}': URLs resolve it away. Use another name.`,
    );
  return name;
}

const DOTS = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/**
 * Whether a path has a segment that URL parsers resolve away: `.` or `..`, escaped or not. Paths are taken as they
 * arrived, since a proxy in front may have judged them so.
 */
export function hasDotSegment(path: string): boolean {
  return (path.includes('/.') || path.includes('/%2')) && DOTS.test(path);
}

const USERS = '/users/';
const PAGE = '/ui/';
/** Segments that routes name, in the form in which these do. */
const STREAM_LITERALS: ReadonlyMap<string, string> = new Map([
  ['$all', '%24all'],
  ['$scavenges', '%24scavenges'],
]);
const USER_LITERALS: ReadonlyMap<string, string> = new Map([['$current', '%24current']]);

/**
 * `$all`, `$scavenges` and `$current` may come escaped in any way; routes know the forms `%24all`, `%24scavenges` and
 * `%24current`. The list of users may be asked for with a slash at its end, and so may the page, which people type.
 */
export function normaliseLiterals(path: string): string {
  if (path.startsWith(STREAMS)) return withLiteral(path, STREAMS, STREAM_LITERALS);
  if (path.startsWith(PAGE)) return withoutTrailing(path, '/');
  if (!path.startsWith(USERS)) return path;
  return path === USERS ? '/users' : withLiteral(path, USERS, USER_LITERALS);
}

function withLiteral(path: string, prefix: string, literals: ReadonlyMap<string, string>): string {
  const end = path.indexOf('/', prefix.length);
  const segment = end < 0 ? path.slice(prefix.length) : path.slice(prefix.length, end);
  const literal = literalOf(segment, literals);
  return literal === null || literal === segment ? path : `${prefix}${literal}${end < 0 ? '' : path.slice(end)}`;
}

/** Three times the length of `$scavenges`, with every character escaped. */
const LITERAL_LENGTH_MAX = 30;

/** The form that routes know, or null for every other segment. */
function literalOf(segment: string, literals: ReadonlyMap<string, string>): string | null {
  const first = segment.charCodeAt(0);
  if ((first !== 36 && first !== 37) || segment.length > LITERAL_LENGTH_MAX) return null;
  return (
    literals.get(
      segment.replace(/%([2-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    ) ?? null
  );
}

/**
 * The URL as routes know it; null for a path that none of them has: with segments that are resolved away, or a slash at
 * its end.
 */
export function routedUrl({ url, origin, path }: Call): string | null {
  if (hasDotSegment(path)) return null;
  // The router makes a URL of it, in which a backslash would become a slash.
  const routed = normaliseLiterals(path).replaceAll('\\', '%5C');
  if (routed.length > 1 && routed.endsWith('/')) return null;
  return routed === path ? url : origin + routed + url.slice(origin.length + path.length);
}

const WITH_SLASH = /^\/streams\/[^/]+(?:\/metadata)?\/$/;

/** True for the paths whose trailing slash is answered with a redirect. */
export function isSlashRedirect(path: string): boolean {
  return WITH_SLASH.test(path);
}

/**
 * Where generated links begin: the request's own scheme and host, or what a proxy says in its forwarding headers.
 * Values that could not stand in a URL or are too long are ignored, and so are all where proxies were named and the
 * request comes from none of them.
 */
export function baseOf(call: Call): string {
  return (call.base ??= forwardedBase(call.request.headers, call.origin));
}

/** The path before ours under which a proxy has the node, such as `/db`; empty for none. */
export function prefixOf(call: Call): string {
  const base = baseOf(call);
  return base.slice(pathStart(base));
}

const AUTHORITY = /^(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i;

/** The host that a proxy says was asked for; null for none, and for what is none. */
export function firstHostOf(headers: Headers): string | null {
  return matching(headers.get('x-forwarded-host'), AUTHORITY);
}

/** As `baseOf`, where forwarding headers count. */
export function forwardedBase(headers: Headers, origin: string): string {
  const proto = headers.get('x-forwarded-proto');
  const host = headers.get('x-forwarded-host');
  const port = headers.get('x-forwarded-port');
  const prefix = headers.get('x-forwarded-prefix');
  if (proto === null && host === null && port === null && prefix === null) return origin;
  const split = origin.indexOf('://');
  const scheme = matching(proto, /^https?$/i)?.toLowerCase() ?? origin.slice(0, split);
  let authority = matching(host, AUTHORITY) ?? origin.slice(split + 3);
  const ownPort = matching(port, /^\d{1,5}$/);
  if (ownPort !== null && (host === null || !/:\d+$/.test(authority))) {
    authority = authority.replace(/:\d+$/, '') + (ownPort === (scheme === 'https' ? '443' : '80') ? '' : `:${ownPort}`);
  }
  const path = withoutSlashes(matching(prefix, /^[\w\-.~%/]+$/, PREFIX_LENGTH_MAX) ?? '');
  return `${scheme}://${authority}${path === '' ? '' : `/${path}`}`;
}

function withoutSlashes(text: string): string {
  let start = 0;
  while (text[start] === '/') start++;
  return withoutTrailing(text.slice(start), '/');
}

/**
 * Characters of a host with its port, wherever it is named: names of hosts are no longer (RFC 1035 section 2.3.4). Each
 * link of a reply repeats it.
 */
export const HOST_LENGTH_MAX = 255;
/** Stands in the URL of a request for a host that can be none, whatever the client has sent. */
export const NO_HOST = '_invalid_';
/** Characters of a forwarded prefix, which each link repeats, too. */
const PREFIX_LENGTH_MAX = 100;

/** The first of a comma-separated list, if it has the form; null for one that is too long. */
function matching(value: string | null, form: RegExp, lengthMax = HOST_LENGTH_MAX): string | null {
  const first = value?.split(',', 1)[0]!.trim();
  return first !== undefined && first.length <= lengthMax && form.test(first) ? first : null;
}

let lastName = '';
let lastEscaped = '';

/** A stream name as it stands in links: letters, digits and `-._~` kept. */
export function escapeName(name: string): string {
  if (name === lastName) return lastEscaped;
  const escaped = encodeURIComponent(name.toWellFormed()).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  lastName = name;
  lastEscaped = escaped;
  return escaped;
}

export function streamUrl(call: Call, stream: string): string {
  return `${baseOf(call)}/streams/${escapeName(stream)}`;
}

/** An event number as clients know it: the number of a tombstone is 2^63-1. */
export function numberText(number: number): string {
  return number === TOMBSTONE ? '9223372036854775807' : String(number);
}

/** A `$all` position: 16 hex digits of the commit and 16 of the prepare position. */
export function positionToken(position: AllPosition): string {
  return hex16(position.commit) + hex16(position.prepare);
}

export function hex16(value: number): string {
  return value.toString(16).toUpperCase().padStart(16, '0');
}

/** For who asks for a part of a stream that can't be one, or writes to it: the name of a stream is one segment. */
export const SLASH_HINT = 'A slash in the name of a stream is written %2F.';
