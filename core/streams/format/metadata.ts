import { SkuaError } from '../../base/errors.ts';
import { compactJson, jsonMembers } from '../../base/json-scanner.ts';
import type { JsonMember } from '../../base/json-scanner.ts';
import { TOMBSTONE } from '../../log/format/records.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import type { AccessList, NewEvent, StreamMetadata } from '../api.ts';
import { checkWritableName, isMetastream, originalOf, SETTINGS_STREAM } from './names.ts';

/** Stream metadata. */

export const NO_METADATA: StreamMetadata = {};
/** Every metastream has this, whatever was written to it. */
export const METASTREAM_METADATA: StreamMetadata = { maxCount: 1 };
/**
 * In place of an access list that can't be understood: it names no user and no group, so that it admits administrators
 * only, whom no list concerns. The identity of this object tells it from a list that is empty on purpose.
 */
export const UNREADABLE_LIST: AccessList = Object.freeze({
  read: [],
  write: [],
  delete: [],
  metadataRead: [],
  metadataWrite: [],
});
export const UNREADABLE_METADATA: StreamMetadata = Object.freeze({ acl: UNREADABLE_LIST });

const I64_MAX_TEXT = '9223372036854775807';
const I32_MAX = 2_147_483_647;
/** The keys that mean something, in the order in which they are written. */
const KEYS: readonly string[] = ['$maxCount', '$maxAge', '$tb', '$tmp', '$cacheControl', '$acl'];
const ACL_KEYS: Readonly<Record<string, keyof AccessList>> = {
  $r: 'read',
  $w: 'write',
  $d: 'delete',
  $mr: 'metadataRead',
  $mw: 'metadataWrite',
};

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The plain soft delete: it replaces all previous metadata. */
export const SOFT_DELETE_JSON = encodeText(`{"$tb":${I64_MAX_TEXT}}`);

/**
 * Parses the data of the last event of a metastream, from whichever writer it comes. As in the reference database, a
 * known key of the wrong type makes all but the access list empty, and a value out of range only drops its key. The
 * list is more careful than there: it counts whatever stands beside it, and where it can't be read, or may be in a text
 * that can't, UNREADABLE_LIST stands for it. `recordVersion` is that of the prepare: version 0 has 32-bit event
 * numbers.
 */
export function parseMetadata(data: Uint8Array, isJson: boolean, recordVersion: number): StreamMetadata {
  if (data.length === 0) return NO_METADATA;
  const members = jsonMembers(decodeText(data));
  if (members === null) return UNREADABLE_METADATA;
  const out: Mutable<StreamMetadata> = {};
  let acl: AccessList | undefined;
  let counts = isJson;
  for (const member of members) {
    if (member.key !== '$acl') {
      if (!takeMember(member, recordVersion, out)) counts = false;
      continue;
    }
    const list = isJson ? parseAccessList(member.raw) : null;
    if (list === null) counts = false;
    if (acl !== UNREADABLE_LIST) acl = list ?? UNREADABLE_LIST;
  }
  if (acl === undefined) return counts ? out : NO_METADATA;
  return counts ? { ...out, acl } : { acl };
}

/** What makes a text useless: the key, null for all of it, and what would be right. */
interface Oddity {
  readonly key: string | null;
  readonly mustBe: string;
}

/** What the value of a known key must be. */
const VALUES: Readonly<Record<string, string>> = {
  $maxCount: 'a whole number of events, such as 100',
  $maxAge: 'a whole number of seconds, such as 3600',
  $tb: 'a whole number, the number of the first event to keep',
  $cacheControl: 'a whole number of seconds, such as 10',
  $tmp: 'true or false',
};
/** Keys as they are sought without regard to case: what differs only by that was meant to be the key. */
const SPELLINGS: ReadonlyMap<string, string> = new Map(KEYS.map((key) => [key.toLowerCase(), key]));
const LISTS = 'an object with some of $r, $w, $d, $mr and $mw, each the name of a user or group, or an array of names';
const NAMES = 'the name of a user or group, or an array of names';

/**
 * Why events must not be appended to a stream whose last event says who may do what: metadata of streams, and
 * `$settings`. What is written there and not understood would open a door that was to be shut. Null for nothing, and
 * for all other streams. Errors: `invalid_metadata` (data: stream, key, mustBe), and those of names that nothing is
 * written to.
 */
