import { RecordWalk } from './choose-walk.ts';
import { PIECE_BYTES_MAX } from './shipped.ts';

/** Bytes that a piece should have at most. */
export const PIECE_BYTES = 4_194_304;

/** The committed log of a node, as the shipper reads it. */
export interface ShippableLog {
  readonly chunkSizeBytes: number;
  /** End of what is durable: behind a whole write. */
  readonly end: number;
  /** Where the data of this chunk ends by now: behind its last record, or the last one that a scavenge has left. A chunk behind which `end` lies gets no more. */
  dataEnd(chunkNumber: number): number;
  /** A scavenge has rewritten this chunk: what is left of it can't be shipped. */
  isRewritten(chunkNumber: number): boolean;
  /** Names of the completed chunk files in force, ascending. A scavenge gives chunks new ones. */
  chunkNames(): readonly string[];
  /** The bytes [from, to), by position, all in one unscavenged chunk and before `end`. */
  read(from: number, to: number): Promise<Uint8Array>;
}

/**
 * The next piece from `from` on, as long as it should be at most, and ending with a whole write, so that the log can end there. Only
 * a single write may make it longer; null when that is longer than any piece may be.
 */
export async function nextPiece(log: ShippableLog, from: number, limit: number): Promise<Uint8Array | null> {
  for (let length = PIECE_BYTES; ; length = Math.min(2 * length, PIECE_BYTES_MAX)) {
    const bytes = await log.read(from, Math.min(from + length, limit));
    if (from + bytes.length === limit) return bytes;
    const walk = new RecordWalk(from);
    walk.push(bytes, () => true);
    if (walk.end > from) return bytes.subarray(0, walk.end - from);
    if (length === PIECE_BYTES_MAX) return null;
  }
}

/**
 * Where the log goes on for somebody who has it up to `position`: there, or at the next chunk's start where the chunk was completed there. Null
 * where it can't be had any more, since a scavenge has rewritten the chunk. Of one that was had to its end, a scavenge can only have removed.
 */
export function goesOnAt(log: ShippableLog, position: number): number | null {
  const size = log.chunkSizeBytes;
  const number = Math.floor(position / size);
  let next = position;
  if (log.end >= (number + 1) * size && position > number * size && (log.isRewritten(number) ? position >= log.dataEnd(number) : position === log.dataEnd(number))) next = (number + 1) * size;
  return log.isRewritten(Math.floor(next / size)) ? null : next;
}
