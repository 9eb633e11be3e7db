import * as fs from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import * as path from 'node:path';
import { SkuaError } from '../../core/base/errors.ts';
import { throwIfAborted, wrongSize } from '../../core/ports/object-store.ts';
import { systemCode } from '../fs/fs-errors.ts';

/** Bytes that go to the system at once; smaller pieces are gathered up to this. */
const BLOCK_BYTES = 1_048_576;
/** Pieces from this size on are not gathered: copying them would cost more than a call. */
const PIECE_BYTES_MIN = 131_072;
/**
 * Bytes after which a sync is begun beside the writing, so that the disk works all along and the last sync is short.
 */
const SYNC_EVERY_BYTES = 33_554_432;

interface WriteContentOptions {
  readonly signal?: AbortSignal | undefined;
  /** Write on the caller's thread; a sync leaves it free to go on. Default false. */
  readonly isBlocking?: boolean;
}

/**
 * Writes content of exactly `sizeBytes` bytes from the file's beginning; nothing works on the handle any more when it
 * ends, whichever way.
 */
export async function writeContent(
  handle: FileHandle,
  key: string,
  sizeBytes: number,
  content: AsyncIterable<Uint8Array>,
  { signal, isBlocking = false }: WriteContentOptions = {},
): Promise<void> {
  const writer = new BlockWriter(handle, Math.min(BLOCK_BYTES, sizeBytes), isBlocking);
  let total = 0;
  try {
    for await (const piece of content) {
      throwIfAborted(signal, key);
      total += piece.length;
      if (total > sizeBytes) throw wrongSize(key, sizeBytes, total);
      await writer.add(piece);
    }
    if (total < sizeBytes) throw wrongSize(key, sizeBytes, total);
    throwIfAborted(signal, key);
    await writer.flush();
  } finally {
    await writer.settled();
  }
  await writer.done();
}

/**
 * Writes all of a file: up to a block of bytes on the caller's thread, since another one's turn would take longer, and
 * more than that on others.
 */
export function writeBytes(handle: FileHandle, bytes: Uint8Array): void | Promise<void> {
  return bytes.length <= BLOCK_BYTES
    ? writeBlocking(handle, bytes, bytes.length, 0)
    : writeAll(handle, bytes, bytes.length, 0);
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, length: number, position: number): Promise<void> {
  for (let done = 0; done < length;) {
    const { bytesWritten } = await handle.write(bytes, done, length - done, position + done);
    done += bytesWritten;
  }
}

function writeBlocking({ fd }: FileHandle, bytes: Uint8Array, length: number, position: number): void {
  for (let done = 0; done < length;) done += fs.writeSync(fd, bytes, done, length - done, position + done);
}

/** Fills `bytes` from `from` on. */
export async function readAll(handle: FileHandle, bytes: Uint8Array, from: number, key: string): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await handle.read(bytes, done, bytes.length - done, from + done);
    if (bytesRead === 0)
      throw new SkuaError(
        'io_error',
        `The file of object ${key} became shorter while being read: something else writes to the directory.`,
        { key },
      );
    done += bytesRead;
  }
}

/** What there is from `from` on, as much as `into` holds; null for what is no file. */
export async function readInto(handle: FileHandle, into: Uint8Array, from: number): Promise<Uint8Array | null> {
  let done = 0;
  try {
    for (let count = -1; done < into.length && count !== 0; done += count)
      count = (await handle.read(into, done, into.length - done, from + done)).bytesRead;
  } catch (error) {
    if (systemCode(error) === 'EISDIR') return null;
    throw error;
  }
  return into.subarray(0, done);
}

