import { GrpcError, STATUS } from '../../handlers/grpc/call.ts';
import { PREFIX_BYTES } from '../../handlers/grpc/messages/wire.ts';

/** Longest message that is taken, in bytes. */
export const MESSAGE_BYTES_MAX = 16_767_216;

/**
 * A message that comes in parts is put together in a buffer that begins with so many bytes, and grows by this factor:
 * never by what its prefix declares.
 */
const FIRST_BYTES = 4_096;
const GROWTH = 4;

/**
 * Cuts what arrives of a call into messages: a byte that says whether it is compressed, its length in four, then the
 * message. A message that lies in one piece is a view of it; one in parts is copied, so that a few bytes of it don't
 * keep all alive that arrived with them.
 */
export class Messages {
  #pieces: Uint8Array[] = [];
  #at = 0;
  #unread = 0;
  /** Of a message in parts: how long it is with its prefix, so far as that is known, and what is here of it. */
  #needed = 0;
  #begun: Uint8Array | null = null;
  #begunBytes = 0;

  /** Bytes that have arrived, of which no message was made. */
  get heldBytes(): number {
    return this.#unread + this.#begunBytes;
  }

  add(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#unread += piece.length;
  }

  /** The next message; null where not all of it is here. Throws GrpcError for what is none. */
  next(): Uint8Array | null {
    if (this.#begun === null) {
      const [piece] = this.#pieces;
      if (piece === undefined) return null;
      const start = this.#at + PREFIX_BYTES;
      if (piece.length >= start) {
        const end = start + lengthOf(piece, this.#at);
        if (end <= piece.length) {
          this.#skip(end - this.#at);
          return piece.subarray(start, end);
        }
      }
      this.#needed = PREFIX_BYTES;
    }
    return this.#collect();
  }

  #collect(): Uint8Array | null {
    for (;;) {
      while (this.#begunBytes < this.#needed) {
        const [piece] = this.#pieces;
        if (piece === undefined) return null;
        const bytes = Math.min(piece.length - this.#at, this.#needed - this.#begunBytes);
        this.#keep(piece.subarray(this.#at, this.#at + bytes));
        this.#skip(bytes);
      }
      const begun = this.#begun!;
      if (this.#needed === PREFIX_BYTES) {
        this.#needed += lengthOf(begun, 0);
        if (this.#needed > PREFIX_BYTES) continue;
      }
      const message = begun.subarray(PREFIX_BYTES, this.#needed);
      this.#begun = null;
      this.#begunBytes = 0;
      return message;
    }
  }

  #keep(bytes: Uint8Array): void {
    const end = this.#begunBytes + bytes.length;
    const room = this.#begun?.length ?? 0;
    if (end > room) {
      const next = new Uint8Array(
        Math.max(end, FIRST_BYTES, this.#needed === PREFIX_BYTES ? 0 : Math.min(this.#needed, room * GROWTH)),
      );
      if (this.#begun !== null) next.set(this.#begun.subarray(0, this.#begunBytes));
      this.#begun = next;
    }
    this.#begun!.set(bytes, this.#begunBytes);
    this.#begunBytes = end;
  }

  #skip(bytes: number): void {
    this.#at += bytes;
    this.#unread -= bytes;
    const pieces = this.#pieces;
    if (this.#at < pieces[0]!.length) return;
    // Mostly there is one, for which nothing has to be moved.
    if (pieces.length === 1) pieces.pop();
    else pieces.shift();
    this.#at = 0;
  }
}

function lengthOf(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 0)
    throw new GrpcError(STATUS.unimplemented, 'Compressed messages are not supported: send them uncompressed.', {
      'grpc-accept-encoding': 'identity',
    });
  const length = ((bytes[at + 1]! << 24) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!) >>> 0;
  if (length > MESSAGE_BYTES_MAX)
    throw new GrpcError(STATUS.resourceExhausted, 'Received message exceeds the maximum configured message size.');
  return length;
}

/** How many messages stand in a block that is sent. */
export function countMessages(block: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < block.length; count++) {
    at +=
      PREFIX_BYTES + (((block[at + 1]! << 24) | (block[at + 2]! << 16) | (block[at + 3]! << 8) | block[at + 4]!) >>> 0);
  }
  return count;
}
