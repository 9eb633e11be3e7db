import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPublicKey,
  createSecretKey,
  hkdfSync,
  pbkdf2,
  randomBytes,
  scrypt,
  timingSafeEqual,
  verify,
} from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { SkuaError } from '../core/base/errors.ts';
import { AES_GCM_TAG_BYTES } from '../core/ports/keys.ts';
import type { Keys } from '../core/ports/keys.ts';

const pbkdf2Async = promisify(pbkdf2);
const scryptAsync = promisify<
  Uint8Array,
  Uint8Array,
  number,
  { N: number; r: number; p: number; maxmem: number },
  Uint8Array
>(scrypt);
/** What OpenSSL takes on top of the tables of scrypt. */
const SCRYPT_SLACK_BYTES = 1_048_576;

/** Made of the bytes once: the making takes several times as long as a short HMAC. */
const held = new WeakMap<Uint8Array, KeyObject>();

function keyObject(key: Uint8Array): KeyObject {
  let object = held.get(key);
  if (object === undefined) held.set(key, (object = createSecretKey(key)));
  return object;
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
  const decipher = createDecipheriv(AES_GCM, key, nonce, { authTagLength: AES_GCM_TAG_BYTES })
    .setAAD(context)
    .setAuthTag(sealed.subarray(end));
  const data = new Uint8Array(decipher.update(sealed.subarray(0, end)));
  try {
    decipher.final();
    return data;
  } catch {
    // The tag does not fit: nothing of what was deciphered may be believed.
    return null;
  }
}

/** Characters; the file of an Ed25519 key has less than 200. */
const PEM_LENGTH_MAX = 4_096;

/**
 * The public Ed25519 key in the text of a file. Also where blanks stand for its line ends, as in variables of an
 * environment.
 */
function ed25519Key(text: string): KeyObject {
  const pem = text.trim();
  const match =
    pem.length > PEM_LENGTH_MAX
      ? null
      : /^-----BEGIN ([A-Z0-9 ]+)-----\s([A-Za-z0-9+/=\s]+)\s-----END ([A-Z0-9 ]+)-----$/.exec(pem);
  if (match === null) throw refusedKey('It is not a public key in PEM.');
  const [, begun, body, ended] = match;
  if (begun !== 'PUBLIC KEY' || ended !== begun)
    throw refusedKey(`It holds a ${begun!.toLowerCase()}, but a public key is needed.`);
  const key = Buffer.from(body!, 'base64');
  try {
    const object = createPublicKey({ key, format: 'der', type: 'spki' });
    if (object.asymmetricKeyType === 'ed25519') return object;
  } catch {
    // The cause is a text of the cryptography library that does not help the user.
  }
  throw refusedKey('It holds a key of another type: only Ed25519 is supported.');
}

function refusedKey(message: string): SkuaError {
  return new SkuaError('licence_invalid', message);
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
  hmac: (hash, key, data) => new Uint8Array(createHmac(hash, keyObject(key)).update(data).digest()),
  hmacText: (hash, key, data, encoding) => createHmac(hash, keyObject(key)).update(data).digest(encoding),
  hkdfSha256: (secret, salt, info, lengthBytes) => new Uint8Array(hkdfSync('sha256', secret, salt, info, lengthBytes)),
  sealAesGcm,
  openAesGcm,
  ed25519Verify: (publicKey, data, signature) => verify(null, data, ed25519Key(publicKey), signature),
  randomBytes: (length) => new Uint8Array(randomBytes(length)),
};
