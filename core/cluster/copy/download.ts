import { i32 } from '../../bytes.ts';
import { SkuaError } from '../../errors.ts';
import { FRAME_BYTES, FRAME_SOUND, isRecordLength, RecordFrame, takeFrame } from '../../log/records.ts';
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
  if (signal.aborted) throw new SkuaError('aborted', 'Catching up was ended before it was complete; the next opening goes on with it.');
}

/** Cuts a stretch of log that comes in pieces into groups of whole records, and proves that nothing else is in it. */
export class RecordGroups {
  readonly #key: string;
  readonly #frame = new RecordFrame();
  #position: number;
  #rest: Uint8Array = new Uint8Array(0);

  /** `position`: of the first record. `key`: of the object, for messages. */
  constructor(position: number, key: string) {
    this.#position = position;
    this.#key = key;
  }

  /** The records that are whole with this piece, one behind the other; may be none. Good until the next call, or until the piece is used again. Throws `log_corrupt`. */
  push(piece: Uint8Array): Uint8Array {
    const all = this.#rest.length === 0 ? piece : joined(this.#rest, piece);
    let at = 0;
    while (at + 4 <= all.length) {
      const length = i32(all, at);
      if (!isRecordLength(length)) throw this.#corrupt();
      if (at + length + FRAME_BYTES > all.length) break;
      if (takeFrame(this.#frame, all, at, length, this.#position) !== FRAME_SOUND) throw this.#corrupt();
      at += length + FRAME_BYTES;
      this.#position = this.#frame.next;
    }
    this.#rest = all.slice(at);
    return all.subarray(0, at);
  }

  /** Throws `log_corrupt` when the last piece ended inside a record. */
  finish(): void {
    if (this.#rest.length > 0) throw this.#corrupt();
  }

  #corrupt(): SkuaError {
    return new SkuaError('log_corrupt', `The object ${this.#key} holds something else than a record at position ${this.#position} of the log. Nothing of it was taken over: restore it from a version or a backup of the bucket.`, { key: this.#key, position: this.#position });
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}
