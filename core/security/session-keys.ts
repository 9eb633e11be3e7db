import { encodeBase64Url } from '../base/base64.ts';
import type { Keys, ScryptCost } from '../ports/keys.ts';
import { encodeText } from '../base/text.ts';

/** How long a session lasts. */
export const SESSION_MS = 12 * 3_600_000;
/** Sessions that begin on one day, by the time of the machine, have one key. */
export const DAY_MS = 24 * 3_600_000;

const SECRET_SALT = encodeText('skua sessions');
/**
 * As much work as a password is. Every user who logs in has what a key has signed, and must not get at the secret by
 * guessing: the secret of a cluster may be short.
 */
const SECRET_COST: ScryptCost = { n: 32_768, r: 8, p: 1 };
const ID_INFO = encodeText('id');
const ID_BYTES = 9;
const KEY_BYTES = 32;
const NO_BYTES = new Uint8Array(0);

/**
 * Secrets of which the keys of sessions are made. `isBeginning`: a session begins, which the first one is for, made if
 * need be; else there may be none yet.
 */
export type SessionSecrets = (isBeginning: boolean) => Promise<readonly string[]>;

export interface SessionKey {
  /** Of the secret. */
  readonly id: string;
  readonly bytes: Uint8Array;
}

/**
 * The keys that sign sessions: derived by secret and day, so that all processes with the secret have the keys, and no
 * key is kept.
 */
export class SessionKeys {
  readonly #keys: Keys;
  readonly #secrets: SessionSecrets;
  /** What keys are derived from, by secret. */
  readonly #roots = new Map<string, Promise<SessionKey>>();

  constructor(keys: Keys, secrets: SessionSecrets) {
    this.#keys = keys;
    this.#secrets = secrets;
  }

  /** Of sessions that begin now. */
  async signing(beganMs: number): Promise<SessionKey> {
    const [newest] = await this.#secrets(true);
    return this.#derived(await this.#rootOf(newest!), beganMs);
  }

  /** The key of this id of sessions that began then; null where no secret has it. */
  async keyOf(id: string, beganMs: number): Promise<SessionKey | null> {
    for (const secret of await this.#secrets(false)) {
      const root = await this.#rootOf(secret);
      if (root.id === id) return this.#derived(root, beganMs);
    }
    return null;
  }

  #rootOf(secret: string): Promise<SessionKey> {
    let root = this.#roots.get(secret);
    if (root === undefined) {
      root = this.#keys
        .scrypt(encodeText(secret), SECRET_SALT, SECRET_COST, KEY_BYTES)
        .then((bytes) => ({ id: encodeBase64Url(this.#keys.hkdfSha256(bytes, NO_BYTES, ID_INFO, ID_BYTES)), bytes }));
      this.#roots.set(secret, root);
      root.catch(() => this.#roots.delete(secret));
    }
    return root;
  }

  #derived({ id, bytes }: SessionKey, beganMs: number): SessionKey {
    return {
      id,
      bytes: this.#keys.hkdfSha256(bytes, NO_BYTES, encodeText(`day ${Math.floor(beganMs / DAY_MS)}`), KEY_BYTES),
    };
  }
}
