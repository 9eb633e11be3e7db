import type { StorageFile } from '../ports/storage.ts';

/** Bytes read at once. */
const READ_BYTES = 1_048_576;
const NOTHING = new Uint8Array(0);

/**
 * Goes through a file in large blocks, each of which also shows the beginning of the next one, so that nothing that
 * reaches over a boundary is missed.
 */
export class FileWindow {
  readonly file: StorageFile;
  readonly size: number;
  readonly #overlap: number;
  /** What lies at `start` and the `overlap` bytes behind the block. */
  bytes: Uint8Array = NOTHING;
  start = 0;
  /** Bytes of the block itself. */
  length = 0;
  /** The block after it, which is read while this one is looked at. */
  #ahead: Promise<Uint8Array> | null = null;

  constructor(file: StorageFile, overlap: number) {
    this.file = file;
    this.size = file.size;
    this.#overlap = overlap;
  }

  /** Loads the next block; false at the end. A file that has become shorter ends early. */
  async next(): Promise<boolean> {
    this.start += this.length;
    this.length = Math.min(READ_BYTES, this.size - this.start);
    if (this.length <= 0) return false;
    this.bytes = await (this.#ahead ?? this.#read(this.start));
    this.length = Math.min(this.length, this.bytes.length);
    const next = this.start + this.length;
    this.#ahead = next < this.size ? this.#read(next) : null;
    return this.length > 0;
  }

  #read(start: number): Promise<Uint8Array> {
    const reading = Promise.resolve(this.file.read(start, Math.min(READ_BYTES, this.size - start) + this.#overlap));
    // Its error is met when the block is due.
    reading.catch(() => {});
    return reading;
  }

  /** The bytes [offset, offset + length) of the file as far as they exist, without moving. */
  peek(offset: number, length: number): Uint8Array | Promise<Uint8Array> {
    const from = Math.max(0, offset);
    const count = offset + length - from;
    if (count <= 0) return NOTHING;
    const local = from - this.start;
    if (local >= 0 && local + count <= this.bytes.length) return this.bytes.subarray(local, local + count);
    return this.file.read(from, count);
  }
}
