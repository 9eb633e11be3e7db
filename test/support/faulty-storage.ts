/**
 * A disk that fails, for crash tests. The fault model, in words:
 *
 * - Power may fail at any mutating call (`writeAt`, `truncate`, `sync`, `create`, `rename`, `remove`, `seal`): before
 *   it takes effect, after it, or in the middle. From then on every call but `close` throws a `Crash`. A write
 *   cut off in its middle leaves any of its sectors; creating, renaming and removing happen all at once or not at all.
 * - After a power loss a file surely holds what it held at its last completed sync. Of what was written and never
 *   synced, any 512-byte sectors may be there or not, in any order of arrival (`partial`), all of them (`keep`), or
 *   none (`drop`). A sector itself is whole: never half old and half new. Changes of the length arrive in their order
 *   but not together with the data, so a file may be long and empty, or short although its data had arrived.
 * - Names are durable when `create`, `rename` or `remove` returns. The content of a file is not because its name is:
 *   an unsynced file that was renamed into place can be empty after the loss.
 * - A write that is made to fail (`disk_full`, `io_error`) leaves any sectors of its range written. One that exceeds
 *   the capacity, and every other failed call but sync, changes nothing. Space is taken in blocks of 4 KiB; holes are
 *   free.
 * - A failed sync leaves any part of the unsynced bytes on the disk, and the rest never gets there although it can
 *   still be read: a second sync reports success. That is noted in `violations`, because nobody may try.
 * - What a failed sync left outlives its process: the next one under the same system (`clean`) reads bytes and lengths
 *   that it can't tell from durable ones, that no sync of its own brings to the disk, and that the next power loss
 *   takes away unless they are written again. The same is left by a process that was killed, when the system fails to
 *   write its bytes later.
 * - Bytes on the disk may rot at any time (`corrupt`), which the disk does not notice.
 * - The lock goes with the process.
 *
 * Not simulated: reads that lie once and tell the truth later, sectors that land in the wrong place, and a file system
 * that loses names: they go through its journal, and where that can't be written it refuses all further changes.
 */
import { SkuaError } from '../../core/base/errors.ts';
import type { ErrorCode } from '../../core/base/errors.ts';
import { checkPath, checkRemoval, checkRename, fileExists, fileNotFound, folderOf } from '../../core/ports/storage.ts';
import type { Storage, StorageFile, StorageLock } from '../../core/ports/storage.ts';
import { Crash } from './crash.ts';
import { FaultyFile } from './faulty-file.ts';
import type { RestartMode } from './faulty-file.ts';
import { FaultyHandle } from './faulty-handle.ts';
import { Random } from './random.ts';

export type MutatingOp = 'writeAt' | 'truncate' | 'sync' | 'create' | 'rename' | 'remove' | 'seal';
export type CrashMoment = 'before' | 'middle' | 'after';
/** `read` is not counted as an operation but can be made to fail. */
export type FailPredicate = (
  op: MutatingOp | 'read',
  path: string,
  position: number,
  length: number,
) => ErrorCode | undefined;

/** A mutating call that has ended. `error` is there when it failed. */
export interface LoggedOp {
  readonly op: MutatingOp;
  readonly path: string;
  readonly position: number;
  /** Bytes written; the new size of a truncation. */
  readonly length: number;
  readonly error?: ErrorCode;
}

export interface FaultyStorageOptions {
  seed?: number;
  /** `async` makes reads answer with a promise, as a disk does; `sync` with the bytes. */
  reads?: 'sync' | 'async';
  capacityBytes?: number;
}

export class FaultyStorage implements Storage {
  readonly #files = new Map<string, FaultyFile>();
  readonly #options: FaultyStorageOptions;
  readonly #random: Random;
  #capacityBytes: number;
  #usedBytes = 0;
  #readsAlone = 0;
  #crashAt = 0;
  #crashMoment: CrashMoment | undefined;
  #failures = new Map<number, ErrorCode>();
  #failWhen: FailPredicate | undefined;
  #lockHolder: object | null = null;
  /** Mutating calls begun so far. */
  operations = 0;
  isCrashed = false;
  /** Every mutating call that has ended, in order. */
  readonly ops: LoggedOp[] = [];
  /** What was done against the contract of the port. */
  readonly violations: string[] = [];

