import { SkuaError } from '../base/errors.ts';
import type { Log } from '../ports/log.ts';
import type { UnchangedStream } from '../streams/api.ts';
import type { NewUser, User, UserChange, Users } from './api.ts';
import type { Failures } from './login-failures.ts';
import { checkDetails, checkLoginName, checkPassword, isEmptyPassword } from './format/user.ts';
import { storedFormatOf } from './passwords.ts';
import type { Passwords, Secret } from './passwords.ts';
import { ADMINISTRATORS, isAdministrator } from '../base/principal.ts';
import { retryConflicts } from '../base/retry-conflicts.ts';
import type { StoredUser, UserRecord, UserStreams } from './user-streams.ts';

interface UserManagerParts {
  readonly streams: UserStreams;
  readonly passwords: Passwords;
  readonly failures: Failures;
  readonly log: Log;
  /** Takes in what other members have written; null where it just was. */
  readonly upToDate: (() => Promise<void> | null) | null;
}

/**
 * Users over their streams. Every change expects the record that it was made from, and is made anew when that has
 * changed.
 */
export class UserManager implements Users {
  readonly #streams: UserStreams;
  readonly #passwords: Passwords;
  readonly #failures: Failures;
  readonly #log: Log;
  readonly #upToDate: UserManagerParts['upToDate'];

  constructor({ streams, passwords, failures, log, upToDate }: UserManagerParts) {
    this.#streams = streams;
    this.#passwords = passwords;
    this.#failures = failures;
    this.#log = log;
    this.#upToDate = upToDate;
  }

  async list(): Promise<User[]> {
    const users: User[] = [];
    for (const name of await this.#streams.names()) {
      const stored = await this.#streams.read(name);
      if (stored !== null) users.push(userOf(stored));
    }
    return users.sort((a, b) => (a.loginName < b.loginName ? -1 : 1));
  }

  async get(loginName: string): Promise<User> {
    return userOf(await this.#read(loginName));
  }

  async #read(loginName: string): Promise<StoredUser> {
    let stored = await this.#streams.read(loginName);
    const looking = stored === null ? (this.#upToDate?.() ?? null) : null;
    if (looking !== null) {
      // The user may have been made elsewhere a moment ago.
      await looking;
      stored = await this.#streams.read(loginName);
    }
    if (stored === null)
      throw new SkuaError('user_not_found', `There is no user ${loginName}: check the login name.`, { loginName });
    return stored;
  }

  async create({ loginName, fullName, groups, password }: NewUser): Promise<void> {
    checkLoginName(loginName);
    checkDetails(fullName, groups);
    checkPassword(password);
    let secret: Secret | null = null;
    await retryConflicts(async () => {
      const info = await this.#streams.info(loginName);
      const stored = await this.#streams.read(loginName);
      if (stored !== null) return this.#expectSame(stored, password, groups);
      secret ??= await this.#passwords.create(password);
      await this.#streams.create({ loginName, fullName, ...secret, isDisabled: false, groups: [...groups] }, info);
    });
    // Also for a user that was there: the process that created it may have been cut off before this.
    await this.#streams.addName(loginName);
  }

  /** Else the caller would believe that the user is in groups that it is not in. */
  async #expectSame({ record }: StoredUser, password: string, groups: readonly string[]): Promise<void> {
    const { loginName } = record;
    const other = !(await this.#passwords.matches(record, password))
      ? 'another password'
      : hasSameMembers(record.groups, groups)
        ? null
        : 'other groups';
    if (other !== null)
      throw new SkuaError(
        'user_exists',
        `The user ${loginName} already exists, with ${other}: choose another login name, or change that user.`,
        { loginName },
      );
  }

  async update(loginName: string, { fullName, groups }: UserChange): Promise<void> {
    checkDetails(fullName ?? null, groups ?? []);
    const isChange = fullName !== undefined || groups !== undefined;
    await this.#change(loginName, (record) =>
      isChange
        ? {
            ...record,
            ...(fullName !== undefined && { fullName }),
            ...(groups !== undefined && { groups: [...groups] }),
          }
        : null,
    );
    if (isChange) await this.#notify(loginName);
  }

  async delete(loginName: string): Promise<void> {
    await retryConflicts(async () => {
      const { record, number } = await this.#read(loginName);
      await this.#streams.delete(loginName, number, await this.#unlessLast(record, null));
    });
    await this.#notify(loginName);
  }

