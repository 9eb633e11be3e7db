import type { Log } from '../ports/log.ts';
import type { EventStore } from '../streams/api.ts';
import type { NewUser, Users } from './api.ts';
import type { Passwords } from './passwords.ts';
import { ADMINISTRATORS, OPERATORS } from './principal.ts';
import { userStream, type UserStreams } from './user-streams.ts';

/** The documented password of the default users. */
export const DEFAULT_PASSWORD = 'changeit';

export function defaultUsers(adminPassword: string, opsPassword: string): NewUser[] {
  return [
    { loginName: 'admin', fullName: 'Skua Administrator', groups: [ADMINISTRATORS], password: adminPassword },
    { loginName: 'ops', fullName: 'Skua Operations', groups: [OPERATORS], password: opsPassword },
  ];
}

/** Creates the default users that never were; options-and-security.md section 7.3. One that was deleted stays deleted. */
export async function createDefaultUsers(store: EventStore, streams: UserStreams, users: Users, defaults: readonly NewUser[], log: Log): Promise<void> {
  for (const user of defaults) {
    const { loginName } = user;
    if (await streams.read(loginName) !== null) {
      // The node may have ended between the record and the list.
      await streams.addName(loginName).catch((error: unknown) => log.warn('a default user could not be listed in $users', { loginName, error: String(error) }));
    } else if ((await store.streamInfo(userStream(loginName))).lastEventNumber >= 0) {
      log.info('a default user was deleted and is not created again', { loginName });
    } else {
      await users.create(user);
      log.info('created a default user', { loginName });
    }
  }
}

/** True while a default user can log in with the documented password, or would be created with it. */
export async function haveDefaultPassword(store: EventStore, streams: UserStreams, passwords: Passwords, defaults: readonly NewUser[]): Promise<boolean> {
  for (const { loginName, password } of defaults) {
    const stored = await streams.read(loginName);
    if (stored === null) {
      if (password === DEFAULT_PASSWORD && (await store.streamInfo(userStream(loginName))).lastEventNumber < 0) return true;
    } else if (!stored.record.isDisabled && await passwords.matches(stored.record, DEFAULT_PASSWORD)) return true;
  }
  return false;
}
