import { equalBytes, i32, i64, u16 } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { AUDIT_STREAM, AUDIT_TYPE_PREFIX } from '../../ports/audit.ts';
import { JsonScanner } from '../../base/json-scanner.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { timestampText } from '../../base/time.ts';
import {
  eventNumber64,
  FLAG_COMMITTED,
  FLAG_DATA,
  FLAG_JSON,
  FLAG_REDACTED,
  FLAG_STREAM_DELETE,
  FRAME_BYTES,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RECORD_BYTES_MAX,
  RecordFrame,
  timestampMsAt,
  TOMBSTONE,
} from '../../log/format/records.ts';
import { isEmptied, isRedacted } from '../../log/format/redaction.ts';
import {
  type Mark,
  MARK_OPENING,
  MARK_REACH_BYTES,
  MARK_TYPE,
  markAround,
  MARKS_STREAM,
} from '../../streams/format/marks.ts';
import { parseMetadata } from '../../streams/format/metadata.ts';
import { shownData } from '../../streams/format/retention.ts';
import type { FileWindow } from '../format/scavenge-files.ts';
import { textLength } from '../needles/needles.ts';

export interface FoundMark extends Pick<Mark, 'stream' | 'number' | 'by' | 'reason'> {
  /** Of its record, in ISO 8601. */
  readonly time: string;
}

export interface FoundDelete {
  readonly isHard: boolean;
  /** Of its record, in ISO 8601; null where not all of that is there. */
  readonly time: string | null;
}

export interface AuditedDelete {
  readonly isHard: boolean;
  /** Null for a caller without a name. */
  readonly by: string | null;
  readonly time: string;
}

/** Bytes of a frame before the stream field: length, and the fixed fields of version 1 and 0. */
const BEFORE_STREAM_V1 = 36;
const BEFORE_STREAM_V0 = 32;
/** Flags that are in use, and the two that never were. */
const FLAGS_KNOWN = 0x07ff;
/** Longer names are not recognised from an event's id alone. */
const NAME_BYTES_MAX = 4_096;
const POSITION_HIGH_MAX = 0x001f_ffff;

/** A prepare record, or its beginning, found among bytes that need not be a log. */
export interface StrayRecord {
  /** File offset of its frame. */
  readonly offset: number;
  readonly position: number;
  /** Of the payload, as its frame says. */
  readonly length: number;
  readonly flags: number;
  /** Null for a record of an explicit transaction, whose number is not its own. */
  readonly eventNumber: number | null;
  readonly isTombstone: boolean;
  /** It is an event, with or without data. */
  readonly isEvent: boolean;
}

/** All of a record, where its very bytes are there; null where they are not, or add up to none. */
async function wholeRecord(
  window: FileWindow,
  { offset, length }: StrayRecord,
): Promise<{ readonly frame: RecordFrame; readonly fields: PrepareFields } | null> {
  const bytes = await window.peek(offset, length + FRAME_BYTES);
  if (bytes.length < length + FRAME_BYTES || i32(bytes, FRAME_BYTES / 2 + length) !== length) return null;
  const frame = new RecordFrame();
  frame.bytes = bytes;
  frame.at = FRAME_BYTES / 2;
  frame.length = length;
  const fields = new PrepareFields();
  try {
    parsePrepare(frame, fields);
  } catch (error) {
    if (isSkuaError(error)) return null;
    throw error;
  }
  return { frame, fields };
}

/**
 * Whether a scavenge has left nothing of the event but position, number, id, type, and of a redacted one the metadata
 * that stay.
 */
export async function isEmptiedRecord(window: FileWindow, record: StrayRecord): Promise<boolean> {
  if ((record.flags & FLAG_REDACTED) === 0) return false;
  const whole = await wholeRecord(window, record);
  return whole !== null && (isEmptied(whole.frame, whole.fields) || isRedacted(whole.frame, whole.fields));
}

