import { equalBytes, putI32 } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
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
 * What a scavenge leaves of the last event of a soft-deleted stream: a record with the same position, length, number,
 * id and type, which is kept for its number only. Its data are bytes 0x00 as far as data and metadata reached, it has
 * no metadata, and it is flagged as redacted.
 */

const DOLLAR = 36;

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
export function emptied(
  { bytes, at, length }: RecordFrame,
  { flags, dataAt, dataLength, metadataLength }: PrepareFields,
): Uint8Array {
  const frameAt = at - FRAME_BYTES / 2;
  // Not by `slice`, which shares the memory where a caller's bytes are of a class that says so.
  const out = new Uint8Array(length + FRAME_BYTES);
  out.set(bytes.subarray(frameAt, frameAt + out.length));
  const redacted = flags | FLAG_REDACTED;
  const flagsAt = FRAME_BYTES / 2 + 10;
  out[flagsAt] = redacted & 255;
  out[flagsAt + 1] = redacted >>> 8;
  const data = dataAt - frameAt;
  const size = dataLength + metadataLength;
  putI32(out, data - 4, size);
  out.fill(0, data, data + size);
  putI32(out, data + size, 0);
  return out;
}

/**
 * True when the framed records of `size` bytes at `at` of `bytes` and at `otherAt` of `other` are the same, but that a
 * scavenge may have emptied one of them.
 */
export function isSameRecord(bytes: Uint8Array, at: number, other: Uint8Array, otherAt: number, size: number): boolean {
  if (equalBytes(bytes, at, other, otherAt, size)) return true;
  const one = framed(bytes, at, size);
  const two = framed(other, otherAt, size);
  return one !== null && two !== null && (isEmptiedOf(one, two) || isEmptiedOf(two, one));
}

interface Parsed {
  readonly frame: RecordFrame;
  readonly fields: PrepareFields;
}

function isEmptiedOf(one: Parsed, whole: Parsed): boolean {
  if (!isEmptied(one.frame, one.fields) || !isWholeEvent(whole.fields)) return false;
  const bytes = emptied(whole.frame, whole.fields);
  return equalBytes(bytes, 0, one.frame.bytes, one.frame.at - FRAME_BYTES / 2, bytes.length);
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
