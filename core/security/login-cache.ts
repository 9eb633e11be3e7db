import type { Clock } from '../ports/clock.ts';
import type { Principal } from './principal.ts';
import type { StreamMark } from './stream-info.ts';

/** A login that was verified, valid while the user's stream is as it was then. */
export interface VerifiedLogin extends StreamMark {
  readonly principal: Principal;
  /** Name of the user's stream. */
  readonly stream: string;
  /** HMAC of the password under a key of this process: the password itself is not kept. */
  readonly mac: Uint8Array;
  /** Monotonic milliseconds. */
  readonly expiresMs: number;
}

export const LOGINS_MAX = 1_000;
/** How long a verified login counts without another derivation. */
export const LOGIN_LIFE_MS = 60_000;

/** The logins used last, by login name. */
export class LoginCache {
  readonly #clock: Clock;
  readonly #logins = new Map<string, VerifiedLogin>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number { return this.#logins.size; }

  get(name: string): VerifiedLogin | null {
    const login = this.#logins.get(name);
    if (login === undefined) return null;
    this.#logins.delete(name);
    if (login.expiresMs <= this.#clock.monotonicMs()) return null;
    this.#logins.set(name, login);
    return login;
  }

  set(name: string, login: VerifiedLogin): void {
    this.#logins.delete(name);
    this.#logins.set(name, login);
    if (this.#logins.size <= LOGINS_MAX) return;
    for (const oldest of this.#logins.keys()) {
      this.#logins.delete(oldest);
      return;
    }
  }

  delete(name: string): void {
    this.#logins.delete(name);
  }
}
