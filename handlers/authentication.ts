import { SkuaError, isSkuaError } from '../core/errors.ts';
import { ANONYMOUS, SYSTEM } from '../core/security/principal.ts';
import type { Principal } from '../core/security/principal.ts';
import type { Security } from '../core/security/api.ts';
import { credentialsOf } from './credentials.ts';
import type { App, Call } from './context.ts';
import { trustedPrincipalOf } from './trusted-header.ts';

/** Characters of a user name that the log shows. */
const LOGGED_NAME_LENGTH_MAX = 64;

/** Answered before anyone looks at credentials: a probe must not fail because of a password that was changed. */
const PROBES: ReadonlySet<string> = new Set(['/health/live', '/health/ready']);

/**
 * Who is calling (options-and-security.md section 6.1): Basic credentials, else the caller whom the connection proves,
 * else the one whom a trusted proxy names, else the anonymous caller. Credentials that are there and wrong are refused
 * on every path. Errors: `not_authenticated`, `too_many_failures`, `not_ready`.
 */
export function authenticate(call: Call, app: App): Principal | Promise<Principal> {
  const { security } = app;
  if (security === null) return SYSTEM;
  if (call.path.startsWith('/health/') && PROBES.has(call.path)) return ANONYMOUS;
  const { headers } = call.request;
  const authorization = headers.get('authorization');
  if (authorization !== null) {
    const caller = loginOf(authorization, call, app, security);
    if (caller !== null) return caller;
  }
  return app.peerOf?.(call.request) ?? (app.options.enableTrustedAuth ? trustedPrincipalOf(headers) : null) ?? ANONYMOUS;
}

/** Null where the header holds no credentials of the kind that is understood. */
function loginOf(header: string, call: Call, app: App, security: Security): Principal | Promise<Principal> | null {
  const connection = app.connectionOf?.(call.request) ?? null;
  const last = connection === null ? undefined : app.logins.get(connection);
  if (last !== undefined && last.header === header && security.authenticator.stillKnows(last.principal, app.addressOf?.(call.request) ?? null)) return last.principal;
  const credentials = credentialsOf(header);
  if (credentials === null) return null;
  const caller = login(call, app, security, credentials.name, credentials.password);
  if (connection === null) return caller;
  const remember = (principal: Principal): Principal => {
    app.logins.set(connection, { header, principal });
    return principal;
  };
  return caller instanceof Promise ? caller.then(remember) : remember(caller);
}

function login(call: Call, app: App, security: Security, name: string, password: string): Principal | Promise<Principal> {
  const address = app.addressOf?.(call.request) ?? null;
  if (!app.options.logFailedAuthenticationAttempts) return security.authenticator.login(name, password, address);
  try {
    const caller = security.authenticator.login(name, password, address);
    if (!(caller instanceof Promise)) return caller;
    return caller.catch((error: unknown) => {
      throw noted(error, app, name, address);
    });
  } catch (error) {
    throw noted(error, app, name, address);
  }
}

/** One line for a failed attempt. A name is often a password that was typed into the wrong field, so it is cut. */
function noted(error: unknown, app: App, name: string, address: string | null): unknown {
  if (isSkuaError(error, 'not_authenticated') || isSkuaError(error, 'too_many_failures')) {
    app.log.warn('authentication failed', { user: name.slice(0, LOGGED_NAME_LENGTH_MAX).toWellFormed(), address, reason: (error as SkuaError).code });
  }
  return error;
}
