/**
 * Little-endian integers in byte arrays. 64-bit values are safe integers in our code (design decision 4): reading one
 * beyond 2^53 loses low bits, so callers that may meet such values look at the halves first.
 */
export function u16(b: Uint8Array, at: number): number {
  return b[at]! | (b[at + 1]! << 8);
}
export function i32(b: Uint8Array, at: number): number {
  return b[at]! | (b[at + 1]! << 8) | (b[at + 2]! << 16) | (b[at + 3]! << 24);
}
export function u32(b: Uint8Array, at: number): number {
  return (b[at]! | (b[at + 1]! << 8) | (b[at + 2]! << 16) | (b[at + 3]! << 24)) >>> 0;
}
export function i64(b: Uint8Array, at: number): number {
  return i32(b, at + 4) * 4_294_967_296 + u32(b, at);
}
export function putI32(b: Uint8Array, at: number, value: number): void {
  b[at] = value;
  b[at + 1] = value >> 8;
  b[at + 2] = value >> 16;
  b[at + 3] = value >> 24;
}
export function putI64(b: Uint8Array, at: number, value: number): void {
  const high = Math.floor(value / 4_294_967_296);
  putI32(b, at, (value - high * 4_294_967_296) | 0);
  putI32(b, at + 4, high | 0);
}
/** True when `count` bytes of `a` from `aAt` equal those of `b` from `bAt`. */
export function equalBytes(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number, count: number): boolean {
  for (let i = 0; i < count; i++) if (a[aAt + i] !== b[bAt + i]) return false;
  return true;
}

let viewed: Uint8Array = new Uint8Array(0);
let viewedBuffer: ArrayBufferLike = viewed.buffer;
let worded = viewed;
let words = new DataView(worded.buffer);

/**
 * A view of the same bytes for numbers of more than one of them. That of the last bytes is kept, as many records of one
 * block are looked at one behind the other.
 */
export function wordsOf(b: Uint8Array): DataView {
  if (b !== worded) {
    words = new DataView(b.buffer, b.byteOffset, b.byteLength);
    worded = b;
  }
  return words;
}

/**
 * As `subarray`, in two thirds of its time where many views of the same bytes are made one behind the other: it need
 * not ask what kind of array to make, nor where the memory is.
 */
export function viewAt(b: Uint8Array, at: number, length: number): Uint8Array {
  if (b !== viewed) {
    viewed = b;
    viewedBuffer = b.buffer;
  }
  return new Uint8Array(viewedBuffer, b.byteOffset + at, length);
}

/**
 * Runs [from, to) of blocks that hold anything but zeros, so that a new file need not be written where it is zeros
 * anyway.
 */
export function* nonZeroRuns(
  bytes: Uint8Array,
  blockBytes: number,
): Generator<readonly [number, number], void, undefined> {
  let from = 0;
  for (let at = 0; at < bytes.length; at += blockBytes) {
    const end = Math.min(at + blockBytes, bytes.length);
    if (!isZeros(bytes, at, end)) continue;
    if (from < at) yield [from, at];
    from = end;
  }
  if (from < bytes.length) yield [from, bytes.length];
}

function isZeros(bytes: Uint8Array, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (bytes[i] !== 0) return false;
  return true;
}

/** All bytes of short content. */
export async function gather(content: AsyncIterable<Uint8Array>, length: number): Promise<Uint8Array> {
  const out = new Uint8Array(length);
  let at = 0;
  for await (const piece of content) {
    out.set(piece.subarray(0, length - at), at);
    at += piece.length;
  }
  return out;
}
