import type { Ids } from '../ports/ids.ts';
import { guidFromUuidBytes, guidToText } from '../base/guid.ts';
import type { Chunk } from './chunk.ts';
import type { ChunkTable } from './chunk-table.ts';

/** A chunk file in force, as far as memory knows it. */
export interface ChunkView {
  readonly file: string;
  /** First and last logical chunk; a merged file holds several. */
  readonly start: number;
  readonly end: number;
  /** Positions in the log where it begins and where the next file does. */
  readonly startPosition: number;
  readonly endPosition: number;
  /** Of the file. */
  readonly bytes: number;
  /** Of the records in it. */
  readonly dataBytes: number;
  readonly isOngoing: boolean;
  readonly isScavenged: boolean;
  /** It lies in object storage, and not on the disk of the node. */
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
 * The files of the log for whoever looks at them again and again: all from memory, and nothing but the end of the log where no file has
 * changed since. Comparing ten thousand files takes a millisecond at most.
 */
export class ChunkMap {
  readonly #parts: ChunkMapParts;
  /** Made when somebody first asks: ids that nobody needs are not drawn. */
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
      this.#known = chunks.map((chunk) => ({ name: chunk.name, isCompleted: chunk.isCompleted, bytes: fixedBytes(chunk) }));
      this.#revision++;
    }
    this.#opening ??= guidToText(guidFromUuidBytes(this.#parts.ids.uuidBytes()), 0).slice(0, OPENING_LENGTH);
    const version = `${this.#opening}-${this.#revision}`;
    return { version, chunkSize: table.chunkSize, logEnd: table.end, chunks: since === version ? null : chunks.map((chunk) => viewOf(chunk, this.#parts.isCold)) };
  }

  #isKnown(chunks: readonly Chunk[]): boolean {
    return chunks.length === this.#known.length && chunks.every((chunk, i) => {
      const { name, isCompleted, bytes } = this.#known[i]!;
      return chunk.name === name && chunk.isCompleted === isCompleted && fixedBytes(chunk) === bytes;
    });
  }
}

interface Seen { readonly name: string; readonly isCompleted: boolean; readonly bytes: number }

/** The file that is being written changes all the time. */
function fixedBytes(chunk: Chunk): number {
  return chunk.isCompleted ? chunk.file.file.size : 0;
}

function viewOf(chunk: Chunk, isCold: boolean): ChunkView {
  return {
    file: chunk.name, start: chunk.startNumber, end: chunk.endNumber, startPosition: chunk.startPosition, endPosition: chunk.endPosition,
    bytes: chunk.file.file.size, dataBytes: chunk.physicalBytes, isOngoing: !chunk.isCompleted, isScavenged: chunk.isScavenged, isCold: isCold && chunk.isCompleted,
    records: chunk.isScavenged && chunk.isCompleted ? chunk.mapCount : null,
  };
}
