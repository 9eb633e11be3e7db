import * as fs from 'node:fs';
import { chmod, readdir, rename, stat, statfs, unlink } from 'node:fs/promises';
import * as path from 'node:path';
import { SkuaError } from '../../core/base/errors.ts';
import { isDataName } from '../../core/ports/own-names.ts';
import { checkPath, checkRemoval, checkRename, fileNotFound } from '../../core/ports/storage.ts';
import type { Storage, StorageFile, StorageLock } from '../../core/ports/storage.ts';
import { LOCK_FILE, lockDirectory } from './directory-lock.ts';
import { storageError, systemCode } from './fs-errors.ts';
import { Discards, DISCARD_STEP_BYTES, GONE } from './discard.ts';
import { identityOf, rootMissing, rootReplaced } from './root.ts';
import { FilesystemFile, isInPlace, type FileCalls } from './filesystem-file.ts';
import { type OpenFiles, openFiles } from './open-files.ts';
import { makeFolder, makeFolderIn, PRIVATE_FOLDER_MODE, syncFolder } from './make-folder.ts';
import { refuseStrangers } from './strangers.ts';

/** How often a file is opened that gets another file in its place meanwhile. */
const OPEN_TRIES_MAX = 10;

interface FilesystemStorageOptions {
  /**
   * The data directory. It is created when it is locked, for its owner only, and by nothing else: one that is gone must
   * not become an empty one.
   */
  root: string;
  /** Folder that takes the place of `index/`. */
  indexRoot?: string;
  /**
   * Paths that may lie in a directory which is none of data yet: what else the same start was told of. Default: none.
   */
  beside?: readonly string[];
  /** Refuse a data directory that does not exist yet, with `file_not_found`: for commands that only look at one. */
  mustExist?: boolean;
  /**
   * Read and write on the caller's thread, for a worker that has nothing else to do: the process has one small
   * pool of threads for file calls, in which appends must not stand behind a scavenge. Default false.
   */
  isBlocking?: boolean;
  /**
   * No request waits for the syncs of this thread, so that those of threads in the background need not give way to
   * them. Default false.
   */
  isOffline?: boolean;
  /** Limits the descriptors of files that are only read. Default: those of this thread. */
  openFiles?: OpenFiles;
}

/**
 * Files in a directory of the local machine. Works on one thread or many: workers build one each over the same folders.
 * The directory is known by device and inode from the lock, or the first call that finds it. Names are looked up and
 * changed only while its path leads there, else `storage_unreachable`; files that are open stay what they are.
 */
export class FilesystemStorage implements Storage {
  readonly root: string;
  readonly indexRoot: string;
  readonly #calls: FileCalls;
  readonly #openFiles: OpenFiles;
  readonly #beside: readonly string[];
  readonly #discards = new Discards();
  /** Device and inode of the data directory; null before it was found. */
  #identity: string | null = null;

  constructor(options: FilesystemStorageOptions) {
    this.root = path.resolve(options.root);
    this.#calls = options.isBlocking === true ? 'blocking' : options.isOffline === true ? 'offline' : 'request-loop';
    this.#openFiles = options.openFiles ?? openFiles;
    this.indexRoot = path.resolve(options.indexRoot ?? path.join(this.root, 'index'));
    this.#beside = [...(options.beside ?? []), this.indexRoot];
    if (options.mustExist === true && !fs.existsSync(this.root)) {
      throw new SkuaError(
        'file_not_found',
        `The data directory ${this.root} does not exist. Check the path given with --db.`,
        { path: this.root },
      );
    }
  }

