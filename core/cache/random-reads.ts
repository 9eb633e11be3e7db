import type { StorageFile } from '../ports/storage.ts';

/** Longer records go through the cache. */
const ALONE_BYTES_MAX = 65_536;
/** Records lie behind one another in slabs of this size, which live as long as a view of one of them. */
const SLAB_BYTES = 262_144;
/** Slots for places that were asked for; a power of two. */
const SLOTS = 1_024;
const SLOT_SHIFT = 22;
const FILES = 4_096;

/**
 * Reads of single records past the block cache: a stream whose events lie far apart would drag a block through the
 * cache for each. A place that is asked for again soon belongs in the cache, which is how a small stream that is read
 * again and again gets there.
 */
export class RandomReads {
  /** How many reads ago is soon. */
  readonly #window: number;
  readonly #places = new Float64Array(SLOTS).fill(-1);
  readonly #turns = new Float64Array(SLOTS);
  #turn = 0;
  #slab = new Uint8Array(0);
  #at = 0;

  /** Blocks that the cache has room for: what would not stay until it is asked for again need not get there. */
  constructor(cacheBlocks: number) {
    this.#window = Math.min(SLOTS, cacheBlocks) / 2;
  }

  /** Whether this place was asked for a short while ago; it is remembered now. */
  isRepeated(fileId: number, offset: number): boolean {
    const place = offset * FILES + (fileId % FILES);
    const slot = Math.imul(offset ^ fileId, 0x9e3779b1) >>> SLOT_SHIFT;
    const turn = ++this.#turn;
    if (this.#places[slot] === place && turn - this.#turns[slot]! <= this.#window) return true;
    this.#places[slot] = place;
    this.#turns[slot] = turn;
    return false;
  }

  /**
   * Up to `length` bytes, or null when the storage does not have them at hand. They are overwritten by the next read
   * unless kept.
   */
  read(file: StorageFile, offset: number, length: number): Uint8Array | null {
    if (file.readNow === undefined || length > ALONE_BYTES_MAX) return null;
    if (this.#at + length > this.#slab.length) {
      this.#slab = new Uint8Array(SLAB_BYTES);
      this.#at = 0;
    }
    const count = file.readNow(offset, length, this.#slab, this.#at);
    return count < 0 ? null : this.#slab.subarray(this.#at, this.#at + count);
  }

  /** Keeps the first `length` bytes of what was read last. */
  keep(length: number): void {
    this.#at += length;
  }
}
