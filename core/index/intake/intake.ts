import type { ChunkTable } from '../../log/api.ts';
import {
  COMMIT,
  FLAG_STREAM_DELETE,
  parsePrepare,
  PREPARE,
  PrepareFields,
  TOMBSTONE,
  type RecordFrame,
} from '../../log/format/records.ts';
import { scanLog } from '../../log/chunk-table/chunk-table.ts';
import { visitTransaction } from '../transactions/transactions.ts';
import type { Clock } from '../../ports/clock.ts';
import { Hash64 } from '../../base/stream-hash.ts';
import type { StreamIndex } from '../index.ts';

/** What takes entries in: the index of a node, or that of a view of a log on object storage. */
export interface EntrySink {
  add(hi: number, lo: number, number: number, position: number): void;
  addStream(hi: number, lo: number, position: number): void;
  endBulk(commitPosition: number, preparePosition: number): void;
}

/** Room at first, in events. */
const ROOM_FIRST = 1_024;
/** The event is not the last of its transaction. */
const GOES_ON = -1;

/**
 * Committed events, in the order of the log, as what they are to index and existence filter. The writer notes them
 * while it writes; all others read them from records. `applyTo` is the only place in which an event comes into an
 * index.
 */
export class EventColumns {
  count = 0;
  #hi = new Uint32Array(ROOM_FIRST);
  #lo = new Uint32Array(ROOM_FIRST);
  #numbers = new Float64Array(ROOM_FIRST);
  #positions = new Float64Array(ROOM_FIRST);
  /** Position of the record that commits a transaction, at the last event of it. */
  #commits = new Float64Array(ROOM_FIRST);
  /** 1 where the existence filter may not know the stream yet. */
  #begins = new Uint8Array(ROOM_FIRST);

  clear(): void {
    this.count = 0;
  }

  position(i: number): number {
    return this.#positions[i]!;
  }
  number(i: number): number {
    return this.#numbers[i]!;
  }

  /**
   * An event that its own record commits, as all are that this program writes. `isLast`: of its transaction. A stream
   * begins with event 0 or its tombstone.
   */
  note(hash: Pick<Hash64, 'hi' | 'lo'>, number: number, position: number, isLast: boolean): void {
    this.noteAs(hash, number, position, number === 0 || number === TOMBSTONE);
    if (isLast) this.endTransaction(position);
  }

  /** An event of a transaction that goes on. `mayBegin`: the existence filter may not know its stream. */
  noteAs(hash: Pick<Hash64, 'hi' | 'lo'>, number: number, position: number, mayBegin: boolean): void {
    const i = this.count++;
    if (i === this.#numbers.length) this.#grow();
    this.#hi[i] = hash.hi;
    this.#lo[i] = hash.lo;
    this.#numbers[i] = number;
    this.#positions[i] = position;
    this.#commits[i] = GOES_ON;
    this.#begins[i] = mayBegin ? 1 : 0;
  }

  /** The event noted last is the last of the transaction that the record at `commitPosition` commits. */
  endTransaction(commitPosition: number): void {
    this.#commits[this.count - 1] = commitPosition;
  }

  #grow(): void {
    const room = this.#numbers.length * 2;
    this.#hi = grown(this.#hi, new Uint32Array(room));
    this.#lo = grown(this.#lo, new Uint32Array(room));
    this.#numbers = grown(this.#numbers, new Float64Array(room));
    this.#positions = grown(this.#positions, new Float64Array(room));
    this.#commits = grown(this.#commits, new Float64Array(room));
    this.#begins = grown(this.#begins, new Uint8Array(room));
  }

  applyTo(index: EntrySink): void {
    for (let i = 0; i < this.count; i++) {
      const hi = this.#hi[i]!;
      const lo = this.#lo[i]!;
      const position = this.#positions[i]!;
      index.add(hi, lo, this.#numbers[i]!, position);
      if (this.#begins[i] === 1) index.addStream(hi, lo, position);
      if (this.#commits[i] !== GOES_ON) index.endBulk(this.#commits[i]!, position);
    }
  }
}

function grown<T extends Uint32Array | Float64Array | Uint8Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

/**
 * Slots that remember streams just added to the existence filter, 2 MiB; a power of two. Each addition touches six
 * places anywhere in a large filter: a quarter of a rebuild of 50 000 streams.
 */
const RECENT_STREAMS = 262_144;
/** Other work of the process gets a turn this often during a replay. */
const SLICE_MS = 20;

/**
 * Brings the index and the stream existence filter up to the log's end by reading the log from where they stand.
 * Resolves with the number of records read.
 */
export async function replayLog(
  index: StreamIndex,
  table: ChunkTable,
  clock: Clock,
  onProgress?: (bytesDone: number, bytesTotal: number) => void,
): Promise<number> {
  const commitCheckpoint = index.commitCheckpoint;
  await index.initExistence();
  const existenceFrom = Math.max(0, index.existenceCheckpoint);
  const from = Math.min(Math.max(0, commitCheckpoint), existenceFrom);
  if (from >= table.end) return 0;
  const replay = new Replay(index, table, existenceFrom);
  const total = table.end - from;
  let done = 0;
  let sliceStart = clock.monotonicMs();
  await scanLog(
    table,
    from,
    (frame) => replay.visit(frame),
    async (bytes) => {
      done += bytes;
      replay.apply();
      if (replay.passed > existenceFrom) index.noteExistenceCheckpoint(replay.passed);
      onProgress?.(Math.min(done, total), total);
      await index.ready();
      if (clock.monotonicMs() - sliceStart < SLICE_MS) return;
      await clock.yield();
      sliceStart = clock.monotonicMs();
    },
    true,
  );
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
    // A scavenge may have removed the event with which a stream began, so each stream that is met may be new to the
    // filter.
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
