import type { Authorize, EventAccess, UnchangedStream } from '../streams/api.ts';
import type { StoredFormat } from './passwords.ts';
import type { Principal } from '../base/principal.ts';
export type { Licence, LicenceConfig } from './licence/licence.ts';
export type { PasswordFormat } from './passwords.ts';
export type { Principal } from '../base/principal.ts';
export type { SealedSecrets } from './sealed-secrets/sealed-secrets.ts';
export type { SessionSecrets } from './session-keys.ts';

/** What the security of a node offers to handlers. */

export interface Security {
  readonly authenticator: Authenticator;
  readonly access: StreamAccess;
  readonly users: Users;
  /** Of the page for browsers; null, or left out, where there is none, as in functions. */
  readonly sessions?: Sessions | null;
  /**
   * Whether `admin` or `ops` has the documented password or an empty one, or will be created so. At once where that was
   * found out before and neither has changed since. Left out where that is not known, which must be taken for yes.
   */
  hasDefaultPasswords?(): boolean | Promise<boolean>;
}

export interface Authenticator {
  /**
   * The user with this name and password; at once where that was verified a short time ago and the user has not changed
   * since. `address` is where the caller comes from, as far as it is known: by it failures are counted, and logins that
   * wait take turns. Where the user has logged in before, failures lock out later than elsewhere. An empty password
   * admits no user unless `isLocal`: the caller sits at this machine, and is no proxy that passes on what others send.
   * Errors: `not_authenticated` (unknown, disabled, or another password), `too_many_failures` (data:
   * retryAfterSeconds), `not_ready` (the users can't be read yet), `too_busy` (too many passwords wait; data:
   * retryAfterSeconds).
   */
  login(name: string, password: string, address: string | null, isLocal?: boolean): Principal | Promise<Principal>;
  /**
   * Whether a principal that `login` has given out would be given out again for the same credentials, without looking
   * at them: its user has not changed, and the login is remembered still. Failures of others at `address` change
   * nothing about that, but that it is remembered for longer.
   */
  stillKnows(principal: Principal, address: string | null): boolean;
  /**
   * Whether the user of a principal that `login`, or a session, has given out has changed since, or the session has
   * ended; false for every other principal.
   */
  hasChanged?(principal: Principal): boolean | Promise<boolean>;
  /** Whether a principal is a user that `login`, or a session, has given out; false for one that is known otherwise. */
  isUser?(principal: Principal): boolean;
  /**
   * The user of this name as stored now, for what another member sends to be written in that user's name; null where
   * there is no such user, or a disabled one. At once where that is known. Errors: `not_ready`.
   */
  userNow?(name: string): UserNow | null | Promise<UserNow | null>;
}

/** A user, as long as the user's stream has not been written to since. */
export interface UserNow {
  readonly principal: Principal;
  readonly unchanged: UnchangedStream;
}

/**
 * Sessions of users: a text that the node has signed stands for a login, until it ends, its user changes, or logs out.
 */
export interface Sessions {
  /**
   * Begins a session of a user whom `login` has given out. Errors: `not_authenticated` where the user has changed
   * since, those of an append for the key that the first session of a day needs.
   */
  begin(principal: Principal): Promise<BegunSession>;
  /**
   * The session that a text stands for; null for one that was forged, has ended, or does not count any more. At once
   * where it was verified before and nothing has changed since.
   */
  find(value: string): Session | null | Promise<Session | null>;
  /** Ends a session, here and at all members. False where there was none. Errors: as an append. */
  end(value: string): Promise<boolean>;
  /**
   * The user of a session that another member has verified, as the user is here; null where the user is another by now.
   */
  resume(proof: SessionProof): Promise<Principal | null>;
}

export interface Session {
  /** The user, with the groups of now. */
  readonly principal: Principal;
  /** UTC milliseconds. */
  readonly endsMs: number;
  /** What a member sends another of the session. */
  readonly proof: SessionProof;
}

