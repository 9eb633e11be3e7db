import { SkuaError } from '../../base/errors.ts';
import { STREAM_NAME_LENGTH_MAX } from '../../streams/api.ts';
import { checkWritableName, metastreamOf, utf8Length } from '../../streams/format/names.ts';

/**
 * What a user may be made of. Data of the reference database is read whatever it holds; only what we write is checked.
 */

export const USER_STREAM_PREFIX = '$user-';
/** UTF-16 code units: with its prefix the name must be a stream's, and so must that of its metadata. */
export const LOGIN_NAME_LENGTH_MAX = STREAM_NAME_LENGTH_MAX - metastreamOf(USER_STREAM_PREFIX).length;
/** UTF-16 code units. */
const FULL_NAME_LENGTH_MAX = 1_024;
const GROUPS_MAX = 100;
/** UTF-16 code units. */
const GROUP_LENGTH_MAX = 256;
/** UTF-8 bytes: a derivation reads the password several times. */
const PASSWORD_BYTES_MAX = 1_024;

export function invalidUser(message: string, data: Record<string, unknown> = {}): SkuaError {
  return new SkuaError('invalid_user', message, data);
}

export function checkLoginName(loginName: string): void {
  if (loginName === '') throw invalidUser('The login name is empty: give one.');
  if (loginName.includes(':'))
    throw invalidUser("A login name can't have a colon, which ends it in every Basic login: choose another.");
  if (loginName.length > LOGIN_NAME_LENGTH_MAX)
    throw invalidUser(`The login name has ${loginName.length} characters: give at most ${LOGIN_NAME_LENGTH_MAX}.`, {
      limit: LOGIN_NAME_LENGTH_MAX,
    });
  const refusal = checkWritableName(USER_STREAM_PREFIX + loginName);
  if (refusal !== null)
    throw invalidUser(
      'The login name has characters that are not allowed in stream names, such as control characters: remove them.',
    );
}

export function checkDetails(fullName: string | null, groups: readonly string[]): void {
  if (fullName !== null && (fullName.length > FULL_NAME_LENGTH_MAX || !fullName.isWellFormed())) {
    throw invalidUser(`The full name must be a string of at most ${FULL_NAME_LENGTH_MAX} characters.`, {
      limit: FULL_NAME_LENGTH_MAX,
    });
  }
  if (groups.length > GROUPS_MAX)
    throw invalidUser(`The user has ${groups.length} groups: give at most ${GROUPS_MAX}.`, { limit: GROUPS_MAX });
  for (const group of groups) {
    if (group === '' || group.length > GROUP_LENGTH_MAX || !group.isWellFormed()) {
      throw invalidUser(`A group name must be a string of 1 to ${GROUP_LENGTH_MAX} characters.`, {
        limit: GROUP_LENGTH_MAX,
      });
    }
  }
}

/** There are no rules but that it says something, and a length. */
export function checkPassword(password: string): void {
  if (isBlankPassword(password)) throw invalidUser('The password is empty or only white space: give one.');
  if (!password.isWellFormed()) throw invalidUser('The password is not valid Unicode: remove the lone surrogate.');
  if (!fitsPassword(password))
    throw invalidUser(`The password is longer than ${PASSWORD_BYTES_MAX} bytes: shorten it.`, {
      limit: PASSWORD_BYTES_MAX,
    });
}

/**
 * Whether a password is as good as the empty one: HMAC fills its keys up with zeros, so that what consists of U+0000
 * alone is derived to the same bytes as nothing at all.
 */
export function isEmptyPassword(password: string): boolean {
  return password === '' || (password.charCodeAt(0) === 0 && password.replaceAll('\0', '') === '');
}

/** Whether a password is one that no user may be given: empty, or of white space. */
export function isBlankPassword(password: string): boolean {
  return password.replaceAll('\0', '').trim() === '';
}

/** False for what is too long to be a password. */
export function fitsPassword(password: string): boolean {
  return password.length <= PASSWORD_BYTES_MAX && utf8Length(password) <= PASSWORD_BYTES_MAX;
}
