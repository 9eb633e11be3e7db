import { i32 } from '../../base/bytes.ts';
import { FRAME_BYTES, FRAME_LENGTHS_DIFFER, FRAME_SOUND, isRecordLength, RecordFrame, takeFrame } from './records.ts';

/** Bytes that hold the length of a record. */
const PREFIX_BYTES = 4;
const NO_BYTES = new Uint8Array(0);

/** A stretch of log, or of a chunk's data, that is to be cut into records. */
export interface Stretch {
  /** Position of the first record; -1 where each record names its own, as in a scavenged chunk. */
  readonly position: number;
  /** Bytes of all records together; left out where that is not known. */
  readonly bytes?: number;
  /** Positions that its records may have, where that is known: from the first to before the second. */
  readonly between?: readonly [number, number];
  /** The error for what is no record, so many bytes behind the beginning. */
  fail(at: number, what: string): Error;
}

/**
 * Cuts a stretch of log that comes in pieces into its records: `take` a piece, ask for the `next` record until there is
 * none, and `finish` behind the last piece.
 */
export class RecordCutter {
  /** The record found last: a view of its piece, or a copy where two pieces share it. */
  readonly frame = new RecordFrame();
  /** Bytes of all records that were found. */
  passedBytes = 0;
  readonly #stretch: Stretch;
  readonly #bytes: number;
  readonly #from: number;
  readonly #to: number;
  #piece: Uint8Array = NO_BYTES;
  #offset = 0;
  /** A record of which a part lay in the pieces so far; only its length at first, when not even that was whole. */
  #split: Uint8Array | null = null;
  #splitFilled = 0;

  constructor(stretch: Stretch) {
    this.#stretch = stretch;
    this.#bytes = stretch.bytes ?? Number.MAX_SAFE_INTEGER;
    [this.#from, this.#to] = stretch.between ?? [0, Number.MAX_SAFE_INTEGER];
  }

  /** Takes the piece that follows. The records of the one before must have been asked for. */
  take(piece: Uint8Array): void {
    this.#piece = piece;
    this.#offset = this.#split === null ? 0 : this.#fillSplit(piece);
  }

  /**
   * Shows the next record in `frame`; false where none is whole. What is left of the piece is kept as a copy then.
   * Throws the stretch's error.
   */
  next(): boolean {
    const { frame } = this;
    const position = this.#stretch.position < 0 ? -1 : this.#stretch.position + this.passedBytes;
    let found: number;
    if (this.#split !== null) {
      if (this.#splitFilled < this.#split.length || this.#splitFilled <= PREFIX_BYTES) return false;
      found = takeFrame(frame, this.#split, 0, this.#split.length - FRAME_BYTES, position);
      this.#split = null;
    } else {
      const left = this.#piece.length - this.#offset;
      const size = left < PREFIX_BYTES ? 0 : this.#sizeOf(i32(this.#piece, this.#offset));
      if (size === 0 || size > left) {
        if (left > 0) this.#startSplit(size);
        return false;
      }
      found = takeFrame(frame, this.#piece, this.#offset, size - FRAME_BYTES, position);
      this.#offset += size;
    }
    if (found === FRAME_LENGTHS_DIFFER) throw this.#stretch.fail(this.passedBytes, 'a record whose two lengths differ');
    if (found !== FRAME_SOUND || !(frame.position >= this.#from && frame.position < this.#to))
      throw this.#stretch.fail(this.passedBytes, `a record that names position ${frame.position}`);
    this.passedBytes += frame.length + FRAME_BYTES;
    return true;
  }

  /** Passes all records that become whole with this piece, none of which is looked at. */
  pass(piece: Uint8Array): void {
    this.take(piece);
    while (this.next());
  }

  /** Throws where the last piece ended inside a record. */
  finish(): void {
    if (this.#split !== null) throw this.#stretch.fail(this.passedBytes, 'a record that reaches beyond the data');
  }

  #sizeOf(length: number): number {
    if (!isRecordLength(length) || this.passedBytes + length + FRAME_BYTES > this.#bytes)
      throw this.#stretch.fail(this.passedBytes, `a record length of ${length}`);
    return length + FRAME_BYTES;
  }

  /** Keeps the beginning of a record that goes on in the next piece; of size 0 where that is not known yet. */
  #startSplit(size: number): void {
    const part = this.#piece.subarray(this.#offset);
    this.#split = new Uint8Array(size === 0 ? PREFIX_BYTES : size);
    this.#split.set(part, 0);
    this.#splitFilled = part.length;
    this.#offset = this.#piece.length;
  }

  /** Adds to the record that was begun, and returns how much of the piece went into it. */
  #fillSplit(piece: Uint8Array): number {
    let used = 0;
    let split = this.#split!;
    if (this.#splitFilled < PREFIX_BYTES) {
      used = Math.min(PREFIX_BYTES - this.#splitFilled, piece.length);
      split.set(piece.subarray(0, used), this.#splitFilled);
      this.#splitFilled += used;
      if (this.#splitFilled < PREFIX_BYTES) return used;
      const whole = new Uint8Array(this.#sizeOf(i32(split, 0)));
      whole.set(split, 0);
      this.#split = split = whole;
    }
    const more = Math.min(split.length - this.#splitFilled, piece.length - used);
    split.set(piece.subarray(used, used + more), this.#splitFilled);
    this.#splitFilled += more;
    return used + more;
  }
}
