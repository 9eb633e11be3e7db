import { equalBytes } from '../bytes.ts';

/** Slots; a power of two. 2 MiB in all. */
const SLOTS = 16_384;
/** Longer names are not remembered. */
const SLOT_BYTES = 128;

/** The names of streams that came by lately, in UTF-8, one a slot: most records are of a stream that was just seen. */
export class SeenNames {
  readonly #bytes = new Uint8Array(SLOTS * SLOT_BYTES);
  readonly #lengths = new Uint8Array(SLOTS);
  #last = 0;

  /** True when the name at `at` is remembered; else it is from now on, in the place of another. */
  has(b: Uint8Array, at: number, length: number): boolean {
    const last = this.#last;
    if (this.#lengths[last] === length && equalBytes(this.#bytes, last * SLOT_BYTES, b, at, length)) return true;
    if (length > SLOT_BYTES) return false;
    let hash = length;
    for (let i = at, end = at + length; i < end; i++) hash = (Math.imul(hash, 31) + b[i]!) | 0;
    const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
    this.#last = slot;
    const start = slot * SLOT_BYTES;
    if (this.#lengths[slot] === length && equalBytes(this.#bytes, start, b, at, length)) return true;
    for (let i = 0; i < length; i++) this.#bytes[start + i] = b[at + i]!;
    this.#lengths[slot] = length;
    return false;
  }
}

/** Words of the filter: 8 MiB, which is enough for some five million hashes. */
const FILTER_WORDS = 2_097_152;

/** Which hashes were added: a filter of fixed size that sometimes says yes wrongly, and never no. Its memory is taken at the first use. */
export class SeenHashes {
  #words: Int32Array | null = null;

  /** False when the hash was never added; adds it. */
  addAndTest(hi: number, lo: number): boolean {
    const words = this.#words ??= new Int32Array(FILTER_WORDS);
    const a = this.#set(words, hi);
    const b = this.#set(words, Math.imul(lo, 0x9e3779b1));
    return a && b;
  }

  #set(words: Int32Array, bit: number): boolean {
    const at = (bit >>> 5) & (FILTER_WORDS - 1);
    const mask = 1 << (bit & 31);
    const was = (words[at]! & mask) !== 0;
    words[at]! |= mask;
    return was;
  }
}