export function checkMeaning(stream: string, events: readonly NewEvent[]): SkuaError | null {
  const isMeta = isMetastream(stream);
  if (!isMeta && stream !== SETTINGS_STREAM) return null;
  const refusal = checkWritableName(stream);
  if (refusal !== null) return refusal;
  for (const { data, isJson } of events) {
    const odd = isMeta ? oddityOfMetadata(data, isJson) : parseAccessDefaults(data).oddity;
    if (odd === null) continue;
    const where = isMeta ? `the metadata of ${originalOf(stream)}` : stream;
    const what = odd.key === null ? where.replace(/^the/, 'The') : `${odd.key} in ${where}`;
    return new SkuaError('invalid_metadata', `${what} must be ${odd.mustBe}.`, {
      stream,
      key: odd.key,
      mustBe: odd.mustBe,
    });
  }
  return null;
}

function oddityOfMetadata(data: Uint8Array, isJson: boolean): Oddity | null {
  const members = isJson ? jsonMembers(decodeText(data)) : null;
  if (members === null)
    return { key: null, mustBe: 'a JSON object sent as JSON, such as {"$maxCount": 100}, or {} for none' };
  const out: Mutable<StreamMetadata> = {};
  for (const member of members) {
    const { key, raw } = member;
    if (key === '$acl') {
      const odd = oddityOfList(key, raw);
      if (odd !== null) return odd;
    } else if (isMisspelt(key)) return { key, mustBe: `spelt ${meantBy(key)}` };
    else if (!takeMember(member, 1, out)) return { key, mustBe: VALUES[key]! };
  }
  return null;
}

/** Whether the key is a known one but for its case, as which it means nothing. */
function isMisspelt(key: string): boolean {
  return !KEYS.includes(key) && SPELLINGS.has(key.toLowerCase());
}

function meantBy(key: string): string {
  return SPELLINGS.get(key.toLowerCase())!;
}

/** What metadata contain and the store does not heed. */
export interface IgnoredMetadata {
  /** Null for the text as a whole. */
  readonly key: string | null;
  /** As it was written, cut off where it is long. */
  readonly value: string;
  readonly why: string;
}

/** Characters of a value that are shown. */
const SHOWN_CHARACTERS_MAX = 200;
/** Ignored keys that are named. */
const IGNORED_MAX = 100;

/**
 * What of metadata that are there already has no effect, and why, by the rules of `parseMetadata`: metadata that other
 * programs have written need not be such as may be written here. Empty where all that is meant to mean something does.
 */
export function ignoredMetadata(data: Uint8Array, recordVersion: number): readonly IgnoredMetadata[] {
  if (data.length === 0) return [];
  const text = decodeText(data);
  const members = jsonMembers(text);
  if (members === null)
    return [
      {
        key: null,
        value: shown(text),
        why: 'this is not a JSON object, so nothing is limited and only administrators have access',
      },
    ];
  const ignored: IgnoredMetadata[] = [];
  const heeded: JsonMember[] = [];
  let spoilt: string | null = null;
  for (const member of members) {
    const { key, raw } = member;
    const tell = (why: string) => ignored.push({ key, value: shown(raw), why });
    const out: Mutable<StreamMetadata> = {};
    if (isMisspelt(key)) tell(`unknown key: it must be spelt ${meantBy(key)}`);
    else if (key === '$acl') {
      const odd = oddityOfList(key, raw);
      if (odd === null) continue;
      tell(`${odd.key} must be ${odd.mustBe}; until then only administrators have access`);
      spoilt ??= key;
    } else if (!takeMember(member, recordVersion, out)) {
      tell(`it must be ${VALUES[key]!}`);
      spoilt ??= key;
    } else if (KEYS.includes(key)) {
      if (Object.keys(out).length > 0) heeded.push(member);
      else tell(key === '$tb' ? 'a number below 0 truncates nothing' : 'only numbers above 0 have an effect');
    }
  }
  // One value of the wrong type takes all the others with it, but for the access list.
  if (spoilt !== null)
    for (const { key, raw } of heeded)
      ignored.push({ key, value: shown(raw), why: `it is valid, but has no effect because ${spoilt} is invalid` });
  return ignored.slice(0, IGNORED_MAX);
}

