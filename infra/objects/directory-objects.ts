import { open, rename, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import * as path from 'node:path';
import { checkKey, checkPrefix, checkSmall, OBJECT_LIST_MAX, throwIfAborted } from '../../core/ports/object-store.ts';
import type { GetOptions, ListOptions, ObjectInfo, ObjectPage, ObjectStore } from '../../core/ports/object-store.ts';
import { systemCode } from '../fs/errors.ts';
import { infoOf, infosOf, walkKeys } from './directory-walk.ts';
import { DurableFolders, linkOnce, outcomeUnknown, TemporaryFiles } from './durable-files.ts';
import { directoryError, isAbsent, readAll, readInto, readIntoBlocking, writeBytes, writeContent } from './file-content.ts';

interface DirectoryObjectsOptions {
  /** Made at the first write. */
  readonly root: string;
  /** What leftovers of crashes are judged by; the system's time by default. */
  readonly nowMs?: () => number;
  /** Read and write content on the caller's thread, for a worker that has nothing else to do. Default false. */
  readonly isBlocking?: boolean;
}

/**
 * Objects as files of a directory, one a key. An object is written and synced under a name in `.tmp`, then gets its key by a rename, or
 * for `create` by a hard link, of which only one can succeed; then its folder is synced. A crash before that leaves a
 * temporary file (also one that was made for the next call and is empty), removed after a day, and a crash behind it the whole object. Any number of processes may
 * use one directory. No key may be the folder of another.
 */
export class DirectoryObjects implements ObjectStore {
  readonly place: string;
  readonly #folders: DurableFolders;
  readonly #temporary: TemporaryFiles;
  readonly #isBlocking: boolean;
  #cleaning: Promise<void> | undefined;
  /** The last key that was to be created was there already. */
  #wasLate = false;

  constructor(options: DirectoryObjectsOptions) {
    this.place = path.resolve(options.root);
    this.#isBlocking = options.isBlocking ?? false;
    this.#folders = new DurableFolders(this.place);
    this.#temporary = new TemporaryFiles(this.place, this.#folders, options.nowMs ?? Date.now);
  }

  async get(key: string, options: GetOptions = {}): Promise<Uint8Array | null> {
    checkKey(key);
    throwIfAborted(options.signal, key);
    return this.#guard(key, async () => {
      if (this.#isBlocking && options.into !== undefined && options.length !== undefined) return readIntoBlocking(this.#file(key), options.into.subarray(0, options.length), options.from ?? 0);
      const handle = await this.#open(key);
      if (handle === null) return null;
      try {
        if (options.into !== undefined && options.length !== undefined) return await readInto(handle, options.into.subarray(0, options.length), options.from ?? 0);
        const found = await handle.stat();
        if (!found.isFile()) return null;
        const from = Math.min(options.from ?? 0, found.size);
        const bytes = new Uint8Array(Math.min(options.length ?? found.size, found.size - from));
        await readAll(handle, bytes, from, key);
        return bytes;
      } finally {
        await handle.close();
      }
    });
  }

  async #open(key: string): Promise<FileHandle | null> {
    try {
      return await open(this.#file(key), 'r');
    } catch (error) {
      if (isAbsent(error)) return null;
      throw error;
    }
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectInfo | null> {
    checkKey(key);
    throwIfAborted(signal, key);
    return this.#guard(key, async () => infoOf(this.place, key));
  }

  async put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    checkKey(key);
    checkSmall(key, bytes);
    throwIfAborted(signal, key);
    await this.#replace(key, (handle) => writeBytes(handle, bytes));
  }

  async create(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<'created' | 'exists'> {
    checkKey(key);
    checkSmall(key, bytes);
    throwIfAborted(signal, key);
    return this.#guard(key, async () => {
      const folder = path.dirname(this.#file(key));
      // Of several who create keys in turn, most of those who come too late are spared the writing.
      if (this.#wasLate && infoOf(this.place, key) !== null) return this.#exists(folder);
      this.#wasLate = false;
      return this.#temporary.with((handle) => writeBytes(handle, bytes), async (temporary) => {
        throwIfAborted(signal, key);
        const isFirst = await this.#place(folder, () => linkOnce(temporary, this.#file(key), key, this.place));
        if (!isFirst) return this.#exists(folder);
        try {
          await this.#folders.sync(folder);
        } catch (error) {
          throw outcomeUnknown(key, this.place, error);
        }
        return 'created' as const;
      }, true);
    });
  }

  async upload(key: string, sizeBytes: number, content: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    checkKey(key);
    throwIfAborted(signal, key);
    await this.#replace(key, (handle) => writeContent(handle, key, sizeBytes, content, { signal, isBlocking: this.#isBlocking }), signal);
  }

  async uploadNamed(sizeBytes: number, content: AsyncIterable<Uint8Array>, name: () => Promise<string | null>, signal?: AbortSignal): Promise<void> {
    throwIfAborted(signal, '');
    await this.#clean();
    let key: string | null = '';
    await this.#guard('', () => this.#temporary.with(async (handle) => {
      await writeContent(handle, '', sizeBytes, content, { signal, isBlocking: this.#isBlocking });
      key = await name();
    }, async (temporary) => {
      if (key === null) return;
      checkKey(key);
      throwIfAborted(signal, key);
      await this.#name(temporary, key);
    }));
  }

  async list(prefix: string, options: ListOptions = {}): Promise<ObjectPage> {
    checkPrefix(prefix);
    throwIfAborted(options.signal, prefix);
    const max = Math.min(options.max ?? OBJECT_LIST_MAX, OBJECT_LIST_MAX);
    await this.#clean();
    return this.#guard(prefix, async () => {
      const objects: ObjectInfo[] = [];
      let keys: string[] = [];
      for await (const key of walkKeys(this.place, prefix, options.after ?? '')) {
        throwIfAborted(options.signal, prefix);
        if (objects.length + keys.length === max) {
          objects.push(...await infosOf(this.place, keys));
          keys = [];
          // A page that lost keys to a removal beside it goes on, so that it is never empty with more behind it.
          if (objects.length === max) return { objects, isMore: true };
        }
        keys.push(key);
      }
      objects.push(...await infosOf(this.place, keys));
      return { objects, isMore: false };
    });
  }

  async remove(keys: readonly string[], signal?: AbortSignal): Promise<void> {
    for (const key of keys) checkKey(key);
    const folders = new Set<string>();
    for (const key of keys) {
      throwIfAborted(signal, key);
      await this.#guard(key, async () => {
        const file = this.#file(key);
        try {
          await unlink(file);
          folders.add(path.dirname(file));
        } catch (error) {
          if (!isAbsent(error) && infoOf(this.place, key) !== null) throw error;
        }
      });
    }
    for (const folder of folders) await this.#guard(keys[0]!, () => this.#folders.sync(folder));
  }

  close(): Promise<void> {
    return this.#temporary.close();
  }

  #file(key: string): string {
    return path.join(this.place, key);
  }

  async #replace(key: string, write: (handle: FileHandle) => void | Promise<void>, signal?: AbortSignal): Promise<void> {
    await this.#clean();
    await this.#guard(key, () => this.#temporary.with(write, async (temporary) => {
      throwIfAborted(signal, key);
      await this.#name(temporary, key);
    }));
  }

  async #name(temporary: string, key: string): Promise<void> {
    const file = this.#file(key);
    await this.#place(path.dirname(file), () => rename(temporary, file));
    await this.#folders.sync(path.dirname(file));
  }

  /** Gives a file its name, in a folder that is made if need be, again if somebody removed it since. */
  async #place<T>(folder: string, name: () => Promise<T>): Promise<T> {
    await this.#folders.ensure(folder);
    try {
      return await name();
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
      this.#folders.forget(folder);
      await this.#folders.ensure(folder);
      return name();
    }
  }

  /** Whoever hears that a key is taken builds on it: it must not go with the power, although its writer may not have got so far. */
  async #exists(folder: string): Promise<'exists'> {
    this.#wasLate = true;
    await this.#folders.sync(folder);
    return 'exists';
  }

  #clean(): Promise<void> {
    this.#cleaning ??= this.#temporary.removeLeftovers();
    return this.#cleaning;
  }

  async #guard<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw directoryError(error, key, this.place);
    }
  }
}
