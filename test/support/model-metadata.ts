import { TOMBSTONE } from '../../core/log/format/records.ts';
import type { StreamMetadata } from '../../core/streams/api.ts';

/** A list that lets in administrators only. */
const CLOSED = { read: [], write: [], delete: [], metadataRead: [], metadataWrite: [] };

/** The object that the bytes hold, null for anything else. */
function objectIn(data: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    return typeof value !== 'object' || value === null || Array.isArray(value)
      ? null
      : (value as Record<string, unknown>);
  } catch {
    return null;
  }
}

/** The key that makes metadata useless: of the wrong type, or a list that is none. Null for none. */
function oddKey(given: Record<string, unknown>): string | null {
  for (const key of ['$maxCount', '$maxAge', '$tb', '$cacheControl'])
    if (given[key] !== undefined && !Number.isInteger(given[key])) return key;
  if (given['$tmp'] !== undefined && typeof given['$tmp'] !== 'boolean') return '$tmp';
  return given['$acl'] !== undefined && modelAcl(given['$acl']) === null ? '$acl' : null;
}

/** Whether a store takes these bytes as metadata. */
export function isModelMetadata(data: Uint8Array, isJson: boolean): boolean {
  const given = isJson ? objectIn(data) : null;
  return given !== null && oddKey(given) === null;
}

/**
 * Stream metadata read the obvious way (lists that can't be understood shut the stream). Numbers beyond 2^53 are
 * rounded, which only `$tb` can meet.
 */
export function modelMetadata(data: Uint8Array, isJson: boolean): StreamMetadata {
  if (data.length === 0) return {};
  const given = objectIn(data);
  if (given === null) return { acl: CLOSED };
  const acl = given['$acl'] === undefined ? undefined : ((isJson ? modelAcl(given['$acl']) : null) ?? CLOSED);
  if (!isJson || oddKey(given) !== null) return acl === undefined ? {} : { acl };
  const positive = (key: string) =>
    given[key] !== undefined && Number(given[key]) > 0 ? { [plain(key)]: Number(given[key]) } : {};
  const tb =
    given['$tb'] === undefined || Number(given['$tb']) < 0
      ? {}
      : { truncateBefore: Math.min(Number(given['$tb']), TOMBSTONE) };
  return {
    ...positive('$maxCount'),
    ...positive('$maxAge'),
    ...positive('$cacheControl'),
    ...tb,
    ...(given['$tmp'] === undefined ? {} : { temporary: given['$tmp'] as boolean }),
    ...(acl && { acl }),
  };
}

function plain(key: string): string {
  return key.slice(1);
}

const ACTIONS: Record<string, string> = {
  $r: 'read',
  $w: 'write',
  $d: 'delete',
  $mr: 'metadataRead',
  $mw: 'metadataWrite',
};

function modelAcl(value: unknown): Record<string, string[]> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const acl: Record<string, string[]> = {};
  for (const [key, roles] of Object.entries(value)) {
    const action = ACTIONS[key];
    if (action === undefined) return null;
    if (roles === null) continue;
    const list: unknown[] = Array.isArray(roles) ? roles : [roles];
    if (list.some((role) => typeof role !== 'string')) return null;
    acl[action] = list as string[];
  }
  return acl;
}
