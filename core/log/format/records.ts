import { SkuaError } from '../../base/errors.ts';
import { guidToText } from '../../base/guid.ts';
import { i32, i64, putI32, putI64, u32, wordsOf } from '../../base/bytes.ts';
import { decodeText, internText } from '../../base/text.ts';

/** Log records of version 2 logs (core/log/FORMAT.md, "Records"). */

/** First payload byte. */
export const PREPARE = 0;
export const COMMIT = 1;
export const SYSTEM = 2;

export const FLAG_DATA = 0x0001;
export const FLAG_TRANSACTION_BEGIN = 0x0002;
export const FLAG_TRANSACTION_END = 0x0004;
export const FLAG_STREAM_DELETE = 0x0008;
export const FLAG_COMMITTED = 0x0020;
export const FLAG_JSON = 0x0100;
export const FLAG_REDACTED = 0x0200;

/** Largest framed payload in bytes. */
export const RECORD_BYTES_MAX = 16_777_216;
/** Bytes a frame adds to its payload: the length before and after. */
export const FRAME_BYTES = 8;

/**
 * Event number of a tombstone. On disk it is 2^63-1; in memory, where numbers are safe integers, it is 2^53-1, and
 * every real event number is below it.
 */
export const TOMBSTONE = Number.MAX_SAFE_INTEGER;
const TOMBSTONE_I32 = 2_147_483_647;
/** High half of an event number that is no safe integer: a tombstone's. */
const HIGHEST_I32 = 0x7fff_ffff;

/** 100 ns ticks between 0001-01-01 and 1970-01-01, in milliseconds. */
export const EPOCH_OFFSET_MS = 62_135_596_800_000;

/**
 * A record in its frame, as a view of cached bytes. Readers fill one and the same object again and again; a reader that
 * keeps a record decodes it.
 */
export class RecordFrame {
  bytes: Uint8Array = new Uint8Array(0);
  /** Offset of the payload in `bytes`. */
  at = 0;
  /** Payload length in bytes. */
  length = 0;
  /** Global log position of the record. */
  position = 0;
  /** Global log position after the record: where the next forward read starts. */
  next = 0;

  get type(): number {
    return this.bytes[this.at]!;
  }
  get version(): number {
    return this.bytes[this.at + 1]!;
  }
  /** Log position as the record itself says. */
  get ownPosition(): number {
    return i64(this.bytes, this.at + 2);
  }
}

/** Whether a record can be so long: what stands before it is looked at before the place behind it is. */
export function isRecordLength(length: number): boolean {
  return length > 0 && length <= RECORD_BYTES_MAX;
}

/** Bytes of a frame with the fields of its record that say where it stands. */
const GROUP_BYTES_MIN = FRAME_BYTES + 10;

/** What `takeFrame` finds. A number, since it is asked for every record. */
export const FRAME_SOUND = 0;
export const FRAME_LENGTHS_DIFFER = 1;
export const FRAME_ELSEWHERE = 2;

/**
 * Shows in `frame` the record whose frame begins at `at`, all of it in `bytes`, and `length` the one that stands before
 * it. Its two lengths must be the same, and it must name `position` as its own; -1 where only the record itself knows
 * that, and the caller how far it can be believed. Every walk over records asks here; what is wrong is reported with
 * what the caller reads.
 */
export function takeFrame(frame: RecordFrame, bytes: Uint8Array, at: number, length: number, position: number): number {
  frame.bytes = bytes;
  frame.at = at + 4;
  frame.length = length;
  if (i32(bytes, at + 4 + length) !== length) return FRAME_LENGTHS_DIFFER;
  const own = i64(bytes, at + 6);
  frame.position = own;
  frame.next = own + length + FRAME_BYTES;
  return position >= 0 && own !== position ? FRAME_ELSEWHERE : FRAME_SOUND;
}

/**
 * Whether the first and the last record of a group name the positions that they get where the group is put at `start`:
 * what `takeFrame` will ask of every record.
 */
