import { i32 } from '../bytes.ts';
import { SkuaError } from '../errors.ts';
import { FRAME_BYTES, PrepareFields, RECORD_BYTES_MAX, RecordFrame, recordTimestampAt, SYSTEM, timestampMsAt } from '../log/records.ts';

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
    if (length <= 0 || length > RECORD_BYTES_MAX || this.#at + length + FRAME_BYTES > this.#end) throw this.#corrupt(`a record length of ${length}`);
    return length + FRAME_BYTES;
  }

  #take(bytes: Uint8Array, offset: number, size: number): void {
    const frame = this.#frame;
    frame.bytes = bytes;
    frame.at = offset + PREFIX_BYTES;
    frame.length = size - FRAME_BYTES;
    frame.position = frame.ownPosition;
    if (i32(bytes, offset + size - PREFIX_BYTES) !== frame.length) throw this.#corrupt('a record whose two lengths differ');
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
