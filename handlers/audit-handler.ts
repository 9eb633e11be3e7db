import { SkuaError } from '../core/base/errors.ts';
import { ownEntry } from '../core/ports/audit.ts';
import type { AuditDetails, AuditEntry, AuditLog } from '../core/ports/audit.ts';
import { addressGroup } from '../core/base/address-group.ts';
import { isAnonymous } from '../core/base/principal.ts';
import type { Principal } from '../core/security/api.ts';
import { credentialsOf } from './authentication.ts';
import type { App, Call } from './http/context.ts';

/** Repeated logins of a user from one address are recorded once in this time, and so are repeated refusals. */
export const AUDIT_SAMPLE_MS = 3_600_000;
/** Callers and refusals that are remembered for that. */
const SAMPLES_MAX = 10_000;
/**
 * Refusals of one address that are recorded one by one within AUDIT_SAMPLE_MS; those beyond are recorded as a number.
 */
export const ADDRESS_REFUSALS_MAX = 100;
/** Refusals in all that are recorded one by one within a minute. */
export const REFUSALS_PER_MINUTE_MAX = 600;
const MINUTE_MS = 60_000;
/** Characters of an unverified name: it is often a password that was typed into the wrong field. */
const TRIED_NAME_LENGTH_MAX = 64;
/** Longest `X-Request-Id` that is kept, in characters. */
const REQUEST_ID_LENGTH_MAX = 128;

const LOGIN_FAILURES: ReadonlySet<string> = new Set([
  'not_authenticated',
  'not_a_member',
  'too_many_failures',
  'wrong_password',
]);

/**
 * What the edge of the handlers records in the audit: logins, and what came of each call whose route is audited.
 * Whatever strangers can cause without end is sampled, so that they can't bury what others did.
 */
export class RequestAudit {
  readonly #app: App;
  readonly #log: AuditLog;
  readonly #logins: Samples;
  readonly #refusals: Samples;
  readonly #addresses: Samples;
  /** Where and when each principal was seen last: the same one comes with every request of a connection. */
  readonly #seen = new WeakMap<Principal, { readonly address: string | null; readonly atMs: number }>();
  #minute = { startMs: Number.NEGATIVE_INFINITY, told: 0 };
  #untold = 0;

  constructor(app: App, log: AuditLog) {
    this.#app = app;
    this.#log = log;
    this.#logins = new Samples();
    this.#refusals = new Samples();
    this.#addresses = new Samples();
  }

