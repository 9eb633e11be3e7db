import type { Storage, StorageFile, StorageLock } from '../../core/ports/storage.ts';
import { Crash } from '../support/crash.ts';

/**
 * A process that is killed before one of its changing calls reaches the storage beneath. Other than after a power loss
 * the storage itself goes on: what was written and not synced can be read by the next process, and lost by a power
 * loss after that.
 */
export class KillableStorage implements Storage {
  readonly #inner: Storage;
  #left: number;

  constructor(inner: Storage, callsLeft: number) {
    this.#inner = inner;
    this.#left = callsLeft;
  }

  list(folder: string): Promise<string[]> {
    return this.#inner.list(folder);
  }
  size(path: string): Promise<number | null> {
    return this.#inner.size(path);
  }
  modifiedMs(path: string): Promise<number | null> {
    return this.#inner.modifiedMs(path);
  }
  freeBytes(): Promise<number> {
    return this.#inner.freeBytes();
  }
  lock(): Promise<StorageLock> {
    return this.#inner.lock();
  }
  async open(path: string, access: 'read' | 'write'): Promise<StorageFile> {
    return this.#wrap(await this.#inner.open(path, access));
  }
  async create(path: string): Promise<StorageFile> {
    this.#change();
    return this.#wrap(await this.#inner.create(path));
  }
  async rename(from: string, to: string): Promise<void> {
    this.#change();
    await this.#inner.rename(from, to);
  }
  async remove(path: string): Promise<void> {
    this.#change();
    await this.#inner.remove(path);
  }

  #change(): void {
    if (this.#left-- <= 0) throw new Crash('The process was killed.');
  }

  #wrap(file: StorageFile): StorageFile {
    const change = (): void => this.#change();
    return {
      path: file.path,
      get size() {
        return file.size;
      },
      read: (position, length) => file.read(position, length),
      writeAt(position, bytes) {
        change();
        return file.writeAt(position, bytes);
      },
      async truncate(size) {
        change();
        await file.truncate(size);
      },
      async sync() {
        change();
        await file.sync();
      },
      async seal() {
        change();
        await file.seal();
      },
      close: () => file.close(),
    };
  }
}
