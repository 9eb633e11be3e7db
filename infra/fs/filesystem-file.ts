import * as fs from 'node:fs';
import { fileClosed, fileNotFound, fileReadOnly } from '../../core/ports/storage.ts';
import type { StorageFile } from '../../core/ports/storage.ts';
import { diskShare } from './disk-share.ts';
import { storageError, syncError } from './fs-errors.ts';
import { ReadLatency, SyncLatency } from './latency.ts';
import type { OpenFiles, ReadOnlyFile } from './open-files.ts';
import { syncTurns } from './sync-turns.ts';

/**
 * Largest write in bytes that is made at once, on the caller's thread: copying it into the page cache takes less time
 * than a trip to the thread pool and back.
 */
const WRITE_AT_ONCE_BYTES_MAX = 65_536;

/**
 * Whose calls: those of the request loop; of a thread on which nothing waits for them; or of a thread in the
 * background, which makes them itself.
 */
export type FileCalls = 'request-loop' | 'offline' | 'blocking';

/** What a file is made of. */
interface OpenedFile {
  /** Its name in the port, and where it lies on this machine. */
  readonly path: string;
  readonly place: string;
  readonly fd: number;
  readonly size: number;
  readonly isWritable: boolean;
  readonly calls: FileCalls;
  readonly openFiles: OpenFiles;
}

/**
 * A file by its descriptor. FileHandle would cost several objects a call; group commit makes thousands a second. One
 * that is only read may be parked (open-files.ts), and is opened again by the next call. By then its name must still
 * lead to it: what is read for long keeps its name until it is closed.
 */
export class FilesystemFile implements StorageFile, ReadOnlyFile {
  readonly path: string;
  /** Where it lies on this machine. */
  readonly #place: string;
  /** -1 while the file is parked or closed. */
  #fd: number;
  readonly #openFiles: OpenFiles;
  /** Which file this is; null before it was parked for the first time. */
  #identity: string | null = null;
  wasUsed = true;
  /** Reads and writes are made on the caller's thread; a sync leaves it free to go on. */
  readonly #isBlocking: boolean;
  readonly #takesTurns: boolean;
  #size: number;
  #isWritable: boolean;
  #isOpen = true;
  #syncFailure: unknown = null;
  readonly #pace = new SyncLatency();
  readonly #readPace = new ReadLatency();
  /** Bytes written on a thread in the background since it last set the disk to work. */
  #unwritten = 0;
  #writingBack: Promise<void> = Promise.resolve();
  /** Of a thread in the background: all syncs so far. */
  #syncing: Promise<void> = Promise.resolve();
  /** Calls under way: the descriptor's number may be given to another file only after they have ended. */
  #busy = 0;
  #whenIdle: (() => void) | null = null;

  constructor({ path, place, fd, size, isWritable, calls, openFiles }: OpenedFile) {
    this.#isBlocking = calls === 'blocking';
    this.#takesTurns = calls === 'request-loop';
    this.path = path;
    this.#place = place;
    this.#fd = fd;
    this.#size = size;
    this.#isWritable = isWritable;
    this.#openFiles = openFiles;
    if (!isWritable) openFiles.add(this);
  }

  get isIdle(): boolean {
    return this.#busy === 0;
  }

