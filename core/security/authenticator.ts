import { isSkuaError, SkuaError } from '../base/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Keys } from '../ports/keys.ts';
import type { Log } from '../ports/log.ts';
import type { Meter, MeterLabels } from '../ports/meter.ts';
import { encodeText } from '../base/text.ts';
import type { Authenticator, UserNow } from './api.ts';
import { encodeBase64 } from '../base/base64.ts';
import type { Caller, Failures } from './login-failures.ts';
import { fitsPassword, isEmptyPassword, LOGIN_NAME_LENGTH_MAX } from './format/user.ts';
import type { Passwords } from './passwords.ts';
import type { Principal } from '../base/principal.ts';
import { infoNow, isUnchanged } from './stream-info.ts';
import type { ObservableStore, StreamMark } from './stream-info.ts';
import { userStream } from './user-streams.ts';
import type { StoredUser, UserStreams } from './user-streams.ts';

interface PasswordAuthenticatorParts {
  readonly store: ObservableStore;
  readonly streams: UserStreams;
  readonly passwords: Passwords;
  readonly failures: Failures;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  readonly upToDate: (() => Promise<void> | null) | null;
}

const MAC_KEY_BYTES = 32;
/** How often a password is verified again because its user changed meanwhile. */
const ATTEMPTS_MAX = 3;
/** After a record could not be rewritten none is for so long: logins must not wait for a disk that takes no writes. */
const REWRITE_PAUSE_MS = 60_000;
const NO_MAC = new Uint8Array(0);
/** How logins end, as the metric names it. */
const AUTHENTICATIONS = 'eventstore_authentications_total';
const VERIFIED = { result: 'verified' };
const CACHED = { result: 'cached' };
const FAILED = { result: 'failed' };

/**
 * Verifies names and passwords. A verified login is remembered for a short time, and is worth nothing as soon as the
 * user's stream or its metadata has been written to; failures of others don't end it. Callers that log in with the same
 * credentials at the same time share one derivation. Where passwords are to be such as the reference database accepts,
 * a login stores one that is not anew, since only the user knows the password.
 */
export class PasswordAuthenticator implements Authenticator {
  readonly #parts: PasswordAuthenticatorParts;
  readonly #macKey: Uint8Array;
  readonly #cache: LoginCache;
  /** Derivations under way, by name and HMAC of the password. */
  readonly #running = new Map<string, Promise<Principal | null>>();
  /** The state of the user's stream that each principal was made from. */
  readonly #marks = new WeakMap<Principal, StreamMark & { readonly stream: string }>();
  /** Users for whom other members have sent writes, by name. */
  readonly #users = new Map<string, UserNow>();
  #isReady = false;
  /** Monotonic milliseconds. */
  #rewritesFromMs = Number.NEGATIVE_INFINITY;

  constructor(parts: PasswordAuthenticatorParts) {
    this.#parts = parts;
    this.#macKey = parts.keys.randomBytes(MAC_KEY_BYTES);
    this.#cache = new LoginCache(parts.clock);
  }

  /** The users are there: from now on credentials are looked at. */
  open(): void {
    this.#isReady = true;
  }

