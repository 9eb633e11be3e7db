import { compactJson, jsonMembers } from '../json-scanner.ts';
import type { JsonMember } from '../json-scanner.ts';
import { TOMBSTONE } from '../log/records.ts';
import { decodeText, encodeText } from '../text.ts';
import type { AccessList, StreamMetadata } from './api.ts';

/** Stream metadata; disk-format.md section 6.2. */

export const NO_METADATA: StreamMetadata = {};
/** Every metastream has this, whatever anyone wrote. */
export const METASTREAM_METADATA: StreamMetadata = { maxCount: 1 };

const I64_MAX_TEXT = '9223372036854775807';
const I32_MAX = 2_147_483_647;
/** The keys that mean something, in the order in which they are written. */
const KEYS: readonly string[] = ['$maxCount', '$maxAge', '$tb', '$tmp', '$cacheControl', '$acl'];
const ACL_KEYS: Readonly<Record<string, keyof AccessList>> = { $r: 'read', $w: 'write', $d: 'delete', $mr: 'metadataRead', $mw: 'metadataWrite' };

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The plain soft delete: it replaces all previous metadata. */
export const SOFT_DELETE_JSON = encodeText(`{"$tb":${I64_MAX_TEXT}}`);

/**
 * Parses the data of the last event of a metastream. A known key of the wrong type makes the whole metadata empty; a
 * value out of range only drops its key. `recordVersion` is that of the prepare: version 0 has 32-bit event numbers.
 */
export function parseMetadata(data: Uint8Array, isJson: boolean, recordVersion: number): StreamMetadata {
  if (!isJson || data.length === 0) return NO_METADATA;
  const members = jsonMembers(decodeText(data));
  if (members === null) return NO_METADATA;
  const out: Mutable<StreamMetadata> = {};
  for (const member of members) if (!takeMember(member, recordVersion, out)) return NO_METADATA;
  return out;
}

/** False when the member has a type that its key does not allow. */
function takeMember(member: JsonMember, recordVersion: number, out: Mutable<StreamMetadata>): boolean {
  const { key, raw } = member;
  switch (key) {
    case '$maxCount': return takePositive(raw, 'maxCount', out);
    case '$maxAge': return takePositive(raw, 'maxAge', out);
    case '$cacheControl': return takePositive(raw, 'cacheControl', out);
    case '$tb': return takeTruncateBefore(raw, recordVersion, out);
    case '$tmp':
      if (raw !== 'true' && raw !== 'false') return false;
      out.temporary = raw === 'true';
      return true;
    case '$acl': {
      const acl = parseAccessList(raw);
      if (acl !== null) out.acl = acl;
      return acl !== null;
    }
    default: return true;
  }
}

/** True when the text is an integer of 64 bits with a sign. */
function isI64(raw: string): boolean {
  if (!/^-?\d+$/.test(raw)) return false;
  const digits = raw.startsWith('-') ? raw.slice(1) : raw;
  if (digits.length !== I64_MAX_TEXT.length) return digits.length < I64_MAX_TEXT.length;
  return digits <= I64_MAX_TEXT || raw === '-9223372036854775808';
}

function takePositive(raw: string, key: 'maxCount' | 'maxAge' | 'cacheControl', out: Mutable<StreamMetadata>): boolean {
  if (!isI64(raw)) return false;
  const value = Number(raw);
  if (value > 0) out[key] = value;
  else delete out[key];
  return true;
}

function takeTruncateBefore(raw: string, recordVersion: number, out: Mutable<StreamMetadata>): boolean {
  if (!isI64(raw)) return false;
  const value = Number(raw);
  if (raw === I64_MAX_TEXT || (recordVersion === 0 && value === I32_MAX)) out.truncateBefore = TOMBSTONE;
  else if (value >= 0) out.truncateBefore = Math.min(value, TOMBSTONE - 1);
  else delete out.truncateBefore;
  return true;
}

/** The access list in `raw`, null when it is none: other members than the five, or anything but texts in them. */
export function parseAccessList(raw: string): AccessList | null {
  const members = jsonMembers(raw);
  if (members === null) return null;
  const out: Mutable<AccessList> = {};
  for (const member of members) {
    const key = Object.hasOwn(ACL_KEYS, member.key) ? ACL_KEYS[member.key] : undefined;
    if (key === undefined) return null;
    const value: unknown = JSON.parse(member.raw);
    // As if it was not there; options-and-security.md section 8.2.
    if (value === null) continue;
    if (typeof value === 'string') out[key] = [value];
    else if (Array.isArray(value) && value.every((role) => typeof role === 'string')) out[key] = value;
    else return null;
  }
  return out;
}

/** The JSON text of metadata, as the reference writes it: compact, absent keys left out. */
export function formatMetadata(metadata: StreamMetadata): string {
  const parts: string[] = [];
  if (metadata.maxCount !== undefined) parts.push(`"$maxCount":${metadata.maxCount}`);
  if (metadata.maxAge !== undefined) parts.push(`"$maxAge":${metadata.maxAge}`);
  if (metadata.truncateBefore !== undefined) parts.push(`"$tb":${metadata.truncateBefore === TOMBSTONE ? I64_MAX_TEXT : metadata.truncateBefore}`);
  if (metadata.temporary !== undefined) parts.push(`"$tmp":${metadata.temporary}`);
  if (metadata.cacheControl !== undefined) parts.push(`"$cacheControl":${metadata.cacheControl}`);
  if (metadata.acl !== undefined) parts.push(`"$acl":${formatAccessList(metadata.acl)}`);
  return `{${parts.join(',')}}`;
}

/** One role is a plain text, none or several are an array. */
function formatAccessList(acl: AccessList): string {
  const parts: string[] = [];
  for (const [key, name] of Object.entries(ACL_KEYS)) {
    const roles = acl[name];
    if (roles !== undefined) parts.push(`"${key}":${JSON.stringify(roles.length === 1 ? roles[0] : roles)}`);
  }
  return `{${parts.join(',')}}`;
}

/**
 * The metadata of a soft-deleted stream that is written again: `$tb` becomes the first new event number, every other
 * member stays, the known ones first and in their order.
 */
export function withTruncateBefore(previous: Uint8Array, truncateBefore: number): Uint8Array {
  const last = new Map<string, string>();
  for (const member of jsonMembers(decodeText(previous)) ?? []) last.set(member.key, compactJson(member.raw));
  last.set('$tb', String(truncateBefore));
  const known = KEYS.filter((key) => last.has(key));
  const others = [...last.keys()].filter((key) => !KEYS.includes(key));
  return encodeText(`{${[...known, ...others].map((key) => `${JSON.stringify(key)}:${last.get(key)!}`).join(',')}}`);
}
