import { timestampText } from '../base/time.ts';

/** Who did what from where, for those who have to answer for a node afterwards. */

/** Where entries are events of the log, of a type that ends with their action. */
export const AUDIT_STREAM = '$audit';
export const AUDIT_TYPE_PREFIX = '$audit.';

export type AuditAction =
  // Who came in, or tried to; sampled
  | 'login'
  | 'logout'
  // Users and rights
  | 'user.create'
  | 'user.update'
  | 'user.delete'
  | 'user.enable'
  | 'user.disable'
  | 'user.reset-password'
  | 'user.change-password'
  /** Written to the stream of a user, past the routes of users. */
  | 'user.write'
  /** Metadata that has, or had, a `$acl`; the event that `$settings` ends with. */
  | 'access-list.change'
  // Data
  | 'stream.delete'
  | 'stream.tombstone'
  | 'event.redact'
  | 'index.set'
  | 'scavenge.start'
  | 'scavenge.stop'
  | 'auto-scavenge.pause'
  | 'auto-scavenge.resume'
  | 'auto-scavenge.configure'
  | 'backup.verify'
  | 'backup.drill'
  | 'backup.check-abort'
  | 'backup.start'
  | 'backup.abort'
  | 'backup.hold'
  | 'backup.release'
  // Connectors
  | 'connector.create'
  | 'connector.configure'
  | 'connector.rename'
  | 'connector.start'
  | 'connector.stop'
  | 'connector.reset'
  | 'connector.delete'
  // Persistent subscriptions
  | 'subscription.create'
  | 'subscription.update'
  | 'subscription.delete'
  | 'subscription.reset'
  | 'subscription.replay-parked'
  | 'subscription.truncate-parked'
  | 'subscription.restart'
  // The node
  | 'node.start'
  | 'node.stop'
  | 'node.shutdown'
  | 'node.reload'
  | 'node.priority'
  | 'node.resign'
  | 'index.merge'
  | 'log.level'
  | 'erasure.prove'
  | 'erasure.abort'
  // Work from the command line, past any node
  | 'directory.restore'
  | 'directory.scavenge'
  | 'repository.prune'
  | 'cluster.reset'
  /** Entries before this one could not be kept. */
  | 'audit.lost';

/** `refused`: the caller may not do this; `failed`: it was allowed, and came to nothing or may have. */
export type AuditOutcome = 'success' | 'refused' | 'failed';

/** One thing that was done or tried. It holds no secret: no password, token or key, no query and no body. */
export interface AuditEntry {
  readonly action: AuditAction;
  readonly outcome: AuditOutcome;
  /** Of the HTTP answer; null for what came by another way. */
  readonly status: number | null;
  /** Of the error; null without one. */
  readonly code: string | null;
  /** The name that the caller proved; the one that was tried where a login failed; null for the anonymous caller. */
  readonly user: string | null;
  /** Where the caller comes from, as far as that is known. */
  readonly address: string | null;
  /** The user, stream, connector, scavenge or the like that it was done to. */
  readonly target: string | null;
  /** Name in the verified certificate of the connection. */
  readonly certificate: string | null;
  /** What the caller, or a proxy, gave as `X-Request-Id`. */
  readonly requestId: string | null;
  /** What else there is to say, such as the groups that a user was given. */
  readonly details: AuditDetails | null;
}

export type AuditDetails = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/**
 * Keeps entries. It never throws and is never waited for: what can't be kept is counted, and that count is kept with
 * the next entries.
 */
export interface AuditLog {
  record(entry: AuditEntry): void;
}

/** An entry of something that no request asked for. */
export function ownEntry(action: AuditAction, more: Partial<AuditEntry> = {}): AuditEntry {
  return {
    action,
    outcome: 'success',
    status: null,
    code: null,
    user: null,
    address: null,
    target: null,
    certificate: null,
    requestId: null,
    details: null,
    ...more,
  };
}

/** Longest text of one member in characters. */
const TEXT_LENGTH_MAX = 1_024;
/** Texts of a list that are shown. */
const TEXTS_MAX = 64;
/** Longest details as JSON in characters; beyond that they are left out. With all members a line stays below 24 KiB. */
const DETAILS_LENGTH_MAX = 8_192;

/**
 * An entry as one line of JSON without its line break: members in this order, what is null left out but for user,
 * address and target.
 */
export function auditLine(entry: AuditEntry, atMs: number): string {
  const { action, outcome, status, code, user, address, target, certificate, requestId, details } = entry;
  return JSON.stringify({
    time: timestampText(Math.floor(atMs), 0),
    action,
    outcome,
    ...(status !== null && { status }),
    ...(code !== null && { code }),
    user: cut(user),
    address: cut(address),
    target: cut(target),
    ...(certificate !== null && { certificate: cut(certificate) }),
    ...(requestId !== null && { requestId: cut(requestId) }),
    ...(details !== null && { details: bounded(details) }),
  });
}

function cut(text: string | null): string | null {
  return text === null || text.length <= TEXT_LENGTH_MAX
    ? (text?.toWellFormed() ?? null)
    : `${text.slice(0, TEXT_LENGTH_MAX).toWellFormed()}…`;
}

function bounded(details: AuditDetails): AuditDetails {
  const shown = Object.fromEntries(
    Object.entries(details).map(([name, value]) => [
      name,
      typeof value === 'string' ? cut(value) : Array.isArray(value) ? value.slice(0, TEXTS_MAX).map(cut) : value,
    ]),
  );
  return JSON.stringify(shown).length > DETAILS_LENGTH_MAX ? { isTruncated: true } : (shown as AuditDetails);
}
