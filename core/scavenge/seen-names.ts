import { equalBytes } from '../base/bytes.ts';

/** Slots at first and at most; powers of two. 65 bytes each. */
const SLOTS_MIN = 4_096;
const SLOTS_MAX = 131_072;
/** Longer names are not remembered. */
const SLOT_BYTES = 64;

/**
 * Names of streams that came by, in UTF-8: most records are of a stream that was seen before. A set that grows with the
 * number of streams to a fixed size, and is then emptied when it is half full.
 */
export class SeenNames {
  #slots = 0;
  #bytes = new Uint8Array(0);
  #lengths = new Uint8Array(0);
  #count = 0;
  #last = 0;

  constructor() {
    this.#reset(SLOTS_MIN);
  }

  #reset(slots: number): void {
    if (slots === this.#slots) this.#lengths.fill(0);
    else {
      this.#bytes = new Uint8Array(slots * SLOT_BYTES);
      this.#lengths = new Uint8Array(slots);
      this.#slots = slots;
    }
    this.#count = 0;
  }

  /** True when the name at `at`, which is not empty, is remembered; else it is from now on. */
  has(b: Uint8Array, at: number, length: number): boolean {
    if (this.#isAt(this.#last, b, at, length)) return true;
    if (length > SLOT_BYTES) return false;
    let hash = length;
    for (let i = at, end = at + length; i < end; i++) hash = (Math.imul(hash, 31) + b[i]!) | 0;
    hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
    hash ^= hash >>> 13;
    // What was remembered is not taken along: it comes by again.
    if (this.#count * 2 >= this.#slots) this.#reset(Math.min(this.#slots * 8, SLOTS_MAX));
    let slot = hash & (this.#slots - 1);
    while (this.#lengths[slot] !== 0) {
      if (this.#isAt(slot, b, at, length)) {
        this.#last = slot;
        return true;
      }
      slot = (slot + 1) & (this.#slots - 1);
    }
    const start = slot * SLOT_BYTES;
    for (let i = 0; i < length; i++) this.#bytes[start + i] = b[at + i]!;
    this.#lengths[slot] = length;
    this.#last = slot;
    this.#count++;
    return false;
  }

  #isAt(slot: number, b: Uint8Array, at: number, length: number): boolean {
    return this.#lengths[slot] === length && equalBytes(this.#bytes, slot * SLOT_BYTES, b, at, length);
  }
}

/** Words of the filter: 8 MiB, which is enough for some five million hashes. */
const FILTER_WORDS = 2_097_152;

/**
 * Which hashes were added: a filter of fixed size that sometimes says yes wrongly, and never no. Its memory is taken at
 * the first use.
 */
export class SeenHashes {
  #words: Int32Array | null = null;

  /** False when the hash was never added; adds it. */
  addAndTest(hi: number, lo: number): boolean {
    const words = (this.#words ??= new Int32Array(FILTER_WORDS));
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
