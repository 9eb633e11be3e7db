import { i64, putI64 } from '../bytes.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';

/** An 8-byte file that holds one position or number; disk-format.md section 4. */
export class Checkpoint {
  readonly #file: StorageFile;
  readonly #bytes = new Uint8Array(8);
  #value: number;
  #flushed: number;
  /** The file did not exist: `value` is the initial value. */
  readonly wasMissing: boolean;

  private constructor(file: StorageFile, value: number, wasMissing: boolean) {
    this.#file = file;
    this.#value = value;
    this.#flushed = value;
    this.wasMissing = wasMissing;
  }

  static async open(storage: Storage, path: string, initial: number): Promise<Checkpoint> {
    const size = await storage.size(path);
    if (size !== null && size > 0) {
      const file = await storage.open(path, 'write');
      if (size !== 8) await file.truncate(8);
      const bytes = await file.read(0, 8);
      return new Checkpoint(file, i64(bytes, 0), false);
    }
    const file = size === null ? await storage.create(path) : await storage.open(path, 'write');
    const bytes = new Uint8Array(8);
    putI64(bytes, 0, initial);
    await file.writeAt(0, bytes);
    await file.sync();
    return new Checkpoint(file, initial, true);
  }

  get value(): number { return this.#value; }

  /** Writes the value without making it durable; what the system does with it before the next flush is its affair. */
  write(value: number): void | Promise<void> {
    if (value === this.#value) return;
    this.#value = value;
    putI64(this.#bytes, 0, value);
    return this.#file.writeAt(0, this.#bytes);
  }

  /** Writes the value and makes it durable. */
  async flush(value: number): Promise<void> {
    await this.write(value);
    if (value === this.#flushed) return;
    await this.#file.sync();
    this.#flushed = value;
  }

  close(): Promise<void> {
    return this.#file.close();
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

export async function openCheckpoints(storage: Storage): Promise<Checkpoints> {
  return {
    writer: await Checkpoint.open(storage, 'writer.chk', 0),
    chaser: await Checkpoint.open(storage, 'chaser.chk', 0),
    epoch: await Checkpoint.open(storage, 'epoch.chk', -1),
    proposal: await Checkpoint.open(storage, 'proposal.chk', -1),
    truncate: await Checkpoint.open(storage, 'truncate.chk', -1),
  };
}

export async function closeCheckpoints(checkpoints: Checkpoints): Promise<void> {
  for (const checkpoint of [checkpoints.writer, checkpoints.chaser, checkpoints.epoch, checkpoints.truncate, checkpoints.proposal]) await checkpoint.close();
}
