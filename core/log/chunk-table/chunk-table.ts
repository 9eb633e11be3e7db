import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import { END, HIT, type Outcome } from '../../base/step.ts';
import { SkuaError } from '../../base/errors.ts';
import type { Ids } from '../../ports/ids.ts';
import { type BlockVisitor, type Chunk, type RecordVisitor, scanChunk } from '../chunk/chunk.ts';
import type { LogReader, ReadFor } from '../log-reader.ts';
import { HEADER_BYTES } from '../format/chunk-format.ts';
import { RecordFrame } from '../format/records.ts';

/** The chunks in force, by logical chunk number, and reading across them. */
export class ChunkTable implements LogReader {
  readonly chunkSize: number;
  readonly #chunks: (Chunk | undefined)[] = [];
  readonly #probe = new RecordFrame();
  /**
   * Position after the last record that readers see: durable, and known to the index. Where appends go on may lie
   * further.
   */
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
    const refuse = (what: string) =>
      new SkuaError(
        'scavenge_failed',
        `A new file for the chunks ${startNumber} to ${endNumber} can't be put in use: ${what}. The old files stay.`,
        { startNumber, endNumber },
      );
    const covered: Chunk[] = [];
    for (let number = startNumber; number <= endNumber;) {
      const chunk = this.#chunks[number];
      if (chunk === undefined) throw refuse(`there is no chunk ${number}`);
      if (chunk.startNumber < startNumber || chunk.endNumber > endNumber)
        throw refuse(`${chunk.name}, which covers ${chunk.startNumber} to ${chunk.endNumber}, would be cut`);
      if (!chunk.isCompleted) throw refuse(`${chunk.name} is still being written`);
      covered.push(chunk);
      number = chunk.endNumber + 1;
    }
    return covered;
  }

  /**
   * The distinct chunks, in order, that are in force at the time of the call; each may be replaced while the caller
   * goes through them.
   */
  all(): IterableIterator<Chunk> {
    const chunks: Chunk[] = [];
    for (let number = 0; number < this.#chunks.length;) {
      const chunk = this.#chunks[number];
      if (chunk) chunks.push(chunk);
      number = chunk ? chunk.endNumber + 1 : number + 1;
    }
    return chunks.values();
  }

  /** The chunk in force that holds `position` or, where there is none, the next one. */
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
    for (
      let at = from, chunk = this.chunkAt(at);
      chunk !== undefined && at <= to;
      at = chunk.endPosition, chunk = this.chunkAt(at)
    )
      chunk.prefetchRun(at, to);
  }

  readForward(position: number, frame: RecordFrame, what: ReadFor = 'run'): Outcome {
    let at = position;
    while (at < this.end) {
      const chunk = this.#existing(at);
      const outcome = chunk.readForward(at, frame, what);
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

  isScavengedAt(position: number): boolean {
    return this.chunkAt(position)?.isScavenged === true;
  }

  chunkStart(position: number): number {
    return this.#existing(position).startPosition;
  }

  #existing(position: number): Chunk {
    const chunk = this.chunkAt(position);
    if (!chunk)
      throw new SkuaError(
        'chunk_missing',
        `There is no chunk file for position ${position}: the directory is incomplete. Restore it from a backup.`,
        { position },
      );
    return chunk;
  }
}

/**
 * Reads the records from `from` (a record's start or a chunk boundary) to the log's end in large sequential blocks,
 * past the block cache, and reads one block ahead while the last is looked at. `onBlock` gets the bytes passed.
 * `reusesBlocks` as in `scanChunk`.
 */
export async function scanLog(
  table: ChunkTable,
  from: number,
  visit: RecordVisitor,
  onBlock?: BlockVisitor,
  reusesBlocks = false,
): Promise<void> {
  // By position, since a scavenge may replace chunks meanwhile, several by one.
  let at = from;
  for (let chunk = table.chunkFrom(at); chunk !== undefined; chunk = table.chunkFrom(at)) {
    await scanChunk(chunk, at, visit, onBlock, reusesBlocks);
    at = chunk.endPosition;
  }
}

