/** Derivation of keys and comparison of secrets. Everything slow is done off the request loop. */
export interface Keys {
  /** PBKDF2 with HMAC-SHA1. */
  pbkdf2Sha1(password: Uint8Array, salt: Uint8Array, iterations: number, lengthBytes: number): Promise<Uint8Array>;
  /** scrypt (RFC 7914). */
  scrypt(password: Uint8Array, salt: Uint8Array, cost: ScryptCost, lengthBytes: number): Promise<Uint8Array>;
  /** True when both are the same bytes, in a time that does not tell where they differ. */
  equal(a: Uint8Array, b: Uint8Array): boolean;
  /** HMAC-SHA256. */
  hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array;
  /** Bytes nobody can guess. */
  randomBytes(length: number): Uint8Array;
}

export interface ScryptCost {
  /** Work and memory: a power of two. */
  readonly n: number;
  /** Block size. */
  readonly r: number;
  readonly p: number;
}
