import { i32, i64 } from '../base/bytes.ts';
import { SkuaError } from '../base/errors.ts';
import { toHex } from '../base/hex.ts';
import { damageOf, type Description, type Part, Payload, type RecordPart } from '../ports/file-format.ts';
import type { StorageFile } from '../ports/storage.ts';
import { decodeText } from '../base/text.ts';
import { timestampText } from '../base/time.ts';
import { RecordCutter } from './format/record-cutter.ts';
import {
  COMMIT,
  decodeCommit,
  decodeEpoch,
  decodePrepare,
  FLAG_COMMITTED,
  FLAG_DATA,
  FLAG_JSON,
  FLAG_REDACTED,
  FLAG_STREAM_DELETE,
  FLAG_TRANSACTION_BEGIN,
  FLAG_TRANSACTION_END,
  FRAME_BYTES,
  parsePrepare,
  PREPARE,
  PrepareFields,
  type RecordFrame,
  recordTimestampAt,
  SYSTEM,
  timestampMsAt,
  timestampTicksAt,
} from './format/records.ts';

/** Records of the log, for programs that look into what holds them. */

/** Bytes read at once. */
export const READ_BYTES = 1_048_576;

const FLAGS: readonly (readonly [number, string])[] = [
  [FLAG_DATA, 'data'],
  [FLAG_TRANSACTION_BEGIN, 'transaction-begin'],
  [FLAG_TRANSACTION_END, 'transaction-end'],
  [FLAG_STREAM_DELETE, 'stream-delete'],
  [FLAG_COMMITTED, 'committed'],
  [FLAG_JSON, 'json'],
  [FLAG_REDACTED, 'redacted'],
];

const scratch = new PrepareFields();

/**
 * A record of the log, whose frame begins at `offset` in its file. Throws `log_corrupt` for one whose parts don't fill
 * it.
 */
export function recordPart(frame: RecordFrame, offset: number): RecordPart {
  // Here and not when it is shown: damage is found in records that are not shown, too.
  const timeAt = recordTimestampAt(frame, scratch);
  const time = timestampText(timestampMsAt(frame.bytes, timeAt), timestampTicksAt(frame.bytes, timeAt));
  const lengthBytes = frame.length + FRAME_BYTES;
  const describe = frame.type === PREPARE ? describePrepare : frame.type === COMMIT ? describeCommit : describeSystem;
  // Decoded once, as the length of these decides what they say.
  if (frame.type === COMMIT) decodeCommit(frame);
  if (frame.type === SYSTEM) decodeEpoch(frame);
  return {
    kind: 'record',
    group: 'records',
    offset,
    position: frame.position,
    describe: () => describe(frame, lengthBytes, time),
  };
}

function describePrepare(frame: RecordFrame, lengthBytes: number, time: string): Description {
  const {
    stream,
    eventType,
    eventId,
    correlationId,
    data,
    metadata,
    flags,
    version,
    expectedVersion,
    transactionPosition,
    transactionOffset,
  } = decodePrepare(frame);
  parsePrepare(frame, scratch);
  const number = scratch.isCommitted && scratch.isEvent ? scratch.eventNumber : null;
  return {
    fields: {
      lengthBytes,
      record: kindOf(flags),
      stream,
      number,
      type: eventType,
      time,
      data: new Payload(stream, data),
    },
    more: {
      metadata: new Payload(stream, metadata),
      dataBytes: data.length,
      metadataBytes: metadata.length,
      eventId,
      correlationId,
      flags: FLAGS.filter(([bit]) => (flags & bit) !== 0).map(([, name]) => name),
      expectedVersion,
      transactionPosition,
      transactionIndex: transactionOffset,
      recordVersion: version,
    },
  };
}

function kindOf(flags: number): string {
  if ((flags & FLAG_STREAM_DELETE) !== 0) return 'tombstone';
  if ((flags & FLAG_DATA) !== 0) return 'event';
  if ((flags & FLAG_TRANSACTION_BEGIN) !== 0) return 'begin';
  return (flags & FLAG_TRANSACTION_END) !== 0 ? 'end' : 'prepare';
}

function describeCommit(frame: RecordFrame, lengthBytes: number, time: string): Description {
  const { firstEventNumber, transactionPosition, correlationId, version } = decodeCommit(frame);
  return {
    fields: { lengthBytes, record: 'commit', stream: null, number: firstEventNumber, type: null, time, data: null },
    more: { transactionPosition, correlationId, recordVersion: version },
  };
}

function describeSystem(frame: RecordFrame, lengthBytes: number, time: string): Description {
  return {
    fields: {
      lengthBytes,
      record: 'epoch',
      stream: null,
      number: null,
      type: null,
      time,
      data: decodeText(decodeEpoch(frame).json),
    },
  };
}

/** Where in a file records lie, and what is known of them. */
export interface RecordStretch {
  readonly file: StorageFile;
  /** Offsets in the file, the second behind the last record. */
  readonly from: number;
  readonly to: number;
  /** Of the first record; -1 where each record holds its own. */
  readonly position: number;
  /** Positions that there may be, from the first to before the second. */
  readonly between?: readonly [number, number];
  /** Called with every piece that is read. */
  readonly onPiece?: (piece: Uint8Array) => void;
}

/**
 * Records one behind the other. One whose parts don't add up is damage that is passed over; what is no record ends
 * them, with `log_corrupt` and its offset.
 */
export async function* recordParts(stretch: RecordStretch): AsyncGenerator<Part, void, undefined> {
  const { file, from, to, position, between, onPiece } = stretch;
  const cutter = new RecordCutter({
    position,
    bytes: to - from,
    ...(between !== undefined && { between }),
    fail: (at, what) => notARecord(file, from + at, what),
  });
  const buffer = new Uint8Array(Math.max(0, Math.min(READ_BYTES, to - from)));
  for (let at = from; at < to;) {
    const piece = await file.read(at, Math.min(READ_BYTES, to - at), buffer);
    if (piece.length === 0) throw notARecord(file, at, 'the end of the file before the end of its data');
    at += piece.length;
    onPiece?.(piece);
    cutter.take(piece);
    while (cutter.next()) {
      const offset = from + cutter.passedBytes - cutter.frame.length - FRAME_BYTES;
      yield partOf(cutter.frame, offset);
    }
  }
  cutter.finish();
}

function partOf(frame: RecordFrame, offset: number): Part {
  try {
    return recordPart(frame, offset);
  } catch (error) {
    return damageOf(error, offset);
  }
}

export function notARecord(file: StorageFile, offset: number, what: string): SkuaError {
  return new SkuaError('log_corrupt', `${file.path} holds ${what} at offset ${offset}.`, { file: file.path, offset });
}

/** Of a record in its frame, up to the fields by which it is known for one. */
export const RECORD_HEAD_BYTES = 24;
const PREPARE_BYTES_MIN = 70;

/** Records have no magic: type, version, position, and what each type must have. */
export function beginsAsRecord(head: Uint8Array): boolean {
  const length = i32(head, 0);
  const [type, version] = [head[4]!, head[5]!];
  if (version > 1 || i64(head, 6) < 0) return false;
  if (type === PREPARE) return length >= PREPARE_BYTES_MIN && (head[14] !== 0 || head[15] !== 0);
  return type === COMMIT
    ? length === (version === 1 ? 58 : 54)
    : type === SYSTEM && version === 0 && head[22] === 1 && head[23] === 2;
}

/** A CRC-32 in hex. */
export function crcText(value: number): string {
  return toHex(Uint8Array.of(value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255));
}
