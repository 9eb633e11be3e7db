import { SkuaError } from '../../base/errors.ts';
import { RecordCutter } from '../../log/format/record-cutter.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { readObject } from './bucket-files.ts';

/** Bytes of one request. Two of them are in memory for each file that is being read. */
export const PIECE_BYTES = 4_194_304;

/** Memory that pieces are read into, in turns; kept from file to file. */
export type PieceBuffers = readonly [Uint8Array, Uint8Array];

export function newPieceBuffers(): PieceBuffers {
  return [new Uint8Array(PIECE_BYTES), new Uint8Array(PIECE_BYTES)];
}

/**
 * Bytes [from, to) of an object, piece by piece. While one piece is looked at the next one is on its way; a piece may be used again after the next one was
 * asked for. Throws as `readObject` does, and `aborted`.
 */
export async function* piecesOf(objects: ObjectStore, key: string, from: number, to: number, buffers: PieceBuffers, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  let turn = 0;
  const read = (at: number): Promise<Uint8Array> => {
    turn ^= 1;
    const reading = readObject(objects, key, { from: at, length: Math.min(PIECE_BYTES, to - at), into: buffers[turn]!, signal });
    // Whoever ends early meets what it came to all the same.
    reading.catch(() => {});
    return reading;
  };
  let ahead = from < to ? read(from) : null;
  try {
    for (let at = from; ahead !== null;) {
      throwIfEnded(signal);
      const piece: Uint8Array = await ahead;
      at += piece.length;
      ahead = at < to ? read(at) : null;
      yield piece;
    }
  } finally {
    // The memory is somebody else's from here on.
    await ahead?.catch(() => {});
  }
}

export function throwIfEnded(signal: AbortSignal): void {
  if (signal.aborted) throw new SkuaError('aborted', 'Catching up was interrupted; the next opening continues it.');
}

/** Proves that a stretch of log that comes in pieces, from `position` on, holds records and nothing else; `key`: of the object, for messages. */
export function objectCutter(position: number, key: string): RecordCutter {
  return new RecordCutter({
    position,
    fail: (at) => new SkuaError('log_corrupt', `The object ${key} holds no valid record at position ${position + at} of the log. None of it was used: restore it from a version or a backup of the bucket.`, { key, position: position + at }),
  });
}

/** The records that are whole with this piece: what lies one behind the other is one group, and what two pieces share another. */
export function* groupsIn(piece: Uint8Array, cutter: RecordCutter): Generator<Uint8Array, void, undefined> {
  const { frame } = cutter;
  let from = piece.length;
  let to = 0;
  cutter.take(piece);
  while (cutter.next()) {
    if (frame.bytes !== piece) yield frame.bytes;
    else {
      from = Math.min(from, frame.at - 4);
      to = frame.at + frame.length + 4;
    }
  }
  if (from < to) yield piece.subarray(from, to);
}
