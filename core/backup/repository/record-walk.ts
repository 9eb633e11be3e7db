import { i32 } from '../../bytes.ts';
import { SkuaError } from '../../errors.ts';
import {
  FLAG_TRANSACTION_END, FRAME_BYTES, FRAME_SOUND, isRecordLength, PREPARE, PrepareFields, RecordFrame, recordTimestampAt, SYSTEM, takeFrame, timestampMsAt,
} from '../../log/records.ts';

/**
 * Walks the records of unscavenged log that comes in pieces, and knows where the log can end: behind a record that ends its
 * write. A write of several events ends with the last of them. Of an explicit transaction nothing counts before its commit
 * record, so that its prepares are no obstacle.
 */
export class RecordWalk {
  /** Position of the next record. */
  position: number;
  /** The last place passed where the log can end; where the walk began before the first. */
  end: number;
  /** What `end` was before the record visited last. */
  before: number;
  /** Of the record visited last. */
  readonly frame = new RecordFrame();
  endsWrite = false;
  timeMs = 0;
  readonly #fields = new PrepareFields();
  #rest: Uint8Array | null = null;

  /** `start` must be a place where the log can end, or its beginning. */
  constructor(start: number) {
    this.position = start;
    this.end = start;
    this.before = start;
  }

  /** Visits the records that become whole with these bytes, each when it has been passed; false from `visit` ends the walk, and is returned. */
  push(bytes: Uint8Array, visit: (walk: RecordWalk) => boolean): boolean {
    const all = this.#rest === null ? bytes : joined(this.#rest, bytes);
    let at = 0;
    for (let size = sizeAt(all, at, this.position); size > 0; size = sizeAt(all, at, this.position)) {
      this.#read(all, at, size);
      this.position += size;
      this.before = this.end;
      if (this.endsWrite) this.end = this.position;
      if (!visit(this)) return false;
      at += size;
    }
    // The piece may be used again, so what is kept of it is a copy.
    this.#rest = at < all.length ? all.slice(at) : null;
    return true;
  }

  #read(bytes: Uint8Array, at: number, size: number): void {
    const { frame } = this;
    if (takeFrame(frame, bytes, at, size - FRAME_BYTES, this.position) !== FRAME_SOUND || frame.type > SYSTEM) throw noRecord(this.position);
    this.timeMs = timestampMsAt(bytes, recordTimestampAt(frame, this.#fields));
    this.endsWrite = frame.type !== PREPARE || !this.#fields.isCommitted || (this.#fields.flags & FLAG_TRANSACTION_END) !== 0;
  }
}

/** Bytes of the record at `at` with its frame; 0 while it is not whole. */
function sizeAt(bytes: Uint8Array, at: number, position: number): number {
  if (at + 4 > bytes.length) return 0;
  const length = i32(bytes, at);
  if (!isRecordLength(length)) throw noRecord(position);
  return at + length + FRAME_BYTES > bytes.length ? 0 : length + FRAME_BYTES;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

function noRecord(position: number): SkuaError {
  return new SkuaError('log_corrupt', `The backup holds something else than a record at position ${position}: the log was damaged when it was backed up. Restore an earlier backup.`, { position });
}

const PREFIX_BYTES = 4;

/** Walks the records of a chunk file that passes by in pieces, and notes their earliest and latest time. */
export class RecordTimes {
  readonly #path: string;
  /** File offsets: of the next record, and where the data ends. */
  #at: number;
  readonly #end: number;
  /** File offset of the next piece. */
  #seen = 0;
  /** A record of which a part lay in the pieces so far. */
  #split: Uint8Array | null = null;
  #splitFilled = 0;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();
  fromMs: number | null = null;
  toMs: number | null = null;

  /** The data lies in [from, to) of the file. */
  constructor(path: string, from: number, to: number) {
    this.#path = path;
    this.#at = from;
    this.#end = to;
  }

  /** Throws `log_corrupt` for what is no record: a damaged chunk must not pass for a backup. */
  push(piece: Uint8Array): void {
    const start = this.#seen;
    this.#seen += piece.length;
    const end = Math.min(this.#seen, this.#end);
    if (this.#split !== null) this.#fill(piece.subarray(0, Math.max(0, end - start)));
    while (this.#split === null && this.#at < end) {
      const offset = this.#at - start;
      const left = end - this.#at;
      const size = left < PREFIX_BYTES ? 0 : this.#sizeOf(i32(piece, offset));
      if (size > 0 && size <= left) this.#take(piece, offset, size);
      else {
        this.#split = new Uint8Array(size === 0 ? PREFIX_BYTES : size);
        this.#splitFilled = 0;
        this.#fill(piece.subarray(offset, offset + left));
      }
    }
  }

  finish(): void {
    if (this.#at !== this.#end) throw this.#corrupt('data that ends inside a record');
  }

  /** Adds to the record that was begun, and takes it when it is whole. */
  #fill(bytes: Uint8Array): void {
    let used = 0;
    while (this.#split !== null && used < bytes.length) {
      const part = bytes.subarray(used, used + this.#split.length - this.#splitFilled);
      this.#split.set(part, this.#splitFilled);
      this.#splitFilled += part.length;
      used += part.length;
      if (this.#splitFilled < this.#split.length) return;
      if (this.#split.length === PREFIX_BYTES) {
        const whole = new Uint8Array(this.#sizeOf(i32(this.#split, 0)));
        whole.set(this.#split);
        this.#split = whole;
      } else {
        this.#take(this.#split, 0, this.#split.length);
        this.#split = null;
      }
    }
  }

  #sizeOf(length: number): number {
    if (!isRecordLength(length) || this.#at + length + FRAME_BYTES > this.#end) throw this.#corrupt(`a record length of ${length}`);
    return length + FRAME_BYTES;
  }

  #take(bytes: Uint8Array, offset: number, size: number): void {
    const frame = this.#frame;
    // Of a chunk file alone nobody knows where its records stood before a scavenge.
    if (takeFrame(frame, bytes, offset, size - FRAME_BYTES, -1) !== FRAME_SOUND) throw this.#corrupt('a record whose two lengths differ');
    this.#note(bytes);
    this.#at += size;
  }

  #note(bytes: Uint8Array): void {
    const frame = this.#frame;
    if (frame.type > SYSTEM) throw this.#corrupt(`a record of type ${frame.type}`);
    const ms = timestampMsAt(bytes, recordTimestampAt(frame, this.#fields));
    if (this.fromMs === null || ms < this.fromMs) this.fromMs = ms;
    if (this.toMs === null || ms > this.toMs) this.toMs = ms;
  }

  #corrupt(what: string): SkuaError {
    return new SkuaError('log_corrupt', `Chunk file ${this.#path} holds ${what} at offset ${this.#at}, so it can't be backed up as it is. Run \`skua verify\` on the stopped directory; if it confirms the damage, restore the file from an earlier backup.`, { file: this.#path, offset: this.#at });
  }
}
