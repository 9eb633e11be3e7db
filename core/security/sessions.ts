import { encodeBase64Url } from '../base/base64.ts';
import { isSkuaError, SkuaError } from '../base/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Keys } from '../ports/keys.ts';
import type { Log } from '../ports/log.ts';
import type { Authenticator, BegunSession, Session, SessionProof, Sessions } from './api.ts';
import type { Principal } from '../base/principal.ts';
import type { SessionEnds } from './session-ends.ts';
import { SESSION_MS } from './session-keys.ts';
import type { SessionKeys } from './session-keys.ts';
import { fingerprintOf, formatSession, parseSession } from './session-value.ts';
import type { SessionClaims } from './session-value.ts';
import { infoNow, isUnchanged } from './stream-info.ts';
import type { ObservableStore, StreamMark } from './stream-info.ts';
import { userStream } from './user-streams.ts';
import type { StoredUser, UserStreams } from './user-streams.ts';

/** Verified sessions that are remembered; the one that was used longest ago is forgotten first. */
export const VERIFIED_MAX = 1_000;
const SESSION_ID_BYTES = 16;

interface UserSessionsParts {
  readonly store: ObservableStore;
  readonly streams: UserStreams;
  readonly sessionKeys: SessionKeys;
  readonly ends: SessionEnds;
  readonly authenticator: Pick<Authenticator, 'hasChanged'>;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly log: Log;
  readonly upToDate: (() => Promise<void> | null) | null;
}

/** A session that was verified, as long as its user and the list of those that were ended are what they were. */
interface Verified extends Session {
  readonly claims: SessionClaims;
}

/**
 * Sessions of users over values that the node has signed. Whether one still counts is asked at every request, in memory
 * as a rule: a change of the user, of whatever kind, ends it at once, as it ends a login that is remembered.
 */
export class UserSessions implements Sessions {
  readonly #parts: UserSessionsParts;
  /** In the order of their last use, by value. */
  readonly #verified = new Map<string, Verified>();
  readonly #ofPrincipals = new WeakMap<Principal, Verified>();
  #hasWarned = false;

  constructor(parts: UserSessionsParts) {
    this.#parts = parts;
  }

  async begin(principal: Principal): Promise<BegunSession> {
    const { authenticator, sessionKeys, ends, keys, clock } = this.#parts;
    const user = principal.name ?? '';
    const issuedMs = await ends.beginning();
    const endsMs = Math.min(issuedMs, Math.floor(clock.nowMs())) + SESSION_MS;
    const key = await sessionKeys.signing(issuedMs);
    const found = await this.#userNow(user);
    // The password was verified against what the user was then.
    if (found === null || (await authenticator.hasChanged?.(principal)) === true)
      throw new SkuaError('not_authenticated', 'The user has been changed: log in again.');
    const claims: SessionClaims = {
      keyId: key.id,
      id: encodeBase64Url(keys.randomBytes(SESSION_ID_BYTES)),
      user,
      issuedMs,
      endsMs,
      mark: found.mark,
      fingerprint: fingerprintOf(found.stored.record, key.bytes, keys),
    };
    const value = formatSession(claims, key.bytes, keys);
    return { ...this.#remember(value, claims, found.stored), value };
  }

  find(value: string): Session | null | Promise<Session | null> {
    const known = this.#verified.get(value);
    if (known !== undefined) {
      const counts = this.#countsNow(known);
      if (counts === true) {
        this.#verified.delete(value);
        this.#verified.set(value, known);
        return known;
      }
      if (counts === false) this.#verified.delete(value);
    }
    return this.#findLater(value);
  }

  async end(value: string): Promise<boolean> {
    const session = await this.#findLater(value);
    if (session === null) return false;
    this.#verified.delete(value);
    await this.#parts.ends.end(session.claims.id);
    return true;
  }

  async resume({ user, lastEventNumber, metadataVersion }: SessionProof): Promise<Principal | null> {
    const found = await this.#userNow(user);
    if (
      found === null ||
      found.mark.lastEventNumber !== lastEventNumber ||
      found.mark.metadataVersion !== metadataVersion
    )
      return null;
    return { name: user, roles: found.stored.record.groups };
  }

  /**
   * Whether the session of a principal that was given out here does not count any more; null where it is none of a
   * session.
   */
  hasEnded(principal: Principal): boolean | Promise<boolean> | null {
    const known = this.#ofPrincipals.get(principal);
    if (known === undefined) return null;
    const counts = this.#countsNow(known);
    return counts === null ? this.#countsLater(known).then((does) => !does) : !counts;
  }

  /** Whether a principal was given out here. */
  isUser(principal: Principal): boolean {
    return this.#ofPrincipals.has(principal);
  }

  /** Null where that is not known at once. */
  #countsNow({ claims }: Verified): boolean | null {
    const { store, ends } = this.#parts;
    const user = infoNow(store, userStream(claims.user));
    if (user === null || !ends.isUpToDate) return null;
    return isUnchanged(claims.mark, user) && this.#isOpen(claims);
  }