/** When the record was written; null where not all of it is there. */
export async function timeOf(window: FileWindow, record: StrayRecord): Promise<string | null> {
  const whole = await wholeRecord(window, record);
  return whole === null ? null : timeText(timestampMsAt(whole.frame.bytes, whole.fields.timestampAt));
}

/** Whether it is metadata by which a stream is deleted until somebody writes to it again. */
export async function isSoftDelete(window: FileWindow, record: StrayRecord): Promise<boolean> {
  const whole = await wholeRecord(window, record);
  if (whole === null) return false;
  const { version, flags } = whole.fields;
  const data = shownData(whole.frame, whole.fields);
  return parseMetadata(data, (flags & FLAG_JSON) !== 0, version).truncateBefore === TOMBSTONE;
}

/** Bytes before the data of an event beside the names of its stream and type, each shorter than 128 bytes. */
const BEFORE_DATA = 46;
const TIMESTAMP_AT = 33;

/**
 * When the event was written whose data begin at `dataAt` of the file; null where none of this stream and type has its
 * data there. What only looks like it, in the data of others, is none.
 */
async function timeOfEventWith(
  window: FileWindow,
  dataAt: number,
  { stream, type }: { readonly stream: string; readonly type: string },
): Promise<string | null> {
  const size = BEFORE_DATA + stream.length + type.length;
  const bytes = await window.peek(dataAt - size, size);
  if (bytes.length < size) return null;
  const isText = (at: number, text: string) =>
    bytes[at] === text.length && equalBytes(bytes, at + 1, encodeText(text), 0, text.length);
  if (!isText(0, stream) || !isText(stream.length + 41, type)) return null;
  if ((await recordAtStream(window, dataAt - size)) === null) return null;
  return timeText(timestampMsAt(bytes, stream.length + TIMESTAMP_AT));
}

function timeText(ms: number): string {
  return timestampText(ms, 0);
}

/** JSON of an event around a text of it: what is before it from the last `opening` on, and where that begins. */
async function around(
  window: FileWindow,
  { offset, size, reach, opening }: { offset: number; size: number; reach: number; opening: string },
): Promise<{ readonly before: string; readonly behind: string; readonly dataAt: number } | null> {
  const from = Math.max(0, offset - reach);
  const read = decodeText(await window.peek(from, offset - from));
  const begin = read.lastIndexOf(opening);
  if (begin < 0) return null;
  const before = read.slice(begin);
  const behind = decodeText(await window.peek(offset + size, reach));
  return { before, behind, dataAt: offset - encodeText(before).length };
}

/** The mark that has the id found at `offset` of the file; null where it stands in none. */
export async function markAt(id: string, offset: number, window: FileWindow): Promise<FoundMark | null> {
  const place = { offset, size: id.length, reach: MARK_REACH_BYTES, opening: MARK_OPENING };
  const text = await around(window, place);
  const mark = text === null ? null : markAround(text.before, id, text.behind);
  if (text === null || mark === null) return null;
  const time = await timeOfEventWith(window, text.dataAt, { stream: MARKS_STREAM, type: MARK_TYPE });
  const { stream, number, by, reason } = mark;
  return time === null ? null : { stream, number, by, reason, time };
}

/** More than an entry of the audit has before its target, or behind it. */
const ENTRY_REACH_BYTES = 24_576;
/** What stands before the name of the stream in an entry. */
export const AUDITED_BEFORE = '"target":"';
const ENTRY_OPENING = '{"time":';
const DELETES = [
  ['stream.tombstone', true],
  ['stream.delete', false],
] as const;

/**
 * The entry of the audit, in the stream of the log, that says who has deleted the stream whose name is at `offset`;
 * null where it stands in none.
 */
