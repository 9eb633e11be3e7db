import { SkuaError } from '../base/errors.ts';
import type { Keys, ScryptCost } from '../ports/keys.ts';
import type { Meter } from '../ports/meter.ts';
import { encodeText } from '../base/text.ts';
import { decodeBase64, encodeBase64 } from '../base/base64.ts';
import type { Caller } from './login-failures.ts';
import { fitsPassword } from './format/user.ts';

/** `strong`: scrypt, which only we verify. `compatible`: the reference database's PBKDF2, which both verify. */
export type PasswordFormat = 'strong' | 'compatible';

/** What a user's record keeps of a password. */
export interface Secret {
  /** Base64 of the salt. */
  readonly salt: string;
  /** Base64 of the derived key (compatible), or `$scrypt$ln=<log2 of n>,r=<r>,p=<p>$<salt>$<derived key>` (strong). */
  readonly hash: string;
}

/** How a stored password was derived; `unknown` is one that nothing matches. */
export type StoredFormat = PasswordFormat | 'unknown';

type Scheme =
  | { readonly kind: 'pbkdf2'; readonly salt: Uint8Array }
  | { readonly kind: 'scrypt'; readonly salt: Uint8Array; readonly cost: ScryptCost };

const SALT_BYTES = 16;
/** What the reference database derives its passwords with. */
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
const SCRYPT_TEXT =
  /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/=]{1,128})\$([A-Za-z0-9+/=]{1,128})$/;

/** Derives and verifies passwords. */
export class Passwords {
  readonly #keys: Keys;
  readonly #meter: Meter;
  readonly #format: PasswordFormat;
  readonly #queue = new Derivations();
  /** Derived where there is no user, so that the time of an answer does not show whether there is one. */
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

  /** Whether a stored password is one that the reference database would not accept, though passwords are to be such. */
  isForeign(secret: Secret): boolean {
    return this.#format === 'compatible' && storedFormatOf(secret) === 'strong';
  }

  /** What to store of a new password. Errors: `too_busy`. */
  async create(password: string): Promise<Secret> {
    const scheme = this.#newScheme();
    const hash = await this.#queue.run(OURSELVES, () => this.#derive(scheme, encodeText(password)));
    return { salt: encodeBase64(scheme.salt), hash };
  }

  /**
   * True when this is the password of the secret; never for null, which costs the same. A compatible secret costs a
   * strong derivation besides where strong ones are written, because the others have one. `caller` waits for the
   * answer; left out for the node itself and for callers that have logged in. Errors: `too_busy`.
   */
  matches(secret: Secret | null, password: string, caller: Caller = OURSELVES): Promise<boolean> {
    const isPossible = fitsPassword(password);
    const bytes = encodeText(isPossible ? password : '');
    const scheme = secret === null ? null : schemeOf(secret);
    return this.#queue.run(caller, async () => {
      const derived = await this.#derive(scheme ?? this.#decoy, bytes);
      if (scheme !== null && scheme.kind !== this.#decoy.kind && this.#format === 'strong')
        await this.#derive(this.#decoy, bytes);
      const isEqual = this.#keys.equal(encodeText(derived), encodeText(secret === null ? derived : secret.hash));
      return isEqual && scheme !== null && isPossible;
    });
  }

  /** The text that a record holds as `hash`. */
  async #derive(scheme: Scheme, password: Uint8Array): Promise<string> {
    this.#meter.count('eventstore_password_derivations_total');
    if (scheme.kind === 'pbkdf2')
      return encodeBase64(await this.#keys.pbkdf2Sha1(password, scheme.salt, PBKDF2_ITERATIONS, PBKDF2_BYTES));
    const { n, r, p } = scheme.cost;
    const key = await this.#keys.scrypt(password, scheme.salt, scheme.cost, SCRYPT_BYTES);
    return `$scrypt$ln=${Math.log2(n)},r=${r},p=${p}$${encodeBase64(scheme.salt)}$${encodeBase64(key)}`;
  }
}

