import { i32 } from '../bytes.ts';
import { SkuaError } from '../errors.ts';
import { FLAG_TRANSACTION_END, FRAME_BYTES, PREPARE, PrepareFields, RECORD_BYTES_MAX, RecordFrame, recordTimestampAt, SYSTEM, timestampMsAt } from '../log/records.ts';

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
    frame.bytes = bytes;
    frame.at = at + 4;
    frame.length = size - FRAME_BYTES;
    frame.position = this.position;
    frame.next = this.position + size;
    if (frame.ownPosition !== this.position || i32(bytes, at + size - 4) !== frame.length) throw noRecord(this.position);
    if (frame.type > SYSTEM) throw noRecord(this.position);
    this.timeMs = timestampMsAt(bytes, recordTimestampAt(frame, this.#fields));
    this.endsWrite = frame.type !== PREPARE || !this.#fields.isCommitted || (this.#fields.flags & FLAG_TRANSACTION_END) !== 0;
  }
}

/** Bytes of the record at `at` with its frame; 0 while it is not whole. */
function sizeAt(bytes: Uint8Array, at: number, position: number): number {
  if (at + 4 > bytes.length) return 0;
  const length = i32(bytes, at);
  if (length <= 0 || length > RECORD_BYTES_MAX) throw noRecord(position);
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
