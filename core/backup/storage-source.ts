import { SkuaError } from '../errors.ts';
import { fileNotFound } from '../ports/storage-path.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';
import type { BackupSource, Snapshot } from './source.ts';

/** Bytes that are read at once. */
const PIECE_BYTES = 1_048_576;

export interface StorageSourceOptions {
  /** Awaited before every piece; what it throws ends the reading. */
  readonly onPiece?: () => Promise<void>;
  readonly release?: () => Promise<void>;
}

/**
 * Listed files in a storage, read in large pieces of which one is fetched ahead, into buffers that are used in turns. Nothing
 * behind the listed size of a file is ever read: of the chunk that is being written, that lies behind the end of the snapshot.
 */
export class StorageSource implements BackupSource {
  readonly snapshot: Snapshot;
  readonly #storage: Storage;
  readonly #options: StorageSourceOptions;

  constructor(storage: Storage, snapshot: Snapshot, options: StorageSourceOptions = {}) {
    this.#storage = storage;
    this.snapshot = snapshot;
    this.#options = options;
  }

  async *read(path: string, position: number, length: number): AsyncGenerator<Uint8Array, void, undefined> {
    const listed = this.snapshot.files.find((file) => file.path === path);
    if (listed === undefined) throw fileNotFound(path);
    if (position < 0 || length < 0 || position + length > listed.sizeBytes) throw new SkuaError('bad_option', `${path} has ${listed.sizeBytes} bytes in this backup: ${length} from ${position} on are not in it.`, { path, limit: listed.sizeBytes });
    if (listed.content !== undefined) {
      yield listed.content.subarray(position, position + length);
      return;
    }
    const file = await this.#storage.open(path, 'read');
    try {
      yield* this.#pieces(file, position, position + length);
    } finally {
      await file.close();
    }
  }

  async *#pieces(file: StorageFile, from: number, to: number): AsyncGenerator<Uint8Array, void, undefined> {
    const buffers = [new Uint8Array(Math.min(PIECE_BYTES, to - from)), new Uint8Array(Math.max(0, Math.min(PIECE_BYTES, to - from - PIECE_BYTES)))];
    let turn = 0;
    const readAt = (at: number) => {
      const reading = Promise.resolve(file.read(at, Math.min(PIECE_BYTES, to - at), buffers[turn ^= 1]!));
      // A reader that stops early never asks for what was fetched ahead.
      reading.catch(() => {});
      return reading;
    };
    turn = 1;
    let coming = from < to ? readAt(from) : null;
    try {
      for (let at = from; coming !== null;) {
        await this.#options.onPiece?.();
        const bytes: Uint8Array = await coming;
        const wanted = Math.min(PIECE_BYTES, to - at);
        if (bytes.length !== wanted) throw new SkuaError('io_error', `${file.path} ended at ${at + bytes.length}, before the ${to} bytes that it had when the backup began. Begin the backup anew.`, { path: file.path });
        at += wanted;
        coming = at < to ? readAt(at) : null;
        yield bytes;
      }
    } finally {
      // The file must not be closed under a read.
      await coming?.catch(() => {});
    }
  }

  async release(): Promise<void> {
    await this.#options.release?.();
  }
}