/** As `readInto`, on the caller's thread; null also where there is no file. */
export function readIntoBlocking(file: string, into: Uint8Array, from: number): Uint8Array | null {
  let fd: number;
  try {
    fd = fs.openSync(file, 'r');
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
  let done = 0;
  try {
    for (let count = -1; done < into.length && count !== 0; done += count)
      count = fs.readSync(fd, into, done, into.length - done, from + done);
  } catch (error) {
    if (systemCode(error) === 'EISDIR') return null;
    throw error;
  } finally {
    fs.closeSync(fd);
  }
  return into.subarray(0, done);
}

/** Writes one block while the next is gathered from the source, and syncs beside both. */
class BlockWriter {
  readonly #handle: FileHandle;
  readonly #isBlocking: boolean;
  readonly #blockBytes: number;
  /** The first is being filled, the second written. */
  #blocks: Uint8Array[] = [];
  #filled = 0;
  #written = 0;
  #synced = 0;
  #writing = Promise.resolve();
  #syncing = Promise.resolve();

  constructor(handle: FileHandle, blockBytes: number, isBlocking: boolean) {
    this.#handle = handle;
    this.#isBlocking = isBlocking;
    this.#blockBytes = blockBytes;
  }

  /** The piece may be used again when this has resolved. */
  async add(piece: Uint8Array): Promise<void> {
    // A large piece is written as it is: other files are read and written meanwhile.
    if (piece.length >= PIECE_BYTES_MIN) return this.#writeThrough(piece);
    if (this.#blocks.length === 0) this.#blocks = [new Uint8Array(this.#blockBytes), new Uint8Array(this.#blockBytes)];
    for (let at = 0; at < piece.length;) {
      const count = Math.min(piece.length - at, this.#blockBytes - this.#filled);
      this.#blocks[0]!.set(count === piece.length ? piece : piece.subarray(at, at + count), this.#filled);
      this.#filled += count;
      at += count;
      if (this.#filled === this.#blockBytes) await this.flush();
    }
  }

  /** Begins to write what was gathered. A failure shows at the next call. */
  async flush(): Promise<void> {
    if (this.#filled === 0) return;
    await this.#write(this.#blocks[0]!, this.#filled);
    this.#filled = 0;
    this.#blocks.reverse();
    await this.#syncBeside();
  }

  async #writeThrough(piece: Uint8Array): Promise<void> {
    await this.flush();
    await this.#write(piece, piece.length);
    await this.#writing;
    await this.#syncBeside();
  }

  /** Begins a write behind the one before it. */
  async #write(bytes: Uint8Array, length: number): Promise<void> {
    await this.#writing;
    if (this.#isBlocking) writeBlocking(this.#handle, bytes, length, this.#written);
    else this.#writing = writeAll(this.#handle, bytes, length, this.#written);
    this.#writing.catch(() => {});
    this.#written += length;
  }

  async #syncBeside(): Promise<void> {
    if (this.#written - this.#synced < SYNC_EVERY_BYTES) return;
    await this.#writing;
    await this.#syncing;
    this.#synced = this.#written;
    this.#syncing = this.#handle.datasync();
    this.#syncing.catch(() => {});
  }

  /** Resolves when nothing is under way, without saying how it went. */
  async settled(): Promise<void> {
    await Promise.allSettled([this.#writing, this.#syncing]);
  }

  async done(): Promise<void> {
    await this.#writing;
    await this.#syncing;
  }
}

/** The error of a system call on the file of an object, as the port of object stores words it. */
export function directoryError(error: unknown, key: string, root: string): SkuaError {
  if (error instanceof SkuaError) return error;
  const code = systemCode(error);
  const data = { key, path: root, systemCode: code };
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new SkuaError(
        'disk_full',
        `There is no space left to write ${key} in ${root}. Free space on that disk and try again.`,
        data,
        error,
      );
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new SkuaError(
        'storage_denied',
        `Access to ${key} in ${root} was denied (${code}). Check the owner and the permissions of the directory, and that its file system is mounted for writing.`,
        data,
        error,
      );
    case 'ENOENT':
    case 'ESTALE':
      return new SkuaError(
        'storage_unreachable',
        `Folders of ${root} disappeared while ${key} was in use (${code}): something moves or removes them. Try again when they are back.`,
        data,
        error,
      );
    case 'EMFILE':
    case 'ENFILE':
      return new SkuaError(
        'io_error',
        `${key} in ${root} can't be opened: too many files are open (${code}). Raise the limit of open files.`,
        data,
        error,
      );
    case 'ENOTDIR':
    case 'EISDIR':
    case 'ENOTEMPTY':
      return new SkuaError(
        'io_error',
        `${key} in ${root} is a folder where a file is needed, or the reverse (${code}). Remove what does not belong in ${root}.`,
        data,
        error,
      );
    default:
      return new SkuaError(
        'io_error',
        `An operation on ${path.join(root, key)} failed (${code}): ${error instanceof Error ? error.message : String(error)}. Check the disk and the system's log.`,
        data,
        error,
      );
  }
}

/** True for what says that there is no such file. */
export function isAbsent(error: unknown): boolean {
  const code = systemCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
