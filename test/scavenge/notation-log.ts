import { putI32, putI64 } from '../../core/base/bytes.ts';
import {
  align4096,
  chunkFileName,
  encodeFooter,
  encodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  MD5_BYTES,
} from '../../core/log/format/chunk-format.ts';
import {
  COMMIT,
  encodePrepare,
  FLAG_COMMITTED,
  FLAG_DATA,
  FLAG_JSON,
  FLAG_REDACTED,
  FLAG_STREAM_DELETE,
  FLAG_TRANSACTION_BEGIN,
  FLAG_TRANSACTION_END,
  FRAME_BYTES,
  prepareFrameBytes,
  putEventNumber64,
  putTimestamp,
  TOMBSTONE,
} from '../../core/log/format/records.ts';
import type { ScavengePoint } from '../../core/ports/scavenge-state.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { putFile, setCheckpoint } from '../log/kit.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { E_MS, metadataJson, parseLog } from './notation.ts';
import type { ChunkSpec, RecordSpec } from './notation.ts';

/** A record of a log in notation, with its place and bytes. */
export interface LogRecord extends RecordSpec {
  readonly chunk: number;
  readonly position: number;
  /** Framed. */
  readonly bytes: Uint8Array;
  /** Number under which the index has it; -1 when it has not. */
  indexNumber: number;
}

export interface NotationLog {
  readonly chunkSize: number;
  readonly chunks: readonly { readonly isEmptied: boolean; readonly records: readonly LogRecord[] }[];
  readonly records: readonly LogRecord[];
  /** Labels of what is in each chunk. */
  readonly labels: readonly (readonly string[])[];
  /** Position after the last chunk. */
  readonly end: number;
}

const utf8 = new TextEncoder();
const NOTHING = new Uint8Array(0);

/** Encodes a log: each chunk's records one behind the other from the chunk's start. */
export function buildLog(text: string, chunkSize: number): NotationLog {
  const encoding = new Encoding();
  const chunks = parseLog(text).map((chunk, number) => ({
    isEmptied: chunk.isEmptied,
    records: encodeChunk(chunk, number, chunkSize, encoding),
  }));
  const records = chunks.flatMap((chunk) => chunk.records);
  const labels = chunks.map((chunk) => (chunk.isEmptied ? [] : chunk.records.map((record) => record.label)));
  return { chunkSize, chunks, records, labels, end: chunks.length * chunkSize };
}

function encodeChunk(chunk: ChunkSpec, number: number, chunkSize: number, encoding: Encoding): LogRecord[] {
  let position = number * chunkSize;
  return chunk.records.map((spec) => {
    const record = encoding.encode(spec, number, position);
    position += record.bytes.length;
    if (position > (number + 1) * chunkSize)
      throw new Error(`Chunk ${number} of the log does not fit ${chunkSize} bytes.`);
    return record;
  });
}

export function recordOf(log: NotationLog, label: string): LogRecord {
  const record = log.records.find((candidate) => candidate.label === label);
  if (record === undefined) throw new Error(`The log has no ${label}.`);
  return record;
}

/** The scavenge point with that label. */
export function pointOf(log: NotationLog, label: string): ScavengePoint {
  const record = recordOf(log, label);
  return {
    position: record.position,
    eventNumber: record.number,
    effectiveNowMs: record.timeMs,
    threshold: Number(record.settings['th'] ?? 0),
  };
}

interface OpenTransaction {
  readonly position: number;
  readonly stream: string;
  readonly data: LogRecord[];
  hasTombstone: boolean;
}

/** What encoding a record needs to know of those before it. */
class Encoding {
  readonly #ids = new SeededIds(16);
  readonly #transactions = new Map<number, OpenTransaction>();
  readonly #next = new Map<string, number>();