  constructor(options: FaultyStorageOptions = {}) {
    this.#options = options;
    this.#random = new Random(options.seed ?? 1);
    this.#capacityBytes = options.capacityBytes ?? Number.MAX_SAFE_INTEGER;
  }

  /** The power fails at the n-th mutating call since construction (the first is 1). */
  crashAt(n: number, moment?: CrashMoment): void {
    this.#crashAt = n;
    this.#crashMoment = moment;
  }

  /** The n-th mutating call since construction fails, once. */
  failAt(n: number, code: 'disk_full' | 'io_error' | 'sync_failed'): void {
    this.#failures.set(n, code);
  }

  /** Every call for which the predicate names a code fails with it; undefined ends that. */
  failWhen(predicate: FailPredicate | undefined): void {
    this.#failWhen = predicate;
  }

  setCapacity(bytes: number): void {
    this.#capacityBytes = bytes;
  }

  /** Flips bits of one stored byte. */
  corrupt(path: string, offset: number, xor: number): void {
    const file = this.#files.get(path);
    if (file === undefined) throw fileNotFound(path);
    file.corrupt(offset, xor);
  }

  isSealed(path: string): boolean {
    return this.#files.get(path)?.isSealed ?? false;
  }
  /** The file has bytes, or a length, that a crash may take away. */
  hasUnsynced(path: string): boolean {
    return this.#files.get(path)?.hasUnsynced ?? false;
  }

  /** The power fails now, between two calls. */
  crash(): void {
    this.isCrashed = true;
    this.#lockHolder = null;
  }