export function storedFormatOf(secret: Secret): StoredFormat {
  const scheme = schemeOf(secret);
  if (scheme === null) return 'unknown';
  return scheme.kind === 'scrypt' ? 'strong' : 'compatible';
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
  if (salt === null || logN < 1 || logN > SCRYPT_LOG_N_MAX || r < 1 || r > SCRYPT_R_MAX || p < 1 || p > SCRYPT_P_MAX)
    return null;
  return { kind: 'scrypt', salt, cost: { n: 2 ** logN, r, p } };
}

/** Derivations at the same time: each takes a thread that the files of the log also need, a processor, and 32 MiB. */
const AT_ONCE_MAX = 2;
/** Derivations that wait. At 0.1 s each the last of them waits for some three seconds. */
const WAITING_MAX = 64;
/** Derivations for one place that are under way or wait; those for users who are familiar there count by themselves. */
const PER_PLACE_MAX = 48;
const RETRY_AFTER_SECONDS = 5;

/** The node itself, and callers that have logged in. */
const OURSELVES: Caller = { place: '', isFamiliar: true };

interface Waiter {
  readonly start: () => void;
  readonly refuse: (error: SkuaError) => void;
}

/** Callers that wait, by the place from which they come; the place whose turn is next comes first. */
type Lane = Map<string, Waiter[]>;

/**
 * Lets a few derivations run at a time and a bounded number wait, so that callers with wrong passwords can't take the
 * machine. Places take turns. A caller that comes when all room is taken gets room from the place that has most, if
 * that place has more than the caller's; users where they have logged in before go ahead of all others, and take room
 * from these. (How many of them there can be is bounded: a verified login is remembered, and failures are counted.)
 */
class Derivations {
  #running = 0;
  #waiting = 0;
  readonly #familiar: Lane = new Map();
  readonly #others: Lane = new Map();
  /** Under way and waiting, by place and kind. */
  readonly #held = new Map<string, number>();

  /** Errors: `too_busy`, and what the task rejects with. */
  async run<T>(caller: Caller, task: () => Promise<T>): Promise<T> {
    const key = `${caller.isFamiliar ? 'f' : 'o'} ${caller.place}`;
    const held = this.#held.get(key) ?? 0;
    if (held >= PER_PLACE_MAX && caller !== OURSELVES) throw busy(PER_PLACE_MAX, ' from this address');
    this.#held.set(key, held + 1);
    try {
      if (this.#running < AT_ONCE_MAX) this.#running++;
      // A derivation that ends hands its turn over.
      else await this.#turn(caller);
      try {
        return await task();
      } finally {
        if (!this.#startNext(this.#familiar) && !this.#startNext(this.#others)) this.#running--;
      }
    } finally {
      const left = this.#held.get(key)! - 1;
      if (left > 0) this.#held.set(key, left);
      else this.#held.delete(key);
    }
  }

  #turn({ place, isFamiliar }: Caller): Promise<void> {
    const lane = isFamiliar ? this.#familiar : this.#others;
    const queue = lane.get(place) ?? [];
    if (
      this.#waiting >= WAITING_MAX &&
      !((isFamiliar && this.#evict(this.#others, 0)) || this.#evict(lane, queue.length + 1))
    )
      throw busy(WAITING_MAX);
    return new Promise((resolve, reject) => {
      queue.push({ start: resolve, refuse: reject });
      lane.set(place, queue);
      this.#waiting++;
    });
  }

  /** Refuses the last caller of the place with most that wait, if there are more than `most`. */
  #evict(lane: Lane, most: number): boolean {
    let largest: readonly [string, Waiter[]] | null = null;
    for (const entry of lane) if (entry[1].length > (largest?.[1].length ?? most)) largest = entry;
    if (largest === null) return false;
    const [place, queue] = largest;
    this.#waiting--;
    queue.pop()!.refuse(busy(WAITING_MAX));
    if (queue.length === 0) lane.delete(place);
    return true;
  }

  #startNext(lane: Lane): boolean {
    for (const [place, queue] of lane) {
      this.#waiting--;
      const next = queue.shift()!;
      lane.delete(place);
      if (queue.length > 0) lane.set(place, queue);
      next.start();
      return true;
    }
    return false;
  }
}

function busy(limit: number, where = ''): SkuaError {
  return new SkuaError(
    'too_busy',
    `Too many passwords${where} are waiting to be checked: try again in a few seconds.`,
    { limit, retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}
