import type { BlockCache } from '../cache/block-cache.ts';
import { SkuaError } from '../errors.ts';
import type { Chunk } from './chunk.ts';
import { END, HIT, MISS, type LogReader, type Outcome } from './log-reader.ts';
import { RecordFrame } from './records.ts';

/** The chunks in force, by logical chunk number, and reading across them; disk-format.md section 2.6. */
export class ChunkTable implements LogReader {
  readonly chunkSize: number;
  readonly #cache: BlockCache;
  readonly #chunks: (Chunk | undefined)[] = [];
  readonly #probe = new RecordFrame();
  /** Position after the last durable record. */
  end = 0;

  constructor(chunkSize: number, cache: BlockCache) {
    this.chunkSize = chunkSize;
    this.#cache = cache;
  }

  /** Puts a chunk in force for all logical chunks that it covers. */
  put(chunk: Chunk): void {
    for (let number = chunk.startNumber; number <= chunk.endNumber; number++) this.#chunks[number] = chunk;
  }

  /** Distinct chunks in order. */
  *all(): IterableIterator<Chunk> {
    for (let number = 0; number < this.#chunks.length;) {
      const chunk = this.#chunks[number];
      if (chunk) yield chunk;
      number = chunk ? chunk.endNumber + 1 : number + 1;
    }
  }

  /** Closes the files of all chunks. */
  async close(): Promise<void> {
    for (const chunk of this.all()) {
      chunk.file.detach();
      await chunk.file.file.close();
    }
  }

  chunkAt(position: number): Chunk | undefined {
    return this.#chunks[Math.floor(position / this.chunkSize)];
  }

  fill(): Promise<void> {
    return this.#cache.fill();
  }

  readAt(position: number, frame: RecordFrame): Outcome {
    if (position < 0 || position >= this.end) return END;
    return this.#existing(position).readAt(position, frame);
  }

  readForward(position: number, frame: RecordFrame): Outcome {
    let at = position;
    while (at < this.end) {
      const chunk = this.#existing(at);
      const outcome = chunk.readForward(at, frame);
      if (outcome !== END) return outcome;
      at = chunk.endPosition;
    }
    return END;
  }

  readBackward(position: number, frame: RecordFrame): Outcome {
    let at = Math.min(position, this.end);
    while (at > 0) {
      const chunk = this.#existing(at - 1);
      const outcome = chunk.readBackward(at, frame);
      if (outcome !== END) return outcome;
      at = chunk.startPosition;
    }
    return END;
  }

  isBoundary(position: number): Outcome {
    if (position === this.end || position === 0) return HIT;
    if (position < 0 || position > this.end) return END;
    const outcome = this.#existing(position).isBoundary(position, this.#probe);
    return outcome === MISS ? MISS : outcome;
  }

  #existing(position: number): Chunk {
    const chunk = this.chunkAt(position);
    if (!chunk) throw new SkuaError('chunk_missing', `There is no chunk file for position ${position}: the directory is incomplete. Restore it from a backup.`, { position });
    return chunk;
  }
}
