import { SkuaError } from '../base/errors.ts';
import type { Clock } from '../ports/clock.ts';
import { FAILURES_MAX, type SharedFailures } from '../ports/shared-failures.ts';
import { addressGroup } from '../base/address-group.ts';
import { LOGIN_NAME_LENGTH_MAX } from './format/user.ts';

/** So many from a place where the user has logged in before: until then a right password is still let in there. */
export const FAMILIAR_FAILURES_MAX = 100;
/**
 * Passwords that are compared with a login that was verified a short time ago, while its user is locked out of a
 * familiar place. Without a limit, an attacker at the same place as an active user could guess as fast as the network
 * allows.
 */
export const COMPARED_MAX = 1_000;
const WINDOW_MS = 60_000;
/** Pairs of user and place that are remembered; the one whose last failure is longest ago is forgotten first. */
const ENTRIES_MAX = 10_000;

interface Entry {
  /** Monotonic times of the failures, ascending; at most as many as the place is allowed. */
  times: number[];
  /**
   * Attempts whose outcome is not known yet: they count as failures, so that guesses sent at once are not all checked.
   */
  pending: number;
  /** Attempts since `refusedSinceMs` that were refused unheard. */
  refused: number;
  refusedSinceMs: number;
}

/** Whose password is to be checked, as far as the order of checks depends on it. */
export interface Caller {
  /** By which callers are counted, see `addressGroup`. */
  readonly place: string;
  /** Whether the user has logged in from there before. */
  readonly isFamiliar: boolean;
}

/**
 * Counts wrong passwords by user and place (an address, or an IPv6 network) over a sliding minute. A right password in
 * between changes nothing, and is refused too once there are too many: else the limit would not hold for a guess that
 * is right. Where the user has logged in before, the limit is higher: an attacker that shares a proxy or a network with
 * a user must not lock that user out by ten guesses.
 */
export class Failures {
  readonly #clock: Clock;
  /** In the order of the last failure or attempt. */
  readonly #entries = new Map<string, Entry>();
  readonly #familiar: FamiliarAddresses;
  readonly #shared: SharedFailures | null;

  /** `shared`: what other processes count too; null where there are none. */
  constructor(clock: Clock, shared: SharedFailures | null = null) {
    this.#clock = clock;
    this.#familiar = new FamiliarAddresses(clock);
    this.#shared = shared;
  }

  get size(): number {
    return this.#entries.size;
  }

