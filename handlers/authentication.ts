import { SkuaError } from '../core/base/errors.ts';
import type { Security, Session, Sessions, Principal } from '../core/security/api.ts';
import { addressGroup } from '../core/base/address-group.ts';
import { isEmptyPassword } from '../core/security/format/user.ts';
import { ANONYMOUS, SYSTEM } from '../core/base/principal.ts';
import { decodeText } from '../core/base/text.ts';
import { memberBySecret } from './cluster/members.ts';
import type { App, Call } from './http/context.ts';
import { login } from './http/login.ts';
import type { Credentials } from './http/login.ts';
import { sessionValuesOf } from './http/session-cookie.ts';

/**
 * The caller of a request: by Basic credentials, else by the session of the page, else the one that the connection
 * proves, else the one that a trusted proxy names, else the anonymous caller. Credentials that are there and wrong are
 * refused on every path but those of probes and of senders. A member proves itself by the secret of the cluster, too;
 * what it passes on for a caller never has the member's rights. Errors: `not_authenticated`, `not_a_member`,
 * `too_many_failures`, `not_ready`, `too_busy`.
 */
export function authenticate(call: Call, app: App): Principal | Promise<Principal> {
  const caller = callerOf(call, app);
  return caller instanceof Promise ? caller.then((known) => counted(call, app, known)) : counted(call, app, caller);
}

/** From here on the call counts for its caller. */
function counted(call: Call, app: App, caller: Principal): Principal {
  call.countedAs = callerKey(call, app, caller);
  app.server.calledBy?.(call.request, call.countedAs);
  return caller;
}

/**
 * The key by which what callers share is counted (core/base/shared-limit.ts): the user, or the address where the
 * node has no users or the caller has no login.
 */
function callerKey({ request }: Call, { security, server }: App, { name }: Principal): string {
  return security === null || name === null ? addressGroup(server.addressOf?.(request) ?? null) : name;
}

function callerOf(call: Call, app: App): Principal | Promise<Principal> {
  const { security } = app;
  if (security === null) return SYSTEM;
  // A probe must not fail because of a password that was changed.
  if (call.branch.probes?.has(call.path) === true) return ANONYMOUS;
  // Senders have signatures and no users: an Authorization header of theirs is meant for another server, and is
  // ignored.
  if (call.branch.isForSenders) return ANONYMOUS;
  const { headers } = call.request;
  const authorization = headers.get('authorization');
  if (authorization !== null) {
    const caller =
      (call.forwarded === null ? memberBySecret(authorization, call, app) : null) ??
      loginOf(authorization, call, app, security);
    if (caller !== null) return caller;
  }
  const session = call.forwarded === null ? sessionOf(call, security) : resumed(call, security);
  if (session instanceof Promise) return session.then((found) => found ?? unasked(call, app));
  return session ?? unasked(call, app);
}

/** The caller of a request without credentials and session. */
function unasked(call: Call, app: App): Principal {
  return app.server.peerOf?.(call.request) ?? trustedPrincipalOf(call.request, app) ?? ANONYMOUS;
}

/** The user of the session that the request brings, which the call keeps; null for none. */
function sessionOf(call: Call, { sessions }: Security): Principal | null | Promise<Principal | null> {
  if (sessions == null) return null;
  const values = sessionValuesOf(call);
  const [value] = values;
  if (value === undefined) return null;
  const found = values.length === 1 ? sessions.find(value) : firstOf(values, sessions);
  const told = (session: Session | null): Principal | null => {
    call.session = session;
    return session?.principal ?? null;
  };
  return found instanceof Promise ? found.then(told) : told(found);
}

async function firstOf(values: readonly string[], sessions: Sessions): Promise<Session | null> {
  for (const value of values) {
    const session = await sessions.find(value);
    if (session !== null) return session;
  }
  return null;
}

/**
 * The user of a session that the member has verified which has passed the request on. The cookie itself stays there:
 * only that member knows where it came from.
 */
function resumed({ forwarded }: Call, { sessions }: Security): Promise<Principal | null> | null {
  return sessions == null || forwarded?.session == null ? null : sessions.resume(forwarded.session);
}

/**
 * For the member that will decide a request instead of this one: finds the session that it brings, where it brings
 * no other credentials.
 */
export async function findSession(call: Call, { security }: App): Promise<void> {
  if (
    security !== null &&
    call.session === null &&
    !call.branch.isForSenders &&
    !call.request.headers.has('authorization')
  )
    await sessionOf(call, security);
}

/**
 * Whom the connection of a request, or its proxy, proves, for the member that will look at credentials in its place:
 * null where the request brings credentials, and where nothing is proved. Errors: `not_authenticated`.
 */
export function provedCaller(call: Call, app: App): Principal | null {
  if (
    app.security === null ||
    call.branch.isForSenders ||
    call.request.headers.get('authorization')?.startsWith(SCHEME) === true
  )
    return null;
  return app.server.peerOf?.(call.request) ?? trustedPrincipalOf(call.request, app);
}

/**
 * Other credentials that may come over a connection before those that it brought are verified anew, lest a pool of
 * connections helps to guess them.
 */
