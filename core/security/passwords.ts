import { SkuaError } from '../errors.ts';
import type { Keys, ScryptCost } from '../ports/keys.ts';
import type { Meter } from '../ports/meter.ts';
import { encodeText } from '../text.ts';
import { decodeBase64, encodeBase64 } from '../base64.ts';
import { fitsPassword } from './limits.ts';

/** `strong`: scrypt, which only we verify. `compatible`: the reference database's PBKDF2, which both verify. */
export type PasswordFormat = 'strong' | 'compatible';

/** What a user's record keeps of a password. */
export interface Secret {
  /** Base64 of the salt. */
  readonly salt: string;
  /** Base64 of the derived key (compatible), or `$scrypt$ln=<log2 of n>,r=<r>,p=<p>$<salt>$<derived key>` (strong). */
  readonly hash: string;
}

type Scheme =
  | { readonly kind: 'pbkdf2'; readonly salt: Uint8Array }
  | { readonly kind: 'scrypt'; readonly salt: Uint8Array; readonly cost: ScryptCost };

const SALT_BYTES = 16;
/** options-and-security.md section 7.2. */
const PBKDF2_ITERATIONS = 1_000;
const PBKDF2_BYTES = 20;
const SCRYPT_BYTES = 32;
/** 32 MiB and about 0.1 s of one processor. */
const SCRYPT_LOG_N = 15;
const SCRYPT_COST: ScryptCost = { n: 2 ** SCRYPT_LOG_N, r: 8, p: 1 };
/** A record that asks for more memory or work than this is not believed: it would be an attack, or damage. */
const SCRYPT_LOG_N_MAX = 16;
const SCRYPT_R_MAX = 8;
const SCRYPT_P_MAX = 4;
const SCRYPT_TEXT = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/=]{1,128})\$([A-Za-z0-9+/=]{1,128})$/;

/** Derives and verifies passwords; options-and-security.md section 7.2 and design section 9. */
export class Passwords {
  readonly #keys: Keys;
  readonly #meter: Meter;
  readonly #format: PasswordFormat;
  readonly #queue = new Derivations();
  /** Derived where there is no user, so that the time of an answer does not tell whether there is one. */
  readonly #decoy: Scheme;

  constructor(keys: Keys, meter: Meter, format: PasswordFormat) {
    this.#keys = keys;
    this.#meter = meter;
    this.#format = format;
    this.#decoy = this.#newScheme();
  }

  #newScheme(): Scheme {
    const salt = this.#keys.randomBytes(SALT_BYTES);
    return this.#format === 'strong' ? { kind: 'scrypt', salt, cost: SCRYPT_COST } : { kind: 'pbkdf2', salt };
  }

  /** What to store of a new password. Errors: `too_busy`. */
  async create(password: string): Promise<Secret> {
    const scheme = this.#newScheme();
    const hash = await this.#queue.run(() => this.#derive(scheme, encodeText(password)));
    return { salt: encodeBase64(scheme.salt), hash };
  }

  /**
   * True when this is the password of the secret; never for null, which costs the same. A compatible secret costs a
   * strong derivation besides where strong ones are written, because the others have one. Errors: `too_busy`.
   */
  matches(secret: Secret | null, password: string): Promise<boolean> {
    const isPossible = fitsPassword(password);
    const bytes = encodeText(isPossible ? password : '');
    const scheme = secret === null ? null : schemeOf(secret);
    return this.#queue.run(async () => {
      const derived = await this.#derive(scheme ?? this.#decoy, bytes);
      if (scheme !== null && scheme.kind !== this.#decoy.kind && this.#format === 'strong') await this.#derive(this.#decoy, bytes);
      const isEqual = this.#keys.equal(encodeText(derived), encodeText(secret === null ? derived : secret.hash));
      return isEqual && scheme !== null && isPossible;
    });
  }

  /** The text that a record holds as `hash`. */
  async #derive(scheme: Scheme, password: Uint8Array): Promise<string> {
    this.#meter.count('eventstore_password_derivations_total');
    if (scheme.kind === 'pbkdf2') return encodeBase64(await this.#keys.pbkdf2Sha1(password, scheme.salt, PBKDF2_ITERATIONS, PBKDF2_BYTES));
    const { n, r, p } = scheme.cost;
    const key = await this.#keys.scrypt(password, scheme.salt, scheme.cost, SCRYPT_BYTES);
    return `$scrypt$ln=${Math.log2(n)},r=${r},p=${p}$${encodeBase64(scheme.salt)}$${encodeBase64(key)}`;
  }
}

/** How the secret was derived; null for what no password can match. */
function schemeOf(secret: Secret): Scheme | null {
  if (!secret.hash.startsWith('$')) {
    const salt = decodeBase64(secret.salt);
    return salt === null || secret.hash === '' ? null : { kind: 'pbkdf2', salt };
  }
  const match = SCRYPT_TEXT.exec(secret.hash);
  if (match === null) return null;
  const logN = Number(match[1]);
  const r = Number(match[2]);
  const p = Number(match[3]);
  const salt = decodeBase64(match[4]!);
  if (salt === null || logN < 1 || logN > SCRYPT_LOG_N_MAX || r < 1 || r > SCRYPT_R_MAX || p < 1 || p > SCRYPT_P_MAX) return null;
  return { kind: 'scrypt', salt, cost: { n: 2 ** logN, r, p } };
}

/** Derivations at the same time: each takes a thread that the files of the log also need, a processor, and 32 MiB. */
const AT_ONCE_MAX = 2;
/** Derivations that wait. At 0.1 s each the last of them waits for some three seconds. */
const WAITING_MAX = 64;

/** Lets a few derivations run at a time and a bounded number wait, so that callers with wrong passwords can't take the machine. */
class Derivations {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** Errors: `too_busy`, and what the task rejects with. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running < AT_ONCE_MAX) this.#running++;
    else {
      if (this.#waiting.length >= WAITING_MAX) {
        throw new SkuaError('too_busy', 'Too many passwords are waiting to be checked: try again in a few seconds.', { limit: WAITING_MAX, retryAfterSeconds: 5 });
      }
      // Whoever ends hands its place over.
      await new Promise<void>((resolve) => { this.#waiting.push(resolve); });
    }
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
