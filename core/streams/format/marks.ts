import { JsonScanner } from '../../base/json-scanner.ts';
import { guidFromText } from '../../base/guid.ts';
import { decodeText, encodeText } from '../../base/text.ts';

/**
 * Marks of redaction: an event of the stream of marks says that another event, which it names by position and id, reads
 * as empty from there on (core/streams/redactions/README.md).
 */

/** The stream of marks, and the type of its events. */
export const MARKS_STREAM = '$redactions';
export const MARK_TYPE = '$redaction';

/** Longest reason, in UTF-16 code units. */
export const REASON_LENGTH_MAX = 1_000;
/** Names of metadata that one mark lists at most, and the longest, in UTF-16 code units. */
export const MARK_KEYS_MAX = 8;
export const MARK_KEY_LENGTH_MAX = 64;

export interface Mark {
  /** Name and number of the event, for people. What it is known by are position and id. */
  readonly stream: string;
  readonly number: number;
  /** UUID text. */
  readonly id: string;
  /** Of its record in the log. */
  readonly position: number;
  readonly by: string;
  readonly reason: string;
  /** Metadata whose names begin with `$` and that go, too. */
  readonly keys: readonly string[];
}

/** The data of the event that is the mark. */
export function encodeMark({ stream, number, id, position, by, reason, keys }: Mark): Uint8Array {
  return encodeText(
    JSON.stringify({ stream, number, id, position, by, reason, ...(keys.length > 0 && { metadata: keys }) }),
  );
}

/** What they begin with. */
export const MARK_OPENING = '{"stream":';
/** More than the data of a mark have before its id, and behind it. */
export const MARK_REACH_BYTES = 16_384;

/** The mark that has its id between these texts; null where there is none, or that id is of something else. */
export function markAround(before: string, id: string, behind: string): Mark | null {
  const from = before.lastIndexOf(MARK_OPENING);
  if (from < 0 || !before.endsWith('"id":"')) return null;
  const scanner = new JsonScanner(`${before.slice(from)}${id}${behind}`);
  try {
    scanner.skipBrackets();
  } catch {
    return null;
  }
  return decodeMark(encodeText(scanner.text.slice(0, scanner.at)));
}

/** Null for what is no mark: such an event has no effect, and none can be written. */
export function decodeMark(data: Uint8Array): Mark | null {
  let value: unknown;
  try {
    value = JSON.parse(decodeText(data));
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { stream, number, id, position, by, reason, metadata = [] } = value as Readonly<Record<string, unknown>>;
  return typeof stream === 'string' &&
    isPlace(number) &&
    typeof id === 'string' &&
    guidFromText(id, new Uint8Array(16), 0) &&
    isPlace(position) &&
    typeof by === 'string' &&
    typeof reason === 'string' &&
    reason.length <= REASON_LENGTH_MAX &&
    isMarkKeys(metadata)
    ? { stream, number, id, position, by, reason, keys: metadata }
    : null;
}

function isPlace(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Names of metadata that a mark may list. */
export function isMarkKeys(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length <= MARK_KEYS_MAX &&
    value.every((key) => typeof key === 'string' && key.startsWith('$') && key.length <= MARK_KEY_LENGTH_MAX)
  );
}
