import {
  createCipheriv, createDecipheriv, createHash, createHmac, createPrivateKey, createPublicKey, hash, hkdfSync, pbkdf2, randomBytes, scrypt, sign, timingSafeEqual, verify,
} from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { AES_GCM_TAG_BYTES } from '../core/ports/keys.ts';
import type { Keys } from '../core/ports/keys.ts';
import { privateKeyDer, publicKeyDer } from '../core/security/ed25519-keys.ts';

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

const AES_GCM = 'aes-256-gcm';

function sealAesGcm(key: Uint8Array, nonce: Uint8Array, data: Uint8Array, context: Uint8Array): Uint8Array {
  const cipher = createCipheriv(AES_GCM, key, nonce, { authTagLength: AES_GCM_TAG_BYTES }).setAAD(context);
  const sealed = new Uint8Array(data.length + AES_GCM_TAG_BYTES);
  sealed.set(cipher.update(data));
  cipher.final();
  sealed.set(cipher.getAuthTag(), data.length);
  return sealed;
}

function openAesGcm(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, context: Uint8Array): Uint8Array | null {
  const end = sealed.length - AES_GCM_TAG_BYTES;
  if (end < 0) return null;
  const decipher = createDecipheriv(AES_GCM, key, nonce, { authTagLength: AES_GCM_TAG_BYTES }).setAAD(context).setAuthTag(sealed.subarray(end));
  const data = new Uint8Array(decipher.update(sealed.subarray(0, end)));
  try {
    decipher.final();
    return data;
  } catch {
    // The tag does not fit: nothing of what was deciphered may be believed.
    return null;
  }
}

function privateKeyOf(key: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.from(privateKeyDer(key)), format: 'der', type: 'pkcs8' });
}

/** The last bytes of the public key's structure are the key itself. */
function ed25519Public(privateKey: Uint8Array): Uint8Array {
  const der = createPublicKey(privateKeyOf(privateKey)).export({ format: 'der', type: 'spki' });
  return new Uint8Array(der.subarray(der.length - privateKey.length));
}

function ed25519Verify(publicKey: Uint8Array, data: Uint8Array, signature: Uint8Array): boolean {
  try {
    return verify(null, data, createPublicKey({ key: Buffer.from(publicKeyDer(publicKey)), format: 'der', type: 'spki' }), signature);
  } catch {
    return false;
  }
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
  hmac: (hash, key, data) => new Uint8Array(createHmac(hash, key).update(data).digest()),
  hkdfSha256: (secret, salt, info, lengthBytes) => new Uint8Array(hkdfSync('sha256', secret, salt, info, lengthBytes)),
  sealAesGcm,
  openAesGcm,
  ed25519Public,
  ed25519Sign: (privateKey, data) => new Uint8Array(sign(null, data, privateKeyOf(privateKey))),
  ed25519Verify,
  randomBytes: (length) => new Uint8Array(randomBytes(length)),
};
