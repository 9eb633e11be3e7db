import { SkuaError } from '../base/errors.ts';
import { isDataName, isExpectedName } from '../ports/own-names.ts';
import {
  checkPath,
  checkRemoval,
  checkRename,
  fileClosed,
  fileExists,
  fileNotFound,
  fileReadOnly,
  folderOf,
  notADataDirectory,
} from '../ports/storage.ts';
import type { Storage, StorageFile, StorageLock } from '../ports/storage.ts';

export interface MemoryStorageOptions {
  /** Bytes of memory that all files together may hold; a write beyond fails with `disk_full`. Unlimited by default. */
  capacityBytes?: number;
}

interface MemoryFile {
  readonly pages: MemoryPages;
  handles: number;
  isNamed: boolean;
  modified: number;
}

/**
 * Files in memory, gone with the process: the `--mem-db` option and tests. Reads never wait, and what was written is
 * as durable as it will ever be.
 */
export class MemoryStorage implements Storage {
  readonly #files = new Map<string, MemoryFile>();
  readonly #capacityBytes: number;
  /** @internal */ usedBytes = 0;
  /** @internal Changes of content so far, which take the place of a clock. */ changes = 0;
  #isLocked = false;

  constructor(options: MemoryStorageOptions = {}) {
    this.#capacityBytes = options.capacityBytes ?? Number.MAX_SAFE_INTEGER;
  }

  async list(folder: string): Promise<string[]> {
    if (folder !== '') checkPath(folder);
    const names: string[] = [];
    for (const path of this.#files.keys()) {
      if (folderOf(path) === folder) names.push(folder === '' ? path : path.slice(folder.length + 1));
    }
    return names.sort();
  }

  async size(path: string): Promise<number | null> {
    checkPath(path);
    return this.#files.get(path)?.pages.size ?? null;
  }

  async modifiedMs(path: string): Promise<number | null> {
    checkPath(path);
    return this.#files.get(path)?.modified ?? null;
  }

  async open(path: string, access: 'read' | 'write'): Promise<StorageFile> {
    checkPath(path);
    const file = this.#files.get(path);
    if (file === undefined) throw fileNotFound(path);
    return new MemoryHandle(this, path, file, access === 'write');
  }

  async create(path: string): Promise<StorageFile> {
    checkPath(path);
    if (this.#files.has(path)) throw fileExists(path);
    const file: MemoryFile = { pages: new MemoryPages(), handles: 0, isNamed: true, modified: ++this.changes };
    this.#files.set(path, file);
    return new MemoryHandle(this, path, file, true);
  }

  async rename(from: string, to: string): Promise<void> {
    checkRename(from, to);
    const file = this.#files.get(from);
    if (file === undefined) throw fileNotFound(from);
    if (from === to) return;
    this.#unlink(to);
    this.#files.delete(from);
    this.#files.set(to, file);
  }

  async remove(path: string): Promise<void> {
    checkRemoval(path);
    this.#unlink(path);
  }

  #unlink(path: string): void {
    const file = this.#files.get(path);
    if (file === undefined) return;
    this.#files.delete(path);
    file.isNamed = false;
    this.freeIfUnused(file);
  }

