import { isSkuaError } from '../base/errors.ts';
import { nonZeroRuns } from '../base/bytes.ts';
import { checkPath, checkRemoval, checkRename, fileExists, fileNotFound } from '../ports/storage.ts';
import type { Storage, StorageFile, StorageLock } from '../ports/storage.ts';

/** Bytes that are copied at a time, and of a page that is left out where it holds zeros alone. */
const COPY_BYTES = 1_048_576;
const PAGE_BYTES = 4_096;

/**
 * The files of a directory that nothing is written to, and over them a scratch storage with everything that was
 * created, written or renamed since: for programs that only look at a directory that can't be written to, with code
 * that recovers what it opens. A file that is opened for writing is copied first, without its zeros; what is open for
 * reading by then does not see what is written.
 */
export class OverStorage implements Storage {
  readonly #base: Storage;
  readonly #scratch: Storage;
  /** Names that the scratch storage has, and those of the directory that are hidden by now. */
  readonly #own = new Set<string>();
  readonly #hidden = new Set<string>();

  constructor(base: Storage, temporary: Storage) {
    this.#base = base;
    this.#scratch = temporary;
  }

  async list(folder: string): Promise<string[]> {
    const pathOf = (name: string): string => (folder === '' ? name : `${folder}/${name}`);
    const names = (await this.#base.list(folder)).filter(
      (name) => !this.#hidden.has(pathOf(name)) && !this.#own.has(pathOf(name)),
    );
    for (const name of await this.#scratch.list(folder)) if (this.#own.has(pathOf(name))) names.push(name);
    return names.sort();
  }

  size(path: string): Promise<number | null> {
    checkPath(path);
    return this.#holder(path)?.size(path) ?? Promise.resolve(null);
  }

  modifiedMs(path: string): Promise<number | null> {
    checkPath(path);
    return this.#holder(path)?.modifiedMs(path) ?? Promise.resolve(null);
  }

  async open(path: string, access: 'read' | 'write'): Promise<StorageFile> {
    checkPath(path);
    const holder = this.#holder(path);
    if (holder === null) throw fileNotFound(path);
    if (access === 'read') return holder.open(path, 'read');
    await this.bring(path);
    return this.#scratch.open(path, 'write');
  }

  async create(path: string): Promise<StorageFile> {
    if ((await this.size(path)) !== null) throw fileExists(path);
    const file = await this.#scratch.create(path);
    this.#own.add(path);
    return file;
  }

  async rename(from: string, to: string): Promise<void> {
    checkRename(from, to);
    await this.bring(from);
    await this.#scratch.rename(from, to);
    this.#own.delete(from);
    this.#hidden.add(from);
    this.#own.add(to);
  }

  async remove(path: string): Promise<void> {
    checkRemoval(path);
    this.#hidden.add(path);
    if (this.#own.delete(path)) await this.#scratch.remove(path);
  }

  freeBytes(): Promise<number> {
    return this.#scratch.freeBytes();
  }

  /**
   * As far as the directory can be locked: where the directory can't be written to, no other program that reaches it by
   * the same path can write there either.
   */
  async lock(): Promise<StorageLock> {
    try {
      return await this.#base.lock();
    } catch (error) {
      if (!isSkuaError(error, 'io_error') && !isSkuaError(error, 'file_not_found')) throw error;
      return { release: async () => {} };
    }
  }

  /** Copies a file of the directory to the scratch storage, unless it is there. */
  async bring(path: string): Promise<void> {
    if (this.#own.has(path)) return;
    if (this.#hidden.has(path)) throw fileNotFound(path);
    const source = await this.#base.open(path, 'read');
    try {
      const copy = await this.#scratch.create(path);
      try {
        for (let at = 0; at < source.size; at += COPY_BYTES) {
          const bytes = await source.read(at, Math.min(COPY_BYTES, source.size - at));
          for (const [from, to] of nonZeroRuns(bytes, PAGE_BYTES))
            await copy.writeAt(at + from, bytes.subarray(from, to));
        }
        if (copy.size !== source.size) await copy.truncate(source.size);
      } finally {
        await copy.close();
      }
    } finally {
      await source.close();
    }
    this.#own.add(path);
  }

  #holder(path: string): Storage | null {
    if (this.#own.has(path)) return this.#scratch;
    return this.#hidden.has(path) ? null : this.#base;
  }
}