export interface BegunSession extends Session {
  /** Letters, digits, `-`, `_` and dots. */
  readonly value: string;
}

/** Whose session it is, and where the user's stream ended when it was begun. */
export interface SessionProof {
  readonly user: string;
  readonly lastEventNumber: number;
  readonly metadataVersion: number;
}

/** `$r`, `$w`, `$d`, `$mr`, `$mw`. */
export type StreamAction = 'read' | 'write' | 'delete' | 'metadataRead' | 'metadataWrite';

/**
 * Who may do what with a stream. For a metadata stream (`$$x`) reading and writing are the metadata actions of its
 * stream, and deleting is refused. Refusals are `not_authenticated` for the anonymous caller and `access_denied` for
 * everyone else.
 */
export interface StreamAccess {
  /** False where the anonymous caller may do nothing with any stream, whatever its list says. */
  readonly allowsAnonymous: boolean;
  /** Throws, or rejects, unless the action is allowed. Returns nothing to wait for where that is known at once. */
  check(principal: Principal, action: StreamAction, stream: string): void | Promise<void>;
  /**
   * Which events of all streams the caller may read, each by the list of its stream; null where that is all of them.
   * Throws where nothing could allow it to read any.
   */
  readerOf(principal: Principal): EventAccess | null;
  /**
   * For writes, which are decided when they take their place in the log: what to hand to the store; null where the
   * caller may write whatever the access list says. Throws where nothing could allow it.
   */
  authorizeWrite(
    principal: Principal,
    action: 'write' | 'delete',
    stream: string,
  ): Authorize | null | Promise<Authorize | null>;
}

export interface User {
  readonly loginName: string;
  readonly fullName: string | null;
  readonly groups: readonly string[];
  readonly isDisabled: boolean;
  /** How the password is stored; for administrators only. */
  readonly passwordFormat: StoredFormat;
  /** When the record was last written; UTC milliseconds. */
  readonly updatedMs: number;
  /** 100 ns units (0 to 9999) beyond. */
  readonly updatedTicks?: number;
}

export interface NewUser {
  readonly loginName: string;
  readonly fullName: string | null;
  readonly groups: readonly string[];
  readonly password: string;
}

/** What is to be other than it is. */
export interface UserChange {
  readonly fullName?: string | null;
  readonly groups?: readonly string[];
}

/**
 * Users, kept in `$user-...` streams. A change that would leave no user who can log in as an administrator is refused
 * (`last_administrator`), also where two such changes come at once, here or by different processes.
 */
export interface Users {
  /** In the order of their names, as the reference database lists them; deleted ones left out. */
  list(): Promise<User[]>;
  /** Errors: `user_not_found`. */
  get(loginName: string): Promise<User>;
  /**
   * Creating a user again with the stored password and groups changes nothing. Errors: `invalid_user`, `user_exists`
   * (with others).
   */
  create(user: NewUser): Promise<void>;
  /** What the change leaves out stays as it is. Errors: `invalid_user`, `user_not_found`, `last_administrator`. */
  update(loginName: string, change: UserChange): Promise<void>;
  /** Errors: `user_not_found`, `last_administrator`. */
  delete(loginName: string): Promise<void>;
  enable(loginName: string): Promise<void>;
  /** Errors: `user_not_found`, `last_administrator`. */
  disable(loginName: string): Promise<void>;
  /** Errors: `user_not_found`, `invalid_user`. */
  resetPassword(loginName: string, password: string): Promise<void>;
  /**
   * `address` and `isLocal` as for a login, whose failures these are too. Errors: `invalid_user`, `wrong_password`
   * (also where there is no such user), `too_many_failures`.
   */
  changePassword(
    loginName: string,
    currentPassword: string,
    newPassword: string,
    address?: string | null,
    isLocal?: boolean,
  ): Promise<void>;
}
