import { equalBytes, putI32, viewAt } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { jsonMembers } from '../../base/json-scanner.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import {
  FLAG_DATA,
  FLAG_REDACTED,
  FLAG_STREAM_DELETE,
  FRAME_BYTES,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RecordFrame,
} from './records.ts';

/**
 * What a scavenge leaves of events that stay without their content. Either form is a record with the same position,
 * length, number, id, type and time, flagged as redacted:
 *
 * - *emptied*, the last event of a soft-deleted stream, which is kept for its number only: its data are bytes 0x00 as
 *   far as data and metadata reached, and it has no metadata. Reads pass over it.
 * - *redacted*, an event with a mark (core/streams/redactions): of its metadata stays what `keptMetadata` says, and its
 *   data are bytes 0xFF up to the end of what there was. Reads show it, empty.
 */

const DOLLAR = 36;
const REDACTED_BYTE = 0xff;
const NO_BYTES = new Uint8Array(0);

/**
 * A whole event of one record: no tombstone, and no part of an explicit transaction, whose records stay as they are.
 */
export function isWholeEvent({ isCommitted, flags }: PrepareFields): boolean {
  return isCommitted && (flags & (FLAG_DATA | FLAG_STREAM_DELETE)) === FLAG_DATA;
}

/**
 * True for such a record, and for none that another tool may have redacted and left something in: with any other byte
 * in its data, or with metadata, it is an event that a reader is to see as empty. Metadata of streams are never emptied
 * by a scavenge.
 */
export function isEmptied({ bytes }: RecordFrame, fields: PrepareFields): boolean {
  if ((fields.flags & FLAG_REDACTED) === 0 || fields.metadataLength !== 0 || !isWholeEvent(fields)) return false;
  const { streamAt, dataAt, dataLength } = fields;
  if (bytes[streamAt] === DOLLAR && bytes[streamAt + 1] === DOLLAR) return false;
  for (let i = dataAt; i < dataAt + dataLength; i++) if (bytes[i] !== 0) return false;
  return true;
}

/** The framed record that takes the place of the whole event in `frame`, whose own bytes may be those of a cache. */
export function emptied(frame: RecordFrame, fields: PrepareFields): Uint8Array {
  return withContent(frame, fields, 0, NO_BYTES);
}

/**
 * Whether a mark of redaction can be for the event: a whole one, of a stream that is none of the store's own. What
 * metadata of streams and tombstones say must never change.
 */
export function isRedactable({ bytes }: RecordFrame, fields: PrepareFields): boolean {
  return isWholeEvent(fields) && bytes[fields.streamAt] !== DOLLAR;
}

/**
 * What stays of the metadata of a redacted event: members whose names begin with `$`, by which the event is found,
 * without those that the mark names. Nothing of what is no JSON object.
 */
export function keptMetadata(metadata: Uint8Array, dropped: readonly string[]): Uint8Array {
  if (metadata.length === 0) return NO_BYTES;
  const text = decodeText(metadata);
  // What is not UTF-8 would grow where it is written anew, and what of it has room would depend on what goes.
  if (encodeText(text).length !== metadata.length) return NO_BYTES;
  const kept = (jsonMembers(text) ?? [])
    .filter(({ key }) => key.startsWith('$') && !dropped.includes(key))
    .map(({ key, raw }) => `${JSON.stringify(key)}:${raw}`);
  return kept.length === 0 ? NO_BYTES : encodeText(`{${kept.join(',')}}`);
}

/**
 * The framed record that takes the place of the event in `frame` under a mark; null where it has nothing to lose. An
 * emptied one has not, and would be shown again.
 */
export function redacted(frame: RecordFrame, fields: PrepareFields, dropped: readonly string[]): Uint8Array | null {
  if (isEmptied(frame, fields)) return null;
  const { metadataAt, metadataLength, dataLength } = fields;
  const kept = keptMetadata(viewAt(frame.bytes, metadataAt, metadataLength), dropped);
  // An event that never had any content would take the form of an emptied one.
  if (dataLength + metadataLength === kept.length) return null;
  const bytes = withContent(frame, fields, REDACTED_BYTE, kept);
  return equalBytes(bytes, 0, frame.bytes, frame.at - FRAME_BYTES / 2, bytes.length) ? null : bytes;
}

