import { randomUUID } from 'node:crypto';
import { open, readdir, stat, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import * as path from 'node:path';
import { TEMPORARY_FOLDER } from '../../core/ports/object-store.ts';
import type { DurableFolders } from './durable-folders.ts';

/** What lies in the temporary folder without being written to for this long, in milliseconds, was left by a crash: 24 hours. */
const LEFTOVER_AFTER_MS = 86_400_000;
/** Files that are being written: each gets its key when it is complete and durable. */
export class TemporaryFiles {
  readonly #folder: string;
  readonly #folders: DurableFolders;
  readonly #nowMs: () => number;

  constructor(root: string, folders: DurableFolders, nowMs: () => number) {
    this.#folder = path.join(root, TEMPORARY_FOLDER);
    this.#folders = folders;
    this.#nowMs = nowMs;
  }

  /** Runs `use` on the path of a file with these bytes, durable; the file is removed afterwards unless it was renamed. */
  async with<T>(write: (handle: FileHandle) => Promise<void>, use: (file: string) => Promise<T>): Promise<T> {
    const file = path.join(this.#folder, randomUUID());
    const handle = await this.#create(file);
    try {
      try {
        await write(handle);
        await handle.sync();
      } finally {
        await handle.close();
      }
      return await use(file);
    } finally {
      await unlink(file).catch(() => {});
    }
  }

  async #create(file: string): Promise<FileHandle> {
    await this.#folders.ensure(this.#folder);
    try {
      return await open(file, 'wx', 0o644);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      this.#folders.forget(this.#folder);
      await this.#folders.ensure(this.#folder);
      return open(file, 'wx', 0o644);
    }
  }

  /** Removes what crashes left. Failures don't matter: the next one to open the directory tries again. */
  async removeLeftovers(): Promise<void> {
    const names = await readdir(this.#folder).catch(() => []);
    for (const name of names) {
      const file = path.join(this.#folder, name);
      const found = await stat(file).catch(() => null);
      if (found?.isFile() === true && this.#nowMs() - found.mtimeMs > LEFTOVER_AFTER_MS) await unlink(file).catch(() => {});
    }
  }
}
