import { SkuaError } from '../../base/errors.ts';
import { chunkFileName, HEADER_BYTES } from '../../log/format/chunk-format.ts';
import { ChunkProof } from '../../log/format/chunk-proof.ts';
import type { TransactionLog } from '../../log/api.ts';
import type { ObjectWorld } from '../../shared-log/api.ts';
import type { ObjectChunk, ObjectManifest, ObjectSegment } from '../../shared-log/format/manifest.ts';
import type { Storage, StorageFile } from '../../ports/storage.ts';
import {
  bucketChunk,
  groupsIn,
  newPieceBuffers,
  objectCutter,
  PIECE_BYTES,
  type PieceBuffers,
  piecesOf,
  readObject,
  throwIfEnded,
} from './bucket-files.ts';
import { diverged } from './compare.ts';
import { objectCorrupt } from './download-files.ts';

export interface ChunkCatchUpParts {
  readonly storage: Storage;
  readonly world: ObjectWorld;
  readonly manifest: ObjectManifest;
  /** The copy, open: its end lies inside a chunk that the bucket has unscavenged. */
  readonly log: TransactionLog;
  readonly onBytes: (count: number) => void;
  readonly signal: AbortSignal;
}

/** Bytes that the manifest has of the chunk in which the log ends at `end`, behind that end. */
export function restBytes(manifest: ObjectManifest, end: number): number {
  return end >= manifest.logEnd ? 0 : Math.max(0, dataEnd(manifest, end) - end);
}

/** Where the data of the chunk with `end` in its midst ends in the bucket. */
function dataEnd(manifest: ObjectManifest, end: number): number {
  const stored = bucketChunk(manifest, Math.floor(end / manifest.chunkSizeBytes));
  return stored === undefined ? manifest.logEnd : stored.startNumber * manifest.chunkSizeBytes + stored.physicalBytes;
}

/**
 * Appends to the copy what the bucket has behind its end in the same chunk, and completes the chunk where it is
 * complete there. The bytes come to a temporary file first, where they are proved together with those that the copy has
 * of the same object (MD5 of a completed chunk, CRC-32 of a segment): so nothing damaged gets into the log, and a copy
 * that has gone apart is found out whatever it scavenged later. Then they are appended in groups of whole records, each
 * durable before the next: a crash leaves the log at the end of one of them. Throws `log_diverged`, `log_corrupt`, and
 * as `downloadFiles` does.
 */
export async function catchUpChunk(parts: ChunkCatchUpParts): Promise<void> {
  const { log, manifest } = parts;
  const number = Math.floor(log.end / manifest.chunkSizeBytes);
  const stored = bucketChunk(manifest, number);
  if (restBytes(manifest, log.end) > 0) await new ChunkCatchUp(parts, number).run(stored);
  if (stored !== undefined || (manifest.endsChunk && log.end === manifest.logEnd)) await log.completeChunk();
}

class ChunkCatchUp {
  readonly #parts: ChunkCatchUpParts;
  readonly #number: number;
  readonly #start: number;
  /** End of the copy when this began. */
  readonly #end: number;
  readonly #buffers: PieceBuffers = newPieceBuffers();

  constructor(parts: ChunkCatchUpParts, number: number) {
    this.#parts = parts;
    this.#number = number;
    this.#start = number * parts.manifest.chunkSizeBytes;
    this.#end = parts.log.end;
  }

