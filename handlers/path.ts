import { SkuaError } from '../core/errors.ts';

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
  if (!path.startsWith(STREAMS) || path.length === STREAMS.length || path.indexOf('/', STREAMS.length) >= 0) return null;
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
      throw new SkuaError('bad_request', `The path holds malformed percent-encoding: '${segment}'. Encode names as UTF-8.`);
    }
  }
  if (name === '.' || name === '..') throw new SkuaError('invalid_stream_name', `A stream can't be named '${name}': URLs resolve it away. Use another name.`);
  return name;
}

/** `$all` and `$scavenges` may come escaped in any way; routes know the forms `%24all` and `%24scavenges`. */
export function normaliseLiterals(path: string): string {
  if (!path.startsWith(STREAMS)) return path;
  const end = path.indexOf('/', STREAMS.length);
  const segment = end < 0 ? path.slice(STREAMS.length) : path.slice(STREAMS.length, end);
  const literal = literalOf(segment);
  return literal === null ? path : `${STREAMS}${literal}${end < 0 ? '' : path.slice(end)}`;
}

/** Three times the length of `$scavenges`, with every character escaped. */
const LITERAL_LENGTH_MAX = 30;

/** The form that routes know, or null for every other stream and what has that form already. */
function literalOf(segment: string): string | null {
  const first = segment.charCodeAt(0);
  if ((first !== 36 && first !== 37) || segment.length > LITERAL_LENGTH_MAX || segment === '%24all' || segment === '%24scavenges') return null;
  const name = segment.replace(/%([2-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return name === '$all' ? '%24all' : name === '$scavenges' ? '%24scavenges' : null;
}

const WITH_SLASH = /^\/streams\/[^/]+(?:\/metadata)?\/$/;

/** True for the paths whose trailing slash is answered with a redirect (http-api.md 2.3). */
export function isSlashRedirect(path: string): boolean {
  return WITH_SLASH.test(path);
}
