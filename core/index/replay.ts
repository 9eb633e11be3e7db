import type { ChunkTable } from '../log/api.ts';
import { COMMIT, FLAG_STREAM_DELETE, parsePrepare, PREPARE, PrepareFields, TOMBSTONE, type RecordFrame } from '../log/format/records.ts';
import { scanLog } from '../log/chunk-table/chunk-table.ts';
import { visitTransaction } from './transactions.ts';
import type { Clock } from '../ports/clock.ts';
import { EventColumns } from './event-columns.ts';
import { Hash64 } from '../base/stream-hash.ts';
import type { StreamIndex } from './index.ts';

/** Slots that remember streams just added to the existence filter, 2 MiB; a power of two. Each addition touches six places anywhere in a large filter: a quarter of a rebuild of 50 000 streams. */
const RECENT_STREAMS = 262_144;
/** Other work of the process gets a turn this often during a replay. */
const SLICE_MS = 20;

/**
 * Brings the index and the stream existence filter up to the log's end by reading the log from where they stand.
 * Resolves with the number of records read.
 */
export async function replayLog(index: StreamIndex, table: ChunkTable, clock: Clock, onProgress?: (bytesDone: number, bytesTotal: number) => void): Promise<number> {
  const commitCheckpoint = index.commitCheckpoint;
  await index.initExistence();
  const existenceFrom = Math.max(0, index.existenceCheckpoint);
  const from = Math.min(Math.max(0, commitCheckpoint), existenceFrom);
  if (from >= table.end) return 0;
  const replay = new Replay(index, table, existenceFrom);
  const total = table.end - from;
  let done = 0;
  let sliceStart = clock.monotonicMs();
  await scanLog(table, from, (frame) => replay.visit(frame), async (bytes) => {
    done += bytes;
    replay.apply();
    if (replay.passed > existenceFrom) index.noteExistenceCheckpoint(replay.passed);
    onProgress?.(Math.min(done, total), total);
    await index.ready();
    if (clock.monotonicMs() - sliceStart < SLICE_MS) return;
    await clock.yield();
    sliceStart = clock.monotonicMs();
  }, true);
  index.noteExistenceCheckpoint(table.end);
  return replay.records;
}

class Replay {
  readonly #index: StreamIndex;
  readonly #table: ChunkTable;
  readonly #commitCheckpoint: number;
  readonly #prepareCheckpoint: number;
  readonly #existenceFrom: number;
  /** Events that were read and are not in the index yet. */
  readonly #events = new EventColumns();
  readonly #fields = new PrepareFields();
  readonly #hash = new Hash64();
  readonly #recentHi = new Uint32Array(RECENT_STREAMS);
  readonly #recentLo = new Uint32Array(RECENT_STREAMS);
  records = 0;
  /** Position after the last record seen. */
  passed = 0;

  constructor(index: StreamIndex, table: ChunkTable, existenceFrom: number) {
    this.#index = index;
    this.#table = table;
    this.#commitCheckpoint = index.commitCheckpoint;
    this.#prepareCheckpoint = index.prepareCheckpoint;
    this.#existenceFrom = existenceFrom;
    // No hash with this low half has slot 0, so an unused slot 0 matches nothing; the others can't match anyway.
    this.#recentLo[0] = 1;
  }

  visit(frame: RecordFrame): void | Promise<void> {
    this.records++;
    this.passed = frame.next;
    const type = frame.bytes[frame.at];
    if (type === COMMIT) return this.#commit(frame);
    if (type !== PREPARE) return;
    const fields = this.#fields;
    parsePrepare(frame, fields);
    const hash = this.#hash;
    this.#index.hasher.hashUtf8(frame.bytes, fields.streamAt, fields.streamLength, hash);
    const position = frame.position;
    // A scavenge may have removed the event with which a stream began, so each stream that is met may be new to the filter.
    const mayBegin = position >= this.#existenceFrom && !this.#wasMet(hash);
    const isEvent = fields.isCommitted && fields.isEvent && !this.#isIndexed(position, position);
    if (isEvent) {
      this.#events.noteAs(hash, fields.eventNumber, position, mayBegin);
      this.#events.endTransaction(position);
    } else if (mayBegin) this.#index.addStream(hash.hi, hash.lo, position);
  }

  async #commit(frame: RecordFrame): Promise<void> {
    const commitPosition = frame.position;
    let count = 0;
    await visitTransaction(this.#table, frame, (prepare, fields, first) => {
      if (!fields.isEvent || this.#isIndexed(commitPosition, prepare.position)) return;
      const number = (fields.flags & FLAG_STREAM_DELETE) !== 0 ? TOMBSTONE : first + fields.transactionOffset;
      this.#index.hasher.hashUtf8(prepare.bytes, fields.streamAt, fields.streamLength, this.#hash);
      // Its prepares may lie before the existence filter's checkpoint, from a time when nothing of it counted yet.
      this.#events.noteAs(this.#hash, number, prepare.position, !this.#wasMet(this.#hash));
      count++;
    });
    if (count > 0) this.#events.endTransaction(commitPosition);
  }

  /** Brings what was read into the index. */
  apply(): void {
    this.#events.applyTo(this.#index);
    this.#events.clear();
  }

  /** At or before the checkpoints of the index as it was opened: commit position first, then prepare position. */
  #isIndexed(commit: number, prepare: number): boolean {
    return commit < this.#commitCheckpoint || (commit === this.#commitCheckpoint && prepare <= this.#prepareCheckpoint);
  }

  /** The stream was met a short while ago, and is in the filter. */
  #wasMet(hash: Hash64): boolean {
    const slot = hash.lo & (RECENT_STREAMS - 1);
    if (this.#recentLo[slot] === hash.lo && this.#recentHi[slot] === hash.hi) return true;
    this.#recentHi[slot] = hash.hi;
    this.#recentLo[slot] = hash.lo;
    return false;
  }
}
