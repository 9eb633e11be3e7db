import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import { link, mkdir, open, readdir, stat, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import * as path from 'node:path';
import { promisify } from 'node:util';
import { SkuaError } from '../../core/base/errors.ts';
import { TEMPORARY_FOLDER } from '../../core/ports/object-store.ts';
import { systemCode } from '../fs/fs-errors.ts';
import { makeFolder } from '../fs/make-folder.ts';
import { isInPlace } from '../fs/filesystem-file.ts';
import { rootMissing } from '../fs/root.ts';

/**
 * What lies in the temporary folder without being written to for this long, in milliseconds, was left by a crash: 24
 * hours.
 */
const LEFTOVER_AFTER_MS = 86_400_000;
/** As `#make` names files. */
const TEMPORARY_NAME = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const syncFile = promisify(fs.fsync);

/** A file is made ready where the call before was at most so long ago, and used for as long, in milliseconds. */
const READY_MS = 1_000;

interface TemporaryFile {
  readonly name: string;
  readonly handle: FileHandle;
}

/** Files that are being written: each gets its key when it is complete and durable. */
export class TemporaryFiles {
  readonly #folder: string;
  readonly #folders: DurableFolders;
  readonly #nowMs: () => number;
  readonly #mustBeRoot: () => Promise<unknown>;
  /** Resolves when the files so far are closed, and the names that they had here removed. */
  #removing: Promise<void> = Promise.resolve();
  /**
   * Made behind a call for the next one: a file system in which many files were removed lately takes as long to make a
   * file as to sync it.
   */
  #ready: TemporaryFile | null = null;
  #usedMs = -Infinity;
  #isClosed = false;

  constructor(root: string, folders: DurableFolders, nowMs: () => number, mustBeRoot: () => Promise<unknown>) {
    this.#mustBeRoot = mustBeRoot;
    this.#folder = path.join(root, TEMPORARY_FOLDER);
    this.#folders = folders;
    this.#nowMs = nowMs;
  }

  /**
   * Runs `use` on the path of a file with what `write` wrote, durable. Behind the call the file is closed, and removed
   * unless it was renamed: a commit waits for each turn that is taken before. The next call waits for that. With
   * `keepsReady`, calls that follow one another find their file made.
   */
  async with<T>(
    write: (handle: FileHandle) => void | Promise<void>,
    use: (file: string) => Promise<T>,
    keepsReady = false,
  ): Promise<T> {
    await this.#removing;
    const isNext = keepsReady && performance.now() - this.#usedMs < READY_MS;
    const file = (keepsReady ? this.#takeReady(isNext) : null) ?? (await this.#make());
    try {
      await write(file.handle);
      await file.handle.sync();
      return await use(file.name);
    } finally {
      if (keepsReady) this.#usedMs = performance.now();
      this.#removing = Promise.all([this.#removing, this.#remove(file)]).then(() =>
        isNext ? this.#prepare() : undefined,
      );
    }
  }

  /**
   * The file that is ready. One that lay too long, or whose name is gone or leads to another file, as in a copy of the
   * directory that took its place, is none.
   */
  #takeReady(isNext: boolean): TemporaryFile | null {
    const ready = this.#ready;
    this.#ready = null;
    if (ready === null || (isNext && isInPlace(ready.handle.fd, ready.name))) return ready;
    this.#removing = Promise.all([this.#removing, this.#remove(ready)]).then(() => {});
    return null;
  }

  /** Resolves when nothing of the calls so far is left to do, and no file is kept ready. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#removing;
    const ready = this.#ready;
    this.#ready = null;
    if (ready !== null) await this.#remove(ready);
  }

  async #remove({ name, handle }: TemporaryFile): Promise<void> {
    await handle.close().catch(() => {});
    await unlink(name).catch(() => {});
  }

  /** A failure here is reported by the next call, which tries again. */
  async #prepare(): Promise<void> {
    if (this.#ready !== null || this.#isClosed) return;
    const ready = await this.#make().catch(() => null);
    if (this.#ready === null) this.#ready = ready;
    else if (ready !== null) await this.#remove(ready);
  }

  async #make(): Promise<TemporaryFile> {
    const name = path.join(this.#folder, randomUUID());
    await this.#folders.ensure(this.#folder);
    try {
      return { name, handle: await open(name, 'wx', 0o644) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      await this.#mustBeRoot();
      this.#folders.forget(this.#folder);
      await this.#folders.ensure(this.#folder);
      return { name, handle: await open(name, 'wx', 0o644) };
    }
  }

  /**
   * Removes what crashes left, by the names that it has from here. Failures don't matter: the next one to open the
   * directory tries again.
   */
  async removeLeftovers(): Promise<void> {
    const names = await readdir(this.#folder).catch(() => []);
    for (const name of names) {
      if (!TEMPORARY_NAME.test(name)) continue;
      const file = path.join(this.#folder, name);
      const found = await stat(file).catch(() => null);
      if (found?.isFile() === true && this.#nowMs() - found.mtimeMs > LEFTOVER_AFTER_MS)
        await unlink(file).catch(() => {});
    }
  }
}

/**
 * What says for certain that nothing got its name. After any other failure of a link, such as of a network file system
 * that did not answer, it may be there.
 */
const CERTAIN: ReadonlySet<string> = new Set([
  'ENOENT',
  'ENOTDIR',
  'ENOSPC',
  'EDQUOT',
  'EACCES',
  'EROFS',
  'EXDEV',
  'ELOOP',
  'ENAMETOOLONG',
]);

/**
 * Gives the file the name `target`, unless that is taken: then false. Of several processes that try, one succeeds.
 * False does not say that another one was first: over a network the reply of a link that succeeded may be lost, and its
 * repeat finds its own work. How many names the file has says nothing either, as copies of a directory give it more of
 * them: only what lies under the name tells whose it is.
 */
export async function linkOnce(file: string, target: string, key: string, root: string): Promise<boolean> {
  try {
    await link(file, target);
    return true;
  } catch (error) {
    const code = systemCode(error);
    if (code === 'EEXIST') return false;
    if (code === 'EPERM' || code === 'ENOTSUP' || code === 'EMLINK') {
      throw new SkuaError(
        'storage_denied',
        `${key} can't be created in ${root}: its file system has no hard links (${code}), which are needed so that only one of several writers succeeds. Use a directory on another file system.`,
        { key, path: root },
        error,
      );
    }
    throw CERTAIN.has(code) ? error : outcomeUnknown(key, root, error);
  }
}

export function outcomeUnknown(key: string, root: string, cause: unknown): SkuaError {
  return new SkuaError(
    'outcome_unknown',
    `It is not known whether ${key} was created in ${root} (${systemCode(cause)}): write the same bytes again, then check which are there.`,
    { key, path: root },
    cause,
  );
}

/** Folders known to be durable that are remembered; beyond, all are looked at again. */
const KNOWN_MAX = 10_000;

/**
 * Makes folders, and the names in them, durable. Calls for one folder that come while it is being synced share one
 * further sync.
 */
export class DurableFolders {
  readonly #root: string;
  readonly #known = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Makes the root, and the folders above it, where they are missing. */
  async begin(): Promise<void> {
    await makeFolder(this.#root);
  }

  /**
   * Creates the folder and those above it, up to the root, which has to be there. Their names are synced the first time
   * even where they exist: another process may have made them and not have come to its sync.
   */
  async ensure(folder: string): Promise<void> {
    if (folder === this.#root || this.#known.has(folder)) return;
    try {
      await mkdir(folder);
    } catch (error) {
      const code = systemCode(error);
      if (code === 'ENOENT') {
        const above = path.dirname(folder);
        if (above === this.#root) throw rootMissing(this.#root);
        // The folder was known, and has been removed.
        this.#known.delete(above);
        await this.ensure(above);
        return this.ensure(folder);
      }
      if (code !== 'EEXIST') throw error;
    }
    await this.ensure(path.dirname(folder));
    await this.sync(path.dirname(folder));
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.add(folder);
  }

  /** Another root is in use: nothing is known of its folders. */
  forgetAll(): void {
    this.#known.clear();
  }

  /** After this, `ensure` looks at the folder again: it was found to be gone. */
  forget(folder: string): void {
    this.#known.delete(folder);
  }

  /** Makes every name durable that is in the folder now. */
  sync(folder: string): Promise<void> {
    const waiting = this.#waiting.get(folder);
    if (waiting !== undefined) return waiting;
    const running = this.#running.get(folder);
    if (running === undefined) return this.#run(folder);
    const next = running
      .then(
        () => {},
        () => {},
      )
      .then(() => {
        this.#waiting.delete(folder);
        return this.#run(folder);
      });
    this.#waiting.set(folder, next);
    return next;
  }

  #run(folder: string): Promise<void> {
    const running = syncFolder(folder).finally(() => {
      if (this.#running.get(folder) === running) this.#running.delete(folder);
    });
    this.#running.set(folder, running);
    return running;
  }
}

/**
 * Windows can't sync a folder, and does not need to. A folder that is in use is found without the disk, so that only
 * its sync leaves the caller's thread.
 */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const fd = fs.openSync(folder, 'r');
  try {
    await syncFile(fd);
  } finally {
    fs.closeSync(fd);
  }
}
