import { SkuaError } from '../../base/errors.ts';
import { AES_GCM_NONCE_BYTES, AES_GCM_TAG_BYTES, AES_KEY_BYTES } from '../../ports/keys.ts';
import type { Keys } from '../../ports/keys.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { decodeBase64, encodeBase64 } from '../../base/base64.ts';

/**
 * Secrets as they are stored: sealed with AES-256-GCM under keys derived from the data-protection token. The text of a
 * sealed secret is `skua-sealed:1:<key id>:<Base64 of salt, nonce, ciphertext and tag>`.
 *
 * Every value has a key of its own: HKDF-SHA256 of the token with a salt of 16 random bytes. The nonce is random too.
 * The key id names the token without telling it. What the secret belongs to is authenticated with it, so that a sealed
 * secret that was moved to another place does not open there.
 */

const PREFIX = 'skua-sealed:1:';
const KEY_ID_BYTES = 8;
const SALT_BYTES = 16;
const KEY_ID_INFO = encodeText('skua data protection: key id');
const KEY_INFO = encodeText('skua data protection: secret');
const NO_BYTES = new Uint8Array(0);

interface Token {
  readonly bytes: Uint8Array;
  readonly keyId: string;
}

export class SealedSecrets {
  readonly #keys: Keys;
  readonly #tokens: readonly Token[];

  /**
   * Tokens with the newest first; empty ones are none. Sealing takes the first, opening the one that a secret was
   * sealed with.
   */
  constructor(keys: Keys, tokens: readonly string[]) {
    this.#keys = keys;
    this.#tokens = tokens
      .filter((token) => token !== '')
      .map((token) => {
        const bytes = encodeText(token);
        return { bytes, keyId: hex(keys.hkdfSha256(bytes, NO_BYTES, KEY_ID_INFO, KEY_ID_BYTES)) };
      });
  }

  /** `place` names what the secret belongs to, part by part. Errors: `secret_refused` without a token. */
  seal(secret: string, place: readonly string[]): string {
    const token = this.#tokens[0];
    if (token === undefined)
      throw new SkuaError(
        'secret_refused',
        'Secrets can be stored only if a data-protection token is configured. Set Connectors:DataProtection:Token (in the environment SERVER_CONNECTORS__DATA_PROTECTION__TOKEN) or Connectors:DataProtection:TokenFile and restart the node.',
      );
    const salt = this.#keys.randomBytes(SALT_BYTES);
    const nonce = this.#keys.randomBytes(AES_GCM_NONCE_BYTES);
    const sealed = this.#keys.sealAesGcm(this.#keyOf(token, salt), nonce, encodeText(secret), contextOf(place));
    const bytes = new Uint8Array(SALT_BYTES + AES_GCM_NONCE_BYTES + sealed.length);
    bytes.set(salt);
    bytes.set(nonce, SALT_BYTES);
    bytes.set(sealed, SALT_BYTES + AES_GCM_NONCE_BYTES);
    return `${PREFIX}${token.keyId}:${encodeBase64(bytes)}`;
  }

  /** Errors: `secret_refused` when no configured token opens it, or it is no sealed secret of this place. */
  open(sealed: string, place: readonly string[]): string {
    const { keyId, bytes } = partsOf(sealed);
    const token = this.#tokens.find((each) => each.keyId === keyId);
    if (token === undefined) {
      throw new SkuaError(
        'secret_refused',
        this.#tokens.length === 0
          ? "A stored secret can't be decrypted: no data-protection token is configured. Set Connectors:DataProtection:Token (in the environment SERVER_CONNECTORS__DATA_PROTECTION__TOKEN) or Connectors:DataProtection:TokenFile."
          : 'A stored secret was encrypted with another data-protection token. Add that token to Connectors:DataProtection:PreviousTokens, or store the secret again.',
        { keyId },
      );
    }
    const nonceEnd = SALT_BYTES + AES_GCM_NONCE_BYTES;
    const key = this.#keyOf(token, bytes.subarray(0, SALT_BYTES));
    const opened = this.#keys.openAesGcm(
      key,
      bytes.subarray(SALT_BYTES, nonceEnd),
      bytes.subarray(nonceEnd),
      contextOf(place),
    );
    if (opened === null) throw damaged();
    return decodeText(opened);
  }

  #keyOf(token: Token, salt: Uint8Array): Uint8Array {
    return this.#keys.hkdfSha256(token.bytes, salt, KEY_INFO, AES_KEY_BYTES);
  }
}

function partsOf(sealed: string): { readonly keyId: string; readonly bytes: Uint8Array } {
  const keyEnd = PREFIX.length + 2 * KEY_ID_BYTES;
  const bytes = sealed.startsWith(PREFIX) && sealed[keyEnd] === ':' ? decodeBase64(sealed.slice(keyEnd + 1)) : null;
  if (bytes === null || bytes.length < SALT_BYTES + AES_GCM_NONCE_BYTES + AES_GCM_TAG_BYTES) throw damaged();
  return { keyId: sealed.slice(PREFIX.length, keyEnd), bytes };
}

function damaged(): SkuaError {
  return new SkuaError('secret_refused', 'A stored secret is damaged, or belongs elsewhere. Store the secret again.');
}

/** JSON keeps the parts apart whatever they hold. */
function contextOf(place: readonly string[]): Uint8Array {
  return encodeText(JSON.stringify(place));
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
