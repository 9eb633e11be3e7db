import { BlockCache } from '../../cache/cache.ts';
import { SkuaError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { type Checkpoints, closeCheckpoints, openCheckpoints } from '../../log/format/checkpoint.ts';
import {
  chunkFileName,
  encodeHeader,
  HEADER_BYTES,
  ongoingFileBytes,
  parseChunkFileNames,
} from '../../log/format/chunk-format.ts';
import { ChunkProof } from '../../log/format/chunk-proof.ts';
import { trySeal } from '../../ports/durability.ts';
import { openCompleted } from '../../log/chunk/chunk.ts';
import type { ObjectWorld } from '../../shared-log/api.ts';
import type { ObjectChunk, ObjectManifest, ObjectOngoing, ObjectSegment } from '../../shared-log/format/manifest.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import { writeContent } from '../../ports/write-content.ts';
import {
  newPieceBuffers,
  objectCutter,
  ongoingHeader,
  type PieceBuffers,
  piecesOf,
  throwIfEnded,
} from './bucket-files.ts';

/** Files that are downloaded side by side; each has two pieces in memory. */
const FILES_AT_ONCE = 4;

export interface FileDownloadParts {
  readonly storage: Storage;
  readonly world: ObjectWorld;
  readonly manifest: ObjectManifest;
  /** End of the copy: the beginning of a chunk, of which it has at most an empty file. */
  readonly from: number;
  readonly onBytes: (count: number) => void;
  readonly signal: AbortSignal;
}

/** One file that the copy lacks. */
interface MissingFile {
  readonly name: string;
  /** Where the log ends when the file is there. */
  readonly end: number;
  readonly stored: ObjectChunk | ObjectOngoing;
}

/** The files of the manifest that hold the log from `from`, the beginning of one of them, on. */
function missingFiles({ chunks, ongoing, logEnd, chunkSizeBytes }: ObjectManifest, from: number): MissingFile[] {
  const missing = chunks
    .filter(({ startNumber }) => startNumber * chunkSizeBytes >= from)
    .map((stored): MissingFile => ({
      name: checkedName(stored),
      end: (stored.endNumber + 1) * chunkSizeBytes,
      stored,
    }));
  if (ongoing !== null && logEnd > from)
    missing.push({ name: chunkFileName(ongoing.number, 0), end: logEnd, stored: ongoing });
  return missing;
}

/** Names become paths. */
function checkedName({ name, startNumber }: ObjectChunk): string {
  const [parsed] = parseChunkFileNames([name]);
  if (parsed?.number === startNumber) return name;
  throw new SkuaError(
    'manifest_invalid',
    `The manifest names the chunk ${startNumber} as "${name.slice(0, 64)}", which is no name of its file: restore the manifest from a version or a backup of the bucket.`,
    { chunk: startNumber },
  );
}

/** Bytes to download for them. */
export function missingBytes(manifest: ObjectManifest, from: number): number {
  return missingFiles(manifest, from).reduce(
    (sum, { stored }) =>
      sum + ('key' in stored ? stored.sizeBytes : stored.segments.reduce((bytes, one) => bytes + one.to - one.from, 0)),
    0,
  );
}

/**
 * Brings the files that a copy lacks from the bucket, several side by side, and puts them in force one by one in the
 * order of the log: a file is whole, proved and durable under a temporary name before it gets its own, and `writer.chk`
 * moves behind it before the next one does. So a crash leaves a log that ends at `writer.chk`, or has one whole file
 * more, which every opening takes for what it is. Errors: `file_not_found` (data: key) for an object that is gone,
 * `log_corrupt` for one that is not as it was written, `disk_full`, `aborted`, and what storage and bucket throw; what
 * is in force by then stays.
 */
export async function downloadFiles(parts: FileDownloadParts): Promise<void> {
  const files = new FileDownload(parts, missingFiles(parts.manifest, parts.from));
  await files.run();
}

class FileDownload {
  readonly #parts: FileDownloadParts;
  readonly #missing: readonly MissingFile[];
  readonly #ending = new AbortController();
  readonly #signal: AbortSignal;
  /** Free memory for pieces. */
  readonly #buffers: PieceBuffers[] = [];
  /** Files that are whole under their temporary names. */
  readonly #ready = new Set<number>();
  #next = 0;
  #placing: Promise<void> = Promise.resolve();
  #checkpoints: Checkpoints | null = null;
  /** Empty files of chunks that are about to come. */
  #standing: readonly string[] = [];

  constructor(parts: FileDownloadParts, missing: readonly MissingFile[]) {
    this.#parts = parts;
    this.#missing = missing;
    this.#signal = AbortSignal.any([parts.signal, this.#ending.signal]);
  }

  async run(): Promise<void> {
    const { storage, manifest, from } = this.#parts;
    this.#standing = parseChunkFileNames(await storage.list(''))
      .filter(({ number }) => number >= from / manifest.chunkSizeBytes)
      .map(({ name }) => name);
    const checkpoints = await openCheckpoints(storage, false);
    this.#checkpoints = checkpoints;
    try {
      // What it shows may be on no disk: nothing may get a name behind an end that is not certain.
      await checkpoints.writer.flush(from);
      await inParallel(this.#missing.length, FILES_AT_ONCE, (i) => this.#bring(i));
      // Behind writer.chk, which it may never pass.
      await checkpoints.chaser.flush(checkpoints.writer.value);
    } finally {
      await closeCheckpoints(checkpoints);
      for (let i = this.#next; i < this.#missing.length; i++)
        await storage.remove(temporaryOf(this.#missing[i]!.name)).catch(() => {});
    }
  }

  async #bring(i: number): Promise<void> {
    const buffers = this.#buffers.pop() ?? newPieceBuffers();
    try {
      const missing = this.#missing[i]!;
      if ('key' in missing.stored) await this.#completed(missing.name, missing.stored, buffers);
      else await this.#filling(missing.name, missing.stored, buffers);
      this.#ready.add(i);
      this.#placing = this.#placing.then(() => this.#placeReady());
      await this.#placing;
    } catch (error) {
      // The others need not be read to their ends.
      this.#ending.abort();
      throw error;
    } finally {
      this.#buffers.push(buffers);
    }
  }

  async #completed(name: string, stored: ObjectChunk, buffers: PieceBuffers): Promise<void> {
    const {
      world: { objects, digests },
      onBytes,
      storage,
      manifest,
    } = this.#parts;
    const { key, sizeBytes, startNumber, endNumber } = stored;
    const proof = new ChunkProof(digests, name, sizeBytes);
    await this.#write(name, async (file) => {
      await writeContent(file, 0, piecesOf(objects, key, 0, sizeBytes, buffers, this.#signal), (piece) => {
        proof.add(piece);
        onBytes(piece.length);
      });
      proof.check(() => objectCorrupt(key, name));
    });
    const chunk = await openCompleted(storage, new BlockCache(0), temporaryOf(name), {
      number: startNumber,
      endNumber,
      chunkSize: manifest.chunkSizeBytes,
    });
    await chunk.file.file.close();
    if (
      chunk.isScavenged === stored.isScavenged &&
      chunk.physicalBytes === stored.physicalBytes &&
      chunk.mapCount * chunk.mapEntryBytes === stored.mapBytes
    )
      return;
    throw new SkuaError(
      'log_corrupt',
      `The object ${key}, which holds ${name}, is not the file that the manifest names: restore it from a version or a backup of the bucket.`,
      { key, file: name },
    );
  }

  /** The chunk that is being filled, put together from its segments: it can be appended to when it is there. */
  async #filling(name: string, ongoing: ObjectOngoing, buffers: PieceBuffers): Promise<void> {
    const { chunkSizeBytes } = this.#parts.manifest;
    const start = ongoing.number * chunkSizeBytes;
    await this.#write(
      name,
      async (file) => {
        await file.truncate(ongoingFileBytes(chunkSizeBytes));
        await file.writeAt(0, encodeHeader({ ...ongoingHeader(ongoing, chunkSizeBytes), version: 3 }));
        for (const segment of ongoing.segments)
          await this.#segment(file, HEADER_BYTES + segment.from - start, segment, buffers);
      },
      false,
    );
  }

  async #segment(
    file: StorageFile,
    at: number,
    { key, from, to, crc32 }: ObjectSegment,
    buffers: PieceBuffers,
  ): Promise<void> {
    const {
      world: { objects, digests },
      onBytes,
    } = this.#parts;
    const cutter = objectCutter(from, key);
    let crc = 0;
    await writeContent(file, at, piecesOf(objects, key, 0, to - from, buffers, this.#signal), (piece) => {
      crc = digests.crc32(piece, crc);
      cutter.pass(piece);
      onBytes(piece.length);
    });
    cutter.finish();
    if (crc32 !== undefined && crc !== crc32) throw objectCorrupt(key, file.path);
  }

  /** A durable file under a temporary name. What is left of one that failed goes at the end. */
  async #write(name: string, fill: (file: StorageFile) => Promise<void>, isSealed = true): Promise<void> {
    const { storage } = this.#parts;
    throwIfEnded(this.#signal);
    await storage.remove(temporaryOf(name));
    const file = await storage.create(temporaryOf(name));
    try {
      await fill(file);
      await file.sync();
      if (isSealed) await trySeal(file);
    } finally {
      await file.close();
    }
  }

  async #placeReady(): Promise<void> {
    for (; this.#ready.has(this.#next); this.#next++) {
      const { storage } = this.#parts;
      const { name, end } = this.#missing[this.#next]!;
      await storage.rename(temporaryOf(name), name);
      // Of two versions of a chunk every opening takes the newer one, so the empty one may go now.
      for (const candidacy of this.#standing) if (candidacy !== name) await storage.remove(candidacy);
      this.#standing = [];
      await this.#checkpoints!.writer.flush(end);
    }
  }
}

/** An object whose content does not fit the checksum that was taken when it was written. */
export function objectCorrupt(key: string, name: string): SkuaError {
  return new SkuaError(
    'log_corrupt',
    `The object ${key}, which holds ${name} or a part of it, does not match its checksum: it has changed since it was written. None of it was used: restore it from a version or a backup of the bucket.`,
    { key, file: name },
  );
}

/** An opening removes what has such a name. */
function temporaryOf(name: string): string {
  return `${name}.tmp`;
}
