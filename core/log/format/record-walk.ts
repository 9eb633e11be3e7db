import { SkuaError } from '../../base/errors.ts';
import { RecordCutter } from './record-cutter.ts';
import {
  FLAG_TRANSACTION_END,
  FRAME_BYTES,
  PREPARE,
  PrepareFields,
  type RecordFrame,
  recordTimestampAt,
  SYSTEM,
  timestampMsAt,
} from './records.ts';

/**
 * Walks the records of unscavenged log that comes in pieces, and knows where the log can end: behind a record that ends
 * its write. A write of several events ends with the last of them. Of an explicit transaction nothing counts before its
 * commit record, so that its prepares are no obstacle.
 */
export class RecordWalk {
  /** Position of the next record. */
  position: number;
  /** The last position passed where the log can end; where the walk began before the first. */
  end: number;
  /** What `end` was before the record visited last. */
  before: number;
  /** Of the record visited last. */
  readonly frame: RecordFrame;
  endsWrite = false;
  timeMs = 0;
  readonly #fields = new PrepareFields();
  readonly #cutter: RecordCutter;

  /** `start` must be a position where the log can end, or its beginning. */
  constructor(start: number) {
    this.position = start;
    this.end = start;
    this.before = start;
    this.#cutter = new RecordCutter({ position: start, fail: (at) => noRecord(start + at) });
    this.frame = this.#cutter.frame;
  }

  /**
   * Visits the records that become whole with these bytes, each when it has been passed; false from `visit` ends the
   * walk, and is returned.
   */
  push(bytes: Uint8Array, visit: (walk: RecordWalk) => boolean): boolean {
    const cutter = this.#cutter;
    cutter.take(bytes);
    while (cutter.next()) {
      const { frame } = this;
      if (frame.type > SYSTEM) throw noRecord(this.position);
      this.timeMs = timestampMsAt(frame.bytes, recordTimestampAt(frame, this.#fields));
      this.endsWrite =
        frame.type !== PREPARE || !this.#fields.isCommitted || (this.#fields.flags & FLAG_TRANSACTION_END) !== 0;
      this.position = frame.next;
      this.before = this.end;
      if (this.endsWrite) this.end = this.position;
      if (!visit(this)) return false;
    }
    return true;
  }
}

function noRecord(position: number): SkuaError {
  return new SkuaError(
    'log_corrupt',
    `The backup holds no valid record at position ${position}: the log was damaged when it was backed up. Restore an earlier backup.`,
    { position },
  );
}

/** Walks the records of a chunk file that passes by in pieces, and notes their earliest and latest time. */
export class RecordTimes {
  readonly #cutter: RecordCutter;
  readonly #fields = new PrepareFields();
  readonly #fail: (at: number, what: string) => SkuaError;
  /** Where the data lies in the file. */
  readonly #from: number;
  readonly #to: number;
  /** File offset of the next piece. */
  #seen = 0;
  fromMs: number | null = null;
  toMs: number | null = null;

  /** The data lies in [from, to) of the file. */
  constructor(path: string, from: number, to: number) {
    this.#from = from;
    this.#to = to;
    this.#fail = (at, what) =>
      new SkuaError(
        'log_corrupt',
        `Chunk file ${path} holds ${what} at offset ${from + at}, so it can't be backed up. Run \`skua verify\` on the stopped directory; if it confirms the damage, restore the file from an earlier backup.`,
        { file: path, offset: from + at },
      );
    // From a chunk file alone it is not known where its records stood before a scavenge.
    this.#cutter = new RecordCutter({ position: -1, bytes: to - from, fail: this.#fail });
  }

  /** Throws `log_corrupt` for what is no record: a damaged chunk must not pass for a backup. */
  push(piece: Uint8Array): void {
    const start = this.#seen;
    this.#seen += piece.length;
    const cutter = this.#cutter;
    const { frame } = cutter;
    cutter.take(piece.subarray(Math.max(0, this.#from - start), Math.max(0, this.#to - start)));
    while (cutter.next()) {
      if (frame.type > SYSTEM)
        throw this.#fail(cutter.passedBytes - frame.length - FRAME_BYTES, `a record of type ${frame.type}`);
      const ms = timestampMsAt(frame.bytes, recordTimestampAt(frame, this.#fields));
      if (this.fromMs === null || ms < this.fromMs) this.fromMs = ms;
      if (this.toMs === null || ms > this.toMs) this.toMs = ms;
    }
  }

  finish(): void {
    if (this.#cutter.passedBytes !== this.#to - this.#from)
      throw this.#fail(this.#cutter.passedBytes, 'data that ends inside a record');
  }
}
