import { isSkuaError } from '../../core/base/errors.ts';
import type { Security, Principal } from '../../core/security/api.ts';
import type { App } from './context.ts';

/** Characters of a user name that the log shows. */
const LOGGED_NAME_LENGTH_MAX = 64;

export interface Credentials {
  readonly name: string;
  readonly password: string;
}

/** Where credentials come from. */
export interface CredentialsOrigin {
  readonly address: string | null;
  /** From this machine, which is asked for only where it matters. */
  readonly isLocal: boolean;
}

/** Errors: as `Authenticator.login`. */
export function login(
  app: App,
  security: Security,
  { name, password }: Credentials,
  { address, isLocal }: CredentialsOrigin,
): Principal | Promise<Principal> {
  if (!app.options.logFailedAuthenticationAttempts)
    return security.authenticator.login(name, password, address, isLocal);
  try {
    const caller = security.authenticator.login(name, password, address, isLocal);
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
    app.world.log.warn('authentication failed', {
      user: name.slice(0, LOGGED_NAME_LENGTH_MAX).toWellFormed(),
      address,
      reason: error.code,
    });
  }
  return error;
}