  /**
   * The disk as the next process finds it, after a power loss or (`clean`) without one. May be called several times for
   * different outcomes of the same end.
   */
  restart(mode: RestartMode, seed = 1): FaultyStorage {
    this.crash();
    const next = new FaultyStorage({ ...this.#options, seed, capacityBytes: this.#capacityBytes });
    for (const path of [...this.#files.keys()].sort()) {
      const file = this.#files.get(path)!;
      const after = file.afterRestart(mode, next.#random);
      after.isSealed = file.isSealed;
      after.modified = file.modified;
      next.#files.set(path, after);
      next.#usedBytes += after.current.allocatedBytes;
    }
    return next;
  }

  async list(folder: string): Promise<string[]> {
    this.#checkPower();
    if (folder !== '') checkPath(folder);
    const names: string[] = [];
    for (const path of this.#files.keys())
      if (folderOf(path) === folder) names.push(path.slice(folder === '' ? 0 : folder.length + 1));
    return names.sort();
  }

  async size(path: string): Promise<number | null> {
    this.#checkPower();
    checkPath(path);
    return this.#files.get(path)?.current.size ?? null;
  }

  async modifiedMs(path: string): Promise<number | null> {
    this.#checkPower();
    checkPath(path);
    return this.#files.get(path)?.modified ?? null;
  }

  async open(path: string, access: 'read' | 'write'): Promise<StorageFile> {
    this.#checkPower();
    checkPath(path);
    const file = this.#files.get(path);
    if (file === undefined) throw fileNotFound(path);
    if (access === 'write') file.isSealed = false;
    return new FaultyHandle(this, path, file, access === 'write');
  }

  async create(path: string): Promise<StorageFile> {
    checkPath(path);
    const file = new FaultyFile();
    this.mutate('create', path, 0, 0, () => {
      if (this.#files.has(path)) throw fileExists(path);
      this.#files.set(path, file);
    });
    return new FaultyHandle(this, path, file, true);
  }

  async rename(from: string, to: string): Promise<void> {
    checkRename(from, to);
    this.mutate('rename', from, 0, 0, () => {
      const file = this.#files.get(from);
      if (file === undefined) throw fileNotFound(from);
      if (from === to) return;
      this.#unlink(to);
      this.#files.delete(from);
      this.#files.set(to, file);
    });
  }

  async remove(path: string): Promise<void> {
    checkRemoval(path);
    this.mutate('remove', path, 0, 0, () => this.#unlink(path));
  }

  #unlink(path: string): void {
    const file = this.#files.get(path);
    if (file === undefined) return;
    this.#files.delete(path);
    file.isNamed = false;
    this.freeIfUnused(file);
  }

  async freeBytes(): Promise<number> {
    this.#checkPower();
    return Math.max(0, this.#capacityBytes - this.#usedBytes);
  }

  async lock(): Promise<StorageLock> {
    this.#checkPower();
    if (this.#lockHolder !== null)
      throw new SkuaError(
        'directory_locked',
        'The simulated directory is in use already: close its other user first.',
        { path: '' },
      );
    const holder = {};
    this.#lockHolder = holder;
    return {
      release: async () => {
        if (this.#lockHolder === holder) this.#lockHolder = null;
      },
    };
  }

  /**
   * @internal Performs one mutating call, or lets it fail or crash. `middle` is what the call leaves when it is cut
   * off; without it the call happens all at once.
   */
  mutate(
    op: MutatingOp,
    path: string,
    position: number,
    length: number,
    effect: () => void,
    middle?: (random: Random) => void,
  ): void {
    this.#checkPower();
    const n = ++this.operations;
    if (n === this.#crashAt) {
      const moment = this.#crashMoment ?? this.#random.pick(['before', 'middle', 'after']);
      // A sync that was cut off is one that never ended: what it leaves is chosen at the restart.
      try {
        if (moment === 'after') effect();
        else if (moment === 'middle' && op !== 'sync') middle?.(this.#random);
      } finally {
        this.crash();
      }
      throw crashed();
    }
    try {
      const code = this.#failures.get(n) ?? this.#failWhen?.(op, path, position, length);
      if (code !== undefined) {
        middle?.(this.#random);
        throw injected(code, op, path);
      }
      effect();
    } catch (error) {
      this.ops.push({ op, path, position, length, error: (error as SkuaError).code });
      throw error;
    }
    this.ops.push({ op, path, position, length });
  }

  /** @internal */
  read(path: string, file: FaultyFile, position: number, length: number): Uint8Array | Promise<Uint8Array> {
    if (this.#options.reads === 'async')
      return Promise.resolve().then(() => this.#readNow(path, file, position, length));
    return this.#readNow(path, file, position, length);
  }

  /** @internal Where reads answer with a promise, every second one of single records would have to. */
  readAlone(path: string, file: FaultyFile, position: number, length: number, into: Uint8Array, at: number): number {
    if (this.#options.reads === 'async' && ++this.#readsAlone % 2 === 0) return -1;
    const bytes = this.#readNow(path, file, position, length);
    into.set(bytes, at);
    return bytes.length;
  }

  #readNow(path: string, file: FaultyFile, position: number, length: number): Uint8Array {
    this.#checkPower();
    const code = this.#failWhen?.('read', path, position, length);
    if (code !== undefined) throw injected(code, 'read', path);
    return file.current.read(position, length);
  }

  /** @internal Writes within the capacity, or changes nothing and throws `disk_full`. */
  write(path: string, file: FaultyFile, position: number, bytes: Uint8Array): void {
    const growth = file.current.growth(position, bytes.length);
    if (growth > 0 && this.#usedBytes + growth > this.#capacityBytes) {
      throw new SkuaError('disk_full', `The simulated disk has no room for ${path}: raise its capacity.`, { path });
    }
    this.resized(file, () => file.write(position, bytes));
  }

  /** @internal Keeps the books of a change that may allocate or free blocks. */
  resized(file: FaultyFile, change: () => void): void {
    const before = file.current.allocatedBytes;
    change();
    this.#usedBytes += file.current.allocatedBytes - before;
  }

  /** @internal */
  freeIfUnused(file: FaultyFile): void {
    if (file.isNamed || file.handles > 0) return;
    this.#usedBytes -= file.current.allocatedBytes;
    file.current.truncate(0);
  }

  #checkPower(): void {
    if (this.isCrashed) throw crashed();
  }
}

function crashed(): Crash {
  return new Crash('The simulated power has failed: restart the storage.');
}

function injected(code: ErrorCode, op: string, path: string): SkuaError {
  return new SkuaError(code, `The test made ${op} of ${path} fail.`, { path });
}
