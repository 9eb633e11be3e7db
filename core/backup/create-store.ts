import type { BytePace } from './byte-pace.ts';
import { endWhenAborted } from './blob-writer.ts';
import type { BlobRef } from './manifest.ts';
import type { Repository } from './repository-api.ts';
import type { BackupSource } from './source.ts';

export interface CreateProgress {
  /** Of the files of the backup, whether they had to be stored or not. */
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly filesDone: number;
  readonly filesTotal: number;
}

/** Stores parts of files, with one pace and one account for all of them. */
export class PartStore {
  readonly #source: BackupSource;
  readonly #repository: Repository;
  readonly #pace: BytePace;
  readonly #onProgress: ((progress: CreateProgress) => void) | undefined;
  readonly signal: AbortSignal | undefined;
  /** Blobs that a check found damaged: they are stored again, in place of what is there. */
  suspects: ReadonlySet<string> = new Set();
  #bytesDone = 0;
  #bytesTotal = 0;
  #filesDone = 0;
  #filesTotal = 0;
  blobsStored = 0;
  /** Plain bytes of the blobs that were stored, and bytes of their objects. */
  bytesNew = 0;
  bytesStored = 0;

  constructor(source: BackupSource, repository: Repository, pace: BytePace, onProgress?: (progress: CreateProgress) => void, signal?: AbortSignal) {
    this.#source = source;
    this.#repository = repository;
    this.#pace = pace;
    this.#onProgress = onProgress;
    this.signal = signal;
  }

  /** Begins to count anew. */
  expect(files: number, bytes: number): void {
    this.#filesDone = this.#bytesDone = 0;
    this.#filesTotal = files;
    this.#bytesTotal = bytes;
    this.#report();
  }

  /** The file has been dealt with; `bytes` of it were not counted yet. */
  fileDone(bytes: number): void {
    this.#filesDone++;
    this.#bytesDone += bytes;
    this.#report();
  }

  /**
   * Stores a part of a file unless it is there. `onPiece` sees all bytes once, when they are read for the first time. Content that
   * is stored is read up to twice, and each reading counts for half of the progress.
   */
  async store(path: string, from: number, length: number, onPiece?: (piece: Uint8Array) => void): Promise<BlobRef> {
    let readings = 0;
    let counted = 0;
    const content = () => this.#read(path, from, length, ++readings === 1 ? onPiece : undefined, (bytes) => {
      const half = Math.min(bytes / 2, length - counted);
      counted += half;
      this.#bytesDone += half;
      this.#report();
    });
    const { blob, sizeBytes, isNew, storedBytes } = await this.#repository.writeBlob(length, content, { signal: this.signal, isSuspect: (id) => this.suspects.has(id) });
    this.#bytesDone += length - counted;
    this.#report();
    if (isNew) {
      this.blobsStored++;
      this.bytesNew += sizeBytes;
      this.bytesStored += storedBytes;
    }
    return { blob, sizeBytes };
  }

  async *#read(path: string, from: number, length: number, onPiece: ((piece: Uint8Array) => void) | undefined, onBytes: (bytes: number) => void): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of this.#source.read(path, from, length)) {
      endWhenAborted(this.signal);
      await this.#pace.take(piece.length);
      onPiece?.(piece);
      onBytes(piece.length);
      yield piece;
    }
  }

  #report(): void {
    this.#onProgress?.({ bytesDone: Math.floor(this.#bytesDone), bytesTotal: this.#bytesTotal, filesDone: this.#filesDone, filesTotal: this.#filesTotal });
  }
}
