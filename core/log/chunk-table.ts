import { END, HIT, type Outcome } from '../base/step.ts';
import { SkuaError } from '../base/errors.ts';
import type { Chunk } from './chunk.ts';
import type { LogReader, ReadFor } from './log-reader.ts';
import { RecordFrame } from './format/records.ts';

/** The chunks in force, by logical chunk number, and reading across them. */
export class ChunkTable implements LogReader {
  readonly chunkSize: number;
  readonly #chunks: (Chunk | undefined)[] = [];
  readonly #probe = new RecordFrame();
  /** Position after the last record that readers see: durable, and known to the index. Where appends go on may lie further. */
  end = 0;

  constructor(chunkSize: number) {
    this.chunkSize = chunkSize;
  }

  /** Puts a chunk in force for all logical chunks that it covers. */
  put(chunk: Chunk): void {
    for (let number = chunk.startNumber; number <= chunk.endNumber; number++) this.#chunks[number] = chunk;
  }

  /**
   * Puts a chunk in the place of those that it covers, in one step, and returns them. Throws `scavenge_failed`, with
   * nothing changed, when it would cut one of them in two or one is still being written.
   */
  replace(chunk: Chunk): readonly Chunk[] {
    const covered = this.coveredBy(chunk.startNumber, chunk.endNumber);
    this.put(chunk);
    return covered;
  }

  /** The chunks that one over [startNumber, endNumber] would replace. Throws as `replace` does. */
  coveredBy(startNumber: number, endNumber: number): readonly Chunk[] {
    const refuse = (what: string) => new SkuaError('scavenge_failed', `A new file for the chunks ${startNumber} to ${endNumber} can't be put in force: ${what}. The old files stay.`, { startNumber, endNumber });
    const covered: Chunk[] = [];
    for (let number = startNumber; number <= endNumber;) {
      const chunk = this.#chunks[number];
      if (chunk === undefined) throw refuse(`there is no chunk ${number}`);
      if (chunk.startNumber < startNumber || chunk.endNumber > endNumber) throw refuse(`${chunk.name}, which covers ${chunk.startNumber} to ${chunk.endNumber}, would be cut`);
      if (!chunk.isCompleted) throw refuse(`${chunk.name} is still being written`);
      covered.push(chunk);
      number = chunk.endNumber + 1;
    }
    return covered;
  }

  /** The distinct chunks, in order, that are in force at the time of the call; each may be replaced while the caller goes through them. */
  all(): IterableIterator<Chunk> {
    const chunks: Chunk[] = [];
    for (let number = 0; number < this.#chunks.length;) {
      const chunk = this.#chunks[number];
      if (chunk) chunks.push(chunk);
      number = chunk ? chunk.endNumber + 1 : number + 1;
    }
    return chunks.values();
  }

  /** The chunk in force that holds the place `position` or, where there is none, the next one. */
  chunkFrom(position: number): Chunk | undefined {
    for (let number = Math.floor(position / this.chunkSize); number < this.#chunks.length; number++) {
      const chunk = this.#chunks[number];
      if (chunk) return chunk;
    }
    return undefined;
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

  readAt(position: number, frame: RecordFrame, what: ReadFor = 'run'): Outcome {
    if (position < 0 || position >= this.end) return END;
    return this.#existing(position).readAt(position, frame, what);
  }

  prefetch(position: number): void {
    if (position >= 0 && position < this.end) this.chunkAt(position)?.prefetch(position);
  }

  prefetchRun(from: number, to: number): void {
    if (from < 0 || to >= this.end) return;
    for (let at = from, chunk = this.chunkAt(at); chunk !== undefined && at <= to; at = chunk.endPosition, chunk = this.chunkAt(at)) chunk.prefetchRun(at, to);
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
    return this.#existing(position).isBoundary(position, this.#probe);
  }

  #existing(position: number): Chunk {
    const chunk = this.chunkAt(position);
    if (!chunk) throw new SkuaError('chunk_missing', `There is no chunk file for position ${position}: the directory is incomplete. Restore it from a backup.`, { position });
    return chunk;
  }
}