  async freeBytes(): Promise<number> {
    return Math.max(0, this.#capacityBytes - this.usedBytes);
  }

  async lock(): Promise<StorageLock> {
    if (this.#isLocked)
      throw new SkuaError(
        'directory_locked',
        'The in-memory data is already in use by another store of this process: close that one first.',
        { path: '' },
      );
    const paths = [...this.#files.keys()];
    const strangers = paths.some(isDataName) ? [] : paths.filter((path) => !isExpectedName(path));
    if (strangers.length > 0) throw notADataDirectory('The directory in memory', strangers);
    this.#isLocked = true;
    let isHeld = true;
    return {
      release: async () => {
        if (isHeld) this.#isLocked = false;
        isHeld = false;
      },
    };
  }

  /** @internal Throws `disk_full` when `bytes` more don't fit. */
  reserve(path: string, bytes: number): void {
    if (this.usedBytes + bytes > this.#capacityBytes) {
      throw new SkuaError(
        'disk_full',
        `Writing to ${path} would exceed the ${this.#capacityBytes} bytes allowed for in-memory data. Delete events and scavenge, or raise the limit.`,
        { path, limit: this.#capacityBytes },
      );
    }
  }

  /** @internal */
  freeIfUnused(file: MemoryFile): void {
    if (file.isNamed || file.handles > 0) return;
    this.usedBytes -= file.pages.allocatedBytes;
    file.pages.truncate(0);
  }
}

class MemoryHandle implements StorageFile {
  readonly path: string;
  readonly #storage: MemoryStorage;
  readonly #file: MemoryFile;
  #isWritable: boolean;
  #isOpen = true;

  constructor(storage: MemoryStorage, path: string, file: MemoryFile, isWritable: boolean) {
    this.#storage = storage;
    this.path = path;
    this.#file = file;
    this.#isWritable = isWritable;
    file.handles++;
  }

  get size(): number {
    return this.#file.pages.size;
  }

  read(position: number, length: number): Uint8Array {
    if (!this.#isOpen) throw fileClosed(this.path);
    return this.#file.pages.read(position, length);
  }

  writeAt(position: number, bytes: Uint8Array): void {
    this.#checkWritable();
    const pages = this.#file.pages;
    const growth = pages.growth(position, bytes.length);
    if (growth > 0) {
      this.#storage.reserve(this.path, growth);
      this.#storage.usedBytes += growth;
    }
    if (bytes.length > 0) pages.write(position, bytes);
    this.#file.modified = ++this.#storage.changes;
  }

  async truncate(size: number): Promise<void> {
    this.#checkWritable();
    const before = this.#file.pages.allocatedBytes;
    this.#file.pages.truncate(size);
    this.#file.modified = ++this.#storage.changes;
    this.#storage.usedBytes += this.#file.pages.allocatedBytes - before;
  }

  async sync(): Promise<void> {
    if (!this.#isOpen) throw fileClosed(this.path);
  }

  async seal(): Promise<void> {
    if (!this.#isOpen) throw fileClosed(this.path);
    this.#isWritable = false;
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#file.handles--;
    this.#storage.freeIfUnused(this.#file);
  }

  #checkWritable(): void {
    if (!this.#isOpen) throw fileClosed(this.path);
    if (!this.#isWritable) throw fileReadOnly(this.path);
  }
}

/** Largest unit of allocation in bytes. Blocks of the block cache lie inside one page, so they are read as views. */
export const PAGE_BYTES = 1_048_576;
/** First allocation of a page in bytes: small files stay small. */
const PAGE_BYTES_MIN = 4_096;

const NOTHING = new Uint8Array(0);
/** Where ranges that were never written are read from. No caller writes to what `read` returns. */
const ZEROS = new Uint8Array(PAGE_BYTES);

/**
 * The bytes of one sparse file in memory. A page is allocated when something is written to it and grows by doubling up
 * to PAGE_BYTES, so a chunk file with its full length from the start costs nothing until it is filled.
 */
export class MemoryPages {
  readonly #pages: (Uint8Array | undefined)[] = [];
  size = 0;
  /** Bytes of memory held by the pages. */
  allocatedBytes = 0;

  /** A view where the range lies in one page, else a copy; fewer bytes than asked for at the end of the file. */
  read(position: number, length: number): Uint8Array {
    const end = Math.min(position + length, this.size);
    if (end <= position) return NOTHING;
    const index = Math.floor(position / PAGE_BYTES);
    const from = position - index * PAGE_BYTES;
    const to = end - index * PAGE_BYTES;
    if (to <= PAGE_BYTES) {
      const page = this.#pages[index];
      if (page === undefined) return ZEROS.subarray(from, to);
      if (to <= page.length) return page.subarray(from, to);
    }
    return this.#copy(position, end);
  }

  #copy(position: number, end: number): Uint8Array {
    const out = new Uint8Array(end - position);
    for (let at = position; at < end;) {
      const index = Math.floor(at / PAGE_BYTES);
      const from = at - index * PAGE_BYTES;
      const to = Math.min(end - index * PAGE_BYTES, PAGE_BYTES);
      const page = this.#pages[index];
      if (page !== undefined && from < page.length)
        out.set(page.subarray(from, Math.min(to, page.length)), at - position);
      at += to - from;
    }
    return out;
  }

  /** Bytes of memory that a write of this range would add. */
  growth(position: number, length: number): number {
    const end = position + length;
    let bytes = 0;
    for (let at = position; at < end;) {
      const index = Math.floor(at / PAGE_BYTES);
      const to = Math.min(end - index * PAGE_BYTES, PAGE_BYTES);
      const held = this.#pages[index]?.length ?? 0;
      if (to > held) bytes += pageBytes(held, to) - held;
      at = index * PAGE_BYTES + to;
    }
    return bytes;
  }

  write(position: number, bytes: Uint8Array): void {
    const end = position + bytes.length;
    for (let at = position; at < end;) {
      const index = Math.floor(at / PAGE_BYTES);
      const from = at - index * PAGE_BYTES;
      const to = Math.min(end - index * PAGE_BYTES, PAGE_BYTES);
      const part = to - from === bytes.length ? bytes : bytes.subarray(at - position, at - position + to - from);
      this.#page(index, to).set(part, from);
      at += to - from;
    }
    if (end > this.size) this.size = end;
  }

  /** The page with at least `bytes` bytes of memory. */
  #page(index: number, bytes: number): Uint8Array {
    const page = this.#pages[index];
    const held = page?.length ?? 0;
    if (page !== undefined && held >= bytes) return page;
    const grown = new Uint8Array(pageBytes(held, bytes));
    if (page !== undefined) grown.set(page);
    this.#pages[index] = grown;
    this.allocatedBytes += grown.length - held;
    return grown;
  }

  truncate(size: number): void {
    if (size < this.size) {
      const keep = Math.ceil(size / PAGE_BYTES);
      for (let i = keep; i < this.#pages.length; i++) this.allocatedBytes -= this.#pages[i]?.length ?? 0;
      if (this.#pages.length > keep) this.#pages.length = keep;
      // What lies beyond the end must read as zeros should the file grow again.
      const inLast = size - (keep - 1) * PAGE_BYTES;
      if (keep > 0) this.#pages[keep - 1]?.fill(0, inLast);
    }
    this.size = size;
  }
}

function pageBytes(held: number, needed: number): number {
  let bytes = Math.max(held, PAGE_BYTES_MIN);
  while (bytes < needed) bytes *= 2;
  return bytes;
}
