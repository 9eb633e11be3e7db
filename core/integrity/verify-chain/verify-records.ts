import { i32, i64 } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { decodeFooter, decodeHeader, FOOTER_BYTES, HEADER_BYTES } from '../../log/format/chunk-format.ts';
import { FRAME_BYTES, isRecordLength } from '../../log/format/records.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import type { Sha256 } from '../format/chain-layout.ts';
import { finding, type ProofFinding, unreadable } from './verify-report.ts';

/** A chunk file in force. */
export interface ChunkSpan {
  readonly name: string;
  readonly startNumber: number;
  readonly endNumber: number;
}

/** A record as it lies in a file. */
export interface Found {
  readonly position: number;
  readonly leaf: Uint8Array;
  /** Its length and payload. */
  readonly framed: Uint8Array;
  readonly file: string;
  readonly offset: number;
}

/** Records, and what keeps a file from being read further. */
export type Run = readonly (Found | ProofFinding)[];

/** Bytes read at once. */
const READ_BYTES = 1_048_576;
/** Where a record's payload names its position. */
const POSITION_AT = 2;

interface RecordsParts {
  readonly storage: Storage;
  readonly sha256: Sha256;
  readonly chunkSize: number;
  readonly logEnd: number;
}

/** The records of chunk files, one logical chunk after the other. Close it at the end. */
export class ChunkRecords {
  readonly #storage: Storage;
  readonly #sha256: Sha256;
  readonly #chunkSize: number;
  readonly #logEnd: number;
  readonly #walks = new Map<string, AsyncGenerator<Run, void>>();
  /** What was read of a file and lies behind the chunk that was asked for. */
  readonly #carried = new Map<string, (Found | ProofFinding)[]>();

  constructor({ storage, sha256, chunkSize, logEnd }: RecordsParts) {
    this.#storage = storage;
    this.#sha256 = sha256;
    this.#chunkSize = chunkSize;
    this.#logEnd = logEnd;
  }

  async close(): Promise<void> {
    for (const walk of this.#walks.values()) await walk.return();
  }

  /** The records of a file up to the end of a logical chunk; what lies behind it is kept for the next call. */
  async *upTo(place: ChunkSpan, chunkEnd: number): AsyncGenerator<Run, void> {
    const isLast = (place.endNumber + 1) * this.#chunkSize === chunkEnd;
    let walk = this.#walks.get(place.name);
    if (walk === undefined) this.#walks.set(place.name, (walk = this.#walkFile(place)));
    let waiting = this.#carried.get(place.name) ?? [];
    this.#carried.delete(place.name);
    for (;;) {
      // Whatever names a place behind this chunk is the next one's: unless the order is wrong, which that one tells.
      const cut = isLast ? -1 : waiting.findIndex((record) => !('kind' in record) && record.position >= chunkEnd);
      if (cut >= 0) {
        this.#carried.set(place.name, waiting.slice(cut));
        if (cut > 0) yield waiting.slice(0, cut);
        return;
      }
      if (waiting.length > 0) yield waiting;
      const more = await walk.next();
      if (more.done === true) return;
      waiting = [...more.value];
    }
  }

  /** All records of a file in its order. A record that is none ends it, with a finding. */
  async *#walkFile({ name, startNumber }: ChunkSpan): AsyncGenerator<Run, void> {
    const file = await this.#storage.open(name, 'read');
    try {
      const header = decodeHeader(name, await file.read(0, HEADER_BYTES));
      const start = startNumber * this.#chunkSize;
      const end = HEADER_BYTES + (await this.#dataBytes(name, file, header.isScavenged ? null : start));
      for (let at = HEADER_BYTES, rest: Uint8Array = new Uint8Array(0); at + rest.length < end;) {
        const wanted = Math.min(Math.max(READ_BYTES, rest.length), end - at - rest.length);
        const piece = await file.read(at + rest.length, wanted);
        const bytes = new Uint8Array(rest.length + piece.length);
        bytes.set(rest, 0);
        bytes.set(piece, rest.length);
        const run: (Found | ProofFinding)[] = [];
        let offset = 0;
        let wrong: string | null = null;
        while (offset + 4 <= bytes.length) {
          const length = i32(bytes, offset);
          if (!isRecordLength(length) || length < POSITION_AT + 8 || at + length + FRAME_BYTES > end)
            wrong = `a record with an impossible length of ${length}`;
          else if (offset + length + FRAME_BYTES > bytes.length) break;
          else if (i32(bytes, offset + 4 + length) !== length) wrong = 'a record with two different lengths';
          else if (!header.isScavenged && i64(bytes, offset + 4 + POSITION_AT) !== start + at - HEADER_BYTES)
            wrong = `a record naming position ${i64(bytes, offset + 4 + POSITION_AT)}`;
          if (wrong !== null) break;
          const framed = bytes.subarray(offset, offset + 4 + length);
          run.push({
            position: i64(bytes, offset + 4 + POSITION_AT),
            leaf: this.#sha256(framed),
            framed,
            file: name,
            offset: at,
          });
          offset += length + FRAME_BYTES;
          at += length + FRAME_BYTES;
        }
        if (wrong === null && piece.length < wanted) wrong = 'the file ends before its data';
        if (wrong === null && at < end && at + (bytes.length - offset) >= end)
          wrong = 'a record reaching beyond the data';
        if (wrong !== null) {
          yield [
            ...run,
            finding(
              'unreadable',
              name,
              header.isScavenged ? null : start + at - HEADER_BYTES,
              `${name} can't be read as records from offset ${at} on: ${wrong}.`,
            ),
          ];
          return;
        }
        rest = bytes.subarray(offset);
        yield run;
      }
    } catch (error) {
      if (!isSkuaError(error, 'log_corrupt') && !isSkuaError(error, 'log_unsupported')) throw error;
      yield [unreadable(name, error)];
    } finally {
      await file.close();
    }
  }

  /**
   * Bytes of records in a file: as its footer says, or up to the end of the log. `start` is that of a chunk which may
   * be the one that is being written, else null.
   */
  async #dataBytes(name: string, file: StorageFile, start: number | null): Promise<number> {
    if (start !== null && this.#logEnd >= start && this.#logEnd < start + this.#chunkSize) return this.#logEnd - start;
    return decodeFooter(name, await file.read(Math.max(0, file.size - FOOTER_BYTES), FOOTER_BYTES), file.size)
      .physicalBytes;
  }
}
