import { isSkuaError } from '../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../base/guid.ts';
import { retryConflicts } from '../base/retry-conflicts.ts';
import type { Ids } from '../ports/ids.ts';
import { ANY, PAGE_EVENTS_MAX, streamChanged, unlessChanged } from '../streams/api.ts';
import type { EventStore, NewEvent, StoredEvent, StreamInfo, StreamMetadata, UnchangedStream } from '../streams/api.ts';
import { formatMetadata } from '../streams/format/metadata.ts';
import { METADATA_TYPE, metastreamOf } from '../streams/format/names.ts';
import { decodeText, encodeText } from '../base/text.ts';
import { invalidUser, LOGIN_NAME_LENGTH_MAX, USER_STREAM_PREFIX } from './format/user.ts';
import type { Secret } from './passwords.ts';
import { ADMINISTRATORS } from '../base/principal.ts';

/** The streams that users are kept in, as the reference database has them (core/security/README.md, "Formats"). */

const NAMES_STREAM = '$users';
const NOTIFICATIONS_STREAM = '$users-password-notifications';
const NOTIFICATIONS_METADATA: StreamMetadata = { maxAge: 3_600 };
const ACCESS = { write: [ADMINISTRATORS], delete: [ADMINISTRATORS], metadataWrite: [ADMINISTRATORS] };
const NO_BYTES = new Uint8Array(0);

/** A record and where it stands. */
export interface StoredUser {
  readonly record: UserRecord;
  /** Event number, which a change of the record expects. */
  readonly number: number;
  readonly updatedMs: number;
  readonly updatedTicks: number;
}

export function userStream(loginName: string): string {
  return USER_STREAM_PREFIX + loginName;
}

export class UserStreams {
  readonly #store: EventStore;
  readonly #ids: Ids;

  constructor(store: EventStore, ids: Ids) {
    this.#store = store;
    this.#ids = ids;
  }

  /** The user's record; null when there is none, the user was deleted, or the name is no user's. */
  async read(loginName: string): Promise<StoredUser | null> {
    if (loginName.length > LOGIN_NAME_LENGTH_MAX) return null;
    const event = await this.#last(userStream(loginName));
    const record = event === null ? null : parseUserRecord(loginName, event.data);
    return event === null || record === null
      ? null
      : { record, number: event.number, updatedMs: event.createdMs, updatedTicks: event.createdTicks };
  }

  info(loginName: string): Promise<StreamInfo> {
    return this.#store.streamInfo(userStream(loginName));
  }

