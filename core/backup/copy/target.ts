import { equalBytes, nonZeroRuns } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { PAGE_BYTES } from '../../index/format/existence-files.ts';
import { FOOTER_BYTES } from '../../log/format/chunk-format.ts';
import { ChunkProof } from '../../log/format/chunk-proof.ts';
import type { Digests } from '../../ports/digests.ts';
import { isLeftoverName } from '../../ports/own-names.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import type { BackupSource, SnapshotFile } from '../../store/api.ts';

/** Behind the name of a file that is being copied; a node that starts on the copy removes what has it. */
export const UNFINISHED = '.copy.tmp';

/** One step of a copy, in the order in which it is taken. */
export interface CopyStep {
  /** `keep`: the copy has the file already. */
  readonly do: 'copy' | 'keep' | 'rename' | 'remove';
  readonly path: string;
}

export interface CopyProgress {
  /** Of the files of the snapshot: copied, or in the copy already. */
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly path: string;
}

interface CopyTargetOptions {
  readonly digests: Digests;
  readonly source: BackupSource;
  readonly storage: Storage;
  /** Told before each step; what it throws ends the copy. */
  readonly onStep?: (step: CopyStep) => void;
  readonly onProgress?: (progress: CopyProgress) => void;
  readonly signal?: AbortSignal;
}

/** A file's whole bytes, for small ones that are read at another time than they are written. */
export async function bytesOf(source: BackupSource, path: string, length: number): Promise<Uint8Array> {
  const out = new Uint8Array(length);
  let filled = 0;
  for await (const piece of source.read(path, 0, length)) {
    out.set(piece.subarray(0, length - filled), filled);
    filled += piece.length;
  }
  if (filled < length) throw cutShort(path, filled, length);
  return out;
}

function cutShort(path: string, got: number, wanted: number): SkuaError {
  return new SkuaError(
    'io_error',
    `Only ${got} of ${wanted} bytes of ${path} could be read. The file changed while it was being copied: repeat the copy.`,
    { path, got, wanted },
  );
}

/**
 * The directory that receives a copy. Files get their names only when they are whole and synced, so that a name is a
 * promise: after a crash there is the old file, the new one, or none, and beside them `.tmp` files that mean nothing.
 */
export class CopyTarget {
  readonly storage: Storage;
  readonly #options: CopyTargetOptions;
  readonly #bytesTotal: number;
  #bytesDone = 0;
  copied = 0;
  kept = 0;
  removed = 0;
  bytesCopied = 0;

  constructor(options: CopyTargetOptions) {
    this.storage = options.storage;
    this.#options = options;
    this.#bytesTotal = options.source.snapshot.files.reduce((sum, file) => sum + file.sizeBytes, 0);
  }

  #step(step: CopyStep): void {
    this.#options.signal?.throwIfAborted();
    this.#options.onStep?.(step);
  }

  #progress(path: string, bytes: number): void {
    this.#bytesDone += bytes;
    this.#options.onProgress?.({ bytesDone: this.#bytesDone, bytesTotal: this.#bytesTotal, path });
  }

  /**
   * Copies a file of the snapshot; a completed chunk that is not as it was written is `log_corrupt`, and gets no name.
   * `fileBytes`: its length there, zeros behind what the snapshot has of it. `isSealed`: it is written to no more.
   */
  async copy(
    file: SnapshotFile,
    { fileBytes = file.sizeBytes, isSealed = false }: { fileBytes?: number; isSealed?: boolean } = {},
  ): Promise<void> {
    const { path, sizeBytes } = file;
    this.#step({ do: 'copy', path });
    const proof = file.kind === 'chunk' ? new ChunkProof(this.#options.digests, path, sizeBytes) : null;
    await this.#put(path, isSealed, async (target) => {
      let position = 0;
      for await (const piece of this.#options.source.read(path, 0, sizeBytes)) {
        this.#options.signal?.throwIfAborted();
        if (file.kind === 'existence-filter')
          for (const [from, to] of nonZeroRuns(piece, PAGE_BYTES))
            await target.writeAt(position + from, piece.subarray(from, to));
        else {
          const writing = target.writeAt(position, piece);
          // What it rejects with is met below.
          writing?.catch(() => {});
          proof?.add(piece);
          await writing;
        }
        position += piece.length;
        this.#progress(path, piece.length);
      }
      if (position !== sizeBytes) throw cutShort(path, position, sizeBytes);
      proof?.check();
      if (target.size !== fileBytes) await target.truncate(fileBytes);
    });
    this.copied++;
    this.bytesCopied += sizeBytes;
  }

  /** Writes a file whose bytes are at hand. */
  async write(path: string, bytes: Uint8Array): Promise<void> {
    this.#step({ do: 'copy', path });
    await this.writeQuietly(path, bytes);
    this.copied++;
    this.bytesCopied += bytes.length;
    this.#progress(path, bytes.length);
  }

  /** Writes a file that is no part of what is copied. */
  async writeQuietly(path: string, bytes: Uint8Array): Promise<void> {
    await this.#put(path, false, async (target) => {
      await target.writeAt(0, bytes);
    });
  }

  async #put(path: string, isSealed: boolean, fill: (file: StorageFile) => Promise<void>): Promise<void> {
    const temporary = `${path}${UNFINISHED}`;
    await this.storage.remove(temporary);
    const file = await this.storage.create(temporary);
    try {
      await fill(file);
      await file.sync();
      if (isSealed) await file.seal();
    } finally {
      await file.close();
    }
    await this.storage.rename(temporary, path);
  }

  /** The copy has the file already. */
  keep({ path, sizeBytes }: SnapshotFile): void {
    this.#step({ do: 'keep', path });
    this.kept++;
    this.#progress(path, sizeBytes);
  }

  async rename(from: string, to: string): Promise<void> {
    this.#step({ do: 'rename', path: from });
    await this.storage.rename(from, to);
  }

  async remove(path: string): Promise<void> {
    this.#step({ do: 'remove', path });
    await this.storage.remove(path);
    this.removed++;
  }

  async hasSize(file: SnapshotFile): Promise<boolean> {
    return (await this.storage.size(file.path)) === file.sizeBytes;
  }

  /**
   * Whether the copy has this very completed chunk. A name alone does not say so: a node whose log was truncated writes
   * other chunks under the same names. The footer holds the MD5 of everything before it.
   */
  async hasChunk(file: SnapshotFile): Promise<boolean> {
    if (!(await this.hasSize(file))) return false;
    const position = file.sizeBytes - FOOTER_BYTES;
    const handle = await this.storage.open(file.path, 'read');
    try {
      const mine = await handle.read(position, FOOTER_BYTES);
      let at = 0;
      for await (const piece of this.#options.source.read(file.path, position, FOOTER_BYTES)) {
        if (at + piece.length > mine.length || !equalBytes(piece, 0, mine, at, piece.length)) return false;
        at += piece.length;
      }
      return at === FOOTER_BYTES;
    } finally {
      await handle.close();
    }
  }

  /** Removes what earlier copies left unfinished. */
  async removeTemporaries(folders: readonly string[]): Promise<void> {
    for (const folder of folders) {
      for (const name of await this.storage.list(folder)) {
        const path = folder === '' ? name : `${folder}/${name}`;
        if (isLeftoverName(path)) await this.storage.remove(path);
      }
    }
  }
}
