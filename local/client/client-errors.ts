import { type ErrorCode, isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { ProblemDocument } from '../../handlers/documents/problem.ts';
import { inWords } from '../event-store/words.ts';

/** What a server answers in the place of what was asked for, as the errors that a store has. */

/** What the codes mean that a client has beside those of a store without a server. */
export const CLIENT_ERRORS = {
  access_denied: 'The user may not do this.',
  no_leader: 'The cluster has no leader at the moment: call again later.',
  not_authenticated: 'The server wants a login, or does not know this one.',
  not_ready: 'The server starts: call again later.',
  reply_too_large: "A function can't answer with as much.",
  too_many_failures: 'Too many logins have failed from here: wait, and check the password.',
  unexpected_reply: 'What answers at the address is no event store, or none that this client understands.',
  unreachable:
    'No address answered in time. It is not known whether a write took effect: append again with the same ids.',
} as const satisfies Partial<Record<ErrorCode, string>>;

/** Characters of a reply that is no problem document which an error shows. */
const SHOWN_LENGTH_MAX = 200;
/** Longest time that a server may ask to wait for, in seconds. */
const WAIT_SECONDS_MAX = 3_600;
const MS = 1_000;

/**
 * Statuses that pass: too many calls, a function that failed or took too long, a server that is not ready or whose
 * storage does not answer.
 */
const PASSING_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Codes with such a status that stay: another try would be answered alike, or make it worse. */
const STAYING: ReadonlySet<string> = new Set(['too_many_failures', 'condition_too_broad', 'auto_scavenge_off']);
/** What the server has a word of its own for. */
const OTHER_CODES: Readonly<Record<string, ErrorCode>> = { body_too_large: 'batch_too_large' };

/** Of a server that has no such routes. */
const UNKNOWN_ROUTES: ReadonlySet<string> = new Set(['not_found', 'not_here', 'method_not_allowed']);

/** A failure that passes: the same request may be sent again. */
export class Passing extends Error {
  readonly failure: SkuaError;
  /** Milliseconds to wait for, if the server says so. */
  readonly waitMs: number | null;

  constructor(failure: SkuaError, waitMs: number | null) {
    super(failure.message);
    this.failure = failure;
    this.waitMs = waitMs;
  }
}

export function unreachable(why: string, cause?: unknown): Passing {
  return new Passing(
    new SkuaError(
      'unreachable',
      `${why}. Check that it runs, and the address; if this was a write, it is not known whether it took effect: repeat it with the same ids.`,
      {},
      cause,
    ),
    null,
  );
}

export function unexpected(status: number, why: string): SkuaError {
  return new SkuaError(
    'unexpected_reply',
    `The reply with status ${status} is not from an event store that this client understands: ${why}. Check the address, and that the server is not older than the client.`,
    { status },
  );
}

/** What a reply that is no success is for the caller. `text` is its body. */
export function failureOf(status: number, headers: Headers, text: string): SkuaError | Passing {
  const known = problemOf(text);
  if (known === null) return withoutDocument(status, headers, text);
  const { code, detail, hint, data, key } = known;
  if (UNKNOWN_ROUTES.has(code)) return unexpected(status, detail);
  const failure = inWords(
    new SkuaError<ErrorCode>(
      OTHER_CODES[code] ?? (code as ErrorCode),
      hint === undefined ? detail : `${detail} ${hint}`,
      {
        ...data,
        ...(key !== undefined && { key }),
      },
    ),
  );
  return PASSING_STATUSES.has(status) && !STAYING.has(code) ? new Passing(failure, waitOf(headers)) : failure;
}

function withoutDocument(status: number, headers: Headers, text: string): SkuaError | Passing {
  const shown = text.slice(0, SHOWN_LENGTH_MAX).trim();
  // Something before the server, such as a gateway, that has no word of its own for it.
  if (PASSING_STATUSES.has(status)) {
    const { failure } = unreachable(`The server's gateway answered ${status}${shown === '' ? '' : `: ${shown}`}`);
    return new Passing(failure, waitOf(headers));
  }
  if (status === 401) return new SkuaError('not_authenticated', CLIENT_ERRORS.not_authenticated);
  if (status === 403) return new SkuaError('access_denied', CLIENT_ERRORS.access_denied);
  if (status === 0 || (status >= 300 && status < 400))
    return unexpected(
      status,
      `it leads to another address${headers.has('location') ? `, ${headers.get('location')}` : ''}, where the login is not sent`,
    );
  return unexpected(status, shown === '' ? 'it has no text' : shown);
}

function waitOf(headers: Headers): number | null {
  const seconds = headers.get('retry-after');
  return seconds !== null && /^\d{1,9}$/.test(seconds) ? Math.min(Number(seconds), WAIT_SECONDS_MAX) * MS : null;
}

type Problem = Pick<ProblemDocument, 'detail' | 'hint' | 'data' | 'key'> & { readonly code: string };

function problemOf(text: string): Problem | null {
  try {
    const problem = JSON.parse(text) as Problem | null;
    return typeof problem?.code === 'string' && typeof problem.detail === 'string' ? problem : null;
  } catch {
    return null;
  }
}

/** The failure that a problem document within a reply says, which the server's own end is not. */
export function failureIn(text: string): SkuaError | Passing {
  const failure = failureOf(0, new Headers(), text);
  if (failure instanceof Passing) return failure;
  return ENDS_OF_SERVERS.has(failure.code) ? new Passing(failure, null) : failure;
}

/** Codes with which a subscription ends because its server does, or has too much to do. */
const ENDS_OF_SERVERS: ReadonlySet<string> = new Set(['store_closed', 'too_busy', 'io_error', 'aborted', 'not_ready']);

/** A server that ends answers so; the client is not closed. */
export function shownFailure({ failure }: Passing): SkuaError {
  return isSkuaError(failure, 'store_closed') || isSkuaError(failure, 'aborted')
    ? unreachable('The server is stopping', failure).failure
    : failure;
}