  async list(folder: string): Promise<string[]> {
    try {
      const entries = await readdir(this.#folder(folder), { withFileTypes: true });
      const names: string[] = [];
      for (const entry of entries) {
        if (entry.isDirectory() || ((folder === '' || folder === 'index') && entry.name.startsWith(LOCK_FILE)))
          continue;
        names.push(entry.name);
      }
      this.#checkRoot();
      return names.sort();
    } catch (error) {
      const code = systemCode(error);
      if (code !== 'ENOENT' && code !== 'ENOTDIR') throw storageError(error, folder, this.#folder(folder));
      this.#checkRoot();
      return [];
    }
  }

  async size(name: string): Promise<number | null> {
    return (await this.#stat(name))?.size ?? null;
  }

  async modifiedMs(name: string): Promise<number | null> {
    return (await this.#stat(name))?.mtimeMs ?? null;
  }

  async #stat(name: string): Promise<fs.Stats | null> {
    try {
      const found = await stat(this.#file(name));
      this.#checkRoot();
      return found.isFile() ? found : null;
    } catch (error) {
      const code = systemCode(error);
      if (code !== 'ENOENT' && code !== 'ENOTDIR') throw storageError(error, name, this.#file(name));
      this.#checkRoot();
      return null;
    }
  }

  async open(name: string, access: 'read' | 'write'): Promise<StorageFile> {
    const file = this.#file(name);
    this.#checkRoot();
    try {
      if (access === 'write') await liftSeal(file);
      return this.#openFile(name, file, access === 'write' ? fs.constants.O_RDWR : fs.constants.O_RDONLY);
    } catch (error) {
      throw storageError(error, name, file);
    }
  }

  async create(name: string): Promise<StorageFile> {
    const file = this.#file(name);
    const folder = path.dirname(file);
    this.#checkRoot();
    try {
      await makeFolderIn(folder, name.startsWith('index/') && !this.#hasIndexInside ? this.indexRoot : this.root);
      const created = this.#openFile(name, file, fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL);
      try {
        await syncFolder(folder);
        this.#checkRoot();
      } catch (error) {
        await created.close();
        throw error;
      }
      return created;
    } catch (error) {
      throw storageError(error, name, file);
    }
  }

  async rename(from: string, to: string): Promise<void> {
    checkRename(from, to);
    const target = this.#file(to);
    this.#checkRoot();
    try {
      await rename(this.#file(from), target);
      await syncFolder(path.dirname(target));
      this.#checkRoot();
    } catch (error) {
      throw storageError(error, from, this.#file(from));
    }
  }

  async remove(name: string): Promise<void> {
    checkRemoval(name);
    const file = this.#file(name);
    this.#checkRoot();
    try {
      await unlink(file);
      await syncFolder(path.dirname(file));
    } catch (error) {
      const code = systemCode(error);
      if (code !== 'ENOENT' && code !== 'ENOTDIR') throw storageError(error, name, file);
    }
  }

  async discard(name: string): Promise<void> {
    checkRemoval(name);
    if (((await this.size(name)) ?? 0) <= DISCARD_STEP_BYTES) return this.remove(name);
    const gone = `${name}${GONE}`;
    await this.rename(name, gone);
    this.#discards.begin(this.#file(gone));
  }

  async freeBytes(): Promise<number> {
    // Of a directory that is not there yet, on the disk on which it will be.
    for (let location = this.root; ; location = path.dirname(location)) {
      try {
        const { bavail, bsize } = await statfs(location);
        return bavail * bsize;
      } catch (error) {
        if (systemCode(error) !== 'ENOENT' || location === path.dirname(location)) throw storageError(error, this.root);
      }
    }
  }

  /**
   * Before anything is made, `not_a_data_directory` for a folder of other files (`refuseStrangers`). With the
   * lock goes what is left of discarded files.
   */
  async lock(): Promise<StorageLock> {
    this.#checkRoot();
    await refuseStrangers({ root: this.root, indexRoot: this.indexRoot, beside: this.#beside });
    try {
      // For their owner only: that protects what lies in them.
      if (this.#identity === null) await makeFolder(this.root, PRIVATE_FOLDER_MODE);
      if (!this.#hasIndexInside) await makeFolder(this.indexRoot, PRIVATE_FOLDER_MODE);
    } catch (error) {
      throw storageError(error, this.root);
    }
    const locks = this.#lockAll();
    // Not before: an overlay file system may give a folder another inode when it is first written to.
    this.#identity = identityOf(this.root);
    return {
      release: async () => {
        await this.#discards.end();
        for (const lock of locks) await lock.release();
      },
    };
  }

  /**
   * An index elsewhere is one process's at a time, too; where it is the index of another data directory, it is not for
   * the process that uses that directory.
   */
  #lockAll(): StorageLock[] {
    const owner = path.dirname(this.indexRoot);
    const isOfAnother = !this.#hasIndexInside && owner !== this.root && namesIn(owner).some(isDataName);
    const locks: StorageLock[] = [];
    try {
      for (const location of [
        this.root,
        ...(this.#hasIndexInside ? [] : [this.indexRoot]),
        ...(isOfAnother ? [owner] : []),
      ])
        locks.push(lockDirectory(location));
      return locks;
    } catch (error) {
      for (const lock of locks) lock.release().catch(() => {});
      throw error;
    }
  }

  get #hasIndexInside(): boolean {
    return this.indexRoot.startsWith(this.root + path.sep);
  }

  /** Throws `storage_unreachable` where the path of the data directory leads elsewhere than it did. */
  #checkRoot(): void {
    const found = this.#identityNow();
    this.#identity ??= found;
    if (found === this.#identity) return;
    throw found === null ? rootMissing(this.root) : rootReplaced(this.root, 'its device or inode is another');
  }

  #identityNow(): string | null {
    try {
      return identityOf(this.root);
    } catch (error) {
      throw storageError(error, this.root);
    }
  }

  /**
   * What is opened to be read surely has its name, and so its full length, then: it may be replaced, and cut, between
   * two calls.
   */
  #openFile(path: string, location: string, flags: number): FilesystemFile {
    const isWritable = (flags & fs.constants.O_RDWR) !== 0;
    for (let tries = 0; tries < OPEN_TRIES_MAX; tries++) {
      // A pipe would be waited for, for ever.
      const fd = this.#openFiles.open(() => fs.openSync(location, flags | fs.constants.O_NONBLOCK, 0o644));
      try {
        const found = fs.fstatSync(fd);
        if (!found.isFile())
          throw new SkuaError('io_error', `${location} is not a file. Move it out of the data directory.`, { path });
        if (isWritable || isInPlace(fd, location))
          return new FilesystemFile({
            path,
            place: location,
            fd,
            size: found.size,
            isWritable,
            calls: this.#calls,
            openFiles: this.#openFiles,
          });
      } catch (error) {
        fs.closeSync(fd);
        throw error;
      }
      fs.closeSync(fd);
    }
    throw fileNotFound(path);
  }

  #folder(folder: string): string {
    return folder === '' ? this.root : this.#file(folder);
  }

  /** Where a file of the port lies on this machine. */
  #file(name: string): string {
    checkPath(name);
    if (name.startsWith(LOCK_FILE) || name.startsWith(`index/${LOCK_FILE}`)) {
      throw new SkuaError(
        'io_error',
        `${LOCK_FILE} belongs to the storage itself: opening it would release the lock. This is a defect.`,
        { path: name },
      );
    }
    if (name === 'index') return this.indexRoot;
    if (name.startsWith('index/')) return path.join(this.indexRoot, name.slice('index/'.length));
    return path.join(this.root, name);
  }
}

/** None where the folder may not be read. */
function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch {
    return [];
  }
}

async function liftSeal(file: string): Promise<void> {
  const { mode } = await stat(file);
  if ((mode & 0o200) === 0) await chmod(file, (mode & 0o777) | 0o200);
}
