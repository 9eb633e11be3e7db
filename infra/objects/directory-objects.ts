import { constants, open, rename, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import * as path from 'node:path';
import { SkuaError } from '../../core/base/errors.ts';
import { checkKey, checkPrefix, checkSmall, OBJECT_LIST_MAX, throwIfAborted } from '../../core/ports/object-store.ts';
import type {
  GetOptions,
  ListOptions,
  ObjectInfo,
  ObjectPage,
  ObjectStore,
  WhyAnother,
} from '../../core/ports/object-store.ts';
import { systemCode } from '../fs/fs-errors.ts';
import { deviceIn, identityOf, rootMissing, rootReplaced } from '../fs/root.ts';
import { refuseNodeData } from '../fs/strangers.ts';
import { infoOf, infosOf, walkKeys } from './directory-walk.ts';
import { DurableFolders, linkOnce, outcomeUnknown, TemporaryFiles } from './durable-files.ts';
import {
  directoryError,
  isAbsent,
  readAll,
  readInto,
  readIntoBlocking,
  writeBytes,
  writeContent,
} from './file-content.ts';

interface DirectoryObjectsOptions {
  /** Made by `begin` alone. */
  readonly root: string;
  /** What leftovers of crashes are judged by; the system's time by default. */
  readonly nowMs?: () => number;
  /** Tells one directory from another; by device and inode by default. */
  readonly identityOf?: typeof identityOf;
  /** Read and write content on the caller's thread, for a worker that has nothing else to do. Default false. */
  readonly isBlocking?: boolean;
}

/**
 * Objects as files of a directory, one a key. An object is written and synced under a name in `.tmp`, then gets its key
 * by a rename, or for `create` by a hard link, of which only one can succeed; then its folder is synced. A crash before
 * that leaves a temporary file (also one that was made for the next call and is empty), removed after a day, and a
 * crash behind it the whole object. Any number of processes may use one directory. No key may be the folder of another.
 *
 * The root is known by device and inode from the first call that finds it. Every call looks whether its path still
 * leads there before it changes anything, and again before it answers, so that what was acknowledged, found, or not
 * found, was so in that directory. A link takes both names from the path, so it is made where its temporary file is;
 * two exchanges there and back during that one system call are not seen. Where a copy, made while that was being
 * written, takes the place in the microseconds between look and link, the half file gets the name there.
 */
export class DirectoryObjects implements ObjectStore {
  readonly place: string;
  readonly #folders: DurableFolders;
  readonly #temporary: TemporaryFiles;
  readonly #isBlocking: boolean;
  #cleaning: Promise<void> | undefined;
  /** The last key that was to be created was there already. */
  #wasLate = false;
  readonly #identityOf: typeof identityOf;
  /** Device and inode of the root; null before it was found. */
  #root: string | null = null;
  /** The callers that know what lies in the directory. */
  readonly #knowing = new Set<WhyAnother>();
  /** Another root is being looked at. */
  #looking: Promise<void> | null = null;

  constructor(options: DirectoryObjectsOptions) {
    this.place = path.resolve(options.root);
    this.#isBlocking = options.isBlocking ?? false;
    this.#identityOf = options.identityOf ?? identityOf;
    this.#folders = new DurableFolders(this.place);
    this.#temporary = new TemporaryFiles(this.place, this.#folders, options.nowMs ?? Date.now, () =>
      this.#mustBeRoot(),
    );
  }

  async get(key: string, options: GetOptions = {}): Promise<Uint8Array | null> {
    checkKey(key);
    throwIfAborted(options.signal, key);
    return this.#read(key, async () => {
      if (this.#isBlocking && options.into !== undefined && options.length !== undefined)
        return readIntoBlocking(this.#file(key), options.into.subarray(0, options.length), options.from ?? 0);
      const handle = await this.#open(key);
      if (handle === null) return null;
      try {
        if (options.into !== undefined && options.length !== undefined)
          return await readInto(handle, options.into.subarray(0, options.length), options.from ?? 0);
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
      // A pipe would be waited for, for ever.
      return await open(this.#file(key), constants.O_RDONLY | constants.O_NONBLOCK);
    } catch (error) {
      if (isAbsent(error)) return null;
      throw error;
    }
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectInfo | null> {
    checkKey(key);
    throwIfAborted(signal, key);
    return this.#read(key, async () => infoOf(this.place, key));
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
      // What is written to the temporary folder of another root does no harm; before the link it is looked at.
      const root = this.#root ?? (await this.#mustBeRoot());
      const folder = path.dirname(this.#file(key));
      // Of several writers that create keys in turn, most of those that come too late are spared the writing.
      if (this.#wasLate && infoOf(this.place, key) !== null) return this.#settled(key, root, folder, 'exists');
      this.#wasLate = false;
      return this.#temporary.with(
        (handle) => writeBytes(handle, bytes),
        async (temporary) => {
          throwIfAborted(signal, key);
          // A copy of the directory may have the temporary file, too, as it was at another moment.
          if (!this.#isStill(root)) await this.#mustStillBe(root);
          const isFirst = await this.#place(folder, () => linkOnce(temporary, this.#file(key), key, this.place));
          return this.#settled(key, root, folder, isFirst ? 'created' : 'exists');
        },
        true,
      );
    });
  }

  async upload(
    key: string,
    sizeBytes: number,
    content: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    checkKey(key);
    throwIfAborted(signal, key);
    await this.#replace(
      key,
      (handle) => writeContent(handle, key, sizeBytes, content, { signal, isBlocking: this.#isBlocking }),
      signal,
    );
  }

  async uploadNamed(
    sizeBytes: number,
    content: AsyncIterable<Uint8Array>,
    name: () => Promise<string | null>,
    signal?: AbortSignal,
  ): Promise<void> {
    throwIfAborted(signal, '');
    await this.#clean();
    let key: string | null = '';
    await this.#change('', () =>
      this.#temporary.with(
        async (handle) => {
          await writeContent(handle, '', sizeBytes, content, { signal, isBlocking: this.#isBlocking });
          key = await name();
        },
        async (temporary) => {
          if (key === null) return;
          checkKey(key);
          throwIfAborted(signal, key);
          await this.#name(temporary, key);
        },
      ),
    );
  }

  async list(prefix: string, options: ListOptions = {}): Promise<ObjectPage> {
    checkPrefix(prefix);
    throwIfAborted(options.signal, prefix);
    const max = Math.min(options.max ?? OBJECT_LIST_MAX, OBJECT_LIST_MAX);
    return this.#read(prefix, async (look) => {
      const objects: ObjectInfo[] = [];
      let keys: string[] = [];
      for await (const key of walkKeys(this.place, prefix, options.after ?? '', look)) {
        throwIfAborted(options.signal, prefix);
        if (objects.length + keys.length === max) {
          objects.push(...(await infosOf(this.place, keys)));
          keys = [];
          // A page that lost keys to a removal beside it goes on, so that it is never empty with more behind it.
          if (objects.length === max) return { objects, isMore: true };
        }
        keys.push(key);
      }
      objects.push(...(await infosOf(this.place, keys)));
      return { objects, isMore: false };
    });
  }

  async remove(keys: readonly string[], signal?: AbortSignal): Promise<void> {
    for (const key of keys) checkKey(key);
    const folders = new Set<string>();
    for (const key of keys) {
      throwIfAborted(signal, key);
      await this.#read(key, async () => {
        await this.#isRoot();
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

  async begin(): Promise<void> {
    await refuseNodeData(this.place);
    await this.#guard('', async () => {
      await this.#isRoot();
      if (this.#root !== null) return;
      await this.#folders.begin();
      this.#root = this.#identityOf(this.place);
    });
  }

  recognise(why: WhyAnother): () => void {
    this.#knowing.add(why);
    return () => {
      this.#knowing.delete(why);
    };
  }

  close(): Promise<void> {
    return this.#temporary.close();
  }

  #file(key: string): string {
    return path.join(this.place, key);
  }

  async #replace(
    key: string,
    write: (handle: FileHandle) => void | Promise<void>,
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#clean();
    await this.#change(key, () =>
      this.#temporary.with(write, async (temporary) => {
        throwIfAborted(signal, key);
        await this.#name(temporary, key);
      }),
    );
  }

  async #name(temporary: string, key: string): Promise<void> {
    await this.#mustBeRoot();
    const file = this.#file(key);
    await this.#place(path.dirname(file), () => rename(temporary, file));
    await this.#folders.sync(path.dirname(file));
  }

  /** Gives a file its name, in a folder that is made if need be, again if the folder was removed since. */
  async #place<T>(folder: string, name: () => Promise<T>): Promise<T> {
    await this.#folders.ensure(folder);
    try {
      return await name();
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
      await this.#mustBeRoot();
      this.#folders.forget(folder);
      await this.#folders.ensure(folder);
      return name();
    }
  }

  /**
   * A caller that learns that a key is taken builds on it: it must not go with the power, although its writer may not
   * have got so far. From the link on no answer says that nothing was created.
   */
  async #settled<T extends 'created' | 'exists'>(key: string, root: string, folder: string, outcome: T): Promise<T> {
    this.#wasLate = outcome === 'exists';
    try {
      await this.#folders.sync(folder);
      if (!this.#isStill(root)) await this.#mustStillBe(root);
    } catch (error) {
      throw outcomeUnknown(key, this.place, error);
    }
    return outcome;
  }

  /**
   * Whether the path leads to the root that is known, or to none while none is. Rejects with `storage_unreachable`
   * where it leads elsewhere.
   */
  async #isRoot(): Promise<void> {
    const found = this.#identityOf(this.place);
    this.#root ??= found;
    if (found === this.#root) return;
    if (found === null) throw rootMissing(this.place);
    // Calls of one moment share one look.
    this.#looking ??= this.#recognised(found).finally(() => {
      this.#looking = null;
    });
    await this.#looking;
  }

  async #mustBeRoot(): Promise<string> {
    await this.#isRoot();
    if (this.#root === null) throw rootMissing(this.place);
    return this.#root;
  }

  /** The way without a promise, for commits. */
  #isStill(root: string): boolean {
    return root === this.#root && this.#identityOf(this.place) === root;
  }

  /** What was changed in a root is not in another one, even if that is recognised as the same. */
  async #mustStillBe(root: string): Promise<void> {
    if ((await this.#mustBeRoot()) !== root) throw rootReplaced(this.place, 'it came while something was written');
  }

  /**
   * Network file systems, and a mount that is made anew, change the device of what is the same still, so the callers
   * that know what lies there are asked. On one device another inode is another directory, which may be a copy that
   * holds all that this process has seen, and lacks what others have committed since.
   */
  async #recognised(found: string): Promise<void> {
    if (deviceIn(found) === deviceIn(this.#root!)) throw rootReplaced(this.place, 'its inode is another');
    if (this.#knowing.size === 0) throw rootReplaced(this.place, 'its device or inode is another');
    const there = new DirectoryObjects({ root: this.place, identityOf: this.#identityOf });
    for (const why of this.#knowing) {
      const reason = await why(there).catch((error: unknown) => {
        throw rootReplaced(
          this.place,
          `it can't be read (${error instanceof Error ? error.message : String(error)})`,
          error,
        );
      });
      if (reason !== null) throw rootReplaced(this.place, reason);
    }
    await there.#isRoot();
    if (there.#root !== found) throw rootReplaced(this.place, 'it changes while it is looked at');
    this.#root = found;
    this.#folders.forgetAll();
  }

  /** Once, by calls that write: what only looks changes nothing. */
  #clean(): Promise<void> {
    this.#cleaning ??= this.#temporary.removeLeftovers();
    return this.#cleaning;
  }

  /** What was found, or not found, was so in the root that is known. */
  #read<T>(key: string, work: (look: () => Promise<void>) => Promise<T>): Promise<T> {
    return this.#guard(key, async () => {
      await this.#isRoot();
      const root = this.#root;
      const look = async (): Promise<void> => {
        await this.#isRoot();
        if (root !== null && this.#root !== root) throw rootReplaced(this.place, 'it came while something was read');
      };
      const found = await work(look);
      await look();
      return found;
    });
  }

  #change<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#guard(key, async () => {
      const root = await this.#mustBeRoot();
      const result = await work();
      await this.#mustStillBe(root);
      return result;
    });
  }

  async #guard<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      // What fails elsewhere says nothing of the root that is known.
      const first =
        error instanceof SkuaError
          ? error
          : await this.#isRoot().then(
              () => error,
              (another: unknown) => another,
            );
      throw directoryError(first, key, this.place);
    }
  }
}
