import { SkuaError } from '../base/errors.ts';
import { checkOwnName, listedNames } from './own-names.ts';

/**
 * The files of one node. Paths are relative to the data directory and use `/`; what lies under `index/` may be kept
 * somewhere else by the implementation (option `--index`), so nothing renames a file into or out of `index/`.
 *
 * Durability: what `writeAt` or `truncate` did is certain to outlive a crash only after `sync` of that file has
 * succeeded. Files appear and vanish durably when `create`, `rename` and `remove` return. A failed `sync` leaves the
 * content undefined and must never be repeated: the system may go on showing bytes and a length that it holds for
 * written and that are on no disk, to other processes too. Code that opens a file takes nothing of it for durable but
 * what other durable bytes vouch for, or what that code has written again and synced.
 *
 * Errors are SkuaErrors: `file_not_found`, `file_exists`, `disk_full` (from a write, which then changed nothing that
 * counts), `sync_failed`, `directory_locked`, `io_error` for the rest; `data.path` names the file.
 *
 * `rename`, `remove` and `discard` take names of ours alone (own-names.ts); for any other they reject with `io_error`
 * and change nothing.
 */
export interface Storage {
  /**
   * Names of the files (not folders) directly in a folder, ascending by code unit; empty when there is no such folder.
   * '' is the data directory itself.
   */
  list(folder: string): Promise<string[]>;
  /** Length of a file in bytes, or null when there is none. */
  size(path: string): Promise<number | null>;
  /**
   * When the content of a file was last changed, or null when there is none: milliseconds since 1970 on a disk, any
   * number that another change gives another value where there is no clock. Only to be compared with what the same
   * files said before. Renaming and sealing change nothing.
   */
  modifiedMs(path: string): Promise<number | null>;
  /** Opens an existing file. `write` lifts a seal. Several handles of one file may be open at once. */
  open(path: string, access: 'read' | 'write'): Promise<StorageFile>;
  /** Creates a new empty file open for writing, and the folders above it. `file_exists` when there is one. */
  create(path: string): Promise<StorageFile>;
  /**
   * Gives a file another name in the same folder, replacing what had it; all at once, and durably on return. Open
   * handles stay valid, but for what `read` says of those that only read.
   */
  rename(from: string, to: string): Promise<void>;
  /**
   * Removes the name at once and durably; a handle that is still open reads on, but for what `read` says, and the bytes
   * are freed when the last one closes. No error when the file is absent.
   */
  remove(path: string): Promise<void>;
  /**
   * As `remove`, for a file of which this thread reads nothing any more: its space may come back bit by bit afterwards,
   * because a disk that frees a large file at once makes every sync wait for that. Others may still read it, in workers
   * or other processes: their reads then reject with `file_not_found`, and they look for what has taken its place. Left
   * out where `remove` does as well.
   */
  discard?(path: string): Promise<void>;
  /** Bytes that can still be written. */
  freeBytes(): Promise<number>;
  /**
   * Takes the exclusive lock of the directory, held until released or the process dies. `directory_locked` when another
   * holds it; `not_a_data_directory`, before anything is changed, when it has neither checkpoints nor chunk files and
   * holds what is neither ours by name nor the system's.
   */
  lock(): Promise<StorageLock>;
}

export interface StorageFile {
  readonly path: string;
  /** Length in bytes as this handle knows it (it follows its own writes and truncations). */
  readonly size: number;
  /**
   * `length` bytes from `position`, fewer at the end of the file. Bytes come at once where the implementation holds
   * them in memory, else as a promise. The result may be a view of the implementation's own memory: never write to it,
   * and copy it before the same range is written again. Where `into` is given, which is at least `length` long, an
   * implementation may put them there instead of into new memory: long reads that follow one another would otherwise
   * keep the whole process busy with getting and giving back pages. `file_not_found` when the file was discarded and
   * what is asked for is gone, which is never taken for a file that ends there; and, of a handle that was opened to be
   * read, when the file has lost its name and the implementation had closed it, since so many others are open.
   */
  read(position: number, length: number, into?: Uint8Array): Uint8Array | Promise<Uint8Array>;
  /**
   * Every `read` is a request to another machine, which takes long and costs something: better one for all that is
   * needed than several.
   */
  readonly isRemote?: boolean;
  /**
   * Puts up to `length` bytes from `position` into `into` from `at` on, at once, and gives their count, fewer at the
   * end of the file; or -1 when they are likely to take longer than a few microseconds: then `read` is the way. For
   * single records far from each other. An implementation whose `read` never waits, or always does, leaves it out.
   */
  readNow?(position: number, length: number, into: Uint8Array, at: number): number;
  /**
   * Writes all bytes at `position`, growing the file as needed. The bytes have been taken over when the call (or its
   * promise) ends, so the buffer may then be used again. Small writes may complete at once without a promise. On an
   * error the range's content is undefined.
   */
  writeAt(position: number, bytes: Uint8Array): void | Promise<void>;
  /** Cuts the file, or grows it with zeros, to exactly `size` bytes. */
  truncate(size: number): Promise<void>;
  /** Makes everything written to the file so far durable (fdatasync). */
  sync(): Promise<void>;
  /** Marks the file read-only. It stays open and readable. */
  seal(): Promise<void>;
  close(): Promise<void>;
}

export interface StorageLock {
  release(): Promise<void>;
}

/**
 * Throws `io_error` when a path could leave the data directory or has an empty part. Paths come from our own code, so
 * a bad one is a defect; refusing it keeps a defect from touching foreign files.
 */
export function checkPath(path: string): void {
  if (path === '') throw badPath(path);
  for (const part of path.split('/')) {
    if (part === '' || part === '.' || part === '..' || part.includes('\\') || part.includes('\0')) throw badPath(path);
  }
}

function badPath(path: string): SkuaError {
  return new SkuaError('io_error', `"${path}" is not a path inside the data directory: this is a defect.`, { path });
}

/** The folder of a path, '' for a file directly in the data directory. */
export function folderOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? '' : path.slice(0, slash);
}

/** Throws `io_error` for what is not ours by its name (own-names.ts). */
export function checkRemoval(path: string): void {
  checkPath(path);
  checkOwnName(path);
}

/** Throws `io_error` when a rename would leave its folder, and for what is not ours by its name. */
export function checkRename(from: string, to: string): void {
  checkRemoval(from);
  checkRemoval(to);
  if (folderOf(from) !== folderOf(to)) {
    throw new SkuaError(
      'io_error',
      `"${from}" can't be renamed to "${to}": a file keeps its folder. This is a defect.`,
      { path: from, to },
    );
  }
}

export function fileNotFound(path: string): SkuaError {
  return new SkuaError('file_not_found', `The file ${path} does not exist in the data directory.`, { path });
}

/** The directory is none of data yet, and holds what is not Skua's: `found`. `place` names it in a sentence. */
export function notADataDirectory(place: string, found: readonly string[]): SkuaError {
  return new SkuaError(
    'not_a_data_directory',
    `${place} is not a data directory, and holds other files: ${listedNames(found)}. Name an empty directory, or the one with the data. Nothing was changed.`,
    { path: place, found },
  );
}

export function fileExists(path: string): SkuaError {
  return new SkuaError('file_exists', `The file ${path} already exists in the data directory.`, { path });
}

export function fileClosed(path: string): SkuaError {
  return new SkuaError('io_error', `The file ${path} was used after it had been closed: this is a defect.`, { path });
}

export function fileReadOnly(path: string): SkuaError {
  return new SkuaError('io_error', `The file ${path} is open for reading only: open it for writing first.`, { path });
}
