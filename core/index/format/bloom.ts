import { mappedBytes } from '../../base/mapped-memory.ts';
import { i32, i64, putI32, putI64 } from '../../base/bytes.ts';
import type { StorageFile } from '../../ports/storage.ts';
import { bytesToWords, murmur3, STREAM_HASH_SEED, xxhOld } from '../../base/stream-hash.ts';

/**
 * Bloom filters of index tables and of stream existence (core/index/FORMAT.md, "Bloom filters"). A filter is held as
 * the bytes of its file: lines of 64 bytes, of which line 0 is the header and every other is 60 bytes of bits and their
 * hash.
 */
export const LINE_BYTES = 64;
const BITS_BYTES = 60;
export const FILTER_BYTES_MIN = 10_000;
export const FILTER_BYTES_MAX = 4_000_000_000;
/** Bits that stand for one item. */
export const PROBES = 6;
/** Bytes that are read and checked at once: the largest filter would halt the request loop for a fifth of a second. */
const READ_BYTES = 1_048_576;
const SEED_1 = 0xc0015eed | 0;
const SEED_2 = 0x13375eed | 0;

/** Where in the file the byte that holds bit `bit` stands. */
export function bloomBytePosition(bit: number): number {
  const byte = Math.floor(bit / 8);
  return byte + Math.floor(byte / BITS_BYTES) * 4 + LINE_BYTES;
}

/** Length in bytes of the file of a filter with this many bytes of bits. */
export function bloomFileBytes(logicalBytes: number): number {
  return Math.floor(bloomBytePosition(logicalBytes * 8) / LINE_BYTES) * LINE_BYTES + LINE_BYTES;
}

/** Bytes of bits of the filter of a table with this many entries. */
export function tableFilterBytes(entries: number): number {
  return Math.min(Math.max(Math.floor(entries / 4), FILTER_BYTES_MIN), FILTER_BYTES_MAX);
}

const item = new Int32Array(2);

/**
 * Gives the bits of an item. Sums of 64 bits are kept in two 32-bit halves. The remainder is taken in three steps of
 * doubles that stay below 2^53: the filter has less than 2^35 bits, so remainder * 2^16 + 16 more bits is exact, and
 * so are the quotient times the divisor and the one correction that its rounding may need.
 */
export class BloomProbe {
  readonly #bits: number;
  readonly #inverse: number;
  /** The bits that `of` found. */
  readonly found = new Float64Array(PROBES);

  constructor(bits: number) {
    this.#bits = bits;
    this.#inverse = 1 / bits;
  }

  #remainder(x: number): number {
    const r = x - Math.floor(x * this.#inverse) * this.#bits;
    return r < 0 ? r + this.#bits : r >= this.#bits ? r - this.#bits : r;
  }

  of(hi: number, lo: number): Float64Array {
    item[0] = lo;
    item[1] = hi;
    let high = xxhOld(item, 8, SEED_1);
    let low = murmur3(item, 8, SEED_1);
    const stepHigh = xxhOld(item, 8, SEED_2);
    const stepLow = murmur3(item, 8, SEED_2);
    for (let i = 0; i < PROBES; i++) {
      const sum = low + stepLow;
      low = sum >>> 0;
      // The top bit is cleared before each next step too.
      high = (high + stepHigh + (sum > 0xffff_ffff ? 1 : 0)) & 0x7fff_ffff;
      let r = this.#remainder(high);
      r = this.#remainder(r * 65_536 + (low >>> 16));
      this.found[i] = this.#remainder(r * 65_536 + (low & 0xffff));
    }
    return this.found;
  }
}

const words = new Int32Array(BITS_BYTES / 4);

/** Hash of the 60 bytes of bits at `at`. */
export function lineHash(bytes: Uint8Array, at: number): number {
  bytesToWords(bytes, at, BITS_BYTES, words);
  return xxhOld(words, BITS_BYTES, STREAM_HASH_SEED) | 0;
}

function isFilledWith(bytes: Uint8Array, at: number, value: number): boolean {
  for (let i = at; i < at + LINE_BYTES; i++) if (bytes[i] !== value) return false;
  return true;
}

/**
 * Writes the hash of every line in [from, to), which are multiples of 64. Untouched lines stay zero, poisoned ones
 * poisoned.
 */
export function sealLines(bytes: Uint8Array, from: number, to: number): void {
  for (let at = from; at < to; at += LINE_BYTES) {
    if (bytes[at] === 0xff ? isFilledWith(bytes, at, 0xff) : isFilledWith(bytes, at, 0)) continue;
    putI32(bytes, at + BITS_BYTES, lineHash(bytes, at));
  }
}

export function writeBloomHeader(bytes: Uint8Array, logicalBytes: number, rebuilds: number): void {
  bytes[0] = 1;
  putI32(bytes, 4, rebuilds);
  putI64(bytes, 8, logicalBytes * 8);
}