  login(name: string, password: string, address: string | null, isLocal = false): Principal | Promise<Principal> {
    if (!this.#isReady) throw notReady();
    // Before any user is looked up, so that the answer shows nothing of the user.
    if (!isLocal && isEmptyPassword(password)) {
      this.#parts.meter.count(AUTHENTICATIONS, 1, FAILED);
      throw new SkuaError('not_authenticated', EMPTY_REFUSED);
    }
    const { failures, store } = this.#parts;
    failures.check(name, address);
    const isPossible = name.length <= LOGIN_NAME_LENGTH_MAX && fitsPassword(password);
    const mac = isPossible ? this.#parts.keys.hmac('sha256', this.#macKey, encodeText(password)) : NO_MAC;
    const known = this.#cached(name, mac);
    if (known !== null) {
      const info = infoNow(store, known.stream);
      if (info !== null && isUnchanged(known, info)) return this.#recognised(known, name, address);
    }
    return this.#loginLater(name, password, mac, address, known);
  }

  stillKnows(principal: Principal, address: string | null): boolean {
    const { name } = principal;
    if (name === null) return false;
    const known = this.#cache.get(name);
    if (known === null || known.principal !== principal) return false;
    const info = infoNow(this.#parts.store, known.stream);
    if (info === null || !isUnchanged(known, info)) return false;
    this.#keepWhileLocked(known, name, address);
    this.#counted(CACHED, principal);
    return true;
  }

  hasChanged(principal: Principal): boolean | Promise<boolean> {
    const mark = this.#marks.get(principal);
    if (mark === undefined) return false;
    const info = infoNow(this.#parts.store, mark.stream);
    return info !== null
      ? !isUnchanged(mark, info)
      : this.#parts.store.streamInfo(mark.stream).then((later) => !isUnchanged(mark, later));
  }

  isUser(principal: Principal): boolean {
    return this.#marks.has(principal);
  }

  userNow(name: string): UserNow | null | Promise<UserNow | null> {
    if (!this.#isReady) throw notReady();
    const known = this.#users.get(name);
    const info = known === undefined ? null : infoNow(this.#parts.store, known.unchanged.stream);
    return info !== null && isUnchanged(known!.unchanged, info) ? known! : this.#userLater(name);
  }

  async #userLater(name: string): Promise<UserNow | null> {
    if (name.length > LOGIN_NAME_LENGTH_MAX) return null;
    const { store, streams } = this.#parts;
    const stream = userStream(name);
    // Before the record, so that what is written meanwhile counts as a change.
    const { lastEventNumber, metadataVersion } = await store.streamInfo(stream);
    const stored = await streams.read(name);
    if (stored === null || stored.record.isDisabled) return null;
    const user: UserNow = {
      principal: { name, roles: stored.record.groups },
      unchanged: { stream, lastEventNumber, metadataVersion },
    };
    this.#users.delete(name);
    this.#users.set(name, user);
    if (this.#users.size > LOGINS_MAX) this.#users.delete(this.#users.keys().next().value!);
    return user;
  }

  #cached(name: string, mac: Uint8Array): VerifiedLogin | null {
    const login = this.#cache.get(name);
    return login !== null && this.#parts.keys.equal(login.mac, mac) ? login : null;
  }

  async #loginLater(
    name: string,
    password: string,
    mac: Uint8Array,
    address: string | null,
    known: VerifiedLogin | null,
  ): Promise<Principal> {
    const { failures, store } = this.#parts;
    try {
      if (known !== null && isUnchanged(known, await store.streamInfo(known.stream)))
        return this.#recognised(known, name, address);
      const key = `${encodeBase64(mac)} ${name.slice(0, LOGIN_NAME_LENGTH_MAX)}`;
      const running = this.#running.get(key);
      const isLocked = failures.isLocked(name, address);
      const principal = running === undefined ? await this.#start(key, name, password, mac, address) : await running;
      if (principal !== null) {
        failures.succeeded(name, address);
        return this.#counted(VERIFIED, principal);
      }
      // A caller that only waited for another's guess made that guess all the same.
      if (running !== undefined) failures.note(name, address);
      if (isLocked) throw failures.lockedOut(name, address);
    } catch (error) {
      throw isSkuaError(error, 'store_closed') ? notReady() : error;
    }
    await failures.share(name, address);
    this.#parts.meter.count(AUTHENTICATIONS, 1, FAILED);
    throw new SkuaError(
      'not_authenticated',
      'There is no user with this name and password, or the user is disabled: check both.',
    );
  }

  #recognised(known: VerifiedLogin, name: string, address: string | null): Principal {
    this.#parts.failures.succeeded(name, address);
    this.#keepWhileLocked(known, name, address);
    return this.#counted(CACHED, known.principal);
  }

  /**
   * Where others guess without end, nothing is derived any more: a user who is there and known stays so while going on.
   */
  #keepWhileLocked(known: VerifiedLogin, name: string, address: string | null): void {
    if (this.#parts.failures.isLocked(name, address)) known.expiresMs = this.#parts.clock.monotonicMs() + LOGIN_LIFE_MS;
  }

  #counted(result: MeterLabels, principal: Principal): Principal {
    this.#parts.meter.count(AUTHENTICATIONS, 1, result);
    return principal;
  }

  async #start(
    key: string,
    name: string,
    password: string,
    mac: Uint8Array,
    address: string | null,
  ): Promise<Principal | null> {
    const { failures } = this.#parts;
    failures.begin(name, address);
    let isFailure = false;
    try {
      const verified = this.#verify(name, password, mac, failures.callerOf(name, address));
      this.#running.set(key, verified);
      const principal = await verified;
      isFailure = principal === null;
      return principal;
    } finally {
      this.#running.delete(key);
      failures.end(name, address, isFailure);
    }
  }

