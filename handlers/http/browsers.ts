import { SkuaError } from '../../core/base/errors.ts';
import type { App, Call, Reply } from './context.ts';
import { baseOf, firstHostOf } from './url.ts';

/**
 * What browsers do on behalf of pages: they send requests of any page to any address, with the credentials that they
 * hold for it. What is refused here would be sent without its user's will; programs send none of these headers.
 */

/** Whether a request with this method may change something. */
export function isChange(method: string): boolean {
  return method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS';
}

/**
 * Refuses a request that a page of another origin has sent, before anything is looked at. What the browser says of
 * itself counts (`Sec-Fetch-Site`, where the connection is one that it trusts), else whether the page comes from the
 * host that was asked, which a proxy in front of the node may name in its forwarding headers (`baseOf`): a page can't
 * set those without being let in first. Errors: `foreign_origin`.
 */
export function refuseForeign(call: Call, app: App): void {
  const { headers } = call.request;
  const site = headers.get('sec-fetch-site');
  const origin = headers.get('origin');
  if (site === null && origin === null) return;
  if (site === 'same-origin' || site === 'none') return;
  if (origin !== null && app.origins?.has(origin.toLowerCase()) === true) return;
  if (site === null && origin !== null && isOwn(origin, call)) return;
  throw new SkuaError(
    'foreign_origin',
    'Pages of other origins may not change anything here. An operator can add the origin to the option CorsOrigins; a proxy in front of the node must pass the requested host in X-Forwarded-Host, and be one of TrustedProxies if any are set.',
  );
}

/**
 * Why a request may come from a page whose owner has pointed its name at this node (DNS rebinding); null where it does
 * not. To a browser such a page and the node are one: it may read, too, and says nothing of an origin. So where
 * everybody may do everything, or passwords are publicly known, the host that was asked for must be the node's, as the
 * client has sent it: forwarding headers are the page's to set, and what a trusted proxy says in them counts beside it.
 * Senders whose connector checks a signature know what no page does. Errors: as `hasDefaultPasswords`.
 */
export function foreignHost(call: Call, app: App): null | Promise<SkuaError | null> {
  const { hosts, server } = app;
  const host = server.plainHostOf?.(call.request) ?? null;
  if (host === null) return null;
  const named = server.isTrustedProxy?.(call.request) === true ? (firstHostOf(call.request.headers) ?? host) : host;
  if (hosts.has(host) && (named === host || hosts.has(named))) return null;
  return call.branch.probes !== null ? null : judgedHost(call, app, hosts.has(host) ? named : host);
}

async function judgedHost(
  call: Call,
  { security, features: { webhooks } }: App,
  host: string,
): Promise<SkuaError | null> {
  if (security !== null && (await security.hasDefaultPasswords?.()) === false) return null;
  const sender = call.branch.isForSenders ? senderOf(call.path) : null;
  if (sender !== null && (await webhooks?.ingest.checksSignature?.(sender)) === true) return null;
  const why = security === null ? 'has no users' : 'has users with the default password';
  return new SkuaError(
    'foreign_host',
    `The node ${why}, and the request is for the host ${host.slice(0, SHOWN_HOST_LENGTH_MAX)}, which could belong to a page of someone else. Use its address, or have an operator add the host to the option AllowedHosts (--allowed-hosts).`,
  );
}

/** The connector that a path of senders names behind its first segment; null where it names none. */
function senderOf(path: string): string | null {
  try {
    return decodeURIComponent(path.slice(path.indexOf('/', 1) + 1));
  } catch {
    return null;
  }
}

/** Characters of a host that are repeated to the caller that has sent it. */
const SHOWN_HOST_LENGTH_MAX = 255;

/**
 * Whether the browser says that our own page sends a request, or the address was typed. Only then a cookie counts: it
 * goes along with what a program at another port of the host makes the browser send, since hosts, and not ports, have
 * cookies. Over plain HTTP browsers say so only to the machine that they run on; elsewhere a request that changes
 * something has the origin of the page, or else a header that no form can send.
 */
export function isFromOwnPage(call: Call): boolean {
  const { headers } = call.request;
  const site = headers.get('sec-fetch-site');
  if (site !== null) return site === 'same-origin' || site === 'none';
  const origin = headers.get('origin');
  if (origin !== null) return isOwn(origin, call);
  return !isChange(call.method) || headers.has('x-requested-with');
}

