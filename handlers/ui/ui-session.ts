import { SkuaError } from '../../core/base/errors.ts';
import { addressGroup } from '../../core/base/address-group.ts';
import type { Sessions } from '../../core/security/api.ts';
import { isEmptyPassword } from '../../core/security/format/user.ts';
import { isAdministrator, isAnonymous, isBackupKeeper, isOperator } from '../../core/base/principal.ts';
import { timestampText } from '../../core/base/time.ts';
import type { SessionDocument } from '../documents/users.ts';
import { readJson } from '../http/body.ts';
import { refuseOtherPages } from '../http/browsers.ts';
import { noteForAudit } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { login } from '../http/login.ts';
import { jsonReply } from '../http/reply.ts';
import { noSessionCookie, sessionCookie, sessionValuesOf } from '../http/session-cookie.ts';

/** Largest body of a login. */
const LOGIN_BODY_BYTES_MAX = 16_384;
/**
 * Bodies of logins that may be arriving from one address (or IPv6 network) at once. The body is the login, so that
 * no user is known before it; one takes a moment, and many people may share an address.
 */
export const ARRIVING_LOGINS_MAX = 32;
/** Characters of an unverified name: it is often a password that was typed into the wrong field. */
const TRIED_NAME_LENGTH_MAX = 64;
const SECOND_MS = 1_000;

/** POST `/ui/session`: begins a session, whose value only the browser gets to see. */
export const logIn: Handler = async (call, app) => {
  // What is no attempt is nothing to tell of.
  const { audited } = call;
  call.audited = null;
  refuseOtherPages(call);
  const credentials = credentialsOf(await arrived(call, app));
  const { security, server } = app;
  const sessions = security?.sessions;
  if (security === null || sessions == null)
    throw new SkuaError(
      'bad_request',
      'No login is needed: the node runs without security, and anyone can do anything.',
    );
  call.audited = audited;
  noteForAudit(call, { user: credentials.name.slice(0, TRIED_NAME_LENGTH_MAX).toWellFormed() });
  const principal = await login(app, security, credentials, {
    address: server.addressOf?.(call.request) ?? null,
    isLocal: isEmptyPassword(credentials.password) && server.isLocal?.(call.request) === true,
  });
  // Logins that succeed the audit records as it does others: once in a while.
  call.audited = null;
  const session = await sessions.begin(principal);
  call.principal = session.principal;
  call.session = session;
  return described(
    call,
    app,
    sessionCookie(call, session.value, Math.floor((session.endsMs - app.world.clock.nowMs()) / SECOND_MS)),
  );
};

/** The body, where not too many are arriving from there already. */
async function arrived(call: Call, app: App): Promise<unknown> {
  const { arrivingLogins: arriving } = app;
  const place = addressGroup(app.server.addressOf?.(call.request) ?? null);
  const before = arriving.get(place) ?? 0;
  if (before >= ARRIVING_LOGINS_MAX)
    throw new SkuaError('too_busy', 'Too many logins are arriving from this address at once: try again in a moment.', {
      retryAfterSeconds: 1,
    });
  arriving.set(place, before + 1);
  try {
    return await readJson(call, app, LOGIN_BODY_BYTES_MAX);
  } finally {
    const left = arriving.get(place)! - 1;
    if (left > 0) arriving.set(place, left);
    else arriving.delete(place);
  }
}

/**
 * GET `/ui/session`: the user of the page, and what that user may do. A session that does not count any more is
 * forgotten by the browser.
 */
export const session: Handler = (call, app) =>
  described(call, app, call.session === null && sessionValuesOf(call).length > 0 ? noSessionCookie(call) : null);

/** DELETE `/ui/session`: ends the session at all members. Where there is none the browser forgets what it holds. */
export const logOut: Handler = async (call, app) => {
  const { audited } = call;
  call.audited = null;
  refuseOtherPages(call);
  call.audited = audited;
  const sessions = app.security?.sessions;
  const hasEnded = sessions == null ? false : await endAll(call, sessions);
  if (!hasEnded) call.audited = null;
  return {
    status: 204,
    statusText: 'No Content',
    headers: { ...NOT_STORED, 'set-cookie': noSessionCookie(call) },
    body: null,
  };
};

async function endAll(call: Call, sessions: Sessions): Promise<boolean> {
  let hasEnded = false;
  for (const value of sessionValuesOf(call)) if (await sessions.end(value)) hasEnded = true;
  return hasEnded;
}

const NOT_STORED: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  vary: 'Cookie',
  'x-content-type-options': 'nosniff',
};

function described(call: Call, app: App, cookie: string | null): Reply {
  const { principal, session } = call;
  const isSecured = app.security !== null;
  // While security is off everybody is the system user, whose name says nothing.
  const isKnown = isSecured && !isAnonymous(principal);
  const reply = jsonReply(call, {
    user: isKnown ? principal.name : null,
    groups: isKnown ? principal.roles : [],
    endsAt: session === null ? null : timestampText(session.endsMs, 0),
    security: isSecured,
    insecure: !isSecured,
    canLogOut: session !== null,
    encrypted: call.origin.startsWith('https:'),
    changesNeed: 'X-Requested-With',
    isOperator: isOperator(principal),
    isAdministrator: isAdministrator(principal),
    isBackupKeeper: isBackupKeeper(principal),
  } satisfies SessionDocument);
  return { ...reply, headers: { ...reply.headers, ...NOT_STORED, ...(cookie !== null && { 'set-cookie': cookie }) } };
}

function credentialsOf(body: unknown): { readonly name: string; readonly password: string } {
  const { user, password } = (typeof body === 'object' && body !== null ? body : {}) as Readonly<
    Record<string, unknown>
  >;
  if (typeof user !== 'string' || typeof password !== 'string')
    throw new SkuaError('bad_request', 'The body must be an object with user and password as strings.');
  return { name: user, password };
}