  async #last(stream: string): Promise<StoredEvent | null> {
    try {
      return await this.#store.readEvent(stream, 'last');
    } catch (error) {
      if (isSkuaError(error) && ABSENT.has(error.code)) return null;
      throw error;
    }
  }

  /**
   * Writes the first record of a user that `read` does not find: access list first, then the record, each with the
   * version that was found, so that of two at once one meets a conflict. After a crash between the two it goes on with
   * the second. What a deleted user of that name left is hidden before the access list brings the stream back: else the
   * old record would count until the new one is there. `info` is what the stream was before `read` did not find the
   * user: one found later may hold the record that another process has written since, which would be hidden.
   */
  async create(record: UserRecord, info: StreamInfo): Promise<void> {
    const stream = userStream(record.loginName);
    if (info.isTombstoned)
      throw invalidUser(`The stream of the user ${record.loginName} was hard-deleted: choose another login name.`, {
        loginName: record.loginName,
      });
    const last = info.lastEventNumber;
    const metadata = formatMetadata({ ...(last >= 0 && { truncateBefore: last + 1 }), acl: ACCESS });
    if (formatMetadata(info.metadata) !== metadata) await this.#writeMetadata(stream, info.metadataVersion, metadata);
    await this.#store.append(stream, last, [this.#event('$UserCreated', true, formatUserRecord(record))]);
  }

  /**
   * Errors: `wrong_expected_version` when the record is no longer the one that was read, also where it was deleted
   * since: a soft delete leaves the number of the last event as it is, and the write would bring the user back.
   */
  async update(record: UserRecord, expected: number, others: readonly UnchangedStream[] = []): Promise<void> {
    const stream = userStream(record.loginName);
    const own = await this.unchanged({ record, number: expected });
    if (own === null) throw streamChanged(stream, expected, expected);
    await this.#store.append(
      stream,
      expected,
      [this.#event('$UserUpdated', true, formatUserRecord(record))],
      unlessChanged([own, ...others]),
    );
  }

  async delete(loginName: string, expected: number, others: readonly UnchangedStream[] = []): Promise<void> {
    await this.#store.deleteStream(
      userStream(loginName),
      expected,
      'soft',
      others.length === 0 ? undefined : unlessChanged(others),
    );
  }

  /**
   * Where the stream of a user ends whose record is still the one that was read; null where that has changed already.
   */
  async unchanged({
    record: { loginName },
    number,
  }: Pick<StoredUser, 'record' | 'number'>): Promise<UnchangedStream | null> {
    const stream = userStream(loginName);
    const { lastEventNumber, metadataVersion } = await this.#store.streamInfo(stream);
    // The record was read before: nothing may have hidden it since.
    return lastEventNumber !== number || (await this.read(loginName))?.number !== number
      ? null
      : { stream, lastEventNumber, metadataVersion };
  }

  /** Login names in the order of their first creation, those of deleted users included. */
  async names(): Promise<Set<string>> {
    return (await this.#readNames()).names;
  }

  async #readNames(): Promise<{ names: Set<string>; last: number }> {
    const names = new Set<string>();
    let last = -1;
    try {
      for (let from = 0, isEnd = false; !isEnd;) {
        const page = await this.#store.readStream(NAMES_STREAM, { direction: 'forward', from, count: PAGE_EVENTS_MAX });
        for (const event of page.events) names.add(decodeText(event.data));
        ({ isEnd, nextEventNumber: from, lastEventNumber: last } = page);
      }
    } catch (error) {
      if (!isSkuaError(error) || !ABSENT.has(error.code)) throw error;
      last = (await this.#store.streamInfo(NAMES_STREAM)).lastEventNumber;
    }
    return { names, last };
  }

  /** Makes sure that the name is listed. */
  async addName(loginName: string): Promise<void> {
    await retryConflicts(async (isLast) => {
      const { names, last } = await this.#readNames();
      if (names.has(loginName)) return;
      // A name listed twice does no harm, one that is not listed does.
      const expected = isLast ? ANY : last;
      await this.#store.append(NAMES_STREAM, expected, [this.#event('$User', false, encodeText(loginName))]);
    });
  }

  /** Makes nodes of the reference database, which poll for this, forget what they have verified. */
  async notify(loginName: string): Promise<void> {
    const info = await this.#store.streamInfo(NOTIFICATIONS_STREAM);
    if (info.metadataVersion < 0) {
      await this.#writeMetadata(
        NOTIFICATIONS_STREAM,
        info.metadataVersion,
        formatMetadata(NOTIFICATIONS_METADATA),
      ).catch((error: unknown) => {
        if (!isSkuaError(error, 'wrong_expected_version')) throw error;
      });
    }
    await this.#store.append(NOTIFICATIONS_STREAM, ANY, [
      this.#event('$PasswordChanged', true, formatJson({ loginName })),
    ]);
  }

  async #writeMetadata(stream: string, expected: number, json: string): Promise<void> {
    await this.#store.append(metastreamOf(stream), expected, [this.#event(METADATA_TYPE, true, encodeText(json))]);
  }

  #event(type: string, isJson: boolean, data: Uint8Array): NewEvent {
    return { id: guidToText(guidFromUuidBytes(this.#ids.uuidBytes()), 0), type, isJson, data, metadata: NO_BYTES };
  }
}

const ABSENT: ReadonlySet<string> = new Set([
  'stream_not_found',
  'stream_deleted',
  'event_not_found',
  'invalid_stream_name',
]);

/** The last event of `$user-<login>`. */
export interface UserRecord extends Secret {
  readonly loginName: string;
  readonly fullName: string | null;
  readonly isDisabled: boolean;
  readonly groups: readonly string[];
}

/**
 * The JSON of a record as the reference database writes it: members in this order, indented, nothing that is null or
 * false.
 */
export function formatUserRecord(record: UserRecord): Uint8Array {
  const { loginName, fullName, salt, hash, isDisabled, groups } = record;
  return formatJson({
    loginName,
    ...(fullName !== null && { fullName }),
    salt,
    hash,
    ...(isDisabled && { disabled: true }),
    groups,
  });
}

/** JSON as the reference database indents it. */
function formatJson(value: object): Uint8Array {
  return encodeText(JSON.stringify(value, null, 2));
}

/** Null when the data is no record of a user. No user can log in with a record without a password. */
export function parseUserRecord(loginName: string, data: Uint8Array): UserRecord | null {
  let value: unknown;
  try {
    value = JSON.parse(decodeText(data));
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const { fullName, salt, hash, disabled, groups } = value as Record<string, unknown>;
  return {
    loginName,
    fullName: typeof fullName === 'string' ? fullName : null,
    salt: typeof salt === 'string' ? salt : '',
    hash: typeof hash === 'string' ? hash : '',
    // What is not understood admits no user.
    isDisabled: disabled !== undefined && disabled !== null && disabled !== false,
    groups: Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : [],
  };
}