function shown(text: string): string {
  return text.length <= SHOWN_CHARACTERS_MAX ? text : `${text.slice(0, SHOWN_CHARACTERS_MAX)}…`;
}

function oddityOfList(key: string, raw: string): Oddity | null {
  if (parseAccessList(raw) !== null) return null;
  for (const member of jsonMembers(raw) ?? []) {
    if (!Object.hasOwn(ACL_KEYS, member.key))
      return { key: `${key}.${member.key}`, mustBe: 'ignored: an access list has only $r, $w, $d, $mr and $mw' };
    if (rolesOf(member.raw) === undefined) return { key: `${key}.${member.key}`, mustBe: NAMES };
  }
  return { key, mustBe: LISTS };
}

/** What counts where a stream's own access list is silent; each may be silent itself. */
export interface AccessDefaults {
  readonly user: AccessList;
  readonly system: AccessList;
}

interface ParsedDefaults extends AccessDefaults {
  /** What can't be understood, in whose place UNREADABLE_LIST stands. */
  readonly oddity: Oddity | null;
}

/** The configured defaults in an event of `$settings`. */
export function parseAccessDefaults(data: Uint8Array): ParsedDefaults {
  const members = jsonMembers(decodeText(data));
  if (members === null)
    return {
      user: UNREADABLE_LIST,
      system: UNREADABLE_LIST,
      oddity: { key: null, mustBe: 'a JSON object with $userStreamAcl, $systemStreamAcl, or both' },
    };
  const lists: Record<string, AccessList> = { $userStreamAcl: {}, $systemStreamAcl: {} };
  let oddity: Oddity | null = null;
  for (const { key, raw } of members) {
    if (!Object.hasOwn(lists, key)) continue;
    oddity ??= oddityOfList(key, raw);
    if (lists[key] !== UNREADABLE_LIST) lists[key] = parseAccessList(raw) ?? UNREADABLE_LIST;
  }
  return { user: lists['$userStreamAcl']!, system: lists['$systemStreamAcl']!, oddity };
}

/** False when the member has a type that its key does not allow. */
function takeMember(member: JsonMember, recordVersion: number, out: Mutable<StreamMetadata>): boolean {
  const { key, raw } = member;
  switch (key) {
    case '$maxCount':
      return takePositive(raw, 'maxCount', out);
    case '$maxAge':
      return takePositive(raw, 'maxAge', out);
    case '$cacheControl':
      return takePositive(raw, 'cacheControl', out);
    case '$tb':
      return takeTruncateBefore(raw, recordVersion, out);
    case '$tmp':
      if (raw !== 'true' && raw !== 'false') return false;
      out.temporary = raw === 'true';
      return true;
    default:
      return true;
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
function parseAccessList(raw: string): AccessList | null {
  const members = jsonMembers(raw);
  if (members === null) return null;
  const out: Mutable<AccessList> = {};
  for (const member of members) {
    const key = Object.hasOwn(ACL_KEYS, member.key) ? ACL_KEYS[member.key] : undefined;
    const roles = rolesOf(member.raw);
    if (key === undefined || roles === undefined) return null;
    if (roles !== null) out[key] = roles;
  }
  return out;
}

/** Null counts as if the member was not there; undefined for what is no list. */
function rolesOf(raw: string): readonly string[] | null | undefined {
  const value: unknown = JSON.parse(raw);
  if (value === null) return null;
  if (typeof value === 'string') return [value];
  return Array.isArray(value) && value.every((role) => typeof role === 'string') ? value : undefined;
}

/** The JSON text of metadata, as the reference writes it: compact, absent keys left out. */
export function formatMetadata(metadata: StreamMetadata): string {
  const parts: string[] = [];
  if (metadata.maxCount !== undefined) parts.push(`"$maxCount":${metadata.maxCount}`);
  if (metadata.maxAge !== undefined) parts.push(`"$maxAge":${metadata.maxAge}`);
  if (metadata.truncateBefore !== undefined)
    parts.push(`"$tb":${metadata.truncateBefore === TOMBSTONE ? I64_MAX_TEXT : metadata.truncateBefore}`);
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