  encode(spec: RecordSpec, chunk: number, position: number): LogRecord {
    const bytes = spec.kind === 'commit' ? this.#commit(spec, position) : this.#prepare(spec, position);
    // A scavenge point is written at the time that it names.
    const record: LogRecord = { ...spec, timeMs: timeOf(spec), chunk, position, bytes, indexNumber: -1 };
    if (spec.transaction === null) {
      record.indexNumber = ownNumber(spec);
      if (record.indexNumber < TOMBSTONE)
        this.#next.set(spec.stream, Math.max(this.#next.get(spec.stream) ?? 0, record.indexNumber + 1));
    } else if (spec.kind === 'data' || spec.kind === 'tombstone')
      this.#transactions.get(spec.transaction)!.data.push(record);
    return record;
  }

  #prepare(spec: RecordSpec, position: number): Uint8Array {
    if (spec.begins)
      this.#transactions.set(spec.transaction!, { position, stream: spec.stream, data: [], hasTombstone: false });
    const transaction = spec.transaction === null ? null : this.#transactions.get(spec.transaction)!;
    if (transaction !== null && spec.kind === 'tombstone') transaction.hasTombstone = true;
    const stream = utf8.encode(spec.stream);
    const eventType = utf8.encode(typeOf(spec));
    const data = dataOf(spec);
    const out = new Uint8Array(prepareFrameBytes(stream.length, eventType.length, data.length, 0));
    encodePrepare(out, 0, {
      position,
      flags: flagsOf(spec),
      transactionPosition: transaction?.position ?? position,
      transactionOffset:
        transaction === null ? 0 : spec.kind === 'begin' || spec.kind === 'end' ? -1 : transaction.data.length,
      expectedVersion: expectedVersionOf(spec),
      stream,
      eventId: this.#ids.uuidBytes(),
      correlationId: this.#ids.uuidBytes(),
      timestampMs: timeOf(spec),
      timestampTicks: 0,
      eventType,
      data,
      metadata: NOTHING,
    });
    return out;
  }

  /** A framed commit record. The records of its transaction get their numbers here. */
  #commit(spec: RecordSpec, position: number): Uint8Array {
    const transaction = this.#transactions.get(spec.transaction!)!;
    const { stream, data, hasTombstone } = transaction;
    const first = hasTombstone ? TOMBSTONE : (this.#next.get(stream) ?? 0);
    data.forEach((record, i) => {
      record.indexNumber = hasTombstone ? TOMBSTONE : first + i;
    });
    if (!hasTombstone) this.#next.set(stream, first + data.length);
    const length = 58;
    const out = new Uint8Array(length + FRAME_BYTES);
    putI32(out, 0, length);
    out[4] = COMMIT;
    out[5] = 1;
    putI64(out, 6, position);
    putI64(out, 14, transaction.position);
    putEventNumber64(out, 22, first);
    putI64(out, 30, position);
    out.set(this.#ids.uuidBytes(), 38);
    putTimestamp(out, 54, spec.timeMs, 0);
    putI32(out, 4 + length, length);
    return out;
  }
}

function timeOf(spec: RecordSpec): number {
  return spec.kind === 'point' ? E_MS : spec.timeMs;
}

function ownNumber(spec: RecordSpec): number {
  if (spec.kind === 'tombstone') return TOMBSTONE;
  return spec.kind === 'tombstone-32' ? 2_147_483_647 : spec.number;
}

function expectedVersionOf(spec: RecordSpec): number {
  if (spec.kind === 'tombstone' && !spec.isWhole && spec.transaction !== null) return -2;
  if (spec.kind === 'begin' || spec.kind === 'data' || spec.kind === 'end') return -2;
  return ownNumber(spec) - 1;
}

function typeOf(spec: RecordSpec): string {
  if (spec.kind === 'begin' || spec.kind === 'end') return '';
  if (
    spec.kind === 'metadata' ||
    spec.kind === 'metadata-typed' ||
    (spec.stream.startsWith('$$') && spec.kind !== 'not-json')
  )
    return '$metadata';
  if (spec.kind === 'point') return '$scavengePoint';
  return spec.kind === 'tombstone' || spec.kind === 'tombstone-32' ? '$streamDeleted' : 'happened';
}