  async #countsLater({ claims }: Verified): Promise<boolean> {
    await this.#parts.ends.refresh();
    return (
      this.#isOpen(claims) && isUnchanged(claims.mark, await this.#parts.store.streamInfo(userStream(claims.user)))
    );
  }

  #isOpen({ id, issuedMs, endsMs }: SessionClaims): boolean {
    const { ends, clock } = this.#parts;
    return endsMs > clock.nowMs() && endsMs <= issuedMs + SESSION_MS && !ends.isEnded(id, issuedMs);
  }

  /** Null where this node does not have the key: its sessions do not count here. */
  async #keyOf(claims: SessionClaims): Promise<Uint8Array | null> {
    const { sessionKeys, log } = this.#parts;
    if (!this.#isOpen(claims)) return null;
    const key = await sessionKeys.keyOf(claims.keyId, claims.issuedMs);
    if (key !== null) return key.bytes;
    if (!this.#hasWarned)
      log.warn(
        'a session of the web page was signed with an unknown key, so the user has to log in again: cluster members need the same data-protection token or the same ClusterSecret',
      );
    this.#hasWarned = true;
    return null;
  }

  async #findLater(value: string): Promise<Verified | null> {
    const found = await this.#read(value);
    const looking = found === null ? (this.#parts.upToDate?.() ?? null) : null;
    if (looking === null) return found;
    await looking;
    return this.#read(value);
  }

  async #read(value: string): Promise<Verified | null> {
    const { ends, keys } = this.#parts;
    await ends.refresh();
    const signed = await parseSession(value, (claims) => this.#keyOf(claims), keys);
    if (signed === null) return null;
    const { claims, key } = signed;
    const found = await this.#userNow(claims.user);
    if (
      found === null ||
      !this.#isOpen(claims) ||
      !isUnchanged(claims.mark, found.mark) ||
      fingerprintOf(found.stored.record, key, keys) !== claims.fingerprint
    )
      return null;
    return this.#verified.get(value) ?? this.#remember(value, claims, found.stored);
  }

  #remember(value: string, claims: SessionClaims, { record }: StoredUser): Verified {
    const { user, endsMs, mark } = claims;
    const session: Verified = {
      principal: { name: user, roles: record.groups },
      endsMs,
      proof: { user, lastEventNumber: mark.lastEventNumber, metadataVersion: mark.metadataVersion },
      claims,
    };
    this.#ofPrincipals.set(session.principal, session);
    this.#verified.set(value, session);
    if (this.#verified.size > VERIFIED_MAX) this.#verified.delete(this.#verified.keys().next().value!);
    return session;
  }

  /** The user as it is, with the end of its stream; null for one that may not log in, or is being changed. */
  async #userNow(user: string): Promise<{ readonly stored: StoredUser; readonly mark: StreamMark } | null> {
    const { store, streams } = this.#parts;
    try {
      const { lastEventNumber, metadataVersion } = await store.streamInfo(userStream(user));
      const stored = await streams.read(user);
      if (stored === null || stored.record.isDisabled || stored.number !== lastEventNumber) return null;
      return { stored, mark: { lastEventNumber, metadataVersion } };
    } catch (error) {
      if (isSkuaError(error, 'invalid_stream_name')) return null;
      throw error;
    }
  }
}
