import { SkuaError } from '../../base/errors.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import {
  checkPath,
  checkRemoval,
  checkRename,
  fileExists,
  fileNotFound,
  folderOf,
  type Storage,
  type StorageFile,
  type StorageLock,
} from '../../ports/storage.ts';
import { decodeBase64 } from '../../base/base64.ts';
import type { ObjectManifest } from '../format/manifest.ts';
import { BaseFile, BaseHandle } from './storage-base.ts';

/** Bytes copied at once when a file of the manifest is opened for writing. */
const COPY_BYTES = 1_048_576;

/** What has to happen to make the state of an ObjectStorage real. */
interface StorageChanges {
  /** Names of files that were written here, ascending: they have to be uploaded. */
  readonly added: readonly string[];
  /** Names that the manifest has and that are gone or written anew, ascending. */
  readonly removed: readonly string[];
}

/**
 * The files that a manifest names, and over them a scratch storage with everything that was created, written or renamed
 * since. A tick works on it like a node on its data directory; nothing of that is seen by any other process before a
 * newer manifest names it. Objects are never written or removed here.
 *
 * Files of the manifest are read by range from their objects. Removed ones stay readable for handles that are open; a
 * handle that was opened for reading does not see what is written to the file through a later one.
 */
export class ObjectStorage implements Storage {
  readonly #scratch: Storage;
  /** Files of the manifest by the names they have now. */
  readonly #base: Map<string, BaseFile>;
  /** Of the manifest, as it was. */
  readonly #given: ReadonlyMap<string, BaseFile>;
  /** Names of files in the scratch storage, which may hold others too. */
  readonly #own = new Set<string>();
  #isLocked = false;

  constructor(base: ReadonlyMap<string, BaseFile>, temporary: Storage) {
    this.#given = base;
    this.#base = new Map(base);
    this.#scratch = temporary;
  }

  /** The files of a manifest, but the chunk that is being filled. Costs no request. Throws `manifest_invalid`. */
  static of(manifest: ObjectManifest, objects: ObjectStore, temporary: Storage): ObjectStorage {
    return new ObjectStorage(baseFilesOf(manifest, objects), temporary);
  }

  async list(folder: string): Promise<string[]> {
    if (folder !== '') checkPath(folder);
    const names: string[] = [];
    for (const path of [...this.#base.keys(), ...this.#own]) {
      if (folderOf(path) === folder) names.push(folder === '' ? path : path.slice(folder.length + 1));
    }
    return names.sort();
  }

  async size(path: string): Promise<number | null> {
    checkPath(path);
    if (this.#own.has(path)) return this.#scratch.size(path);
    return this.#base.get(path)?.sizeBytes ?? null;
  }

  async modifiedMs(path: string): Promise<number | null> {
    checkPath(path);
    if (this.#own.has(path)) return this.#scratch.modifiedMs(path);
    // An object never changes.
    return this.#base.has(path) ? 0 : null;
  }

  async open(path: string, access: 'read' | 'write'): Promise<StorageFile> {
    checkPath(path);
    if (this.#own.has(path)) return this.#scratch.open(path, access);
    const file = this.#base.get(path);
    if (file === undefined) throw fileNotFound(path);
    return access === 'read' ? new BaseHandle(path, file) : this.#copyUp(path, file);
  }

  /** Takes a copy of a file of the manifest, which can then be written to. */
  async #copyUp(path: string, file: BaseFile): Promise<StorageFile> {
    const copy = await this.#scratch.create(path);
    try {
      for (let at = 0; at < file.sizeBytes; at += COPY_BYTES)
        await copy.writeAt(at, await file.read(path, at, Math.min(at + COPY_BYTES, file.sizeBytes)));
    } catch (error) {
      await copy.close();
      await this.#scratch.remove(path).catch(() => {});
      throw error;
    }
    this.#base.delete(path);
    this.#own.add(path);
    return copy;
  }

  async create(path: string): Promise<StorageFile> {
    checkPath(path);
    if (this.#base.has(path)) throw fileExists(path);
    const file = await this.#scratch.create(path);
    this.#own.add(path);
    return file;
  }

  async rename(from: string, to: string): Promise<void> {
    checkRename(from, to);
    const file = this.#base.get(from);
    if (this.#own.has(from)) {
      await this.#scratch.rename(from, to);
      this.#own.delete(from);
      this.#base.delete(to);
      this.#own.add(to);
    } else if (file === undefined) {
      throw fileNotFound(from);
    } else if (from !== to) {
      // The object keeps its key: only the next manifest gives it another name.
      if (this.#own.delete(to)) await this.#scratch.remove(to);
      this.#base.delete(from);
      this.#base.set(to, file);
    }
  }

  async remove(path: string): Promise<void> {
    checkRemoval(path);
    this.#base.delete(path);
    if (this.#own.delete(path)) await this.#scratch.remove(path);
  }

  freeBytes(): Promise<number> {
    return this.#scratch.freeBytes();
  }

  /** Of this view alone: which writer may change the files for all is decided by the next manifest. */
  async lock(): Promise<StorageLock> {
    if (this.#isLocked)
      throw new SkuaError(
        'directory_locked',
        'These files are in use by another part of this process: close that one first.',
        { path: '' },
      );
    this.#isLocked = true;
    let isHeld = true;
    return {
      release: async () => {
        if (isHeld) this.#isLocked = false;
        isHeld = false;
      },
    };
  }

  /**
   * Takes in a file that another process has written to the scratch storage under this name; nothing where there is
   * none.
   */
  async adopt(path: string): Promise<void> {
    checkPath(path);
    if ((await this.#scratch.size(path)) === null) return;
    this.#base.delete(path);
    this.#own.add(path);
  }

  changes(): StorageChanges {
    const removed = [...this.#given].filter(([path, file]) => this.#base.get(path) !== file).map(([path]) => path);
    const renamed = [...this.#base].filter(([path, file]) => this.#given.get(path) !== file).map(([path]) => path);
    return { added: [...this.#own, ...renamed].sort(), removed: removed.sort() };
  }

  /** The file of the manifest that has this name now; undefined for one that was written here, or none. */
  base(path: string): BaseFile | undefined {
    return this.#base.get(path);
  }

  /** Bytes in the scratch storage that are named here. */
  async ownBytes(): Promise<number> {
    let bytes = 0;
    for (const path of this.#own) bytes += (await this.#scratch.size(path)) ?? 0;
    return bytes;
  }
}

function baseFilesOf(manifest: ObjectManifest, objects: ObjectStore): Map<string, BaseFile> {
  const base = new Map<string, BaseFile>();
  for (const { name, key, sizeBytes } of manifest.chunks) base.set(name, BaseFile.ofObject(objects, key, sizeBytes));
  for (const { name, key, sizeBytes, inline } of manifest.files) {
    if (key !== null) {
      base.set(name, BaseFile.ofObject(objects, key, sizeBytes));
      continue;
    }
    const bytes = decodeBase64(inline ?? '');
    if (bytes === null || bytes.length !== sizeBytes)
      throw new SkuaError(
        'manifest_invalid',
        `Manifest ${manifest.number} contains ${name}, but its ${sizeBytes} bytes can't be read: restore the manifest from a backup.`,
        { number: manifest.number, path: name },
      );
    base.set(name, BaseFile.ofBytes(objects, bytes));
  }
  return base;
}