  /** The caller is known. */
  loggedIn(call: Call): void {
    const { principal } = call;
    if (isAnonymous(principal) || this.#app.security === null) return;
    const nowMs = this.#nowMs();
    const address = this.#addressOf(call);
    const last = this.#seen.get(principal);
    if (last !== undefined && last.address === address && nowMs - last.atMs < AUDIT_SAMPLE_MS) return;
    this.#seen.set(principal, { address, atMs: nowMs });
    if (this.#logins.add(`${principal.name}\n${address}`, nowMs) === null) return;
    this.#record(call, { action: 'login', outcome: 'success', details: { by: this.#meansOf(call) } });
  }

  #meansOf({ request, principal, session, forwarded }: Call): string {
    if (this.#app.server.peerOf?.(request) === principal) return 'certificate';
    if (session !== null || forwarded?.session != null) return 'page';
    const authorization = request.headers.get('authorization');
    return authorization === null ? 'proxy' : authorization.startsWith('Basic') ? 'password' : 'secret';
  }

  /** The caller's credentials were refused. */
  notLoggedIn(call: Call, status: number, error: unknown): void {
    const code = codeOf(error);
    if (code === null || !LOGIN_FAILURES.has(code)) return;
    const user = triedName(call);
    this.#refused(call, { action: 'login', outcome: 'refused', status, code, user });
  }

  /** A call was answered; one that was sent elsewhere did nothing. */
  done(call: Call, status: number): void {
    if (call.audited !== null && status !== 307)
      this.#record(call, { ...call.audited, outcome: status < 400 ? 'success' : 'failed', status });
  }

  /** A call ended with an error. */
  failed(call: Call, status: number, error: unknown): void {
    if (call.audited === null) return;
    const entry: Partial<AuditEntry> = { ...call.audited, status, code: codeOf(error) };
    if (status === 401 || status === 403 || status === 429) this.#refused(call, { ...entry, outcome: 'refused' });
    else this.#record(call, { ...entry, outcome: 'failed' });
  }

  /** The first of its kind from this address, and then one an hour with the number of those between. */
  #refused(call: Call, entry: Partial<AuditEntry>): void {
    const nowMs = this.#nowMs();
    const address = this.#addressOf(call);
    const { action, code, user = call.principal.name } = entry;
    const isMany = this.#addresses.count(addressGroup(address), nowMs) > ADDRESS_REFUSALS_MAX;
    // An address that tries one name after the other gets one line for all that follow.
    const repeats = this.#refusals.add(isMany ? `\n${address}` : `${action}\n${code}\n${user}\n${address}`, nowMs);
    if (repeats === null) return;
    if (nowMs - this.#minute.startMs >= MINUTE_MS) this.#minute = { startMs: nowMs, told: 0 };
    if (++this.#minute.told > REFUSALS_PER_MINUTE_MAX) {
      this.#untold++;
      return;
    }
    const more: AuditDetails = {
      ...entry.details,
      ...(repeats > 0 && { repeats }),
      ...(isMany && { others: 'more failures from this address are not recorded individually' }),
      ...(this.#untold > 0 && { untold: this.#untold }),
    };
    this.#untold = 0;
    this.#record(call, { ...entry, details: Object.keys(more).length === 0 ? null : more });
  }

  #record(call: Call, entry: Partial<AuditEntry>): void {
    const { request, principal } = call;
    this.#log.record(
      ownEntry(entry.action!, {
        user: principal.name,
        address: this.#addressOf(call),
        certificate: this.#app.server.certificateOf?.(request) ?? null,
        requestId: requestIdOf(request),
        ...entry,
      }),
    );
  }

  #addressOf({ request }: Call): string | null {
    return this.#app.server.addressOf?.(request) ?? null;
  }

  #nowMs(): number {
    return this.#app.world.clock.monotonicMs();
  }
}

/** Keys with the time since which they are known, the oldest forgotten first. */
class Samples {
  readonly #known = new Map<string, { readonly sinceMs: number; repeats: number }>();

  /**
   * Times that this key has come since it was last due where it is due again, 0 for the first; null where it is not
   * due.
   */
  add(key: string, nowMs: number): number | null {
    const known = this.#known.get(key);
    if (known !== undefined && nowMs - known.sinceMs < AUDIT_SAMPLE_MS) {
      known.repeats++;
      return null;
    }
    this.#set(key, nowMs, 0);
    return known?.repeats ?? 0;
  }

  /** Times that this key has come within the last AUDIT_SAMPLE_MS, this one included. */
  count(key: string, nowMs: number): number {
    const known = this.#known.get(key);
    if (known !== undefined && nowMs - known.sinceMs < AUDIT_SAMPLE_MS) return ++known.repeats;
    this.#set(key, nowMs, 1);
    return 1;
  }

  #set(key: string, sinceMs: number, repeats: number): void {
    this.#known.delete(key);
    this.#known.set(key, { sinceMs, repeats });
    if (this.#known.size <= SAMPLES_MAX) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }
}

function codeOf(error: unknown): string | null {
  return error instanceof SkuaError ? error.code : null;
}

/** The name in credentials that were refused. */
function triedName({ request }: Call): string | null {
  const header = request.headers.get('authorization');
  try {
    return header === null ? null : (credentialsOf(header)?.name.slice(0, TRIED_NAME_LENGTH_MAX) ?? null);
  } catch {
    return null;
  }
}

function requestIdOf(request: Request): string | null {
  return request.headers.get('x-request-id')?.slice(0, REQUEST_ID_LENGTH_MAX) ?? null;
}
