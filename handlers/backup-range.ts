import { SkuaError } from '../core/errors.ts';
import { queryOf } from './context.ts';
import type { Call } from './context.ts';

export interface ByteRange {
  readonly from: number;
  readonly length: number;
  /** Asked for by the header, so that the answer is 206. */
  readonly isPartial: boolean;
}

/**
 * The part of a file that is asked for: by `from` and `length` in the query, else by a `Range` of one part, else all of it. Null
 * where the file has nothing of it. Other forms of `Range` are ignored, as RFC 9110 section 14.2 allows. Errors: `bad_request`.
 */
export function rangeOf(call: Call, sizeBytes: number): ByteRange | null {
  const from = numberOf(call, 'from');
  const length = numberOf(call, 'length');
  if (from !== null || length !== null) {
    const start = from ?? 0;
    if (start > sizeBytes) return null;
    return { from: start, length: Math.min(length ?? sizeBytes, sizeBytes - start), isPartial: false };
  }
  const found = headerRange(call.request.headers.get('range'), sizeBytes);
  return found === undefined ? { from: 0, length: sizeBytes, isPartial: false } : found;
}

function numberOf(call: Call, name: string): number | null {
  const text = queryOf(call, name);
  if (text === undefined) return null;
  if (!/^\d{1,15}$/.test(text)) throw new SkuaError('bad_request', `${name} must be a number of bytes`);
  return Number(text);
}

/** Undefined: there is no range that is understood. */
function headerRange(header: string | null, sizeBytes: number): ByteRange | null | undefined {
  const parts = header === null ? null : /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header.trim());
  if (parts === null || (parts[1] === '' && parts[2] === '')) return undefined;
  const first = parts[1] === '' ? Math.max(0, sizeBytes - Number(parts[2])) : Number(parts[1]);
  const last = parts[1] === '' || parts[2] === '' ? sizeBytes - 1 : Math.min(Number(parts[2]), sizeBytes - 1);
  if (parts[1] !== '' && parts[2] !== '' && Number(parts[2]) < first) return undefined;
  return first > last ? null : { from: first, length: last - first + 1, isPartial: true };
}
