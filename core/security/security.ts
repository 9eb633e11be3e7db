import type { Clock } from '../ports/clock.ts';
import type { Ids } from '../ports/ids.ts';
import type { Keys } from '../ports/keys.ts';
import type { Log } from '../ports/log.ts';
import type { Meter } from '../ports/meter.ts';
import type { SharedFailures } from '../ports/shared-failures.ts';
import type { EventStore } from '../streams/api.ts';
import type { NewUser, Security, Users } from './api.ts';
import { PasswordAuthenticator } from './authenticator.ts';
import { Failures } from './login-failures.ts';
import { isBlankPassword } from './format/user.ts';
import { Passwords, storedFormatOf } from './passwords.ts';
import type { PasswordFormat } from './passwords.ts';
import { ADMINISTRATORS, OPERATORS } from '../base/principal.ts';
import { SessionEnds } from './session-ends.ts';
import { SessionKeys } from './session-keys.ts';
import type { SessionSecrets } from './session-keys.ts';
import { UserSessions } from './sessions.ts';
import { AccessLists } from './stream-access/stream-access.ts';
import { infoNow, isUnchanged } from './stream-info.ts';
import type { ObservableStore, StreamMark } from './stream-info.ts';
import { userStream, UserStreams } from './user-streams.ts';
import { UserManager } from './user-accounts.ts';

interface SecurityParts {
  readonly store: EventStore;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
  /** Where several processes answer for the same users and know of each other by nothing else. */
  readonly sharedFailures?: SharedFailures;
  /**
   * Takes in what other processes have written to the store, before a caller is refused; null, the function or its
   * result, where the store knows already.
   */
  readonly upToDate?: (() => Promise<void> | null) | null;
  /** Null, or left out, where no sessions begin. */
  readonly sessions?: SessionsParts | null;
}

/** What sessions need beside what all of security does. */
export interface SessionsParts {
  /** Of which their keys are made; asked for when a session is begun, or one comes that may have been. */
  readonly secrets: SessionSecrets;
  /** What the node writes for itself, where that takes another way. */
  readonly written?: Pick<EventStore, 'append'>;
}

export interface SecurityConfig {
  /** How new passwords are stored; both kinds are verified. */
  readonly passwordFormat: PasswordFormat;
  /** The anonymous caller counts as `$all` in access lists. */
  readonly allowAnonymousStreamAccess: boolean;
  /**
   * Passwords that the default users get when they are created, and never again; asked for then, where they have to be
   * fetched.
   */
  readonly adminPassword: FirstPassword;
  readonly opsPassword: FirstPassword;
}

type FirstPassword = string | (() => Promise<string>);

export interface RunningSecurity extends Security {
  /**
   * Writes what a first start writes. Until it has resolved, credentials are answered `not_ready`. Call it again after
   * an error: it goes on where it was.
   */
  start(): Promise<void>;
  hasDefaultPasswords(): boolean | Promise<boolean>;
  /** True where `admin` or `ops` has a password of the format that the reference database reads too. */
  hasCompatiblePasswords(): Promise<boolean>;
}

/** Users, logins and access lists over a store. */
export function createSecurity(parts: SecurityParts, config: SecurityConfig): RunningSecurity {
  const { store, ids, log, clock, keys, meter } = parts;
  const streams = new UserStreams(store, ids);
  const passwords = new Passwords(keys, meter, config.passwordFormat);
  const failures = new Failures(clock, parts.sharedFailures ?? null);
  const users = new UserManager({ streams, passwords, failures, log, upToDate: parts.upToDate ?? null });
  const defaults = defaultUsers(config.adminPassword, config.opsPassword);
  const known = new DefaultPasswords(store, () => haveDefaultPassword(store, streams, passwords, defaults));
  const authenticator = new PasswordAuthenticator({
    store,
    streams,
    passwords,
    failures,
    keys,
    clock,
    log,
    meter,
    upToDate: parts.upToDate ?? null,
  });
  const sessions =
    parts.sessions == null
      ? null
      : new UserSessions({
          store,
          streams,
          keys,
          clock,
          authenticator,
          upToDate: parts.upToDate ?? null,
          log,
          sessionKeys: new SessionKeys(keys, parts.sessions.secrets),
          ends: new SessionEnds({ store, clock, ids, written: parts.sessions.written ?? store }),
        });
  return {
    authenticator:
      sessions === null
        ? authenticator
        : {
            login: (name, password, address, isLocal) => authenticator.login(name, password, address, isLocal),
            stillKnows: (principal, address) => authenticator.stillKnows(principal, address),
            hasChanged: (principal) => sessions.hasEnded(principal) ?? authenticator.hasChanged(principal),
            isUser: (principal) => authenticator.isUser(principal) || sessions.isUser(principal),
            userNow: (name) => authenticator.userNow(name),
          },
    sessions,
    users,
    access: new AccessLists({ store, clock, log, meter, allowAnonymous: config.allowAnonymousStreamAccess }),
    async start() {
      await createDefaultUsers({ store, streams, users, log }, defaults, config.passwordFormat);
      authenticator.open();
    },
    hasDefaultPasswords: () => known.stand(),
    async hasCompatiblePasswords() {
      for (const { loginName } of defaults) {
        const stored = await streams.read(loginName);
        if (stored !== null && storedFormatOf(stored.record) === 'compatible') return true;
      }
      return false;
    },
  };
}