const OTHERS_MAX = 10;

/** Null where the header holds no credentials of the kind that is understood. */
function loginOf(header: string, call: Call, app: App, security: Security): Principal | Promise<Principal> | null {
  const connection = app.server.connectionOf?.(call.request) ?? null;
  const address = app.server.addressOf?.(call.request) ?? null;
  const last = connection === null ? undefined : app.logins.get(connection);
  if (last !== undefined) {
    if (last.header === header && last.address === address) {
      if (security.authenticator.stillKnows(last.principal, address)) return last.principal;
    } else if (++last.others >= OTHERS_MAX) app.logins.delete(connection!);
  }
  const credentials = credentialsOf(header);
  if (credentials === null) return null;
  const isEmpty = isEmptyPassword(credentials.password);
  const caller = login(app, security, credentials, {
    address,
    isLocal: isEmpty && app.server.isLocal?.(call.request) === true,
  });
  // Where an empty password comes from is looked at each time: a proxy may send its own requests and others over one
  // connection.
  if (connection === null || isEmpty) return caller;
  const remember = (principal: Principal): Principal => {
    app.logins.set(connection, { header, address, principal, others: 0 });
    return principal;
  };
  return caller instanceof Promise ? caller.then(remember) : remember(caller);
}

/** Longest `Authorization` header that is looked at, in characters. */
export const CREDENTIALS_LENGTH_MAX = 8_192;

const SCHEME = 'Basic';
const COLON = 58;
const SPACE = 32;
const COMMA = ',';
/** Groups of four characters, the last one filled up with `=`. The decoder of the platform would take less. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Name and password of Basic credentials. Null for what is none, which makes the caller anonymous: another scheme, a
 * text without colon, and more than one header (they arrive joined by a comma). Throws `not_authenticated` for what is
 * no Base64.
 */
export function credentialsOf(header: string): Credentials | null {
  if (!header.startsWith(SCHEME)) return null;
  if (header.length === SCHEME.length) throw malformed('The Authorization header has no credentials after Basic.');
  if (header.charCodeAt(SCHEME.length) !== SPACE) return null;
  if (header.length > CREDENTIALS_LENGTH_MAX)
    throw malformed(`The Authorization header has more than ${CREDENTIALS_LENGTH_MAX} characters.`);
  const text = header.slice(SCHEME.length + 1).trim();
  if (text === '') throw malformed('The Authorization header has no credentials after Basic.');
  if ((text.length & 3) !== 0 || !BASE64.test(text)) {
    if (text.includes(COMMA)) return null;
    throw malformed('The Authorization header is not Base64 after Basic.');
  }
  const decoded = utf8Of(atob(text));
  for (let i = 0; i < decoded.length; i++) {
    if (decoded.charCodeAt(i) === COLON) return { name: decoded.slice(0, i), password: decoded.slice(i + 1) };
  }
  return null;
}

function malformed(what: string): SkuaError {
  return new SkuaError('not_authenticated', `${what} Send "Basic" and the Base64 of name:password in UTF-8.`);
}

/**
 * The text of which `binary` has one byte a character. What is no UTF-8 becomes replacement characters and matches
 * nothing.
 */
function utf8Of(binary: string): string {
  for (let i = 0; i < binary.length; i++) {
    if (binary.charCodeAt(i) > 127) return decodeText(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
  }
  return binary;
}

/** Longest value that is looked at, in characters. */
const TRUSTED_LENGTH_MAX = 8_192;

/**
 * The caller whom a trusted proxy names in a header such as `ES-TrustedAuth: user; group, group`; null without the
 * header, and where it does not come from such a proxy, by the address of the connection. Errors: `not_authenticated`
 * for every other form, and for a header that came twice: the client may have sent the one that the proxy does not
 * know.
 */
function trustedPrincipalOf(
  request: Request,
  { options: { trustedAuthHeader: header }, server }: App,
): Principal | null {
  if (header === null) return null;
  const value = request.headers.get(header);
  if (value === null || server.isTrustedProxy?.(request) !== true) return null;
  if (value.length > TRUSTED_LENGTH_MAX)
    throw malformedTrust(header, `The value has more than ${TRUSTED_LENGTH_MAX} characters.`);
  if (isRepeated(server.rawHeadersOf?.(request) ?? [], header.toLowerCase()))
    throw malformedTrust(header, 'It was sent more than once.');
  const [user = '', groups = '', ...more] = utf8Of(value).split(';');
  const name = user.trim();
  // A comma in the name comes from a header that was sent twice, too.
  if (name === '' || name.includes(',') || more.length > 0)
    throw malformedTrust(header, 'It must be one user, followed by a semicolon and the groups.');
  return {
    name,
    roles: groups
      .split(',')
      .map((group) => group.trim())
      .filter((group) => group !== ''),
  };
}

function isRepeated(rawHeaders: readonly string[], name: string): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]!.toLowerCase() === name) count++;
  return count > 1;
}

function malformedTrust(header: string, what: string): SkuaError {
  return new SkuaError(
    'not_authenticated',
    `The trusted header of the proxy can't be used. ${what} Send "${header}: user; group, group".`,
  );
}
