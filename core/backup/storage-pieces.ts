import { SkuaError } from '../errors.ts';
import type { StorageFile } from '../ports/storage.ts';

export interface PiecesOptions {
  readonly pieceBytes: number;
  /** Awaited before every piece; what it throws ends the reading. */
  readonly onPiece?: (() => Promise<void>) | undefined;
}

/** The bytes [from, to) of a file in pieces, of which one is fetched ahead, in buffers that are used in turns. Throws `io_error` for a file that is shorter. */
export async function* piecesOf(file: StorageFile, from: number, to: number, { pieceBytes, onPiece }: PiecesOptions): AsyncGenerator<Uint8Array, void, undefined> {
  const buffers = [new Uint8Array(Math.min(pieceBytes, to - from)), new Uint8Array(Math.max(0, Math.min(pieceBytes, to - from - pieceBytes)))];
  let turn = 1;
  const readAt = (at: number) => {
    const reading = Promise.resolve(file.read(at, Math.min(pieceBytes, to - at), buffers[turn ^= 1]!));
    // A reader that stops early never asks for what was fetched ahead.
    reading.catch(() => {});
    return reading;
  };
  let coming = from < to ? readAt(from) : null;
  try {
    for (let at = from; coming !== null;) {
      await onPiece?.();
      const bytes: Uint8Array = await coming;
      const wanted = Math.min(pieceBytes, to - at);
      if (bytes.length !== wanted) throw new SkuaError('io_error', `${file.path} ended at ${at + bytes.length}, before the ${to} bytes that it had when the backup began. Begin the backup anew.`, { path: file.path });
      at += wanted;
      coming = at < to ? readAt(at) : null;
      yield bytes;
    }
  } finally {
    // The file must not be closed under a read.
    await coming?.catch(() => {});
  }
}
