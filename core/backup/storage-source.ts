import { SkuaError } from '../errors.ts';
import { fileNotFound } from '../ports/storage.ts';
import type { Storage } from '../ports/storage.ts';
import type { BackupSource, Snapshot } from './source.ts';
import { piecesOf } from './storage-pieces.ts';

/** Bytes that are read at once. */
const PIECE_BYTES = 1_048_576;

export interface StorageSourceOptions {
  /** Awaited before every piece; what it throws ends the reading. */
  readonly onPiece?: () => Promise<void>;
  readonly release?: () => Promise<void>;
}

/**
 * Listed files in a storage, read in large pieces. Nothing behind the listed size of a file is ever read: of the chunk that is being
 * written, that lies behind the end of the snapshot.
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
      yield* piecesOf(file, position, position + length, { pieceBytes: PIECE_BYTES, onPiece: this.#options.onPiece });
    } finally {
      await file.close();
    }
  }

  async release(): Promise<void> {
    await this.#options.release?.();
  }
}
