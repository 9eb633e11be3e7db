import { i64, putI64 } from '../../base/bytes.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import { syncFile } from '../../ports/durability.ts';

/** An 8-byte file that holds one position or number. */
export class Checkpoint {
  readonly #storage: Storage;
  readonly #path: string;
  /** Null until the first flush of a file that is created late. */
  #file: StorageFile | null;
  readonly #bytes = new Uint8Array(8);
  #value: number;
  /**
   * This process has written `#value`. What a file shows when it is opened may be on no disk, and then only another
   * write gets it there.
   */
  #isWritten = false;
  /** This process has written `#value` and synced it. */
  #isDurable = false;
  #syncFailure: unknown = null;
  /** The file did not exist: `value` is the initial value. */
  readonly wasMissing: boolean;

  private constructor(storage: Storage, path: string, file: StorageFile | null, value: number) {
    this.#storage = storage;
    this.#path = path;
    this.#file = file;
    this.#value = value;
    this.wasMissing = file === null;
  }

  /**
   * A missing file is created with its initial value, or, where `isLate`, by the first flush: until then it stays known
   * to be missing.
   */
  static async open(storage: Storage, path: string, initial: number, isLate = false): Promise<Checkpoint> {
    const size = await storage.size(path);
    if (size !== null && size > 0) {
      const file = await storage.open(path, 'write');
      if (size !== 8) await file.truncate(8);
      const bytes = await file.read(0, 8);
      return new Checkpoint(storage, path, file, i64(bytes, 0));
    }
    const checkpoint = new Checkpoint(storage, path, null, initial);
    if (!isLate) await checkpoint.#create(initial);
    return checkpoint;
  }

  /** The file is whole or absent: one of eight zeros would name position 0, which no crash may bring about. */
  async #create(value: number): Promise<void> {
    const temporary = `${this.#path}.tmp`;
    await this.#storage.remove(temporary);
    const file = await this.#storage.create(temporary);
    try {
      putI64(this.#bytes, 0, value);
      await file.writeAt(0, this.#bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await this.#storage.rename(temporary, this.#path);
    this.#file = await this.#storage.open(this.#path, 'write');
    this.#value = value;
    this.#isWritten = true;
    this.#isDurable = true;
  }

  get value(): number {
    return this.#value;
  }

  /** Writes the value without making it durable; what the system does with it before the next flush is its affair. */
  write(value: number): void | Promise<void> {
    if (this.#file === null) return this.#create(value);
    if (value === this.#value && this.#isWritten) return;
    this.#value = value;
    this.#isWritten = false;
    this.#isDurable = false;
    putI64(this.#bytes, 0, value);
    const written = this.#file.writeAt(0, this.#bytes);
    if (written !== undefined)
      return written.then(() => {
        this.#isWritten = this.#value === value;
      });
    this.#isWritten = true;
  }

  /** Writes the value and makes it durable. After a failed sync it rejects for good: a sync must not be repeated. */
  async flush(value: number): Promise<void> {
    if (this.#syncFailure !== null) throw this.#syncFailure;
    await this.write(value);
    if (this.#isDurable) return;
    try {
      await syncFile(this.#file!);
    } catch (error) {
      this.#syncFailure = error;
      throw error;
    }
    this.#isDurable = this.#value === value;
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }
}

/** The five checkpoints of a data directory. */
export interface Checkpoints {
  readonly writer: Checkpoint;
  readonly chaser: Checkpoint;
  readonly epoch: Checkpoint;
  readonly proposal: Checkpoint;
  readonly truncate: Checkpoint;
}

/** `hasChunks`: a missing writer.chk is created only when the end of the log has been found in them. */
export async function openCheckpoints(storage: Storage, hasChunks: boolean): Promise<Checkpoints> {
  return {
    writer: await Checkpoint.open(storage, 'writer.chk', 0, hasChunks),
    chaser: await Checkpoint.open(storage, 'chaser.chk', 0),
    epoch: await Checkpoint.open(storage, 'epoch.chk', -1),
    proposal: await Checkpoint.open(storage, 'proposal.chk', -1),
    truncate: await Checkpoint.open(storage, 'truncate.chk', -1),
  };
}

export async function closeCheckpoints(checkpoints: Checkpoints): Promise<void> {
  for (const checkpoint of [
    checkpoints.writer,
    checkpoints.chaser,
    checkpoints.epoch,
    checkpoints.truncate,
    checkpoints.proposal,
  ])
    await checkpoint.close();
}