/** What a filter's header says, or null when it is none or does not fit the length of its file. */
export function readBloomHeader(
  bytes: Uint8Array,
  fileBytes: number,
): { logicalBytes: number; rebuilds: number } | null {
  if (bytes.length < LINE_BYTES || bytes[0] !== 1) return null;
  const logicalBytes = i64(bytes, 8) / 8;
  if (!Number.isInteger(logicalBytes) || logicalBytes < FILTER_BYTES_MIN || logicalBytes > FILTER_BYTES_MAX)
    return null;
  return bloomFileBytes(logicalBytes) === fileBytes ? { logicalBytes, rebuilds: i32(bytes, 4) } : null;
}

/** True when the line's hash fits, or nothing was ever written to it. */
export function isLineSound(bytes: Uint8Array, at: number): boolean {
  if (bytes[at] === 0 && isFilledWith(bytes, at, 0)) return true;
  if (bytes[at] === 0xff && isFilledWith(bytes, at, 0xff)) return false;
  return lineHash(bytes, at) === i32(bytes, at + BITS_BYTES);
}

/** Undoes a single bit that was set without its hash, as a write cut short by a crash leaves it. */
function repairLine(bytes: Uint8Array, at: number): boolean {
  for (let bit = 0; bit < BITS_BYTES * 8; bit++) {
    const byte = at + (bit >> 3);
    const mask = 0x80 >> (bit & 7);
    if ((bytes[byte]! & mask) === 0) continue;
    bytes[byte]! ^= mask;
    if (lineHash(bytes, at) === i32(bytes, at + BITS_BYTES)) return true;
    bytes[byte]! |= mask;
  }
  return false;
}

/** True for nearly every line that is sound, by whole words: a large filter has half a million lines. */
function isUsualLine(all: Int32Array, at: number): boolean {
  let union = 0;
  for (let i = 0; i < words.length; i++) union |= words[i] = all[at + i]!;
  const hash = all[at + words.length]!;
  if (union === 0) return hash === 0;
  return hash !== -1 && (xxhOld(words, BITS_BYTES, STREAM_HASH_SEED) | 0) === hash;
}

/**
 * Checks the lines in [from, to) of a filter's bytes, repairs what can be repaired, and fills the rest with ones, so
 * that they answer "maybe". Returns the number of corrupt lines (repaired ones are not).
 */
export function checkLines(bytes: Uint8Array, from: number, to: number): number {
  const all = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  let corrupt = 0;
  for (let at = from; at < to; at += LINE_BYTES) {
    if (isUsualLine(all, at / 4) || isLineSound(bytes, at) || (!isFilledWith(bytes, at, 0xff) && repairLine(bytes, at)))
      continue;
    bytes.fill(0xff, at, at + LINE_BYTES);
    corrupt++;
  }
  return corrupt;
}

/**
 * Fills `bytes` from a filter's file, whose header is sound, piece by piece with a pause between, and checks its lines
 * as `checkLines` does.
 */
export async function readLines(file: StorageFile, bytes: Uint8Array, pause: () => Promise<void>): Promise<number> {
  let corrupt = 0;
  for (let at = 0; at < bytes.length; at += READ_BYTES) {
    const end = Math.min(at + READ_BYTES, bytes.length);
    const piece = await file.read(at, end - at, bytes.subarray(at, end));
    if (piece.buffer !== bytes.buffer) bytes.set(piece, at);
    corrupt += checkLines(bytes, Math.max(at, LINE_BYTES), end);
    await pause();
  }
  return corrupt;
}

/**
 * True when so many lines are corrupt that the filter must not be used: more than 5 % of all, the header's included.
 */
export function isTooCorrupt(corruptLines: number, fileBytes: number): boolean {
  return corruptLines > (fileBytes / LINE_BYTES) * 0.05;
}

/** A filter whose bytes are all in memory. */
export class BloomFilter {
  readonly bytes: Uint8Array;
  readonly #probe: BloomProbe;
  /** Positions of the bytes that the last `add` went to. */
  readonly touched = new Float64Array(PROBES);

  /** `bytes` is a whole file with a sound header. */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#probe = new BloomProbe(i64(bytes, 8));
  }

  static empty(logicalBytes: number, rebuilds = 0): BloomFilter {
    const bytes = mappedBytes(bloomFileBytes(logicalBytes));
    writeBloomHeader(bytes, logicalBytes, rebuilds);
    return new BloomFilter(bytes);
  }

  /** Sets the item's bits; the hashes of the lines are left to `sealLines`. */
  add(hi: number, lo: number): void {
    const bits = this.#probe.of(hi, lo);
    for (let i = 0; i < PROBES; i++) {
      const at = bloomBytePosition(bits[i]!);
      this.bytes[at]! |= 0x80 >> (bits[i]! % 8);
      this.touched[i] = at;
    }
  }

  mayContain(hi: number, lo: number): boolean {
    const bits = this.#probe.of(hi, lo);
    for (let i = 0; i < PROBES; i++) {
      if ((this.bytes[bloomBytePosition(bits[i]!)]! & (0x80 >> (bits[i]! % 8))) === 0) return false;
    }
    return true;
  }
}
