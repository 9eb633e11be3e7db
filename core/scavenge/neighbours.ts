import type { Chunk } from '../log/api.ts';
import { WEIGHT_DISCARD } from './logical-chunks.ts';
import { isWorthCopying, type MergePolicy } from './merge-policy.ts';

/** Chunks of one file at most. */
const CHUNKS_MAX = 64;
/**
 * Bytes of sources of one file at most, in chunk sizes: as much is done again after a crash or a stop. Where less than
 * an eighth of them survives, merging writes that once more.
 */
const SOURCE_CHUNK_SIZES_MAX = 8;
/**
 * Neighbours that are expected to be so much too large for one file are tried, since weights leave out a record or two.
 * More would cost as much as it saves: what does not fit after all is read again, what was not tried written again.
 */
const TRIED_SIZE = 1.001;

/** A chunk that an execution comes by, and what is to happen to it. */
export interface Planned {
  readonly chunk: Chunk;
  readonly weight: number;
  readonly isExecuted: boolean;
}

/**
 * How many bytes survive of chunks that were not executed yet, by their weights, which count records and not bytes:
 * from the bytes that went for the weight of earlier ones, or, before any was executed, from the size of the chunk's
 * records.
 */
export class SurvivorEstimate {
  /** Prepares in logical chunks, as far as the run has counted them. */
  readonly #recordCounts: ReadonlyMap<number, number>;
  #goneBytes = 0;
  #goneWeight = 0;

  constructor(recordCounts: ReadonlyMap<number, number>) {
    this.#recordCounts = recordCounts;
  }

  /** Bytes of records; null where nothing is known to tell it by. */
  of({ chunk, weight, isExecuted }: Planned): number | null {
    if (!isExecuted || weight === 0) return chunk.physicalBytes;
    const bytesAWeight =
      this.#goneWeight > 0 ? this.#goneBytes / this.#goneWeight : this.#recordBytes(chunk) / WEIGHT_DISCARD;
    return Number.isFinite(bytesAWeight) ? Math.max(0, chunk.physicalBytes - weight * bytesAWeight) : null;
  }

  /** So many bytes were left of a chunk that was executed. */
  learn({ chunk, weight }: Planned, keptBytes: number): void {
    this.#goneBytes += chunk.physicalBytes - keptBytes;
    this.#goneWeight += weight;
  }

  /** Of the records of a chunk, in the mean. */
  #recordBytes(chunk: Chunk): number {
    if (chunk.mapCount > 0) return chunk.physicalBytes / chunk.mapCount;
    let records = 0;
    for (let number = chunk.startNumber; number <= chunk.endNumber; number++)
      records += this.#recordCounts.get(number) ?? 0;
    return chunk.physicalBytes / records;
  }
}

/**
 * The chunk at `at` of the plan and those behind it whose survivors are expected to fit one file together. The rule
 * looks at bytes that are known only once they are written, so chunk execution, which writes them, has the last word.
 * Skipped chunks are among them where it is worth it to copy them.
 */
export function neighboursFrom(
  plan: readonly Planned[],
  at: number,
  estimate: SurvivorEstimate,
  { chunkSize, always }: MergePolicy,
): readonly Planned[] {
  const first = plan[at]!;
  const neighbours = [first];
  let bytes = estimate.of(first);
  let copiedBytesMax = copiedBytes(first);
  let sourceBytes = first.chunk.physicalBytes;
  for (
    let next = plan[at + 1];
    bytes !== null && next !== undefined && neighbours.length < CHUNKS_MAX;
    next = plan[at + neighbours.length]
  ) {
    const more = estimate.of(next);
    sourceBytes += next.chunk.physicalBytes;
    copiedBytesMax = Math.max(copiedBytesMax, copiedBytes(next));
    if (
      more === null ||
      bytes + more > chunkSize * TRIED_SIZE ||
      sourceBytes > SOURCE_CHUNK_SIZES_MAX * chunkSize ||
      !(always || isWorthCopying(copiedBytesMax, bytes + more - copiedBytesMax)) ||
      next.chunk.startNumber !== neighbours.at(-1)!.chunk.endNumber + 1
    )
      break;
    neighbours.push(next);
    bytes += more;
  }
  return neighbours;
}

/** Of a chunk that nothing is removed of. */
function copiedBytes({ chunk, isExecuted }: Planned): number {
  return isExecuted ? 0 : chunk.physicalBytes;
}
