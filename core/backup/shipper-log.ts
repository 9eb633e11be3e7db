import { RecordWalk } from './choose-walk.ts';
import { PIECE_BYTES_MAX } from './shipped.ts';

/** Bytes that a piece should have at most. */
export const PIECE_BYTES = 4_194_304;

/** The committed log of a node, as the shipper reads it. */
export interface ShippableLog {
  readonly chunkSizeBytes: number;
  /** End of what is durable: behind a whole write. */
  readonly end: number;
  /** Where the data of this chunk ends by now: behind its last record, `end` in the one that is being written; -1 where a scavenge has replaced it. */
  dataEnd(chunkNumber: number): number;
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