  async enable(loginName: string): Promise<void> {
    await this.#change(loginName, (record) => (record.isDisabled ? { ...record, isDisabled: false } : null));
  }

  async disable(loginName: string): Promise<void> {
    await this.#change(loginName, (record) => (record.isDisabled ? null : { ...record, isDisabled: true }));
    await this.#notify(loginName);
  }

  async resetPassword(loginName: string, password: string): Promise<void> {
    checkPassword(password);
    let secret: Secret | null = null;
    await this.#change(loginName, async (record) => ({
      ...record,
      ...(secret ??= await this.#passwords.create(password)),
    }));
    await this.#notify(loginName);
  }

  async changePassword(
    loginName: string,
    currentPassword: string,
    newPassword: string,
    address: string | null = null,
    isLocal = false,
  ): Promise<void> {
    checkPassword(newPassword);
    let secret: Secret | null = null;
    await retryConflicts(async () => {
      if (!isLocal && isEmptyPassword(currentPassword)) throw wrongPassword(loginName);
      const stored = await this.#streams.read(loginName);
      // Nothing matches where there is no user, so that neither the answer nor its time shows which users there are.
      await this.#expectCurrent(loginName, stored?.record ?? null, currentPassword, address);
      secret ??= await this.#passwords.create(newPassword);
      await this.#streams.update({ ...stored!.record, ...secret }, stored!.number);
    });
    await this.#notify(loginName);
  }

  async #expectCurrent(
    loginName: string,
    record: UserRecord | null,
    password: string,
    address: string | null,
  ): Promise<void> {
    this.#failures.begin(loginName, address);
    let isFailure = false;
    try {
      isFailure = !(await this.#passwords.matches(record, password, this.#failures.callerOf(loginName, address)));
    } finally {
      this.#failures.end(loginName, address, isFailure);
    }
    if (!isFailure) return;
    await this.#failures.share(loginName, address);
    throw wrongPassword(loginName);
  }

  /** Replaces the record by what `build` makes of it; null for no change. */
  async #change(
    loginName: string,
    build: (record: UserRecord) => UserRecord | null | Promise<UserRecord | null>,
  ): Promise<void> {
    await retryConflicts(async () => {
      const { record, number } = await this.#read(loginName);
      const changed = await build(record);
      if (changed !== null) await this.#streams.update(changed, number, await this.#unlessLast(record, changed));
    });
  }

  /**
   * For a change after which a user is no administrator any more, or can't log in: the change is written only while
   * there is another administrator, found before. So of two administrators who remove each other at the same time one
   * remains.
   */
  async #unlessLast(before: UserRecord, after: UserRecord | null): Promise<readonly UnchangedStream[]> {
    if (!canAdminister(before) || (after !== null && canAdminister(after))) return [];
    const { loginName } = before;
    for (const name of await this.#streams.names()) {
      const other = name === loginName ? null : await this.#streams.read(name);
      const unchanged = other === null || !canAdminister(other.record) ? null : await this.#streams.unchanged(other);
      if (unchanged !== null) return [unchanged];
    }
    throw new SkuaError(
      'last_administrator',
      `${loginName} is the last administrator who can log in, and without one no one could manage users: create another administrator first, or add a user to ${ADMINISTRATORS}.`,
      { loginName },
    );
  }

  /**
   * The change is in force by now, and our own cache knows it by the stream: what fails here concerns other programs.
   */
  async #notify(loginName: string): Promise<void> {
    await this.#streams.notify(loginName).catch((error: unknown) => {
      this.#log.warn('the change of a user could not be announced in $users-password-notifications', {
        loginName,
        error: String(error),
      });
    });
  }
}

function canAdminister(record: UserRecord): boolean {
  return (
    !record.isDisabled &&
    storedFormatOf(record) !== 'unknown' &&
    isAdministrator({ name: record.loginName, roles: record.groups })
  );
}

function wrongPassword(loginName: string): SkuaError {
  return new SkuaError(
    'wrong_password',
    'The current password is wrong: check it, or have an administrator reset it.',
    { loginName },
  );
}

function hasSameMembers(a: readonly string[], b: readonly string[]): boolean {
  const left = new Set(a);
  return left.size === new Set(b).size && b.every((each) => left.has(each));
}

function userOf({ record, updatedMs, updatedTicks }: StoredUser): User {
  const { loginName, fullName, groups, isDisabled } = record;
  return { loginName, fullName, groups, isDisabled, passwordFormat: storedFormatOf(record), updatedMs, updatedTicks };
}
