import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import type { Ids } from '../../ports/ids.ts';
import type { KeyKind } from '../../ports/object-kinds.ts';

/** The keys of a log on object storage (core/shared-log/FORMAT.md, "Keys"). */

export const LOG_PREFIX = 'log/';
export const MANIFEST_PREFIX = 'manifest/';
export const FILES_PREFIX = 'files/';
export const PROBE_PREFIX = 'probe/';
/** Failed logins of the last minutes; shared-failures.ts. */
export const FAILURES_PREFIX = 'failures/';

const COMMIT_DIGITS = 20;
const MANIFEST_DIGITS = 15;
/** Manifest numbers end here: their keys count down from it, so that the newest one is the first in a list. */
const MANIFEST_NUMBER_MAX = 999_999_999_999_999;

/** Key of the commit with this number. Commit numbers begin with 1 and have no gaps. */
export function commitKey(number: number): string {
  return LOG_PREFIX + String(number).padStart(COMMIT_DIGITS, '0');
}

/** The number in a commit's key; null for any other key. */
export function commitNumberOf(key: string): number | null {
  return numberAfter(key, LOG_PREFIX, COMMIT_DIGITS);
}

export function manifestKey(number: number): string {
  return MANIFEST_PREFIX + String(MANIFEST_NUMBER_MAX - number).padStart(MANIFEST_DIGITS, '0');
}

/** The number in a manifest's key; null for any other key. */
export function manifestNumberOf(key: string): number | null {
  const left = numberAfter(key, MANIFEST_PREFIX, MANIFEST_DIGITS);
  return left === null ? null : MANIFEST_NUMBER_MAX - left;
}

/** Names by which objects are known for ours; what has another one below these prefixes is a stranger's. */
export const COMMITS: KeyKind = { prefix: LOG_PREFIX, rest: /^0{4}[0-8]\d{15}$/ };
export const MANIFESTS: KeyKind = { prefix: MANIFEST_PREFIX, rest: /^\d{15}$/ };
export const FILES: KeyKind = {
  prefix: FILES_PREFIX,
  rest: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
};
/** The minute, the pair, and the number of the failure. */
export const FAILURES: KeyKind = { prefix: FAILURES_PREFIX, rest: /^\d{1,10}\/[0-9a-f]{32}\/\d{1,4}$/ };

/** A key that no file ever had. */
export function newFileKey(ids: Ids): string {
  return FILES_PREFIX + newUuid(ids);
}

/** Text of a fresh UUID. */
export function newUuid(ids: Ids): string {
  return guidToText(guidFromUuidBytes(ids.uuidBytes()), 0);
}

function numberAfter(key: string, prefix: string, digits: number): number | null {
  if (!key.startsWith(prefix) || key.length !== prefix.length + digits) return null;
  const text = key.slice(prefix.length);
  const number = Number(text);
  return /^\d+$/.test(text) && Number.isSafeInteger(number) ? number : null;
}