export function isGroupAt(group: Uint8Array, start: number): boolean {
  const { length } = group;
  if (length < GROUP_BYTES_MIN) return false;
  const last = i32(group, length - 4);
  const lastAt = length - last - FRAME_BYTES;
  return (
    last > 0 &&
    lastAt >= 0 &&
    lastAt <= length - GROUP_BYTES_MIN &&
    i32(group, lastAt) === last &&
    i64(group, lastAt + 6) === start + lastAt &&
    i64(group, 6) === start
  );
}

/** The fixed fields of a prepare and where its variable ones lie, without decoding any text. */
export class PrepareFields {
  version = 0;
  flags = 0;
  transactionPosition = 0;
  transactionOffset = 0;
  /** TOMBSTONE - 1 for a tombstone. */
  expectedVersion = 0;
  streamAt = 0;
  streamLength = 0;
  eventIdAt = 0;
  correlationIdAt = 0;
  timestampAt = 0;
  typeAt = 0;
  typeLength = 0;
  dataAt = 0;
  dataLength = 0;
  metadataAt = 0;
  metadataLength = 0;

  get isCommitted(): boolean {
    return (this.flags & FLAG_COMMITTED) !== 0;
  }
  /** The record occupies an event number: an event or a tombstone. */
  get isEvent(): boolean {
    return (this.flags & (FLAG_DATA | FLAG_STREAM_DELETE)) !== 0;
  }
  /** Event number of a self-committed prepare. */
  get eventNumber(): number {
    return this.expectedVersion + 1;
  }
}

/** Reads the fields of the prepare in `frame`. Throws `log_corrupt` when the payload does not add up. */
export function parsePrepare(frame: RecordFrame, out: PrepareFields): void {
  const b = frame.bytes;
  const words = wordsOf(b);
  const start = frame.at;
  const end = start + frame.length;
  const version = b[start + 1]!;
  if (version > 1 || frame.length < 70)
    throw corrupt(frame, `a prepare of version ${version} and length ${frame.length}`);
  out.version = version;
  out.flags = words.getUint16(start + 10, true);
  out.transactionPosition = words.getInt32(start + 16, true) * 4_294_967_296 + words.getUint32(start + 12, true);
  out.transactionOffset = words.getInt32(start + 20, true);
  let at = start + 24;
  if (version === 1) {
    const high = words.getInt32(at + 4, true);
    out.expectedVersion =
      high === HIGHEST_I32 ? eventNumber64(b, at) : high * 4_294_967_296 + words.getUint32(at, true);
    at += 8;
  } else {
    const expected = words.getInt32(at, true);
    out.expectedVersion = expected === TOMBSTONE_I32 - 1 ? TOMBSTONE - 1 : expected;
    at += 4;
  }
  out.streamLength = textLengthAt(frame, at, end);
  out.streamAt = at = textAt(b, at);
  at += out.streamLength;
  out.eventIdAt = at;
  out.correlationIdAt = at + 16;
  out.timestampAt = at + 32;
  at += 40;
  if (at >= end) throw corrupt(frame, 'a prepare that ends before its event type');
  out.typeLength = textLengthAt(frame, at, end);
  out.typeAt = at = textAt(b, at);
  at += out.typeLength;
  out.dataLength = at + 4 <= end ? words.getInt32(at, true) : -1;
  out.dataAt = at + 4;
  at += 4 + out.dataLength;
  out.metadataLength = out.dataLength >= 0 && at + 4 <= end ? words.getInt32(at, true) : -1;
  out.metadataAt = at + 4;
  if (out.metadataLength < 0 || at + 4 + out.metadataLength !== end)
    throw corrupt(frame, 'a prepare whose parts do not fill it exactly');
  if (out.streamLength === 0) throw corrupt(frame, 'a prepare without a stream name');
}

/** The length of a text, 7-bit encoded at `from`. */
function textLengthAt(frame: RecordFrame, from: number, end: number): number {
  const b = frame.bytes;
  let at = from;
  let length = b[at++]!;
  if (length > 127) {
    length &= 127;
    for (let shift = 7; ; shift += 7) {
      const byte = b[at++]!;
      length |= (byte & 127) << shift;
      if (byte < 128) break;
      if (shift >= 28) throw corrupt(frame, 'a text length of more than five bytes');
    }
  }
  if (length < 0 || at + length > end) throw corrupt(frame, 'a text that reaches beyond the record');
  return length;
}

