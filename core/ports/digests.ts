/** Synchronous digests. */
export interface Digests {
  md5(): Digest;
  sha256(): Digest;
  /** CRC-32 (IEEE, as zlib) of `bytes`, continuing from `seed`, as an unsigned 32-bit number. */
  crc32(bytes: Uint8Array, seed?: number): number;
}

/** An incremental digest. */
export interface Digest {
  update(bytes: Uint8Array): void;
  /** The digest of all bytes so far; the object can't be used afterwards. */
  finish(): Uint8Array;
}
