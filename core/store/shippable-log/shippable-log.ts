import { SkuaError } from '../../base/errors.ts';
import { HEADER_BYTES } from '../../log/format/chunk-format.ts';
import type { ChunkTable } from '../../log/api.ts';
import type { Storage } from '../../ports/storage.ts';
import { RecordWalk } from '../../log/format/record-walk.ts';

/** Log bytes of one piece: whole writes, one of which alone may be longer than a piece should be. */
export const PIECE_BYTES_MAX = 50_331_648;
/** Bytes that a piece should have at most. */
export const PIECE_BYTES = 4_194_304;

/** The committed log of a node, as the shipper reads it. */
export interface ShippableLog {
  readonly chunkSizeBytes: number;
  /** End of what is durable: behind a whole write. */
  readonly end: number;
  /**
   * Where the data of this chunk ends by now: behind its last record, or the last one that a scavenge has left. A chunk
   * behind which `end` lies gets no more.
   */
  dataEnd(chunkNumber: number): number;
  /** A scavenge has rewritten this chunk: what is left of it can't be shipped. */
  isRewritten(chunkNumber: number): boolean;
  /** Names of the completed chunk files in force, ascending. A scavenge gives chunks new ones. */
  chunkNames(): readonly string[];
  /** The bytes [from, to), by position, all in one unscavenged chunk and before `end`. */
  read(from: number, to: number): Promise<Uint8Array>;
}

/**
 * The next piece from `from` on, as long as it should be at most, and ending with a whole write, so that the log can
 * end there. Only a single write may make it longer; null when that is longer than any piece may be.
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
 * Where the log goes on for a shipped log that has it up to `position`: there, or at the next chunk's start where the
 * chunk was completed there. Null where it can't be had any more, since a scavenge has rewritten the chunk. Of one that
 * was had to its end, a scavenge can only have removed.
 */
export function goesOnAt(log: ShippableLog, position: number): number | null {
  const size = log.chunkSizeBytes;
  const number = Math.floor(position / size);
  let next = position;
  if (
    log.end >= (number + 1) * size &&
    position > number * size &&
    (log.isRewritten(number) ? position >= log.dataEnd(number) : position === log.dataEnd(number))
  )
    next = (number + 1) * size;
  return log.isRewritten(Math.floor(next / size)) ? null : next;
}

/**
 * The log of a running node, as it is shipped. Of a chunk that a scavenge has rewritten nothing is left that could be.
 */
export function shippableLog(table: ChunkTable, storage: Storage): ShippableLog {
  return {
    chunkSizeBytes: table.chunkSize,
    get end() {
      return table.end;
    },
    dataEnd: (chunkNumber) => {
      const start = chunkNumber * table.chunkSize;
      const chunk = table.chunkAt(start);
      if (chunk === undefined) return start;
      return Math.min(table.end, chunk.isCompleted ? chunk.startPosition + chunk.logicalBytes : chunk.endPosition);
    },
    isRewritten: (chunkNumber) => table.chunkAt(chunkNumber * table.chunkSize)?.isScavenged === true,
    chunkNames: () => [...table.all()].filter((chunk) => chunk.isCompleted).map(({ name }) => name),
    read: (from, to) => readLog(table, storage, from, to),
  };
}

async function readLog(table: ChunkTable, storage: Storage, from: number, to: number): Promise<Uint8Array> {
  const chunk = table.chunkAt(from);
  if (chunk === undefined || chunk.isScavenged || to > chunk.endPosition || to > table.end) throw unreadable(from, to);
  const file = await storage.open(chunk.name, 'read');
  try {
    const bytes = await file.read(HEADER_BYTES + from - chunk.startPosition, to - from);
    if (bytes.length === to - from) return bytes;
  } finally {
    await file.close();
  }
  throw unreadable(from, to);
}

function unreadable(from: number, to: number): SkuaError {
  return new SkuaError(
    'invalid_position',
    `The log from ${from} to ${to} can't be read as it was written: a scavenge has rewritten it.`,
    { from, to },
  );
}
