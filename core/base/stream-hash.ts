import { KNOWN_BYTES_MAX, KnownTexts } from './text.ts';

/**
 * The hashes of the index (core/index/FORMAT.md, "Hash of a stream's name"). Both consume little-endian 32-bit words,
 * so a name or a hash is put into words once and no byte is touched again.
 */

/** Seed of stream hashes and of the line hashes of bloom filters. */
export const STREAM_HASH_SEED = 0xc58f1a7b | 0;

/** A 64-bit hash in two unsigned halves. */
export class Hash64 {
  /** XXH_old of the name. */
  hi = 0;
  /** Murmur3 of the name. */
  lo = 0;
}

export interface StreamHasher {
  hash(name: string, out: Hash64): void;
  /** Hashes the name whose UTF-8 bytes stand at `at`, as `hash` would its text. */
  hashUtf8(bytes: Uint8Array, at: number, length: number, out: Hash64): void;
}

const P1 = 2_654_435_761 | 0;
const P2 = 2_246_822_519 | 0;
const P3 = 3_266_489_917 | 0;
const P4 = 668_265_263;
const P5 = 0x165667b1;

function rotl(x: number, by: number): number {
  return (x << by) | (x >>> (32 - by));
}

/** Byte `i` of the words. */
function byteOf(w: Int32Array, i: number): number {
  return (w[i >> 2]! >>> ((i & 3) << 3)) & 255;
}

/** The early xxHash of `n` bytes given as little-endian words. Bytes of the last word beyond `n` are ignored. */
export function xxhOld(w: Int32Array, n: number, seed: number): number {
  return n < 16 ? xxhShort(w, n, seed) : xxhLong(w, n, seed);
}

function xxhShort(w: Int32Array, n: number, seed: number): number {
  let k = (seed + P1) | 0;
  let h = P5;
  let i = 0;
  // Strictly less: the last one to four bytes always go one by one.
  for (; i < n - 4; i += 4) {
    h = (h + w[i >> 2]! + k) | 0;
    k = (k + 1) | 0;
    h = (h + Math.imul(rotl(h, 17), P4)) | 0;
    h = Math.imul(h, P1);
  }
  for (; i < n; i++) {
    h = (h + byteOf(w, i) + k) | 0;
    k = (k + 1) | 0;
    h = Math.imul(h, P1);
  }
  h = (h + n) | 0;
  h = Math.imul(h ^ (h >>> 15), P2);
  h = Math.imul(h ^ (h >>> 13), P3);
  return (h ^ (h >>> 16)) >>> 0;
}

function mixIn(a: number, word: number, by: number): number {
  return (Math.imul((a + rotl(a, by)) | 0, P1) + word) | 0;
}

function mixLast(a: number, word: number, by: number, then: number): number {
  const b = Math.imul(mixIn(a, word, by), P2);
  return Math.imul((b + rotl(b, then)) | 0, P3);
}

function xxhLong(w: Int32Array, n: number, seed: number): number {
  let a0 = (seed + P1) | 0;
  let a1 = (Math.imul(a0, P2) + n) | 0;
  let a2 = Math.imul(a1, P3);
  let a3 = Math.imul(a2, P4);
  for (let i = 0; i < n - 16; i += 16) {
    const at = i >> 2;
    a0 = mixIn(a0, w[at]!, 13);
    a1 = mixIn(a1, w[at + 1]!, 11);
    a2 = mixIn(a2, w[at + 2]!, 17);
    a3 = mixIn(a3, w[at + 3]!, 19);
  }
  // Always the last 16 bytes, which may overlap what has been consumed and need not be aligned.
  const at = (n - 16) >> 2;
  const shift = (n & 3) << 3;
  if (shift === 0) {
    a0 = mixLast(a0, w[at]!, 17, 11);
    a1 = mixLast(a1, w[at + 1]!, 19, 17);
    a2 = mixLast(a2, w[at + 2]!, 13, 19);
    a3 = mixLast(a3, w[at + 3]!, 11, 13);
  } else {
    const back = 32 - shift;
    a0 = mixLast(a0, (w[at]! >>> shift) | (w[at + 1]! << back), 17, 11);
    a1 = mixLast(a1, (w[at + 1]! >>> shift) | (w[at + 2]! << back), 19, 17);
    a2 = mixLast(a2, (w[at + 2]! >>> shift) | (w[at + 3]! << back), 13, 19);
    a3 = mixLast(a3, (w[at + 3]! >>> shift) | (w[at + 4]! << back), 11, 13);
  }
  let h = (a0 + rotl(a1, 3) + rotl(a2, 6) + rotl(a3, 9)) | 0;
  h ^= h >>> 11;
  h = (h + Math.imul((P4 + n) | 0, P1)) | 0;
  h = Math.imul(h ^ (h >>> 15), P2);
  return (h ^ (h >>> 13)) >>> 0;
}