  callerOf(name: string, address: string | null): Caller {
    const place = addressGroup(address);
    return { place, isFamiliar: this.#familiar.has(name, place) };
  }

  /** The user has proved to be there. */
  succeeded(name: string, address: string | null): void {
    this.#familiar.add(name, addressGroup(address));
  }

  /**
   * Before a password is compared with that of a login which was verified a short time ago. Errors: `too_many_failures`
   * (data: retryAfterSeconds), where the user is locked out and the place is not familiar, or too many guesses were
   * made even so.
   */
  check(name: string, address: string | null): void {
    if (this.#entries.size === 0) return;
    const entry = this.#entries.get(keyOf(name, address));
    if (entry === undefined) return;
    this.#forgetOld(entry);
    if (entry.times.length < FAILURES_MAX) return;
    if (!this.callerOf(name, address).isFamiliar || entry.refused >= COMPARED_MAX) throw this.#refusal(entry);
  }

  /** Whether the user is locked out of places that are not familiar, by failures at this one. */
  isLocked(name: string, address: string | null): boolean {
    if (this.#entries.size === 0) return false;
    const entry = this.#entries.get(keyOf(name, address));
    if (entry === undefined) return false;
    this.#forgetOld(entry);
    return entry.times.length >= FAILURES_MAX;
  }

  /** Before a password is derived; `end` must follow. Errors: `too_many_failures`. */
  begin(name: string, address: string | null): void {
    const key = keyOf(name, address);
    const entry = this.#entries.get(key) ?? newEntry();
    this.#forgetOld(entry);
    if (entry.times.length + entry.pending >= this.#limit(name, address)) {
      this.#noteRefusal(entry);
      throw this.#refusal(entry);
    }
    entry.pending++;
    this.#keep(key, entry);
  }

  end(name: string, address: string | null, isFailure: boolean): void {
    const key = keyOf(name, address);
    const entry = this.#entries.get(key) ?? newEntry();
    if (entry.pending > 0) entry.pending--;
    if (isFailure) this.#note(key, entry, this.#limit(name, address));
    else if (entry.pending === 0 && entry.times.length === 0) this.#entries.delete(key);
  }

  /** Counts a failure without a derivation of its own. */
  note(name: string, address: string | null): void {
    const key = keyOf(name, address);
    this.#note(key, this.#entries.get(key) ?? newEntry(), this.#limit(name, address));
  }

  /** The answer to a wrong guess while the user is locked out. */
  lockedOut(name: string, address: string | null): SkuaError {
    return this.#refusal(this.#entries.get(keyOf(name, address)) ?? newEntry());
  }

  #limit(name: string, address: string | null): number {
    return this.callerOf(name, address).isFamiliar ? FAMILIAR_FAILURES_MAX : FAILURES_MAX;
  }

  /**
   * Reports the failure that was just counted to other processes, and takes in what they have counted. To be waited for
   * before the answer.
   */
  async share(name: string, address: string | null): Promise<void> {
    if (this.#shared === null || !(await this.#shared.add(name.slice(0, LOGIN_NAME_LENGTH_MAX), addressGroup(address))))
      return;
    const key = keyOf(name, address);
    const entry = this.#entries.get(key) ?? newEntry();
    this.#forgetOld(entry);
    while (entry.times.length < FAILURES_MAX) entry.times.push(this.#clock.monotonicMs());
    this.#keep(key, entry);
  }

  #note(key: string, entry: Entry, limit: number): void {
    this.#forgetOld(entry);
    if (entry.times.length < limit) entry.times.push(this.#clock.monotonicMs());
    this.#keep(key, entry);
  }

  #noteRefusal(entry: Entry): void {
    const now = this.#clock.monotonicMs();
    if (now - entry.refusedSinceMs >= WINDOW_MS) {
      entry.refused = 0;
      entry.refusedSinceMs = now;
    }
    entry.refused++;
  }

  #keep(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    for (const [oldest, { times, pending }] of this.#entries) {
      const isOver = pending === 0 && (times.length === 0 || times.at(-1)! <= this.#clock.monotonicMs() - WINDOW_MS);
      if (!isOver && this.#entries.size <= ENTRIES_MAX) return;
      this.#entries.delete(oldest);
    }
  }

  #forgetOld(entry: Entry): void {
    const now = this.#clock.monotonicMs();
    const since = now - WINDOW_MS;
    if (entry.times.length > 0 && entry.times[0]! <= since) entry.times = entry.times.filter((time) => time > since);
    if (entry.refused > 0 && entry.refusedSinceMs <= since) entry.refused = 0;
  }

  #refusal(entry: Entry): SkuaError {
    const now = this.#clock.monotonicMs();
    const waitMs = entry.times.length < FAILURES_MAX ? 1_000 : entry.times.at(-FAILURES_MAX)! + WINDOW_MS - now;
    const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
    return new SkuaError(
      'too_many_failures',
      `Too many wrong passwords for this user from this address: wait ${retryAfterSeconds} s and check the password.`,
      { retryAfterSeconds },
    );
  }
}

function newEntry(): Entry {
  return { times: [], pending: 0, refused: 0, refusedSinceMs: Number.NEGATIVE_INFINITY };
}

function keyOf(name: string, address: string | null): string {
  return `${addressGroup(address)}\n${name.slice(0, LOGIN_NAME_LENGTH_MAX)}`;
}

/** Users whose places are remembered, and places of each; the one that was used longest ago is forgotten first. */
export const FAMILIAR_USERS_MAX = 1_000;
export const PLACES_PER_USER_MAX = 16;
/** So long after the last login a place is familiar. */
export const FAMILIAR_MS = 7 * 86_400_000;

/**
 * From where users have logged in. A familiar address gives no access, only more attempts; so it outlives changes of
 * passwords, and is forgotten with the process. A user with many places, or many addresses, pushes out no places of
 * other users.
 */
class FamiliarAddresses {
  readonly #clock: Clock;
  /** Monotonic times of the last login, by user and place, each in the order of use. */
  readonly #users = new Map<string, Map<string, number>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(name: string, place: string): boolean {
    const last = this.#users.get(name)?.get(place);
    return last !== undefined && this.#clock.monotonicMs() - last < FAMILIAR_MS;
  }

  add(name: string, place: string): void {
    const places = this.#users.get(name) ?? new Map<string, number>();
    touch(this.#users, name, places, FAMILIAR_USERS_MAX);
    touch(places, place, this.#clock.monotonicMs(), PLACES_PER_USER_MAX);
  }
}

function touch<V>(map: Map<string, V>, key: string, value: V, sizeMax: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= sizeMax) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
