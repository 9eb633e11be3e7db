/** Synchronous digests. */
export interface Digests {
  /**
   * `expectedBytes`: about how long it will be, where that is known. Long ones may be taken by another thread, while
   * the caller goes on.
   */
  md5(expectedBytes?: number): Digest;
  /**
   * MD5s of about so many bytes will be wanted soon: what takes them may be made ready, so that the first need not wait
   * for that.
   */
  prepare?(expectedBytes: number): void;
  /**
   * An MD5 that is taken by another thread, up to some MiB behind its caller. Null where there is none: the first call
   * starts one, which is there a moment later. Its calls may throw, and another MD5 has to be begun then.
   */
  md5Behind?(): Digest | null;
  sha256(): Digest;
  /** SHA-256 of a few bytes, which takes a fifth of what an incremental one does. */
  sha256Of(bytes: Uint8Array): Uint8Array;
  /** CRC-32 (IEEE, as zlib) of `bytes`, continuing from `seed`, as an unsigned 32-bit number. */
  crc32(bytes: Uint8Array, seed?: number): number;
}

/** An incremental digest. */
export interface Digest {
  update(bytes: Uint8Array): void;
  /** The digest of all bytes so far; the object can't be used afterwards. */
  finish(): Uint8Array;
}
