import { i32, i64, u16 } from '../bytes.ts';
import { eventNumber64, FLAG_COMMITTED, FLAG_DATA, FLAG_STREAM_DELETE, PREPARE, RECORD_BYTES_MAX } from '../log/records.ts';
import { decodeText } from '../text.ts';
import { textLength } from './erasure-needles.ts';
import type { FileWindow } from './file-window.ts';

/** Bytes of a frame before the stream field: length, and the fixed fields of version 1 and 0; disk-format.md section 3.2. */
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
  /** Null for a record of an explicit transaction, whose number is not its own. */
  readonly eventNumber: number | null;
  readonly isTombstone: boolean;
  /** It is an event, with or without data. */
  readonly isEvent: boolean;
}

/** The record whose stream field, which begins with its length, lies at `offset` of the file; null when there is none. */
export async function recordAtStream(window: FileWindow, offset: number): Promise<StrayRecord | null> {
  if (offset < BEFORE_STREAM_V1) return null;
  const got = window.peek(offset - BEFORE_STREAM_V1, BEFORE_STREAM_V1);
  const bytes = got instanceof Uint8Array ? got : await got;
  return bytes.length < BEFORE_STREAM_V1 ? null : recordBefore(bytes, BEFORE_STREAM_V1, offset);
}

/** `at`: where the stream field begins in `bytes`, `offset`: where in the file. */
function recordBefore(bytes: Uint8Array, at: number, offset: number): StrayRecord | null {
  return ofVersion(bytes, at - BEFORE_STREAM_V1, 1, offset - BEFORE_STREAM_V1) ?? ofVersion(bytes, at - BEFORE_STREAM_V0, 0, offset - BEFORE_STREAM_V0);
}

function ofVersion(b: Uint8Array, at: number, version: number, offset: number): StrayRecord | null {
  const length = i32(b, at);
  const flags = u16(b, at + 14);
  if (b[at + 4] !== PREPARE || b[at + 5] !== version || length < 64 || length > RECORD_BYTES_MAX || (flags & ~FLAGS_KNOWN) !== 0) return null;
  const isPosition = (p: number) => i32(b, p + 4) >= 0 && i32(b, p + 4) <= POSITION_HIGH_MAX;
  if (!isPosition(at + 6) || !isPosition(at + 16) || i32(b, at + 24) < -1) return null;
  const expected = version === 1 ? eventNumber64(b, at + 28) : i32(b, at + 28);
  if (expected < -2) return null;
  const isTombstone = (flags & FLAG_STREAM_DELETE) !== 0;
  return { offset, position: i64(b, at + 6), eventNumber: (flags & FLAG_COMMITTED) !== 0 ? expected + 1 : null, isTombstone, isEvent: !isTombstone && (flags & FLAG_DATA) !== 0 };
}

/** The record whose event id lies at `offset` of the file, with the name of its stream; null when there is none. */
export async function recordAtEventId(window: FileWindow, offset: number): Promise<{ readonly record: StrayRecord; readonly stream: string } | null> {
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
