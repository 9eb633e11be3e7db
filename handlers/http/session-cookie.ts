import { isFromOwnPage } from './browsers.ts';
import type { Call } from './context.ts';
import { baseOf, prefixOf } from './url.ts';

/** The cookie that stands for a login of the page. */

/** Over plain HTTP. */
const NAME = 'skua-session';
/**
 * Browsers take a cookie of this name from its own host over TLS only, for all its paths, so that no other host can put
 * a cookie of its own in its place.
 */
const SECURE_NAME = '__Host-skua-session';
/** The same where a proxy has the node under a path, so that two such nodes at one host have sessions of their own. */
const SECURE_PATH_NAME = '__Secure-skua-session';
/**
 * Longest header that is looked at, in characters, and most cookies of the name: programs at other ports of the host
 * may have set some.
 */
const HEADER_LENGTH_MAX = 16_384;
const COOKIES_MAX = 4;

/** Whether the browser speaks TLS, with the node or with a proxy that says so. */
function isSecure(call: Call): boolean {
  return baseOf(call).startsWith('https:');
}

function nameFor(call: Call): string {
  return !isSecure(call) ? NAME : prefixOf(call) === '' ? SECURE_NAME : SECURE_PATH_NAME;
}

/** The values of the cookie, of which one may be a session; none where the request does not come from our own page. */
export function sessionValuesOf(call: Call): readonly string[] {
  const header = call.request.headers.get('cookie');
  if (header === null || header.length > HEADER_LENGTH_MAX || !header.includes(NAME) || !isFromOwnPage(call)) return [];
  const name = `${nameFor(call)}=`;
  return header
    .split(';')
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(name))
    .slice(0, COOKIES_MAX)
    .map((cookie) => cookie.slice(name.length));
}

/** `Set-Cookie` of a session: for this host and its scripts' requests, but not for the scripts themselves. */
export function sessionCookie(call: Call, value: string, seconds: number): string {
  return `${nameFor(call)}=${value}; Path=${prefixOf(call) || '/'}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isSecure(call) ? '; Secure' : ''}`;
}

/** `Set-Cookie` that makes the browser forget the session. */
export function noSessionCookie(call: Call): string {
  return sessionCookie(call, '', 0);
}
