import { TOMBSTONE } from '../../core/log/records.ts';
import type { StreamMetadata } from '../../core/streams/api.ts';

/** Stream metadata read the obvious way (disk-format.md 6.2). Numbers beyond 2^53 are rounded, which only `$tb` can meet. */
export function modelMetadata(data: Uint8Array, isJson: boolean): StreamMetadata {
  if (!isJson || data.length === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(data));
  } catch {
    return {};
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  const given = value as Record<string, unknown>;
  for (const key of ['$maxCount', '$maxAge', '$tb', '$cacheControl']) if (given[key] !== undefined && !Number.isInteger(given[key])) return {};
  if (given['$tmp'] !== undefined && typeof given['$tmp'] !== 'boolean') return {};
  const acl = given['$acl'] === undefined ? undefined : modelAcl(given['$acl']);
  if (acl === null) return {};
  const positive = (key: string) => (given[key] !== undefined && Number(given[key]) > 0 ? { [plain(key)]: Number(given[key]) } : {});
  const tb = given['$tb'] === undefined || Number(given['$tb']) < 0 ? {} : { truncateBefore: Math.min(Number(given['$tb']), TOMBSTONE) };
  return { ...positive('$maxCount'), ...positive('$maxAge'), ...positive('$cacheControl'), ...tb, ...(given['$tmp'] === undefined ? {} : { temporary: given['$tmp'] as boolean }), ...(acl && { acl }) };
}

function plain(key: string): string {
  return key.slice(1);
}

const ACTIONS: Record<string, string> = { $r: 'read', $w: 'write', $d: 'delete', $mr: 'metadataRead', $mw: 'metadataWrite' };

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