/** Where a text begins whose length is encoded at `at`, in bytes of which the last alone is below 128. */
function textAt(b: Uint8Array, at: number): number {
  while (b[at]! > 127) at++;
  return at + 1;
}

/** An i64 event number or expected version as a safe integer; 2^63-1 and 2^63-2 become TOMBSTONE and TOMBSTONE - 1. */
export function eventNumber64(b: Uint8Array, at: number): number {
  const high = i32(b, at + 4);
  if (high === 0x7fff_ffff) {
    const low = u32(b, at);
    if (low >= 0xffff_fffe) return low === 0xffff_ffff ? TOMBSTONE : TOMBSTONE - 1;
  }
  return high * 4_294_967_296 + u32(b, at);
}

export function putEventNumber64(b: Uint8Array, at: number, value: number): void {
  if (value >= TOMBSTONE - 1) {
    putI32(b, at, value === TOMBSTONE ? -1 : -2);
    putI32(b, at + 4, 0x7fff_ffff);
  } else putI64(b, at, value);
}

function corrupt(frame: RecordFrame, what: string): SkuaError {
  return new SkuaError(
    'log_corrupt',
    `The log holds ${what} at position ${frame.position}. Run \`skua verify\` on a copy of the directory, and restore a backup if it confirms the damage.`,
    { position: frame.position },
  );
}

