import { SkuaError } from '../../base/errors.ts';
import { fileNotFound } from '../../ports/storage.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';

/**
 * The files of one node at one moment. Files that are listed stay readable, and as they are within the listed sizes,
 * until `release`: over a running node a hold provides for that (`core/store/hold/hold.ts`), over a stopped directory
 * its lock.
 */
export interface BackupSource {
  readonly snapshot: Snapshot;
  /**
   * `length` bytes of a listed file from `position` on, in pieces; a piece may be used again after the next one was
   * asked for. Rejects with `file_not_found`, `hold_not_found` when the hold has ended, and what storage or connection
   * throw.
   */
  read(path: string, position: number, length: number): AsyncIterable<Uint8Array>;
  release(): Promise<void>;
}

/** Positions that the checkpoint files of the log hold, in bytes. */
export interface SnapshotCheckpoints {
  readonly writer: number;
  readonly chaser: number;
  readonly epoch: number;
  readonly proposal: number;
}

export interface Snapshot {
  readonly nodeId: string;
  /** When the end of the log was taken: milliseconds since 1970. */
  readonly takenMs: number;
  readonly chunkSizeBytes: number;
  /** Made durable when the snapshot was taken: `writer` and `chaser` are both the end of the log. */
  readonly checkpoints: SnapshotCheckpoints;
  /**
   * In the order in which files are copied: index checkpoint files, other index files, checkpoint files of the log,
   * chunk files.
   */
  readonly files: readonly SnapshotFile[];
}

export type SnapshotKind =
  /** `index/indexmap` */
  | 'index-map'
  /** `index/stream-existence/streamExistenceFilter.chk` */
  | 'existence-checkpoint'
  | 'existence-filter'
  | 'index-table'
  | 'bloom-filter'
  /** `index/scavenging/scavenging.db` and what SQLite keeps beside it */
  | 'scavenge-database'
  /**
   * `proofs/*`: never changed, but a leaves file may take the place of one of the same name when the log was cut back
   */
  | 'proof'
  /** `redactions`: the table of marks, where there are any. It is made for the snapshot. */
  | 'redactions'
  /** `*.chk` of the log */
  | 'checkpoint'
  | 'chunk'
  /** The chunk that is being written: `sizeBytes` reaches to the end of the log. */
  | 'ongoing-chunk';

export interface SnapshotFile {
  readonly path: string;
  readonly kind: SnapshotKind;
  readonly sizeBytes: number;
  /**
   * Of a small file that a running node goes on changing (index map, checkpoints): the bytes that belong to this
   * moment. Absent where the file itself is read.
   */
  readonly content?: Uint8Array;
}

/** Bytes that are read at once. */
const PIECE_BYTES = 1_048_576;

interface StorageSourceOptions {
  /** Awaited before every piece; what it throws ends the reading. */
  readonly onPiece?: () => Promise<void>;
  readonly release?: () => Promise<void>;
}

/**
 * Listed files in a storage, read in large pieces. Nothing behind the listed size of a file is ever read: of the chunk
 * that is being written, that lies behind the end of the snapshot.
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
    if (position < 0 || length < 0 || position + length > listed.sizeBytes)
      throw new SkuaError(
        'bad_option',
        `${path} has ${listed.sizeBytes} bytes in this backup: ${length} from ${position} on are not in it.`,
        { path, limit: listed.sizeBytes },
      );
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

interface PiecesOptions {
  readonly pieceBytes: number;
  /** Awaited before every piece; what it throws ends the reading. */
  readonly onPiece?: (() => Promise<void>) | undefined;
}

/**
 * The bytes [from, to) of a file in pieces, of which one is fetched ahead, in buffers that are used in turns. Throws
 * `io_error` for a file that is shorter.
 */
export async function* piecesOf(
  file: StorageFile,
  from: number,
  to: number,
  { pieceBytes, onPiece }: PiecesOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const buffers = [
    new Uint8Array(Math.min(pieceBytes, to - from)),
    new Uint8Array(Math.max(0, Math.min(pieceBytes, to - from - pieceBytes))),
  ];
  let turn = 1;
  const readAt = (at: number) => {
    const reading = Promise.resolve(file.read(at, Math.min(pieceBytes, to - at), buffers[(turn ^= 1)]!));
    // A reader that stops early never asks for what was fetched ahead.
    reading.catch(() => {});
    return reading;
  };
  let coming = from < to ? readAt(from) : null;
  try {
    for (let at = from; coming !== null;) {
      await onPiece?.();
      const bytes: Uint8Array = await coming;
      const wanted = Math.min(pieceBytes, to - at);
      if (bytes.length !== wanted)
        throw new SkuaError(
          'io_error',
          `${file.path} ended at ${at + bytes.length}, before the ${to} bytes that it had when the backup started. Start the backup again.`,
          { path: file.path },
        );
      at += wanted;
      coming = at < to ? readAt(at) : null;
      yield bytes;
    }
  } finally {
    // The file must not be closed under a read.
    await coming?.catch(() => {});
  }
}