  async run(stored: ObjectChunk | undefined): Promise<void> {
    const { storage } = this.#parts;
    const path = `${chunkFileName(this.#number, 0)}.rest.tmp`;
    await storage.remove(path);
    const staged = await storage.create(path);
    try {
      if (stored !== undefined) await this.#stageCompleted(staged, stored);
      else
        for (const segment of this.#parts.manifest.ongoing!.segments)
          if (segment.to > this.#end) await this.#stageSegment(staged, segment);
      await this.#append(staged, path);
    } finally {
      await staged.close();
      await storage.remove(path).catch(() => {});
    }
  }

  /** The MD5 of the bucket's file covers what the copy has of the chunk, too. */
  async #stageCompleted(staged: StorageFile, stored: ObjectChunk): Promise<void> {
    const {
      world: { objects, digests },
      signal,
    } = this.#parts;
    const { key, name, sizeBytes, physicalBytes } = stored;
    const proof = new ChunkProof(digests, name, sizeBytes);
    proof.add(await readObject(objects, key, { from: 0, length: HEADER_BYTES, signal }));
    await this.#own(this.#start, this.#end, (bytes) => proof.add(bytes));
    const dataEnd = HEADER_BYTES + physicalBytes;
    const at = await this.#stage(staged, 0, key, HEADER_BYTES + this.#end - this.#start, dataEnd, (bytes) =>
      proof.add(bytes),
    );
    for await (const piece of piecesOf(objects, key, dataEnd, sizeBytes, this.#buffers, signal)) proof.add(piece);
    if (proof.isSound) return staged.truncate(at);
    const whole = new ChunkProof(digests, name, sizeBytes);
    const difference = await this.#compare(key, sizeBytes, this.#start - HEADER_BYTES, this.#start, (bytes) =>
      whole.add(bytes),
    );
    throw this.#judged(key, name, whole.isSound, difference);
  }

  async #stageSegment(staged: StorageFile, { key, from, to, crc32 }: ObjectSegment): Promise<void> {
    const { digests } = this.#parts.world;
    let crc = 0;
    const add = (bytes: Uint8Array): void => {
      crc = digests.crc32(bytes, crc);
    };
    const first = Math.max(from, this.#end);
    await this.#own(from, first, add);
    await this.#stage(staged, first - this.#end, key, first - from, to - from, add);
    if (crc32 === undefined || crc === crc32) return;
    const name = chunkFileName(this.#number, 0);
    if (first === from) throw objectCorrupt(key, name);
    crc = 0;
    const difference = await this.#compare(key, to - from, from, from, add);
    throw this.#judged(key, name, crc === crc32, difference);
  }

  /** Writes bytes [from, to) of an object to the temporary file, from `at` on; resolves with where they end. */
  async #stage(
    staged: StorageFile,
    at: number,
    key: string,
    from: number,
    to: number,
    add: (bytes: Uint8Array) => void,
  ): Promise<number> {
    const {
      world: { objects },
      onBytes,
      signal,
    } = this.#parts;
    const cutter = objectCutter(this.#end + at, key);
    for await (const piece of piecesOf(objects, key, from, to, this.#buffers, signal)) {
      add(piece);
      cutter.pass(piece);
      await staged.writeAt(at, piece);
      at += piece.length;
      onBytes(piece.length);
    }
    cutter.finish();
    return at;
  }

  /** What the copy has of [from, to), positions in the chunk. */
  async #own(from: number, to: number, add: (bytes: Uint8Array) => void): Promise<void> {
    const { log, signal } = this.#parts;
    const { file } = log.table.chunkAt(this.#start)!.file;
    for (let at = from; at < to;) {
      throwIfEnded(signal);
      const bytes = await file.read(HEADER_BYTES + at - this.#start, Math.min(PIECE_BYTES, to - at));
      if (bytes.length === 0)
        throw new SkuaError(
          'io_error',
          `${file.path} ends at ${HEADER_BYTES + at - this.#start}, before its data do.`,
          { file: file.path },
        );
      add(bytes);
      at += bytes.length;
    }
  }

  /**
   * Reads a whole object again, and finds the first position, from `first` on, at which the copy has something else;
   * null when there is none. The object begins at the position `origin`.
   */
  async #compare(
    key: string,
    sizeBytes: number,
    origin: number,
    first: number,
    add: (bytes: Uint8Array) => void,
  ): Promise<number | null> {
    const {
      world: { objects },
      signal,
    } = this.#parts;
    let position = origin;
    let difference: number | null = null;
    for await (const piece of piecesOf(objects, key, 0, sizeBytes, this.#buffers, signal)) {
      add(piece);
      const begin = position;
      position += piece.length;
      let at = Math.max(begin, first);
      if (difference !== null || at >= this.#end) continue;
      await this.#own(at, Math.min(position, this.#end), (own) => {
        for (let i = 0; i < own.length && difference === null; i++)
          if (own[i] !== piece[at + i - begin]) difference = at + i;
        at += own.length;
      });
    }
    return difference;
  }

  /** Which side is wrong: an object that fits its own checksum is right. */
  #judged(key: string, name: string, isSound: boolean, difference: number | null): SkuaError {
    if (isSound && difference !== null) return diverged(this.#parts.world.objects.place, difference);
    if (isSound) return new SkuaError('io_error', `The object ${key} was not read as stored. Try again.`, { key });
    return objectCorrupt(key, name);
  }

  async #append(staged: StorageFile, path: string): Promise<void> {
    const { log, signal } = this.#parts;
    const cutter = objectCutter(this.#end, path);
    for (let at = 0; at < staged.size;) {
      throwIfEnded(signal);
      const piece = await staged.read(at, Math.min(PIECE_BYTES, staged.size - at));
      if (piece.length === 0)
        throw new SkuaError('io_error', `${path} gave no bytes at offset ${at}, though it has ${staged.size}.`, {
          file: path,
          offset: at,
        });
      at += piece.length;
      for (const group of groupsIn(piece, cutter)) {
        await log.append(group);
        log.publish();
      }
    }
    cutter.finish();
  }
}
