/** zstd, on the spot: give it pieces of a few MiB at most. */
export interface Compression {
  compress(bytes: Uint8Array): Uint8Array;
  /** Throws `io_error` for what is no zstd frame, or one of more than `sizeBytesMax`. */
  decompress(bytes: Uint8Array, sizeBytesMax: number): Uint8Array;
}
