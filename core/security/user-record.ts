import { decodeText, encodeText } from '../text.ts';
import type { Secret } from './passwords.ts';

/** The last event of `$user-<login>`; options-and-security.md section 7.1. */
export interface UserRecord extends Secret {
  readonly loginName: string;
  readonly fullName: string | null;
  readonly isDisabled: boolean;
  readonly groups: readonly string[];
}

/** The JSON of a record as the reference database writes it: members in this order, indented, nothing that is null or false. */
export function formatUserRecord(record: UserRecord): Uint8Array {
  const { loginName, fullName, salt, hash, isDisabled, groups } = record;
  return formatJson({ loginName, ...(fullName !== null && { fullName }), salt, hash, ...(isDisabled && { disabled: true }), groups });
}

/** JSON as the reference database indents it. */
export function formatJson(value: object): Uint8Array {
  return encodeText(JSON.stringify(value, null, 2));
}

/** Null when the data is no record of a user. A record without a password is one that nobody can log in with. */
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
    // What we don't understand lets nobody in.
    isDisabled: disabled !== undefined && disabled !== null && disabled !== false,
    groups: Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : [],
  };
}