/** A chunk file in force, as far as memory knows it. */
export interface ChunkView {
  readonly file: string;
  /** First and last logical chunk; a merged file holds several. */
  readonly start: number;
  readonly end: number;
  /** Positions in the log where it begins and where the next file does. */
  readonly startPosition: number;
  readonly endPosition: number;
  /** Of the file; of the one that is being written, which is as long as a full one, what is written so far. */
  readonly bytes: number;
  /** Of the records in it. */
  readonly dataBytes: number;
  readonly isOngoing: boolean;
  readonly isScavenged: boolean;
  /** The file lies in object storage, and not on the disk of the node. */
  readonly isCold: boolean;
  /** Known of scavenged files only, which have a map of their records. */
  readonly records: number | null;
}

export interface ChunkMapView {
  /** Of the set of files; it stays the same while the ongoing one grows. */
  readonly version: string;
  readonly chunkSize: number;
  readonly logEnd: number;
  /** In log order; null where the caller knows this version already. */
  readonly chunks: readonly ChunkView[] | null;
}

interface ChunkMapParts {
  /** The table of now. */
  readonly table: () => ChunkTable;
  /** Whether completed chunks are objects. */
  readonly isCold: boolean;
  readonly ids: Ids;
}

/** Letters of a UUID that tell the versions of one opening of a store from those of another. */
const OPENING_LENGTH = 8;

/**
 * The files of the log for callers that look at them again and again: all from memory, and nothing but the end of the
 * log where no file has changed since. Comparing ten thousand files takes a millisecond at most.
 */
export class ChunkMap {
  readonly #parts: ChunkMapParts;
  /** Made when first asked for: ids that are not needed are not drawn. */
  #opening: string | null = null;
  #revision = 0;
  #known: readonly Seen[] = [];

  constructor(parts: ChunkMapParts) {
    this.#parts = parts;
  }

  /** `since`: the version that the caller knows. */
  view(since: string | null): ChunkMapView {
    const table = this.#parts.table();
    const chunks = [...table.all()];
    if (!this.#isKnown(chunks)) {
      this.#known = chunks.map((chunk) => ({
        name: chunk.name,
        isCompleted: chunk.isCompleted,
        bytes: fixedBytes(chunk),
      }));
      this.#revision++;
    }
    this.#opening ??= guidToText(guidFromUuidBytes(this.#parts.ids.uuidBytes()), 0).slice(0, OPENING_LENGTH);
    const version = `${this.#opening}-${this.#revision}`;
    return {
      version,
      chunkSize: table.chunkSize,
      logEnd: table.end,
      chunks: since === version ? null : chunks.map((chunk) => viewOf(chunk, this.#parts.isCold)),
    };
  }

  #isKnown(chunks: readonly Chunk[]): boolean {
    return (
      chunks.length === this.#known.length &&
      chunks.every((chunk, i) => {
        const { name, isCompleted, bytes } = this.#known[i]!;
        return chunk.name === name && chunk.isCompleted === isCompleted && fixedBytes(chunk) === bytes;
      })
    );
  }
}

interface Seen {
  readonly name: string;
  readonly isCompleted: boolean;
  readonly bytes: number;
}

/** The file that is being written changes all the time. */
function fixedBytes(chunk: Chunk): number {
  return chunk.isCompleted ? chunk.file.file.size : 0;
}

function viewOf(chunk: Chunk, isCold: boolean): ChunkView {
  return {
    file: chunk.name,
    start: chunk.startNumber,
    end: chunk.endNumber,
    startPosition: chunk.startPosition,
    endPosition: chunk.endPosition,
    bytes: chunk.isCompleted ? chunk.file.file.size : HEADER_BYTES + chunk.physicalBytes,
    dataBytes: chunk.physicalBytes,
    isOngoing: !chunk.isCompleted,
    isScavenged: chunk.isScavenged,
    isCold: isCold && chunk.isCompleted,
    records: chunk.isScavenged && chunk.isCompleted ? chunk.mapCount : null,
  };
}