function dataOf(spec: RecordSpec): Uint8Array {
  if (spec.kind === 'begin' || spec.kind === 'end' || spec.kind === 'tombstone' || spec.kind === 'tombstone-32')
    return NOTHING;
  if (spec.kind === 'not-json') return utf8.encode('no JSON');
  if (spec.kind === 'point')
    return utf8.encode(spec.settings['th'] === undefined ? '{}' : `{\n  "threshold": ${spec.settings['th']}\n}`);
  return utf8.encode(typeOf(spec) === '$metadata' ? metadataJson(spec.settings) : `{"of":"${spec.label}"}`);
}

function flagsOf(spec: RecordSpec): number {
  const whole = FLAG_TRANSACTION_BEGIN | FLAG_TRANSACTION_END;
  if (spec.kind === 'begin') return FLAG_TRANSACTION_BEGIN;
  if (spec.kind === 'end') return FLAG_TRANSACTION_END;
  const isDelete = spec.kind === 'tombstone' || spec.kind === 'tombstone-32';
  const content = isDelete ? FLAG_STREAM_DELETE : spec.kind === 'not-json' ? FLAG_DATA : FLAG_DATA | FLAG_JSON;
  if (spec.transaction === null)
    return content | whole | FLAG_COMMITTED | (spec.settings['redacted'] === undefined ? 0 : FLAG_REDACTED);
  return content | (spec.isWhole ? whole : spec.begins ? FLAG_TRANSACTION_BEGIN : 0);
}

/** A completed chunk file over these framed records; with a map when it counts as scavenged. */
export function completedChunk(
  file: { chunkSize: number; start: number; isScavenged: boolean; chunkId: Uint8Array },
  records: readonly { readonly position: number; readonly bytes: Uint8Array }[],
): Uint8Array {
  const base = file.start * file.chunkSize;
  const last = records.at(-1);
  const dataBytes = file.isScavenged
    ? records.reduce((sum, { bytes }) => sum + bytes.length, 0)
    : last === undefined
      ? 0
      : last.position + last.bytes.length - base;
  const mapBytes = file.isScavenged ? records.length * 12 : 0;
  const out = new Uint8Array(align4096(HEADER_BYTES + dataBytes + mapBytes + FOOTER_BYTES));
  out.set(
    encodeHeader({
      version: 3,
      chunkSize: file.chunkSize,
      startNumber: file.start,
      endNumber: file.start,
      isScavenged: file.isScavenged,
      chunkId: file.chunkId,
    }),
  );
  let actual = 0;
  records.forEach(({ position, bytes }, i) => {
    if (!file.isScavenged) actual = position - base;
    out.set(bytes, HEADER_BYTES + actual);
    if (file.isScavenged) {
      putI32(out, HEADER_BYTES + dataBytes + i * 12, actual);
      putI64(out, HEADER_BYTES + dataBytes + i * 12 + 4, position - base);
    }
    actual += bytes.length;
  });
  const logicalBytes = last === undefined ? 0 : last.position + last.bytes.length - base;
  out.set(encodeFooter(dataBytes, logicalBytes, mapBytes), out.length - FOOTER_BYTES);
  const md5 = nodeDigests.md5();
  md5.update(out.subarray(0, out.length - MD5_BYTES));
  out.set(md5.finish(), out.length - MD5_BYTES);
  return out;
}

/**
 * Writes the chunk files and checkpoints of a log. All its chunks are complete, so that what a run writes stands behind
 * them; `gone` are records that an earlier scavenge took.
 */
export async function installLog(storage: Storage, log: NotationLog, gone: readonly string[] = []): Promise<void> {
  const ids = new SeededIds(17);
  for (const [start, chunk] of log.chunks.entries()) {
    const records = chunk.isEmptied ? [] : chunk.records.filter((record) => !gone.includes(record.label));
    const isScavenged = chunk.isEmptied || records.length < chunk.records.length;
    const bytes = completedChunk({ chunkSize: log.chunkSize, start, isScavenged, chunkId: ids.uuidBytes() }, records);
    await putFile(storage, chunkFileName(start, isScavenged ? 1 : 0), bytes);
  }
  await setCheckpoint(storage, 'writer.chk', log.end);
  await setCheckpoint(storage, 'chaser.chk', log.end);
  for (const name of ['epoch.chk', 'proposal.chk', 'truncate.chk']) await setCheckpoint(storage, name, -1);
}
