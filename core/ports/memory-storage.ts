import { SkuaError } from '../errors.ts';
import { MemoryPages } from './memory-pages.ts';
import { checkPath, checkRename, fileClosed, fileExists, fileNotFound, fileReadOnly, folderOf } from './storage-path.ts';
import type { Storage, StorageFile, StorageLock } from './storage.ts';

export interface MemoryStorageOptions {
  /** Bytes of memory that all files together may hold; a write beyond fails with `disk_full`. Unlimited by default. */
  capacityBytes?: number;
}

interface MemoryFile { readonly pages: MemoryPages; handles: number; isNamed: boolean }

/**
 * Files in memory, gone with the process: the `--mem-db` option and tests. Reads never wait, and what was written is
 * as durable as it will ever be.
 */
export class MemoryStorage implements Storage {
  readonly #files = new Map<string, MemoryFile>();
  readonly #capacityBytes: number;
  /** @internal */ usedBytes = 0;
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

  async open(path: string, access: 'read' | 'write'): Promise<StorageFile> {
    checkPath(path);
    const file = this.#files.get(path);
    if (file === undefined) throw fileNotFound(path);
    return new MemoryHandle(this, path, file, access === 'write');
  }

  async create(path: string): Promise<StorageFile> {
    checkPath(path);
    if (this.#files.has(path)) throw fileExists(path);
    const file: MemoryFile = { pages: new MemoryPages(), handles: 0, isNamed: true };
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
    checkPath(path);
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
    if (this.#isLocked) throw new SkuaError('directory_locked', 'The data in memory is already in use by another store of this process: close that one first.', { path: '' });
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
      throw new SkuaError('disk_full', `Writing to ${path} would exceed the ${this.#capacityBytes} bytes that the data in memory may take. Delete events and scavenge, or allow more.`, { path, limit: this.#capacityBytes });
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

  get size(): number { return this.#file.pages.size; }

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
  }

  async truncate(size: number): Promise<void> {
    this.#checkWritable();
    const before = this.#file.pages.allocatedBytes;
    this.#file.pages.truncate(size);
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
