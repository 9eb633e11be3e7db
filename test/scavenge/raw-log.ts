import { decodeFooter, FOOTER_BYTES, HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { decodePrepare, FLAG_STREAM_DELETE, PREPARE, RecordFrame } from '../../core/log/format/records.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { contentOf } from '../log/kit.ts';

/** One record as it lies in a chunk file. */
export interface RawRecord {
  readonly position: number;
  /** Logical chunk. */
  readonly chunk: number;
  /** All its bytes, in a form that compares quickly. */
  readonly bytes: string;
  /** Null for commits and system records. */
  readonly prepare: RawPrepare | null;
}

export interface RawPrepare {
  readonly stream: string;
  readonly number: number;
  readonly isTombstone: boolean;
  readonly type: string;
  readonly isJson: boolean;
  readonly data: string;
  /** Of data and of metadata, as they lie at the end of the record, each behind its length. */
  readonly dataBytes: number;
  readonly metadataBytes: number;
  /** A scavenge has emptied it: flagged as redacted, without metadata, with nothing but bytes 0 for data. */
  readonly isEmptied: boolean;
  /** When it was written: see `ticksOf`. */
  readonly ticks: number;
}

/** Since 1970 there have been more hundreds of nanoseconds than a number tells apart: they are counted from here. */
const FIRST_MS = Date.UTC(2020);

/** A time in hundreds of nanoseconds since 2020, each of them told apart. */
export function ticksOf(ms: number, ticks: number): number {
  return (ms - FIRST_MS) * 10_000 + ticks;
}

/**
 * Every record of the log, read from the files alone: of each chunk the newest version counts. Also while a store has
 * them open.
 */
export async function readRawLog(storage: Storage): Promise<RawRecord[]> {
  const names = (await storage.list('')).filter((name) => /^chunk-\d{6}\.\d{6}$/.test(name));
  const newest = new Map<number, string>();
  for (const name of names) newest.set(Number(name.slice(6, 12)), name);
  const out: RawRecord[] = [];
  let next = 0;
  for (const [start, name] of [...newest].sort((a, b) => a[0] - b[0])) {
    if (start < next) continue;
    const bytes = await contentOf(storage, name);
    next = new DataView(bytes.buffer, bytes.byteOffset).getInt32(10, true) + 1;
    readChunk(name, bytes, out);
  }
  return out;
}

function readChunk(name: string, bytes: Uint8Array, out: RawRecord[]): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const chunkSize = view.getInt32(2, true);
  const end = HEADER_BYTES + dataBytesOf(name, bytes, chunkSize);
  const frame = new RecordFrame();
  for (let at = HEADER_BYTES; at + 8 < end;) {
    const length = view.getInt32(at, true);
    if (length <= 0) return;
    frame.bytes = bytes;
    frame.at = at + 4;
    frame.length = length;
    frame.position = frame.ownPosition;
    out.push({
      position: frame.position,
      chunk: Math.floor(frame.position / chunkSize),
      bytes: Buffer.from(bytes.buffer, bytes.byteOffset + at + 4, length).toString('latin1'),
      prepare: frame.type === PREPARE ? prepareOf(frame) : null,
    });
    at += length + 8;
  }
}

function dataBytesOf(name: string, bytes: Uint8Array, chunkSize: number): number {
  try {
    return decodeFooter(name, bytes.subarray(bytes.length - FOOTER_BYTES), bytes.length).physicalBytes;
  } catch (error) {
    // It is still being written.
    if (error instanceof SkuaError) return chunkSize;
    throw error;
  }
}

function prepareOf(frame: RecordFrame): RawPrepare {
  const prepare = decodePrepare(frame);
  return {
    stream: prepare.stream,
    number: prepare.expectedVersion + 1,
    isTombstone: (prepare.flags & FLAG_STREAM_DELETE) !== 0,
    type: prepare.eventType,
    isJson: (prepare.flags & 0x100) !== 0,
    data: Buffer.from(prepare.data).toString('utf8'),
    dataBytes: prepare.data.length,
    metadataBytes: prepare.metadata.length,
    isEmptied:
      (prepare.flags & 0x200) !== 0 && prepare.metadata.length === 0 && prepare.data.every((byte) => byte === 0),
    ticks: ticksOf(prepare.timestampMs, prepare.timestampTicks),
  };
}

/**
 * The bytes that a record has once a scavenge has emptied it: all of it stays but what data and metadata held, and the
 * flag tells. With 0xFF for `byte` those of a redacted one whose metadata are none of the store's.
 */
export function emptiedBytes({ bytes, prepare }: RawRecord, byte = 0): string {
  const out = Buffer.from(bytes, 'latin1');
  const { dataBytes, metadataBytes } = prepare!;
  const size = dataBytes + metadataBytes;
  out.writeUInt16LE(out.readUInt16LE(10) | 0x200, 10);
  const dataAt = out.length - 4 - size;
  out.writeInt32LE(size, dataAt - 4);
  out.fill(byte, dataAt, dataAt + size);
  out.writeInt32LE(0, dataAt + size);
  return out.toString('latin1');
}