/** Whether the record has the form of a redacted event. */
export function isRedacted({ bytes }: RecordFrame, fields: PrepareFields): boolean {
  const { flags, dataAt, dataLength } = fields;
  if ((flags & FLAG_REDACTED) === 0 || dataLength === 0 || !isWholeEvent(fields)) return false;
  for (let i = dataAt; i < dataAt + dataLength; i++) if (bytes[i] !== REDACTED_BYTE) return false;
  return true;
}

/** The framed record with this metadata, and one byte for data as far as data and metadata reached. */
function withContent(
  { bytes, at, length }: RecordFrame,
  { flags, dataAt, dataLength, metadataLength }: PrepareFields,
  byte: number,
  metadata: Uint8Array,
): Uint8Array {
  const frameAt = at - FRAME_BYTES / 2;
  // Not by `slice`, which shares the memory where a caller's bytes are of a class that says so.
  const out = new Uint8Array(length + FRAME_BYTES);
  out.set(bytes.subarray(frameAt, frameAt + out.length));
  const flagged = flags | FLAG_REDACTED;
  const flagsAt = FRAME_BYTES / 2 + 10;
  out[flagsAt] = flagged & 255;
  out[flagsAt + 1] = flagged >>> 8;
  const data = dataAt - frameAt;
  const size = dataLength + metadataLength - metadata.length;
  putI32(out, data - 4, size);
  out.fill(byte, data, data + size);
  putI32(out, data + size, metadata.length);
  out.set(metadata, data + size + 4);
  return out;
}

/**
 * True when the framed records of `size` bytes at `at` of `bytes` and at `otherAt` of `other` are the same, but that a
 * scavenge may have emptied or redacted one of them.
 */
export function isSameRecord(bytes: Uint8Array, at: number, other: Uint8Array, otherAt: number, size: number): boolean {
  if (equalBytes(bytes, at, other, otherAt, size)) return true;
  const one = framed(bytes, at, size);
  const two = framed(other, otherAt, size);
  return one !== null && two !== null && (isRestOf(one, two) || isRestOf(two, one));
}

interface Parsed {
  readonly frame: RecordFrame;
  readonly fields: PrepareFields;
}

function isRestOf(one: Parsed, whole: Parsed): boolean {
  if (!isWholeEvent(whole.fields)) return false;
  const rest = isEmptied(one.frame, one.fields)
    ? emptied(whole.frame, whole.fields)
    : isRedacted(one.frame, one.fields)
      ? redacted(whole.frame, whole.fields, missingKeys(one, whole))
      : null;
  return rest !== null && equalBytes(rest, 0, one.frame.bytes, one.frame.at - FRAME_BYTES / 2, rest.length);
}

/** Names of metadata that are in one of the records only: what a mark may have named. */
function missingKeys(one: Parsed, whole: Parsed): readonly string[] {
  const there = new Set(keysOf(one));
  return keysOf(whole).filter((key) => !there.has(key));
}

function keysOf({ frame: { bytes }, fields: { metadataAt, metadataLength } }: Parsed): readonly string[] {
  return (jsonMembers(decodeText(viewAt(bytes, metadataAt, metadataLength))) ?? []).map(({ key }) => key);
}

/** The prepare there; null where there is none. */
function framed(bytes: Uint8Array, at: number, size: number): Parsed | null {
  const frame = new RecordFrame();
  frame.bytes = bytes;
  frame.at = at + FRAME_BYTES / 2;
  frame.length = size - FRAME_BYTES;
  if (at + size > bytes.length || frame.type !== PREPARE) return null;
  const fields = new PrepareFields();
  try {
    parsePrepare(frame, fields);
    return { frame, fields };
  } catch (error) {
    if (isSkuaError(error, 'log_corrupt')) return null;
    throw error;
  }
}
