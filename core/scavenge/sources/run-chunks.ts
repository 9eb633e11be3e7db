import { BlockCache } from '../../cache/cache.ts';
import { HIT, untilHit } from '../../base/step.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { Chunk, openCompleted } from '../../log/chunk/chunk.ts';
import { chunkFileName, decodeHeader, HEADER_BYTES, parseChunkFileNames } from '../../log/format/chunk-format.ts';
import { readHeader } from '../../log/format/chunk-files.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame, streamOf } from '../../log/format/records.ts';
import { fileNotFound, type Storage } from '../../ports/storage.ts';
import type { ChunkFile, RunFiles } from './run-settings.ts';

/** Chunks held open for single records. */
const OPEN_MAX = 64;
/** How often a record is looked for in the next file because the one that held it was replaced meanwhile. */
const FILE_TRIES_MAX = 10;

/**
 * The chunks of a run. A log may have thousands of files, of which a job needs few: each is opened when it is asked
 * for.
 */
export class RunChunks {
  readonly files: readonly ChunkFile[];
  readonly #storage: Storage;
  readonly #cache: BlockCache;
  readonly #chunkSize: number;
  /** First logical chunk of each file, ascending. */
  readonly #starts: readonly number[];
  readonly #open = new Map<number, Chunk>();
  /** Places whose files have been replaced since they were listed. */
  readonly #replaced = new Set<number>();

  constructor(files: RunFiles, storage: Storage, cache: BlockCache) {
    this.files = files.chunks;
    this.#chunkSize = files.chunkSize;
    this.#storage = storage;
    this.#cache = cache;
    this.#starts = files.chunks.map((file) => parseChunkFileNames([file.name])[0]?.number ?? -1);
  }

  /** Place among `files` of the one that holds `position`; -1 when there is none before it. */
  placeOf(position: number): number {
    const number = Math.floor(position / this.#chunkSize);
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#starts[middle]! <= number) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /**
   * Opens a file to read it from end to end. The caller closes it with `release`. Throws `file_not_found` when it has
   * been replaced, as do reads of it when that happens later: a scan begins again with the files of then.
   */
  async open(place: number): Promise<Chunk> {
    const file = this.files[place]!;
    return file.ongoingBytes === null
      ? await openCompleted(this.#storage, this.#cache, file.name)
      : await this.#openOngoing(file.name, file.ongoingBytes);
  }

  async release(chunk: Chunk): Promise<void> {
    chunk.file.detach();
    await chunk.file.file.close();
  }

  /** The chunk at the end of the log, as far as it had come. What is written behind that is not looked at. */
  async #openOngoing(name: string, bytes: number): Promise<Chunk> {
    const file = await this.#storage.open(name, 'read');
    try {
      return new Chunk(
        name,
        this.#cache.attach(file),
        decodeHeader(name, await file.read(0, HEADER_BYTES)),
        null,
        bytes,
      );
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /**
   * Reads the record at `position` into `frame`; false when there is none (any more). The frame is good until the next
   * read. A scavenge may replace the file at any time: then the record is read from the one that took its place, unless
   * it removed it.
   */
  async record(position: number, frame: RecordFrame): Promise<boolean> {
    const place = this.placeOf(position);
    if (place < 0) return false;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#readAt(this.#open.get(place) ?? (await this.#keepOpen(place)), position, frame);
      } catch (error) {
        if (!isSkuaError(error, 'file_not_found') || tries === FILE_TRIES_MAX) throw error;
        this.#replaced.add(place);
        const old = this.#open.get(place);
        this.#open.delete(place);
        if (old !== undefined) await this.release(old);
      }
    }
  }

  async #readAt(chunk: Chunk, position: number, frame: RecordFrame): Promise<boolean> {
    if (position >= chunk.endPosition || (!chunk.isCompleted && position >= chunk.startPosition + chunk.physicalBytes))
      return false;
    return (await untilHit(() => chunk.readAt(position, frame))) === HIT;
  }

  async #keepOpen(place: number): Promise<Chunk> {
    const chunk = this.#replaced.has(place)
      ? await this.#openReplacement(this.#starts[place]!)
      : await this.open(place);
    this.#open.set(place, chunk);
    if (this.#open.size > OPEN_MAX) {
      const [oldest, old] = this.#open.entries().next().value!;
      this.#open.delete(oldest);
      await this.release(old);
    }
    return chunk;
  }

  /**
   * Opens the file that holds a logical chunk now: its newest version, or that of a chunk before it that it was merged
   * into.
   */
  async #openReplacement(number: number): Promise<Chunk> {
    const files = parseChunkFileNames(await this.#storage.list('')).filter((file) => file.number <= number);
    for (let i = files.length - 1; i >= 0; i--) {
      if (files[i]!.number === files[i + 1]?.number) continue;
      const { name } = files[i]!;
      if ((await readHeader(this.#storage, name)).endNumber >= number)
        return openCompleted(this.#storage, this.#cache, name);
    }
    throw fileNotFound(chunkFileName(number, 0));
  }

  async close(): Promise<void> {
    for (const chunk of this.#open.values()) await this.release(chunk);
    this.#open.clear();
  }
}

/** Entries of one hash lie anywhere in the log. */
const CACHE_BYTES = 8_388_608;

/** Tells the streams of single records of the completed chunks. A chunk is opened when a record of it is asked for. */
export class RecordNames {
  readonly #files: RunFiles;
  readonly #storage: Storage;
  /** First logical chunk of each file, ascending. */
  readonly #starts: readonly number[];
  readonly #cache = new BlockCache(CACHE_BYTES);
  readonly #chunks = new Map<string, Chunk>();
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();

  constructor(files: RunFiles, storage: Storage) {
    this.#files = files;
    this.#storage = storage;
    this.#starts = files.chunks.map((file) => parseChunkFileNames([file.name])[0]?.number ?? -1);
  }

  /** Stream of the prepare at `position`; null when there is no record (any more). */
  async streamAt(position: number): Promise<string | null> {
    const chunk = await this.#chunkAt(position);
    if ((await untilHit(() => chunk.readAt(position, this.#frame))) !== HIT || this.#frame.type !== PREPARE)
      return null;
    parsePrepare(this.#frame, this.#fields);
    return streamOf(this.#frame, this.#fields);
  }

  async #chunkAt(position: number): Promise<Chunk> {
    const number = Math.floor(position / this.#files.chunkSize);
    const name = this.#files.chunks[this.#starts.findLastIndex((start) => start <= number)]?.name;
    const open = name === undefined ? undefined : this.#chunks.get(name);
    if (open !== undefined) return open;
    const chunk = name === undefined ? undefined : await openCompleted(this.#storage, this.#cache, name);
    if (chunk === undefined || position >= chunk.endPosition) {
      await chunk?.file.file.close();
      throw new SkuaError(
        'chunk_missing',
        `There is no chunk file for position ${position}: the directory is incomplete. Restore it from a backup.`,
        { position },
      );
    }
    this.#chunks.set(chunk.name, chunk);
    return chunk;
  }

  async close(): Promise<void> {
    for (const chunk of this.#chunks.values()) await chunk.file.file.close();
    this.#chunks.clear();
  }
}