  park(): void {
    try {
      this.#identity ??= identityOfOpen(this.#fd);
      fs.closeSync(this.#fd);
      this.#fd = -1;
    } catch {
      // A disk that is gone keeps it open: its own next call meets the error, not that of another file.
    }
  }

  #descriptor(): number {
    this.wasUsed = true;
    if (this.#fd < 0) this.#open();
    return this.#fd;
  }

  #open(): void {
    try {
      const fd = this.#openFiles.open(() => fs.openSync(this.#place, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK));
      if (identityOfOpen(fd) !== this.#identity) {
        fs.closeSync(fd);
        throw fileNotFound(this.path);
      }
      this.#fd = fd;
      this.#openFiles.add(this);
    } catch (error) {
      throw storageError(error, this.path, this.#place);
    }
  }

  get size(): number {
    return this.#size;
  }

  read(position: number, length: number, into?: Uint8Array): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) throw fileClosed(this.path);
      // Uninitialised memory of its own, as a plain Uint8Array: `slice` of a Buffer would not copy.
      const bytes = into?.subarray(0, length) ?? new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
      if (this.#isBlocking) return resolve(bytes.subarray(0, this.#readBlocking(bytes, 0, length, position)));
      const fd = this.#descriptor();
      this.#busy++;
      this.#readOn(fd, bytes, 0, position, resolve, reject);
    });
  }

  readNow(position: number, length: number, into: Uint8Array, at: number): number {
    if (!this.#isOpen) throw fileClosed(this.path);
    if (!this.#isBlocking && !this.#readPace.admits()) return -1;
    const begin = performance.now();
    const count = this.#readBlocking(into, at, length, position);
    this.#readPace.note(performance.now() - begin);
    return count;
  }

  #readBlocking(into: Uint8Array, at: number, length: number, position: number): number {
    try {
      const fd = this.#descriptor();
      let filled = 0;
      for (let count = -1; filled < length && count !== 0; filled += count)
        count = fs.readSync(fd, into, at + filled, length - filled, position + filled);
      if (filled < length) this.#checkEnd(position + filled);
      return filled;
    } catch (error) {
      throw storageError(error, this.path);
    }
  }

  /** Fills `bytes` from `filled` on; the system may return less than was asked for long before the end. */
  #readOn(
    fd: number,
    bytes: Uint8Array,
    filled: number,
    position: number,
    resolve: (bytes: Uint8Array) => void,
    reject: (error: unknown) => void,
  ): void {
    fs.read(fd, bytes, filled, bytes.length - filled, position + filled, (error, count) => {
      if (error !== null) {
        this.#ended();
        reject(storageError(error, this.path));
      } else if (filled + count === bytes.length) {
        this.#ended();
        resolve(bytes);
      } else if (count === 0) {
        this.#ended();
        try {
          this.#checkEnd(position + filled);
          resolve(bytes.subarray(0, filled));
        } catch (cause) {
          reject(storageError(cause, this.path));
        }
      } else this.#readOn(fd, bytes, filled + count, position, resolve, reject);
    });
  }

  /**
   * A file that ends before it did when it was opened to be read is being cut by `freeBitByBit`, unless it still has
   * its name.
   */
  #checkEnd(end: number): void {
    if (end < this.#size && !this.#isWritable && !isInPlace(this.#fd, this.#place)) throw fileNotFound(this.path);
  }

  writeAt(position: number, bytes: Uint8Array): void | Promise<void> {
    if (!this.#isOpen) throw fileClosed(this.path);
    if (!this.#isWritable) throw fileReadOnly(this.path);
    if (bytes.length > WRITE_AT_ONCE_BYTES_MAX && !this.#isBlocking) return this.#writeLater(position, bytes);
    try {
      for (let done = 0; done < bytes.length;)
        done += fs.writeSync(this.#fd, bytes, done, bytes.length - done, position + done);
    } catch (error) {
      throw storageError(error, this.path);
    }
    this.#grewTo(position, bytes.length);
    if (this.#isBlocking) return this.#writeBack(bytes.length);
  }

  /** Begins to write back what has been written, when it is enough, and waits for the time before. */
  #writeBack(length: number): void | Promise<void> {
    this.#unwritten += length;
    const due = diskShare.isDue(this.#unwritten);
    if (due === 'no') return;
    this.#unwritten = 0;
    const last = this.#writingBack;
    this.#writingBack = last.then(() => (due === 'beside' ? this.#syncAndRest() : this.sync()));
    // The writer meets the error at the next one, or at his own sync.
    this.#writingBack.catch(() => {});
    return last;
  }

  async #syncAndRest(): Promise<void> {
    const restMs = await diskShare.during(() => this.sync());
    if (restMs > 0)
      await new Promise((resolve) => {
        setTimeout(resolve, restMs);
      });
  }

  #writeLater(position: number, bytes: Uint8Array): Promise<void> {
    this.#pace.expectSlow();
    return new Promise((resolve, reject) => {
      this.#busy++;
      this.#writeOn(bytes, 0, position, resolve, reject);
    });
  }

  #writeOn(
    bytes: Uint8Array,
    done: number,
    position: number,
    resolve: () => void,
    reject: (error: unknown) => void,
  ): void {
    fs.write(this.#fd, bytes, done, bytes.length - done, position + done, (error, count) => {
      if (error !== null) {
        this.#ended();
        reject(storageError(error, this.path));
      } else if (done + count < bytes.length) this.#writeOn(bytes, done + count, position, resolve, reject);
      else {
        this.#grewTo(position, bytes.length);
        this.#ended();
        resolve();
      }
    });
  }

  #grewTo(position: number, length: number): void {
    if (length > 0 && position + length > this.#size) this.#size = position + length;
  }

  truncate(size: number): Promise<void> {
    this.#pace.expectSlow();
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) throw fileClosed(this.path);
      if (!this.#isWritable) throw fileReadOnly(this.path);
      this.#busy++;
      fs.ftruncate(this.#fd, size, (error) => {
        this.#ended();
        if (error !== null) return reject(storageError(error, this.path));
        this.#size = size;
        resolve();
      });
    });
  }

  sync(): Promise<void> {
    const own = this.#syncNow();
    if (!this.#isBlocking) return own;
    // The system reports a failure to one sync only, which may be one that was begun beside the writing.
    const all = Promise.all([this.#syncing, own]).then(() => {});
    all.catch(() => {});
    this.#syncing = all;
    return all;
  }

  #syncNow(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) throw fileClosed(this.path);
      // After a failure the system may report success for pages that it has dropped.
      if (this.#syncFailure !== null) throw this.#syncFailure;
      const fd = this.#descriptor();
      const begin = performance.now();
      const ended = (error: unknown) => {
        if (this.#takesTurns) syncTurns.end();
        else if (this.#isBlocking) syncTurns.endBehind();
        this.#pace.note(performance.now() - begin);
        if (error === null) return resolve();
        this.#syncFailure = syncError(error, this.path);
        reject(this.#syncFailure);
      };
      if (this.#isBlocking) {
        syncTurns.giveWay();
        syncTurns.beginBehind();
      } else {
        if (this.#takesTurns) syncTurns.begin();
        if (this.#pace.isOnTheSpot) return ended(thrownBy(() => fs.fdatasyncSync(fd)));
      }
      this.#busy++;
      fs.fdatasync(fd, (error) => {
        this.#ended();
        ended(error);
      });
    });
  }

  async seal(): Promise<void> {
    if (!this.#isOpen) throw fileClosed(this.path);
    this.#isWritable = false;
    try {
      const fd = this.#descriptor();
      fs.fchmodSync(fd, fs.fstatSync(fd).mode & 0o555);
      this.#openFiles.add(this);
    } catch (error) {
      throw storageError(error, this.path);
    }
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    if (this.#busy > 0)
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
    if (this.#fd < 0) return;
    this.#openFiles.remove(this);
    try {
      fs.closeSync(this.#fd);
    } catch (error) {
      throw storageError(error, this.path);
    }
  }

  #ended(): void {
    this.#busy--;
    if (this.#busy > 0) return;
    this.#whenIdle?.();
    this.#openFiles.settle();
  }
}

/** Which file is open, as text: device and inode. It may have grown: another handle may write to it. */
function identityOfOpen(fd: number): string {
  const { dev, ino } = fs.fstatSync(fd, { bigint: true });
  return `${dev}:${ino}`;
}

/** Whether the name still leads to the open file. */
export function isInPlace(fd: number, location: string): boolean {
  const now = fs.statSync(location, { bigint: true, throwIfNoEntry: false });
  const own = fs.fstatSync(fd, { bigint: true });
  return now?.ino === own.ino && now.dev === own.dev;
}

/** What the call throws, or null. */
function thrownBy(call: () => void): unknown {
  try {
    call();
    return null;
  } catch (error) {
    return error;
  }
}
