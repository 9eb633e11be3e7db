import { SkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import { LOGIN_NAME_LENGTH_MAX } from './limits.ts';

/** Failures of one user from one address within the window after which nothing is checked any more; design section 9. */
export const FAILURES_MAX = 10;
const WINDOW_MS = 60_000;
/** Pairs of user and address that are remembered; the one whose last failure is longest ago is forgotten first. */
const ENTRIES_MAX = 10_000;

interface Entry {
  /** Monotonic times of the failures, ascending; at most FAILURES_MAX. */
  times: number[];
  /** Attempts whose outcome is not known yet: they count as failures, so that guesses sent at once are not all checked. */
  pending: number;
}

/**
 * Counts wrong passwords by user and address over a sliding minute. A right password in between changes nothing, and is
 * refused too once there are too many: else the limit would not hold for a guess that is right.
 */
export class Failures {
  readonly #clock: Clock;
  /** In the order of the last failure or attempt. */
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number { return this.#entries.size; }

  /** Errors: `too_many_failures` (data: retryAfterSeconds). */
  check(name: string, address: string | null): void {
    if (this.#entries.size === 0) return;
    const entry = this.#entries.get(keyOf(name, address));
    if (entry === undefined) return;
    this.#forgetOld(entry);
    if (entry.times.length >= FAILURES_MAX) throw this.#refusal(entry);
  }

  /** Before a password is looked at; `end` must follow. Errors: `too_many_failures`. */
  begin(name: string, address: string | null): void {
    const key = keyOf(name, address);
    const entry = this.#entries.get(key) ?? { times: [], pending: 0 };
    this.#forgetOld(entry);
    if (entry.times.length + entry.pending >= FAILURES_MAX) throw this.#refusal(entry);
    entry.pending++;
    this.#keep(key, entry);
  }

  end(name: string, address: string | null, isFailure: boolean): void {
    const key = keyOf(name, address);
    const entry = this.#entries.get(key) ?? { times: [], pending: 0 };
    if (entry.pending > 0) entry.pending--;
    if (isFailure) this.#note(key, entry);
    else if (entry.pending === 0 && entry.times.length === 0) this.#entries.delete(key);
  }

  /** Counts a failure without a derivation of its own. */
  note(name: string, address: string | null): void {
    const key = keyOf(name, address);
    this.#note(key, this.#entries.get(key) ?? { times: [], pending: 0 });
  }

  #note(key: string, entry: Entry): void {
    this.#forgetOld(entry);
    if (entry.times.length < FAILURES_MAX) entry.times.push(this.#clock.monotonicMs());
    this.#keep(key, entry);
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
    const since = this.#clock.monotonicMs() - WINDOW_MS;
    if (entry.times.length > 0 && entry.times[0]! <= since) entry.times = entry.times.filter((time) => time > since);
  }

  #refusal(entry: Entry): SkuaError {
    const isFull = entry.times.length >= FAILURES_MAX;
    const retryAfterSeconds = isFull ? Math.max(1, Math.ceil((entry.times[0]! + WINDOW_MS - this.#clock.monotonicMs()) / 1_000)) : 1;
    return new SkuaError('too_many_failures', `Too many wrong passwords for this user from this address: wait ${retryAfterSeconds} s and check the password.`, { retryAfterSeconds });
  }
}

function keyOf(name: string, address: string | null): string {
  return `${address ?? ''}\n${name.slice(0, LOGIN_NAME_LENGTH_MAX)}`;
}
