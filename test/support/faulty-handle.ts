import { fileClosed, fileReadOnly } from '../../core/ports/storage.ts';
import type { StorageFile } from '../../core/ports/storage.ts';
import type { FaultyFile } from './faulty-file.ts';
import type { FaultyStorage } from './faulty-storage.ts';

/**
 * Writes larger than this take their bytes a moment after the call, as a thread pool does: whoever uses the buffer
 * again before the promise ends, writes garbage.
 */
const WRITE_AT_ONCE_BYTES_MAX = 65_536;

export class FaultyHandle implements StorageFile {
  readonly path: string;
  readonly #storage: FaultyStorage;
  readonly #file: FaultyFile;
  #size: number;
  #isWritable: boolean;
  #isOpen = true;

  constructor(storage: FaultyStorage, path: string, file: FaultyFile, isWritable: boolean) {
    this.#storage = storage;
    this.path = path;
    this.#file = file;
    this.#size = file.current.size;
    this.#isWritable = isWritable;
    file.handles++;
  }

  get size(): number {
    return this.#size;
  }

  read(position: number, length: number): Uint8Array | Promise<Uint8Array> {
    if (!this.#isOpen) throw fileClosed(this.path);
    return this.#storage.read(this.path, this.#file, position, length);
  }

  readNow(position: number, length: number, into: Uint8Array, at: number): number {
    if (!this.#isOpen) throw fileClosed(this.path);
    return this.#storage.readAlone(this.path, this.#file, position, length, into, at);
  }

  writeAt(position: number, bytes: Uint8Array): void | Promise<void> {
    this.#checkWritable();
    if (bytes.length > WRITE_AT_ONCE_BYTES_MAX) return Promise.resolve().then(() => this.#write(position, bytes));
    this.#write(position, bytes);
  }

  #write(position: number, bytes: Uint8Array): void {
    this.#storage.mutate(
      'writeAt',
      this.path,
      position,
      bytes.length,
      () => this.#storage.write(this.path, this.#file, position, bytes),
      (random) => this.#storage.resized(this.#file, () => this.#file.writeSome(position, bytes, random)),
    );
    if (bytes.length > 0) this.#size = Math.max(this.#size, position + bytes.length);
  }

  async truncate(size: number): Promise<void> {
    this.#checkWritable();
    this.#storage.mutate('truncate', this.path, 0, size, () =>
      this.#storage.resized(this.#file, () => this.#file.truncate(size)),
    );
    this.#size = size;
  }

  async sync(): Promise<void> {
    if (!this.#isOpen) throw fileClosed(this.path);
    const file = this.#file;
    if (file.syncHasFailed) this.#storage.violations.push(`sync of ${this.path} was repeated after it had failed`);
    this.#storage.mutate(
      'sync',
      this.path,
      0,
      0,
      () => file.sync(),
      (random) => file.failSync(random),
    );
  }

  async seal(): Promise<void> {
    if (!this.#isOpen) throw fileClosed(this.path);
    this.#storage.mutate('seal', this.path, 0, 0, () => {
      this.#file.isSealed = true;
    });
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