/**
 * Refuses to begin or end a session for any page but our own. Others may come from an origin that an option names, and
 * then log in with credentials of their own; but at another port of the host a cookie of theirs would take the place of
 * ours, so that they could log their visitors out, or in as a user whose password they know. Errors: `foreign_origin`.
 */
export function refuseOtherPages(call: Call): void {
  const { headers } = call.request;
  if ((!headers.has('sec-fetch-site') && !headers.has('origin')) || isFromOwnPage(call)) return;
  throw new SkuaError(
    'foreign_origin',
    'Pages of other origins may not start or end a session here. They can send credentials with each request instead.',
  );
}

/** Schemes are not compared: a proxy may end TLS without a word. */
function isOwn(origin: string, call: Call): boolean {
  const host = hostOf(origin);
  return host !== null && (host === hostOf(call.origin) || host === hostOf(baseOf(call)));
}

/** Host and port of a URL, the port of its scheme left out; null for what is no URL with a host. */
function hostOf(url: string): string | null {
  const host = URL.parse(url)?.host ?? '';
  return host === '' ? null : host;
}

/** How long a browser may remember what it was told about a path, in seconds. */
const PREFLIGHT_SECONDS = 600;
const ANY_ORIGIN = '*';

/** A reply with what lets pages of the origins in that an option names. `*` never goes with credentials. */
export function withOrigin(reply: Reply, call: Call, origins: ReadonlySet<string>): Reply {
  const origin = call.request.headers.get('origin');
  const { vary } = reply.headers;
  const headers: Record<string, string> = { ...reply.headers, vary: vary === undefined ? 'Origin' : `${vary}, Origin` };
  if (origin === null) return { ...reply, headers };
  const isNamed = origins.has(origin.toLowerCase());
  if (!isNamed && !origins.has(ANY_ORIGIN)) return { ...reply, headers };
  headers['access-control-allow-origin'] = isNamed ? origin : ANY_ORIGIN;
  if (isNamed) headers['access-control-allow-credentials'] = 'true';
  if (call.method === 'OPTIONS') headers['access-control-max-age'] = String(PREFLIGHT_SECONDS);
  return { ...reply, headers };
}

const OVER_TLS = 'https://';
/**
 * Of the machine of the browser, at whose other ports programs speak plain HTTP: what is said of a name holds for all
 * its ports.
 */
const LOOPBACK = /^https:\/\/(?:(?:[^:/]*\.)?localhost\.?|127\.[\d.]+|\[::1\])(?::\d+)?$/i;

/**
 * A reply over TLS with what makes browsers ask for the node over TLS only. What a member says of its own name is
 * nothing to the client of another one.
 */
export function withHsts(reply: Reply, { origin, forwarded }: Call, seconds: number): Reply {
  if (forwarded !== null || !origin.startsWith(OVER_TLS) || LOOPBACK.test(origin)) return reply;
  return { ...reply, headers: { ...reply.headers, 'strict-transport-security': `max-age=${seconds}` } };
}

/**
 * Clients send credentials only when they are challenged; the charset lets them send other letters than those of
 * English.
 */
const CHALLENGE = 'Basic realm="Skua", charset="UTF-8"';
/** No browser knows the scheme, so that none opens its password box over a page that asks for the password itself. */
const CHALLENGE_TO_PAGE = `X-${CHALLENGE}`;

/**
 * The challenge of a 401: `X-Basic` for what a page has sent by itself, `Basic` for programs and for addresses that a
 * person opens.
 */
export function challengeTo(headers: Headers): string {
  return isOfPage(headers) ? CHALLENGE_TO_PAGE : CHALLENGE;
}

function isOfPage(headers: Headers): boolean {
  const mode = headers.get('sec-fetch-mode');
  if (mode !== null) return mode !== 'navigate';
  if (headers.has('x-requested-with')) return true;
  // Over plain HTTP browsers say no more than this: all call themselves so, tell the languages of their user, and ask
  // for HTML where they are to show a page. Programs that borrow the name leave out the languages.
  const accept = headers.get('accept');
  return (
    accept !== null &&
    !accept.includes('text/html') &&
    headers.has('accept-language') &&
    headers.get('user-agent')?.startsWith('Mozilla/') === true
  );
}

/**
 * Whether a person opens an address in a browser, and wants to see a page: programs that take anything do not ask for
 * HTML.
 */
export function isOpenedInBrowser(headers: Headers): boolean {
  const mode = headers.get('sec-fetch-mode');
  return (mode === null || mode === 'navigate') && headers.get('accept')?.includes('text/html') === true;
}
