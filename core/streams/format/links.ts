import { decodeText } from '../../base/text.ts';
import { TOMBSTONE } from '../../log/format/records.ts';

/** Link events: their data name another event. */

const AT = 64;
const I64_MAX_TEXT = '9223372036854775807';

/** Where a link points. */
export interface LinkTarget {
  readonly number: number;
  readonly stream: string;
}

/** Parses `<number>@<stream>`, split at the first `@`; null when it is no link. */
export function parseLink(data: Uint8Array): LinkTarget | null {
  const split = data.indexOf(AT);
  if (split < 0) return null;
  const text = decodeText(data.subarray(0, split));
  if (!/^[+-]?\d{1,19}$/.test(text)) return null;
  const digits = text.replace(/^[+-]/, '');
  if (digits.length === I64_MAX_TEXT.length && digits > I64_MAX_TEXT) return null;
  return { number: Math.min(Number(text), TOMBSTONE), stream: decodeText(data.subarray(split + 1)) };
}