const C1 = 0xcc9e2d51 | 0;
const C2 = 0x1b873593;

/** MurmurHash3_x86_32 of `n` bytes given as little-endian words. Bytes of the last word beyond `n` are ignored. */
export function murmur3(w: Int32Array, n: number, seed: number): number {
  let h = seed | 0;
  const words = n >> 2;
  for (let i = 0; i < words; i++) {
    h ^= Math.imul(rotl(Math.imul(w[i]!, C1), 15), C2);
    h = (Math.imul(rotl(h, 13), 5) + 0xe6546b64) | 0;
  }
  const rest = n & 3;
  if (rest !== 0) {
    const tail = w[words]! & ((1 << (rest << 3)) - 1);
    h ^= Math.imul(rotl(Math.imul(tail, C1), 15), C2);
  }
  h ^= n;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Puts bytes into little-endian words, the last one filled up with zeros. */
export function bytesToWords(b: Uint8Array, at: number, length: number, words: Int32Array): void {
  const whole = length >> 2;
  for (let i = 0; i < whole; i++, at += 4)
    words[i] = b[at]! | (b[at + 1]! << 8) | (b[at + 2]! << 16) | (b[at + 3]! << 24);
  if ((length & 3) === 0) return;
  let last = 0;
  for (let i = 0; i < (length & 3); i++) last |= b[at + i]! << (i << 3);
  words[whole] = last;
}

/** Names up to this many code units are hashed without allocating. */
const SCRATCH_UNITS = 1_024;
/** One more than the units need, so that the unaligned end may read a word beyond. */
const scratch = new Int32Array((SCRATCH_UNITS >> 1) + 2);
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

function wordsFor(units: number): Int32Array {
  return units <= SCRATCH_UNITS ? scratch : new Int32Array((units >> 1) + 2);
}

function hashUnits(words: Int32Array, units: number, out: Hash64): void {
  out.hi = xxhOld(words, units * 2, STREAM_HASH_SEED);
  out.lo = murmur3(words, units * 2, STREAM_HASH_SEED);
}

function hashName(name: string, out: Hash64): void {
  const units = name.length;
  const words = wordsFor(units);
  const even = units & ~1;
  for (let i = 0; i < even; i += 2) words[i >> 1] = name.charCodeAt(i) | (name.charCodeAt(i + 1) << 16);
  if (even < units) words[even >> 1] = name.charCodeAt(even);
  hashUnits(words, units, out);
}

/** Hashes of the names met last: a reader of the log meets few of them again and again. */
const known = new KnownTexts();
const knownHi = new Uint32Array(known.slots);
const knownLo = new Uint32Array(known.slots);

function hashUtf8(b: Uint8Array, at: number, length: number, out: Hash64): void {
  if (length === 0 || length > KNOWN_BYTES_MAX) return hashBytes(b, at, length, out);
  if (!known.has(b, at, length)) {
    hashBytes(b, at, length, out);
    knownHi[known.slot] = out.hi;
    knownLo[known.slot] = out.lo;
    return;
  }
  out.hi = knownHi[known.slot]!;
  out.lo = knownLo[known.slot]!;
}

function hashBytes(b: Uint8Array, at: number, length: number, out: Hash64): void {
  const words = wordsFor(length);
  const even = length & ~1;
  let seen = 0;
  for (let i = 0; i < even; i += 2) {
    const first = b[at + i]!;
    const second = b[at + i + 1]!;
    seen |= first | second;
    words[i >> 1] = first | (second << 16);
  }
  if (even < length) {
    seen |= b[at + even]!;
    words[even >> 1] = b[at + even]!;
  }
  if (seen < 128) hashUnits(words, length, out);
  else hashName(decoder.decode(b.subarray(at, at + length)), out);
}

/** Hashes stream names as the reference does: over their UTF-16LE code units. */
export const streamHasher: StreamHasher = { hash: hashName, hashUtf8 };
