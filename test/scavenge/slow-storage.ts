import type { Storage, StorageFile, StorageLock } from '../../core/ports/storage.ts';
import type { Random } from '../support/random.ts';

/**
 * Reads take some turns of the event loop, and fail when the file is closed before they end, as on a descriptor that is
 * gone.
 */
export class SlowStorage implements Storage {
  readonly #inner: Storage;
  readonly #random: Random;
  readonly #turnsMax: number;
  /** While there is a gate, reads wait for it. */
  gate: Promise<void> | null = null;
  reads = 0;

  constructor(inner: Storage, random: Random, turnsMax = 3) {
    this.#inner = inner;
    this.#random = random;
    this.#turnsMax = turnsMax;
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
  async open(path: string, access: 'read' | 'write'): Promise<StorageFile> {
    return this.#slow(await this.#inner.open(path, access));
  }
  async create(path: string): Promise<StorageFile> {
    return this.#slow(await this.#inner.create(path));
  }
  rename(from: string, to: string): Promise<void> {
    return this.#inner.rename(from, to);
  }
  remove(path: string): Promise<void> {
    return this.#inner.remove(path);
  }
  freeBytes(): Promise<number> {
    return this.#inner.freeBytes();
  }
  lock(): Promise<StorageLock> {
    return this.#inner.lock();
  }

  #slow(file: StorageFile): StorageFile {
    let isOpen = true;
    const read = async (position: number, length: number): Promise<Uint8Array> => {
      this.reads++;
      if (!isOpen) throw new Error(`${file.path} was read after it had been closed`);
      if (this.gate !== null) await this.gate;
      for (let turns = this.#random.int(0, this.#turnsMax); turns > 0; turns--) await turn();
      if (!isOpen) throw new Error(`${file.path} was closed while it was read`);
      return Uint8Array.from(await file.read(position, length));
    };
    return {
      path: file.path,
      get size() {
        return file.size;
      },
      read,
      writeAt: (position, bytes) => file.writeAt(position, bytes),
      truncate: (size) => file.truncate(size),
      sync: () => file.sync(),
      seal: () => file.seal(),
      close: async () => {
        isOpen = false;
        await file.close();
      },
    };
  }
}

export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
