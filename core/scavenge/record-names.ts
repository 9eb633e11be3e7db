import { BlockCache } from '../cache/block-cache.ts';
import { SkuaError } from '../errors.ts';
import type { Chunk } from '../log/chunk.ts';
import { parseChunkFileNames } from '../log/chunk-format.ts';
import { HIT, untilHit } from '../cache/step.ts';
import { openCompleted } from '../log/open-chunks.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame, streamOf } from '../log/records.ts';
import type { Storage } from '../ports/storage.ts';
import type { RunFiles } from './run-files.ts';

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
    if (await untilHit(() => chunk.readAt(position, this.#frame)) !== HIT || this.#frame.type !== PREPARE) return null;
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
      throw new SkuaError('chunk_missing', `There is no chunk file for position ${position}: the directory is incomplete. Restore it from a backup.`, { position });
    }
    this.#chunks.set(chunk.name, chunk);
    return chunk;
  }

  async close(): Promise<void> {
    for (const chunk of this.#chunks.values()) await chunk.file.file.close();
    this.#chunks.clear();
  }
}