export async function auditedAt(name: Uint8Array, offset: number, window: FileWindow): Promise<AuditedDelete | null> {
  const place = { offset, size: name.length, reach: ENTRY_REACH_BYTES, opening: ENTRY_OPENING };
  const text = await around(window, place);
  if (text === null || !text.behind.startsWith('"')) return null;
  const scanner = new JsonScanner(`${text.before}${decodeText(name)}${text.behind}`);
  try {
    scanner.skipBrackets();
    const { action, outcome, user } = JSON.parse(scanner.text.slice(0, scanner.at)) as Record<string, unknown>;
    const found = DELETES.find(([name]) => name === action);
    if (found === undefined || outcome !== 'success') return null;
    const of = { stream: AUDIT_STREAM, type: `${AUDIT_TYPE_PREFIX}${found[0]}` };
    const time = await timeOfEventWith(window, text.dataAt, of);
    return time === null ? null : { isHard: found[1], by: typeof user === 'string' ? user : null, time };
  } catch (error) {
    if (isSkuaError(error) || error instanceof SyntaxError) return null;
    throw error;
  }
}

/**
 * The record whose stream field, which begins with its length, lies at `offset` of the file; null when there is none.
 */
export async function recordAtStream(window: FileWindow, offset: number): Promise<StrayRecord | null> {
  if (offset < BEFORE_STREAM_V1) return null;
  const got = window.peek(offset - BEFORE_STREAM_V1, BEFORE_STREAM_V1);
  const bytes = got instanceof Uint8Array ? got : await got;
  return bytes.length < BEFORE_STREAM_V1 ? null : recordBefore(bytes, BEFORE_STREAM_V1, offset);
}

/** `at`: where the stream field begins in `bytes`, `offset`: where in the file. */
function recordBefore(bytes: Uint8Array, at: number, offset: number): StrayRecord | null {
  return (
    ofVersion(bytes, at - BEFORE_STREAM_V1, 1, offset - BEFORE_STREAM_V1) ??
    ofVersion(bytes, at - BEFORE_STREAM_V0, 0, offset - BEFORE_STREAM_V0)
  );
}

function ofVersion(b: Uint8Array, at: number, version: number, offset: number): StrayRecord | null {
  const length = i32(b, at);
  const flags = u16(b, at + 14);
  if (
    b[at + 4] !== PREPARE ||
    b[at + 5] !== version ||
    length < 64 ||
    length > RECORD_BYTES_MAX ||
    (flags & ~FLAGS_KNOWN) !== 0
  )
    return null;
  const isPosition = (p: number) => i32(b, p + 4) >= 0 && i32(b, p + 4) <= POSITION_HIGH_MAX;
  if (!isPosition(at + 6) || !isPosition(at + 16) || i32(b, at + 24) < -1) return null;
  const expected = version === 1 ? eventNumber64(b, at + 28) : i32(b, at + 28);
  if (expected < -2) return null;
  const isTombstone = (flags & FLAG_STREAM_DELETE) !== 0;
  return {
    offset,
    position: i64(b, at + 6),
    length,
    flags,
    eventNumber: (flags & FLAG_COMMITTED) !== 0 ? expected + 1 : null,
    isTombstone,
    isEvent: !isTombstone && (flags & FLAG_DATA) !== 0,
  };
}

/** The record whose event id lies at `offset` of the file, with the name of its stream; null when there is none. */
export async function recordAtEventId(
  window: FileWindow,
  offset: number,
): Promise<{ readonly record: StrayRecord; readonly stream: string } | null> {
  const reach = Math.min(offset, NAME_BYTES_MAX + BEFORE_STREAM_V1 + 5);
  const bytes = await window.peek(offset - reach, reach);
  for (let nameAt = reach - 1; nameAt >= BEFORE_STREAM_V1 + 1; nameAt--) {
    const length = textLength(reach - nameAt);
    const fieldAt = nameAt - length.length;
    if (fieldAt < BEFORE_STREAM_V1 || !length.every((byte, i) => byte === bytes[fieldAt + i])) continue;
    const record = recordBefore(bytes, fieldAt, offset - reach + fieldAt);
    if (record !== null) return { record, stream: decodeText(bytes.slice(nameAt)) };
  }
  return null;
}
