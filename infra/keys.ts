import { createHash, hash, pbkdf2, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { Keys } from '../core/ports/keys.ts';

const pbkdf2Async = promisify(pbkdf2);
const scryptAsync = promisify<Uint8Array, Uint8Array, number, { N: number; r: number; p: number; maxmem: number }, Uint8Array>(scrypt);
/** What OpenSSL takes on top of the tables of scrypt. */
const SCRYPT_SLACK_BYTES = 1_048_576;

const HMAC_BLOCK_BYTES = 64;
const SHA256_BYTES = 32;

/** The two blocks that begin the inner and the outer text of an HMAC (RFC 2104); behind the outer one is room for a digest. */
interface HmacKey {
  readonly inner: Uint8Array;
  readonly outer: Uint8Array;
}

const prepared = new WeakMap<Uint8Array, HmacKey>();

function prepare(key: Uint8Array): HmacKey {
  let pads = prepared.get(key);
  if (pads === undefined) {
    const block = new Uint8Array(HMAC_BLOCK_BYTES);
    block.set(key.length > HMAC_BLOCK_BYTES ? createHash('sha256').update(key).digest() : key);
    pads = { inner: block.map((byte) => byte ^ 0x36), outer: new Uint8Array(HMAC_BLOCK_BYTES + SHA256_BYTES) };
    for (let i = 0; i < HMAC_BLOCK_BYTES; i++) pads.outer[i] = block[i]! ^ 0x5c;
    prepared.set(key, pads);
  }
  return pads;
}

/**
 * Made of two one-shot digests: every request with credentials has one, and an HMAC object of Node.js, with the buffer
 * that it returns, costs several times as much.
 */
function hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array {
  const { inner, outer } = prepare(key);
  const text = new Uint8Array(HMAC_BLOCK_BYTES + data.length);
  text.set(inner);
  text.set(data, HMAC_BLOCK_BYTES);
  putDigest(text, outer, HMAC_BLOCK_BYTES);
  const mac = new Uint8Array(SHA256_BYTES);
  putDigest(outer, mac, 0);
  return mac;
}

function putDigest(text: Uint8Array, out: Uint8Array, at: number): void {
  const digest = hash('sha256', text, 'binary');
  for (let i = 0; i < SHA256_BYTES; i++) out[at + i] = digest.charCodeAt(i);
}

/** Keys by the native code of Node.js; derivations run in its thread pool. */
export const nodeKeys: Keys = {
  async pbkdf2Sha1(password, salt, iterations, lengthBytes) {
    return new Uint8Array(await pbkdf2Async(password, salt, iterations, lengthBytes, 'sha1'));
  },
  async scrypt(password, salt, { n, r, p }, lengthBytes) {
    const maxmem = 128 * r * (n + p) + SCRYPT_SLACK_BYTES;
    return new Uint8Array(await scryptAsync(password, salt, lengthBytes, { N: n, r, p, maxmem }));
  },
  equal: (a, b) => a.length === b.length && timingSafeEqual(a, b),
  hmacSha256,
  randomBytes: (length) => new Uint8Array(randomBytes(length)),
};