  /** The user, or null; judged by a record that was still the last one when the derivation had ended. */
  async #verify(name: string, password: string, mac: Uint8Array, caller: Caller): Promise<Principal | null> {
    const { store, streams, passwords, clock } = this.#parts;
    let isRewritten = false;
    for (let i = 0; i < ATTEMPTS_MAX; i++) {
      const stored = await streams.read(name);
      const isPassword = await passwords.matches(stored === null ? null : stored.record, password, caller);
      if (stored === null || !isPassword || stored.record.isDisabled) {
        if (await this.#isBehind(name, stored)) continue;
        return null;
      }
      if (!isRewritten && passwords.isForeign(stored.record)) {
        isRewritten = true;
        await this.#rewrite(stored, password);
      }
      const stream = userStream(name);
      const { lastEventNumber, metadataVersion } = await store.streamInfo(stream);
      const still = await streams.read(name);
      if (still === null || still.number !== stored.number || lastEventNumber !== stored.number) continue;
      const principal: Principal = { name, roles: stored.record.groups };
      this.#marks.set(principal, { stream, lastEventNumber, metadataVersion });
      this.#cache.set(name, {
        principal,
        stream,
        mac,
        lastEventNumber,
        metadataVersion,
        expiresMs: clock.monotonicMs() + LOGIN_LIFE_MS,
      });
      return principal;
    }
    throw new SkuaError('too_busy', 'The user keeps being changed: try again.', { retryAfterSeconds: 1 });
  }

  /** Whether the user was made, or changed, by another process since this record was read. */
  async #isBehind(name: string, stored: StoredUser | null): Promise<boolean> {
    const looking = this.#parts.upToDate?.() ?? null;
    if (looking === null) return false;
    await looking;
    return (await this.#parts.streams.read(name))?.number !== stored?.number;
  }

  /**
   * One write, on top of the record that was read: a change of the user by others meanwhile wins, and the login goes on
   * in any case.
   */
  async #rewrite({ record, number }: StoredUser, password: string): Promise<void> {
    const { streams, passwords, clock, log } = this.#parts;
    if (clock.monotonicMs() < this.#rewritesFromMs) return;
    const { loginName } = record;
    try {
      await streams.update({ ...record, ...(await passwords.create(password)) }, number);
      log.info('the password of a user is now stored in the compatible format', { loginName });
    } catch (error) {
      if (isSkuaError(error, 'wrong_expected_version')) return;
      this.#rewritesFromMs = clock.monotonicMs() + REWRITE_PAUSE_MS;
      log.warn('the password of a user could not be stored in the compatible format: a later login tries again', {
        loginName,
        error: String(error),
      });
    }
  }
}

const EMPTY_REFUSED =
  'An empty password is accepted only on the machine of the node itself, at 127.0.0.1 or localhost, without a proxy. Log in there and change it, have an administrator reset it, or stop the node and use `skua user reset-password`.';

function notReady(): SkuaError {
  return new SkuaError('not_ready', 'The users cannot be read yet: try again in a few seconds.', {
    retryAfterSeconds: 5,
  });
}

/** A login that was verified, valid while the user's stream is as it was then. */
interface VerifiedLogin extends StreamMark {
  readonly principal: Principal;
  /** Name of the user's stream. */
  readonly stream: string;
  /** HMAC of the password under a key of this process: the password itself is not kept. */
  readonly mac: Uint8Array;
  /** Monotonic milliseconds. */
  expiresMs: number;
}

export const LOGINS_MAX = 1_000;
/** How long a verified login counts without another derivation. */
export const LOGIN_LIFE_MS = 60_000;

/** The logins used last, by login name. */
class LoginCache {
  readonly #clock: Clock;
  readonly #logins = new Map<string, VerifiedLogin>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

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
}
