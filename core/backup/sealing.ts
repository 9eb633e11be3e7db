import { SkuaError } from '../errors.ts';
import { AES_GCM_NONCE_BYTES, AES_GCM_TAG_BYTES } from '../ports/keys.ts';
import type { Keys } from '../ports/keys.ts';
import { encodeText } from '../text.ts';

/** Bytes that sealing adds: the nonce in front and the tag behind. */
export const SEAL_BYTES = AES_GCM_NONCE_BYTES + AES_GCM_TAG_BYTES;
export const SALT_BYTES = 32;
const KEY_BYTES = 32;

/** The keys of an encrypted repository, each derived for one purpose from the key file and the repository's salt. */
export class Sealer {
  readonly #keys: Keys;
  readonly #idKey: Uint8Array;
  readonly #contentKey: Uint8Array;
  /** Tells a right key from a wrong one and nothing else about it. */
  readonly check: Uint8Array;

  constructor(keys: Keys, key: Uint8Array, salt: Uint8Array) {
    if (key.length !== KEY_BYTES) throw new SkuaError('repository_key', `The key of a repository has ${KEY_BYTES} bytes, this one has ${key.length}. Give the key file that was made with the repository.`, { limit: KEY_BYTES });
    const derive = (purpose: string) => keys.hkdfSha256(key, salt, encodeText(`skua repository ${purpose}`), KEY_BYTES);
    this.#keys = keys;
    this.#idKey = derive('blob id');
    this.#contentKey = derive('content');
    this.check = derive('check');
  }

  /** Name of content: without the key nobody can tell whether some known content is in the repository. */
  idOf(sha256: Uint8Array): Uint8Array {
    return this.#keys.hmacSha256(this.#idKey, sha256);
  }

  /** Nonce, ciphertext and tag. Nonces are random: 96 bits are enough for far more frames than a repository can hold. */
  seal(plain: Uint8Array, context: Uint8Array): Uint8Array {
    const nonce = this.#keys.randomBytes(AES_GCM_NONCE_BYTES);
    const sealed = this.#keys.sealAesGcm(this.#contentKey, nonce, plain, context);
    const out = new Uint8Array(AES_GCM_NONCE_BYTES + sealed.length);
    out.set(nonce);
    out.set(sealed, AES_GCM_NONCE_BYTES);
    return out;
  }

  /** Null when it was not sealed here, in this context, or any byte has changed. */
  open(sealed: Uint8Array, context: Uint8Array): Uint8Array | null {
    if (sealed.length < SEAL_BYTES) return null;
    return this.#keys.openAesGcm(this.#contentKey, sealed.subarray(0, AES_GCM_NONCE_BYTES), sealed.subarray(AES_GCM_NONCE_BYTES), context);
  }

  isSame(check: Uint8Array): boolean {
    return this.#keys.equal(check, this.check);
  }
}
