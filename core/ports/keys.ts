/** Derivation of keys and comparison of secrets. Everything slow is done off the request loop. */
export interface Keys {
  /** PBKDF2 with HMAC-SHA1. */
  pbkdf2Sha1(password: Uint8Array, salt: Uint8Array, iterations: number, lengthBytes: number): Promise<Uint8Array>;
  /** scrypt (RFC 7914). */
  scrypt(password: Uint8Array, salt: Uint8Array, cost: ScryptCost, lengthBytes: number): Promise<Uint8Array>;
  /** True when both are the same bytes, in a time that does not depend on where they differ. */
  equal(a: Uint8Array, b: Uint8Array): boolean;
  /** HMAC (RFC 2104). A key that was given once must not be changed: what is made of it may be kept. */
  hmac(hash: HmacHash, key: Uint8Array, data: Uint8Array): Uint8Array;
  /** The same as text, which costs less than bytes of which text is made: lower-case hex, or Base64 with padding. */
  hmacText(hash: HmacHash, key: Uint8Array, data: Uint8Array, encoding: 'hex' | 'base64'): string;
  /** HKDF with SHA-256 (RFC 5869). */
  hkdfSha256(secret: Uint8Array, salt: Uint8Array, info: Uint8Array, lengthBytes: number): Uint8Array;
  /**
   * AES-256-GCM: the ciphertext with its tag of 16 bytes behind it. The nonce has AES_GCM_NONCE_BYTES and must never be
   * used twice with one key; `context` is authenticated with the data.
   */
  sealAesGcm(key: Uint8Array, nonce: Uint8Array, data: Uint8Array, context: Uint8Array): Uint8Array;
  /** What was sealed; null when key, nonce, context or any byte is another one. */
  openAesGcm(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, context: Uint8Array): Uint8Array | null;
  /**
   * Whether the holder of the private key has signed this (Ed25519, RFC 8032); false too for what is no signature. The
   * public key is the text of its file: PEM around the structure of RFC 8410. Errors: `licence_invalid` for what is
   * none.
   */
  ed25519Verify(publicKey: string, data: Uint8Array, signature: Uint8Array): boolean;
  /** Bytes that can't be guessed. */
  randomBytes(length: number): Uint8Array;
}

export interface ScryptCost {
  /** Work and memory: a power of two. */
  readonly n: number;
  /** Block size. */
  readonly r: number;
  readonly p: number;
}

export type HmacHash = 'sha256' | 'sha1' | 'sha512';

export const AES_KEY_BYTES = 32;
export const AES_GCM_NONCE_BYTES = 12;
export const AES_GCM_TAG_BYTES = 16;
