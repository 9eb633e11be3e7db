/** Memory that a call gives back and nobody takes is kept up to so many bytes, of all calls together. */
export const SPARE_BYTES_MAX = 16_777_216;
/**
 * Blocks of at least so many bytes, and of at most so many, are written into memory that is used again. Smaller ones
 * are little garbage, and larger ones are rare.
 */
const REUSED_BYTES_MIN = 16_384;
const REUSED_BYTES_MAX = 524_288;
/** Memory is made in multiples of this, so that it fits the next block of the same read. */
const STEP_BYTES = 16_384;
/** A block is never given more than so many times its bytes, by which it counts while it waits for its client. */
const SLACK_MAX = 2;

/**
 * Memory of blocks that were sent, for the next block of the same call: a read sends hundreds of them, and making each
 * anew has the garbage collector mark the whole heap for every 32 MiB. It never passes from one call to another, so
 * that whatever stands in it was written for the caller that it goes to.
 */
export class SpareBlocks {
  /** One for each owner, in the order in which they were given. */
  readonly #spares = new Map<object, ArrayBuffer>();
  readonly #bytesMax: number;
  #heldBytes = 0;

  constructor(bytesMax = SPARE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** So many bytes that this owner has given, with what stood in them, or new ones. */
  take(owner: object, bytes: number): Uint8Array<ArrayBuffer> {
    if (bytes < REUSED_BYTES_MIN || bytes > REUSED_BYTES_MAX) return new Uint8Array(bytes);
    const spare = this.#spares.get(owner);
    if (spare !== undefined) {
      this.drop(owner);
      if (spare.byteLength >= bytes && spare.byteLength <= SLACK_MAX * bytes) return new Uint8Array(spare, 0, bytes);
    }
    return new Uint8Array(new ArrayBuffer(Math.ceil(bytes / STEP_BYTES) * STEP_BYTES), 0, bytes);
  }

  /**
   * Keeps memory that `take` gave for the next block of the same owner; nothing may look at it any more. Beyond the
   * limit the owner loses it that has been waiting longest.
   */
  give(owner: object, { buffer }: Uint8Array<ArrayBuffer>): void {
    if (buffer.byteLength < REUSED_BYTES_MIN || buffer.byteLength > REUSED_BYTES_MAX) return;
    this.drop(owner);
    this.#spares.set(owner, buffer);
    this.#heldBytes += buffer.byteLength;
    for (const [oldest] of this.#spares) {
      if (this.#heldBytes <= this.#bytesMax) return;
      this.drop(oldest);
    }
  }

  /** The owner has ended, or will send nothing for a while. */
  drop(owner: object): void {
    const spare = this.#spares.get(owner);
    if (spare === undefined) return;
    this.#spares.delete(owner);
    this.#heldBytes -= spare.byteLength;
  }
}
