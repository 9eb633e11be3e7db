/** Smaller memory is left to the allocator, in bytes: a process can have some ten thousand mappings. */
const MAPPED_BYTES_MIN = 131_072;

/**
 * Memory of its own, of zeros, for what is large. Memory that could grow is mapped by itself and goes back to the
 * system when it is collected. Other memory is the allocator's: what is given back to it stays in the process, in
 * pieces between those that are in use, and the larger such pieces were, the more of them it keeps. Views of a given
 * length are as fast over either. The garbage collector does not count it, so it is not for what comes by the hundred.
 */
export function mappedMemory(bytes: number): SharedArrayBuffer {
  return bytes < MAPPED_BYTES_MIN
    ? new SharedArrayBuffer(bytes)
    : new SharedArrayBuffer(bytes, { maxByteLength: bytes });
}

/** The same as bytes. */
export function mappedBytes(length: number): Uint8Array {
  return new Uint8Array(mappedMemory(length), 0, length);
}
