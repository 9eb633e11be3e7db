import { SkuaError } from '../../base/errors.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { fileClosed, fileReadOnly, type StorageFile } from '../../ports/storage.ts';

/** Most bytes that one handle reads ahead of a sequential reader. */
export const READ_AHEAD_BYTES_MAX = 4_194_304;
/**
 * Reads of at most this many bytes (headers, footers) are remembered with the file, since every job asks for them
 * again.
 */
const SMALL_READ_BYTES_MAX = 256;
const SMALL_READS_MAX = 8;

/** Bytes [from, from + length) of a file: a range of an object, or bytes in memory. */
export interface BasePart {
  readonly from: number;
  readonly length: number;
  readonly source: { readonly key: string; readonly offset: number } | Uint8Array;
}

/** A file that never changes, put together from parts that follow one another without gaps. */
export class BaseFile {
  readonly sizeBytes: number;
  readonly parts: readonly BasePart[];
  readonly #objects: ObjectStore;
  readonly #small = new Map<string, Uint8Array>();

  constructor(objects: ObjectStore, parts: readonly BasePart[]) {
    this.#objects = objects;
    this.parts = parts;
    const last = parts.at(-1);
    this.sizeBytes = last === undefined ? 0 : last.from + last.length;
  }

  /** One object, whole. */
  static ofObject(objects: ObjectStore, key: string, sizeBytes: number): BaseFile {
    return new BaseFile(objects, [{ from: 0, length: sizeBytes, source: { key, offset: 0 } }]);
  }

  static ofBytes(objects: ObjectStore, bytes: Uint8Array): BaseFile {
    return new BaseFile(objects, [{ from: 0, length: bytes.length, source: bytes }]);
  }

  /** The object that is the whole file; null when it is none. */
  get key(): string | null {
    const [only] = this.parts;
    return this.parts.length !== 1 || only === undefined || only.source instanceof Uint8Array ? null : only.source.key;
  }

  /** The content, where it is in memory as one piece. */
  get bytes(): Uint8Array | null {
    const [only] = this.parts;
    return this.parts.length === 1 && only?.source instanceof Uint8Array ? only.source : null;
  }

  /** Bytes [from, to), which lie in the file: one request for each object that has some of them. */
  async read(path: string, from: number, to: number): Promise<Uint8Array> {
    const isSmall = to - from <= SMALL_READ_BYTES_MAX;
    const known = isSmall ? this.#small.get(`${from}-${to}`) : undefined;
    if (known !== undefined) return known;
    const bytes = await this.#gather(path, from, to);
    if (isSmall && this.#small.size < SMALL_READS_MAX) this.#small.set(`${from}-${to}`, bytes);
    return bytes;
  }

  async #gather(path: string, from: number, to: number): Promise<Uint8Array> {
    const wanted = this.parts.filter((part) => part.from < to && part.from + part.length > from);
    const pieces = await Promise.all(
      wanted.map((part) =>
        this.#readPart(path, part, Math.max(from, part.from), Math.min(to, part.from + part.length)),
      ),
    );
    if (pieces.length === 1) return pieces[0]!;
    const out = new Uint8Array(to - from);
    let at = 0;
    for (const piece of pieces) {
      out.set(piece, at);
      at += piece.length;
    }
    return out;
  }

  async #readPart(path: string, part: BasePart, from: number, to: number): Promise<Uint8Array> {
    const { source } = part;
    if (source instanceof Uint8Array) return source.subarray(from - part.from, to - part.from);
    const length = to - from;
    const bytes = await this.#objects.get(source.key, { from: source.offset + from - part.from, length });
    if (bytes === null)
      throw new SkuaError(
        'io_error',
        `The object ${source.key}, which holds ${path}, is gone: a newer manifest has dropped it, and this work took longer than it is kept. Start again with the newest manifest.`,
        { path, key: source.key },
      );
    if (bytes.length !== length)
      throw new SkuaError(
        'io_error',
        `The object ${source.key}, which holds ${path}, is too short: ${bytes.length} of ${length} bytes from ${from}. Restore it from a backup.`,
        { path, key: source.key, offset: from },
      );
    return bytes;
  }
}

/** What was read ahead, or is on its way. */
interface Window {
  readonly from: number;
  readonly to: number;
  readonly bytes: Promise<Uint8Array>;
}

/**
 * An open base file. A reader that goes through it from front to back gets a window that doubles up to
 * READ_AHEAD_BYTES_MAX, so that a scan costs one request for every 4 MiB; single reads cost one request each.
 */
export class BaseHandle implements StorageFile {
  readonly path: string;
  readonly #file: BaseFile;
  #isOpen = true;
  #window: Window | null = null;
  /** Where the last read ended; one that begins here is sequential. */
  #expected = 0;
  #aheadBytes = 0;

  constructor(path: string, file: BaseFile) {
    this.path = path;
    this.#file = file;
  }

  get size(): number {
    return this.#file.sizeBytes;
  }

  read(position: number, length: number): Uint8Array | Promise<Uint8Array> {
    if (!this.#isOpen) throw fileClosed(this.path);
    const end = Math.min(position + length, this.size);
    const inMemory = this.#file.bytes;
    if (inMemory !== null) return inMemory.subarray(Math.min(position, this.size), Math.max(position, end));
    return end <= position ? Promise.resolve(new Uint8Array(0)) : this.#read(position, end);
  }

  async #read(from: number, to: number): Promise<Uint8Array> {
    let window = this.#window;
    const isInWindow = window !== null && from >= window.from && to <= window.to;
    if (!isInWindow) {
      window = this.#fetch(from, to);
      this.#window = window.to > to ? window : null;
    } else if (to === window!.to) {
      // A reader that reads on wants what comes behind it, and these no more.
      this.#window = null;
    }
    this.#expected = to;
    const { from: start, bytes } = window!;
    try {
      const got = await bytes;
      return got.length === to - from ? got : got.subarray(from - start, to - start);
    } catch (error) {
      // The next read asks again.
      if (this.#window === window) this.#window = null;
      throw error;
    }
  }

  #fetch(from: number, to: number): Window {
    const isSequential = from === this.#expected && from > 0;
    this.#aheadBytes = isSequential
      ? Math.min(Math.max(2 * this.#aheadBytes, 2 * (to - from)), READ_AHEAD_BYTES_MAX)
      : 0;
    const end = Math.min(this.size, Math.max(to, from + this.#aheadBytes));
    return { from, to: end, bytes: this.#file.read(this.path, from, end) };
  }

  writeAt(): void {
    throw this.#isOpen ? fileReadOnly(this.path) : fileClosed(this.path);
  }

  async truncate(): Promise<void> {
    throw this.#isOpen ? fileReadOnly(this.path) : fileClosed(this.path);
  }

  async sync(): Promise<void> {
    if (!this.#isOpen) throw fileClosed(this.path);
  }

  async seal(): Promise<void> {
    if (!this.#isOpen) throw fileClosed(this.path);
  }

  /** Reads that are under way end by themselves. */
  async close(): Promise<void> {
    this.#isOpen = false;
    this.#window = null;
  }
}