/** A decoded prepare. `data` and `metadata` are views. */
export interface PrepareRecord {
  readonly version: number;
  readonly position: number;
  readonly flags: number;
  readonly transactionPosition: number;
  readonly transactionOffset: number;
  readonly expectedVersion: number;
  readonly stream: string;
  readonly eventId: string;
  readonly correlationId: string;
  readonly timestampMs: number;
  /** 100 ns units beyond the millisecond, 0 to 9999. */
  readonly timestampTicks: number;
  readonly eventType: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

const scratch = new PrepareFields();

export function decodePrepare(frame: RecordFrame): PrepareRecord {
  parsePrepare(frame, scratch);
  const b = frame.bytes;
  const f = scratch;
  return {
    version: f.version,
    position: frame.position,
    flags: f.flags,
    transactionPosition: f.transactionPosition,
    transactionOffset: f.transactionOffset,
    expectedVersion: f.expectedVersion,
    stream: internText(b, f.streamAt, f.streamLength),
    eventId: guidToText(b, f.eventIdAt),
    correlationId: guidToText(b, f.correlationIdAt),
    timestampMs: timestampMsAt(b, f.timestampAt),
    timestampTicks: timestampTicksAt(b, f.timestampAt),
    eventType: internText(b, f.typeAt, f.typeLength),
    data: b.subarray(f.dataAt, f.dataAt + f.dataLength),
    metadata: b.subarray(f.metadataAt, f.metadataAt + f.metadataLength),
  };
}

/**
 * Milliseconds since 1970 of the timestamp at `at`. A tick count exceeds 2^53, so the division by 10 000 is done on the
 * two halves: 2^32 = 429 496 * 10 000 + 7 296.
 */
export function timestampMsAt(b: Uint8Array, at: number): number {
  const words = wordsOf(b);
  const high = words.getUint32(at + 4, true);
  return high * 429_496 + Math.floor((high * 7_296 + words.getUint32(at, true)) / 10_000) - EPOCH_OFFSET_MS;
}

/** The remainder of the timestamp at `at` in ticks of 100 ns, 0 to 9999. */
export function timestampTicksAt(b: Uint8Array, at: number): number {
  // A remainder of numbers beyond 32 bits is a call; this is none.
  const words = wordsOf(b);
  const low = words.getUint32(at + 4, true) * 7_296 + words.getUint32(at, true);
  return low - Math.floor(low / 10_000) * 10_000;
}

/** Bytes of a timestamp, and where that of a system record lies in its payload. */
const TIMESTAMP_BYTES = 8;
const SYSTEM_TIMESTAMP_AT = 10;

/**
 * Offset in the frame's bytes of the record's timestamp. Of a prepare `fields` gets the fields. Throws `log_corrupt`.
 */
export function recordTimestampAt(frame: RecordFrame, fields: PrepareFields): number {
  switch (frame.type) {
    case PREPARE:
      parsePrepare(frame, fields);
      return fields.timestampAt;
    case COMMIT:
      return frame.at + frame.length - TIMESTAMP_BYTES;
    case SYSTEM:
      return frame.at + SYSTEM_TIMESTAMP_AT;
    default:
      throw corrupt(frame, `a record of type ${frame.type}`);
  }
}

/** Writes a timestamp as a tick count. */
export function putTimestamp(b: Uint8Array, at: number, ms: number, ticks: number): void {
  viewPutTimestamp(viewOf(b), at, ms, ticks);
}

function viewPutTimestamp(view: DataView, at: number, ms: number, ticks: number): void {
  const total = ms + EPOCH_OFFSET_MS;
  // total * 10 000 + ticks in two 32-bit halves, without leaving the safe integers.
  const totalHigh = Math.floor(total / 4_294_967_296);
  const totalLow = total - totalHigh * 4_294_967_296;
  const low = totalLow * 10_000 + ticks;
  const carry = Math.floor(low / 4_294_967_296);
  view.setInt32(at, (low - carry * 4_294_967_296) | 0, true);
  view.setInt32(at + 4, (totalHigh * 10_000 + carry) | 0, true);
}

/** A decoded commit record, the end of an explicit transaction. */
export interface CommitRecord {
  readonly version: number;
  readonly position: number;
  readonly transactionPosition: number;
  readonly firstEventNumber: number;
  readonly correlationId: string;
}

export function decodeCommit(frame: RecordFrame): CommitRecord {
  const b = frame.bytes;
  const at = frame.at;
  const version = b[at + 1]!;
  if (version > 1 || frame.length !== (version === 1 ? 58 : 54))
    throw corrupt(frame, `a commit record of version ${version} and length ${frame.length}`);
  const first32 = i32(b, at + 18);
  return {
    version,
    position: frame.position,
    transactionPosition: i64(b, at + 10),
    firstEventNumber: version === 1 ? eventNumber64(b, at + 18) : first32 === TOMBSTONE_I32 ? TOMBSTONE : first32,
    correlationId: guidToText(b, at + (version === 1 ? 34 : 30)),
  };
}

/** The data of an epoch system record. */
export interface EpochRecord {
  readonly position: number;
  readonly json: Uint8Array;
}

export function decodeEpoch(frame: RecordFrame): EpochRecord {
  const b = frame.bytes;
  const at = frame.at;
  const dataLength = frame.length >= 32 ? i32(b, at + 28) : -1;
  if (b[at + 1] !== 0 || b[at + 18] !== 1 || b[at + 19] !== 2 || dataLength < 0 || dataLength + 32 !== frame.length)
    throw corrupt(frame, 'a system record that is no epoch in JSON');
  return { position: frame.position, json: b.subarray(at + 32, at + 32 + dataLength) };
}

/** Framed size in bytes of a prepare with the given parts. */
export function prepareFrameBytes(
  streamBytes: number,
  typeBytes: number,
  dataBytes: number,
  metadataBytes: number,
): number {
  return (
    FRAME_BYTES +
    72 +
    8 +
    textLengthBytes(streamBytes) +
    streamBytes +
    textLengthBytes(typeBytes) +
    typeBytes +
    dataBytes +
    metadataBytes
  );
}

function textLengthBytes(length: number): number {
  return length < 128 ? 1 : length < 16_384 ? 2 : length < 2_097_152 ? 3 : 4;
}

function putText(out: Uint8Array, at: number, text: Uint8Array): number {
  let length = text.length;
  while (length > 127) {
    out[at++] = (length & 127) | 128;
    length >>>= 7;
  }
  out[at++] = length;
  return putBytes(out, at, text);
}

/** Fewer bytes than this are copied one by one: a call of `set` takes longer. */
const SET_BYTES_MIN = 48;

/** Copies bytes and returns the offset after them. */
function putBytes(out: Uint8Array, at: number, bytes: Uint8Array): number {
  const { length } = bytes;
  if (length < SET_BYTES_MIN) for (let i = 0; i < length; i++) out[at + i] = bytes[i]!;
  else out.set(bytes, at);
  return at + length;
}

/** What a new prepare record is written from. */
export interface PrepareInput {
  readonly position: number;
  readonly flags: number;
  readonly transactionPosition: number;
  readonly transactionOffset: number;
  readonly expectedVersion: number;
  /** UTF-8. */
  readonly stream: Uint8Array;
  /** 16 on-disk bytes, from `eventIdAt` on, or from the beginning. */
  readonly eventId: Uint8Array;
  readonly eventIdAt?: number;
  /** 16 bytes. */
  readonly correlationId: Uint8Array;
  readonly timestampMs: number;
  readonly timestampTicks: number;
  /** UTF-8. */
  readonly eventType: Uint8Array;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

/**
 * Writes a framed prepare of version 1 at `at` and returns the offset after it. The caller has made room. `view` shows
 * the same bytes: one store of a whole number takes as long as one of each of its bytes, and a caller that writes many
 * records makes the view once.
 */
export function encodePrepare(out: Uint8Array, at: number, r: PrepareInput, view: DataView = viewOf(out)): number {
  const start = at + 4;
  out[start] = PREPARE;
  out[start + 1] = 1;
  viewPutI64(view, start + 2, r.position);
  view.setInt16(start + 10, r.flags, true);
  viewPutI64(view, start + 12, r.transactionPosition);
  view.setInt32(start + 20, r.transactionOffset, true);
  if (r.expectedVersion >= TOMBSTONE - 1) putEventNumber64(out, start + 24, r.expectedVersion);
  else viewPutI64(view, start + 24, r.expectedVersion);
  let p = putText(out, start + 32, r.stream);
  p = putGuid(view, p, r.eventId, r.eventIdAt ?? 0);
  p = putGuid(view, p, r.correlationId, 0);
  viewPutTimestamp(view, p, r.timestampMs, r.timestampTicks);
  p = putText(out, p + 8, r.eventType);
  view.setInt32(p, r.data.length, true);
  p = putBytes(out, p + 4, r.data);
  view.setInt32(p, r.metadata.length, true);
  p = putBytes(out, p + 4, r.metadata);
  const length = p - start;
  view.setInt32(at, length, true);
  view.setInt32(p, length, true);
  return p + 4;
}

/** The same bytes for numbers of more than one byte. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function viewPutI64(view: DataView, at: number, value: number): void {
  const high = Math.floor(value / 4_294_967_296);
  view.setInt32(at, (value - high * 4_294_967_296) | 0, true);
  view.setInt32(at + 4, high | 0, true);
}

function putGuid(view: DataView, at: number, guids: Uint8Array, from: number): number {
  view.setInt32(at, i32(guids, from), true);
  view.setInt32(at + 4, i32(guids, from + 4), true);
  view.setInt32(at + 8, i32(guids, from + 8), true);
  view.setInt32(at + 12, i32(guids, from + 12), true);
  return at + 16;
}

/** Writes a framed epoch system record and returns the offset after it. */
export function encodeEpoch(
  out: Uint8Array,
  at: number,
  position: number,
  ms: number,
  ticks: number,
  json: Uint8Array,
): number {
  const start = at + 4;
  out.fill(0, start, start + 32);
  out[start] = SYSTEM;
  putI64(out, start + 2, position);
  putTimestamp(out, start + 10, ms, ticks);
  out[start + 18] = 1;
  out[start + 19] = 2;
  putI32(out, start + 28, json.length);
  out.set(json, start + 32);
  const length = 32 + json.length;
  putI32(out, at, length);
  putI32(out, start + length, length);
  return start + length + 4;
}

/** Text of the stream name of parsed fields. */
export function streamOf(frame: RecordFrame, f: PrepareFields): string {
  return internText(frame.bytes, f.streamAt, f.streamLength);
}

export { decodeText };
