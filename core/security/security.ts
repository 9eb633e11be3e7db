import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import type { Keys } from '../ports/keys.ts';
import type { Log } from '../ports/log.ts';
import type { Meter } from '../ports/meter.ts';
import type { EventStore } from '../streams/api.ts';
import type { Security } from './api.ts';
import { PasswordAuthenticator } from './authenticator.ts';
import { createDefaultUsers, defaultUsers, haveDefaultPassword } from './default-users.ts';
import { Failures } from './failures.ts';
import { type PasswordFormat, Passwords } from './passwords.ts';
import { AccessLists } from './stream-access.ts';
import { UserManager } from './users.ts';
import { UserStreams } from './user-streams.ts';

export interface SecurityParts {
  readonly store: EventStore;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
}

export interface SecurityConfig {
  /** How new passwords are stored; both kinds are verified. */
  readonly passwordFormat: PasswordFormat;
  /** The anonymous caller counts as `$all` in access lists. */
  readonly allowAnonymousStreamAccess: boolean;
  /** Passwords that the default users get when they are created, and never again. */
  readonly adminPassword: string;
  readonly opsPassword: string;
}

export interface RunningSecurity extends Security {
  /**
   * Writes what a first start writes. Until it has resolved, credentials are answered `not_ready`. Call it again after an
   * error: it goes on where it was.
   */
  start(): Promise<void>;
  /** True while `admin` or `ops` can log in with the documented password, or `start` would give it to them. It derives, so ask once. */
  hasDefaultPasswords(): Promise<boolean>;
}

/** Users, logins and access lists over a store; options-and-security.md sections 6 to 8. */
export function createSecurity(parts: SecurityParts, config: SecurityConfig): RunningSecurity {
  const { store, ids, log, clock, keys, meter } = parts;
  const streams = new UserStreams(store, ids);
  const passwords = new Passwords(keys, meter, config.passwordFormat);
  const failures = new Failures(clock);
  const users = new UserManager({ streams, passwords, failures, log });
  const defaults = defaultUsers(config.adminPassword, config.opsPassword);
  const authenticator = new PasswordAuthenticator({ store, streams, passwords, failures, keys, clock, meter });
  return {
    authenticator,
    users,
    access: new AccessLists(store, log, config.allowAnonymousStreamAccess),
    async start() {
      await createDefaultUsers(store, streams, users, defaults, log);
      authenticator.open();
    },
    hasDefaultPasswords: () => haveDefaultPassword(store, streams, passwords, defaults),
  };
}