/** The documented password of the default users. */
export const DEFAULT_PASSWORD = 'changeit';

interface DefaultUser extends Omit<NewUser, 'password'> {
  readonly password: FirstPassword;
}

function firstPassword({ password }: DefaultUser): string | Promise<string> {
  return typeof password === 'string' ? password : password();
}

const DEFAULT_STREAMS = ['admin', 'ops'].map(userStream);

function defaultUsers(adminPassword: FirstPassword, opsPassword: FirstPassword): DefaultUser[] {
  return [
    { loginName: 'admin', fullName: 'Skua Administrator', groups: [ADMINISTRATORS], password: adminPassword },
    { loginName: 'ops', fullName: 'Skua Operations', groups: [OPERATORS], password: opsPassword },
  ];
}

interface DefaultUserParts {
  readonly store: EventStore;
  readonly streams: UserStreams;
  readonly users: Users;
  readonly log: Log;
}

/** Creates the default users that never were. One that was deleted stays deleted. */
async function createDefaultUsers(
  { store, streams, users, log }: DefaultUserParts,
  defaults: readonly DefaultUser[],
  passwordFormat: PasswordFormat,
): Promise<void> {
  for (const user of defaults) {
    const { loginName } = user;
    if ((await streams.read(loginName)) !== null) {
      // The node may have ended between the record and the list.
      await streams
        .addName(loginName)
        .catch((error: unknown) =>
          log.warn('a default user could not be listed in $users', { loginName, error: String(error) }),
        );
    } else if ((await store.streamInfo(userStream(loginName))).lastEventNumber >= 0) {
      log.info('a default user was deleted and is not created again', { loginName });
    } else {
      await users.create({ ...user, password: await firstPassword(user) });
      log.info('created a default user', { loginName, passwordFormat });
    }
  }
}

/**
 * Remembers whether a default user has a known password until one of them is written to: finding out takes derivations.
 */
class DefaultPasswords {
  readonly #store: ObservableStore;
  readonly #find: () => Promise<boolean>;
  #found: { readonly marks: readonly StreamMark[]; readonly stands: boolean } | null = null;
  #finding: Promise<boolean> | null = null;

  constructor(store: ObservableStore, find: () => Promise<boolean>) {
    this.#store = store;
    this.#find = find;
  }

  stand(): boolean | Promise<boolean> {
    if (
      this.#found?.marks.every((mark, i) => isKnownUnchanged(mark, infoNow(this.#store, DEFAULT_STREAMS[i]!))) === true
    )
      return this.#found.stands;
    return (this.#finding ??= this.#look().finally(() => {
      this.#finding = null;
    }));
  }

  async #look(): Promise<boolean> {
    // Taken first: what is written meanwhile is looked at next time.
    const marks = await Promise.all(DEFAULT_STREAMS.map((stream) => this.#store.streamInfo(stream)));
    if (this.#found?.marks.every((mark, i) => isUnchanged(mark, marks[i]!)) === true) return this.#found.stands;
    const stands = await this.#find();
    this.#found = { marks, stands };
    return stands;
  }
}

function isKnownUnchanged(mark: StreamMark, info: StreamMark | null): boolean {
  return info !== null && isUnchanged(mark, info);
}

/** True while a default user has the documented password, or none, or would be created so. */
async function haveDefaultPassword(
  store: EventStore,
  streams: UserStreams,
  passwords: Passwords,
  defaults: readonly DefaultUser[],
): Promise<boolean> {
  for (const user of defaults) {
    const { loginName } = user;
    const stored = await streams.read(loginName);
    if (stored === null) {
      const first = await firstPassword(user);
      if (
        (first === DEFAULT_PASSWORD || isBlankPassword(first)) &&
        (await store.streamInfo(userStream(loginName))).lastEventNumber < 0
      )
        return true;
    } else if (
      !stored.record.isDisabled &&
      ((await passwords.matches(stored.record, DEFAULT_PASSWORD)) || (await passwords.matches(stored.record, '')))
    )
      return true;
  }
  return false;
}
