import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { ErrorCode } from '../../core/base/errors.ts';
import type { ProblemDocument } from '../documents/problem.ts';
import { challengeTo } from './browsers.ts';
import { commonHeaders } from './reply.ts';
import type { App, Call, Reply } from './context.ts';

/** What an error code becomes on the wire. */
interface Outcome {
  readonly status: number;
  readonly reason: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const BAD_REQUEST: Outcome = { status: 400, reason: 'Bad Request' };
const FORBIDDEN: Outcome = { status: 403, reason: 'Forbidden' };
const NOT_FOUND: Outcome = { status: 404, reason: 'Not Found' };
const TOO_LARGE: Outcome = { status: 413, reason: 'Content Too Large' };
const WRITER_STOPPED: Outcome = { status: 503, reason: 'Server Is Not Ready' };
/** Failures of work that an administrator asked for: the reason is shown, unlike that of an internal error. */
const WORK_FAILED: Outcome = { status: 500, reason: 'Internal Server Error' };
const INTERNAL: Outcome = { status: 500, reason: 'Internal Server Error' };
const UNAUTHORIZED: Outcome = { status: 401, reason: 'Unauthorized' };
const CONFLICT: Outcome = { status: 409, reason: 'Conflict' };
const UNAVAILABLE: Outcome = { status: 503, reason: 'Service Unavailable', headers: { 'retry-after': '1' } };
/** An election takes some seconds. */
const NO_LEADER: Outcome = { status: 503, reason: 'Service Unavailable', headers: { 'retry-after': '5' } };
/** An operator has to act, which takes longer. */
const OUT_OF_REACH: Outcome = { status: 503, reason: 'Service Unavailable', headers: { 'retry-after': '60' } };

/** The one table from error codes to statuses and reason phrases. */
const OUTCOMES: Readonly<Partial<Record<ErrorCode, Outcome>>> = {
  wrong_expected_version: { status: 400, reason: 'Wrong expected EventNumber' },
  stream_deleted: { status: 410, reason: 'Stream deleted' },
  stream_not_found: NOT_FOUND,
  event_not_found: NOT_FOUND,
  not_found: NOT_FOUND,
  not_here: NOT_FOUND,
  access_denied: FORBIDDEN,
  foreign_origin: FORBIDDEN,
  foreign_host: { status: 421, reason: 'Misdirected Request' },
  method_not_allowed: { status: 405, reason: 'Method Not Allowed' },
  not_acceptable: { status: 406, reason: 'Requested URI is not available in requested format' },
  unsupported_media_type: { status: 415, reason: 'Invalid or missing Content-Type' },
  event_too_large: { status: 413, reason: 'Too large events received. Limit is 4mb' },
  batch_too_large: TOO_LARGE,
  body_too_large: { ...TOO_LARGE, headers: { connection: 'close' } },
  invalid_stream_name: BAD_REQUEST,
  bad_tags: BAD_REQUEST,
  stream_is_view: BAD_REQUEST,
  invalid_event: BAD_REQUEST,
  invalid_expected_version: BAD_REQUEST,
  invalid_metadata: BAD_REQUEST,
  invalid_mark: BAD_REQUEST,
  not_redactable: CONFLICT,
  condition_failed: CONFLICT,
  consistency_violation: CONFLICT,
  position_unknown: CONFLICT,
  checkpoint_unknown: CONFLICT,
  index_off: CONFLICT,
  index_building: UNAVAILABLE,
  condition_too_broad: { status: 422, reason: 'Condition too broad' },
  redactions_full: CONFLICT,
  invalid_count: BAD_REQUEST,
  invalid_position: BAD_REQUEST,
  invalid_event_number: BAD_REQUEST,
  invalid_expression: BAD_REQUEST,
  unsupported_expression: BAD_REQUEST,
  expression_too_large: BAD_REQUEST,
  batch_empty: BAD_REQUEST,
  page_too_large: BAD_REQUEST,
  bad_request: BAD_REQUEST,
  bad_json: BAD_REQUEST,
  bad_header: BAD_REQUEST,
  too_busy: { status: 503, reason: 'Server Is Too Busy', headers: { 'retry-after': '1' } },
  writer_stopped: WRITER_STOPPED,
  sync_failed: WRITER_STOPPED,
  not_authenticated: UNAUTHORIZED,
  too_many_failures: { status: 429, reason: 'Too Many Requests' },
  not_ready: { status: 503, reason: 'Server Is Not Ready', headers: { 'retry-after': '5' } },
  user_not_found: NOT_FOUND,
  user_exists: CONFLICT,
  invalid_user: BAD_REQUEST,
  wrong_password: UNAUTHORIZED,
  last_administrator: CONFLICT,
  persistent_subscription_not_found: NOT_FOUND,
  persistent_subscription_exists: CONFLICT,
  persistent_subscription_failed: BAD_REQUEST,
  persistent_subscription_dropped: UNAVAILABLE,
  maximum_subscribers_reached: UNAVAILABLE,
  invalid_connector: BAD_REQUEST,
  connector_exists: CONFLICT,
  connector_not_found: NOT_FOUND,
  connector_state: BAD_REQUEST,
  secret_refused: BAD_REQUEST,
  auto_scavenge_off: { status: 503, reason: 'Service Unavailable' },
  auto_scavenge_busy: UNAVAILABLE,
  auto_scavenge_pausing: BAD_REQUEST,
  invalid_schedule: BAD_REQUEST,
  not_leader: UNAVAILABLE,
  no_leader: NO_LEADER,
  late_order: CONFLICT,
  backup_running: CONFLICT,
  backup_not_running: NOT_FOUND,
  hold_not_found: NOT_FOUND,
  backup_not_found: NOT_FOUND,
  backup_off: CONFLICT,
  backup_failed: WORK_FAILED,
  repository_not_found: OUT_OF_REACH,
  repository_unreachable: OUT_OF_REACH,
  repository_damaged: WORK_FAILED,
  repository_key: WORK_FAILED,
  repository_busy: OUT_OF_REACH,
  storage_unreachable: UNAVAILABLE,
  storage_denied: OUT_OF_REACH,
  bucket_not_found: OUT_OF_REACH,
  wrong_region: OUT_OF_REACH,
  clock_skewed: OUT_OF_REACH,
  storage_throttled: UNAVAILABLE,
  commit_outcome_unknown: UNAVAILABLE,
  commit_contended: UNAVAILABLE,
  write_expired: UNAVAILABLE,
  scavenge_stopping: UNAVAILABLE,
  scavenge_state_too_large: WORK_FAILED,
  reload_failed: CONFLICT,
  certificate_invalid: CONFLICT,
  scavenge_in_progress: CONFLICT,
  range_not_satisfiable: { status: 416, reason: 'Range Not Satisfiable' },
  scavenge_not_found: NOT_FOUND,
  task_running: CONFLICT,
  task_not_found: NOT_FOUND,
  scavenge_state_invalid: WORK_FAILED,
  scavenge_failed: WORK_FAILED,
  // A connection is judged once, so that the next one has to be another.
  not_a_member: { ...UNAUTHORIZED, headers: { connection: 'close' } },
  other_log: CONFLICT,
  address_in_use: CONFLICT,
  epoch_lost: CONFLICT,
  format_too_new: CONFLICT,
  copy_behind: UNAVAILABLE,
  bad_option: BAD_REQUEST,
  store_closed: { status: 503, reason: 'Server Is Not Ready', headers: { 'retry-after': '5' } },
  disk_full: { status: 507, reason: 'Insufficient Storage' },
  page_unavailable: WORK_FAILED,
  aborted: { status: 503, reason: 'Server was unable to handle request in time' },
};

/** Status of an error code; 500 for those that no caller can cause. */
export function outcomeOf(code: ErrorCode): Outcome {
  return OUTCOMES[code] ?? INTERNAL;
}

/** Names that the reference's users API has for failures: its clients look at `success` and `error`. */
const USERS_ERRORS: Readonly<Partial<Record<ErrorCode, string>>> = {
  user_not_found: 'NotFound',
  user_exists: 'Conflict',
  wrong_password: 'Unauthorized',
  invalid_user: 'Error',
  last_administrator: 'Error',
};

/** What else to show where a reload failed: elsewhere paths of files are not the caller's business. */
function placeOf(error: SkuaError): Record<string, unknown> | undefined {
  return isSkuaError(error, 'reload_failed') || isSkuaError(error, 'certificate_invalid')
    ? { file: error.data.file, reason: error.data.reason }
    : undefined;
}

/**
 * Characters of the longest text beside the detail, which core/base/errors.ts bounds: it may quote what was sent, too.
 */
const SHOWN_LENGTH_MAX = 8_192;

function shown(value: unknown): unknown {
  return typeof value === 'string' && value.length > SHOWN_LENGTH_MAX
    ? `${value.slice(0, SHOWN_LENGTH_MAX - 1).toWellFormed()}…`
    : value;
}

/** Whose data are shown, beside the text: what the caller sent or may read, numbers and limits. */
const PROMISED_DATA: ReadonlySet<ErrorCode> = new Set([
  'checkpoint_unknown',
  'wrong_expected_version',
  'consistency_violation',
  'condition_failed',
  'event_too_large',
  'batch_too_large',
  'bad_tags',
  'invalid_event',
]);

/**
 * The problem document: `code`, `title`, `detail`, a `hint` where there is more to say than the documented text, and
 * what it is about.
 */
export function problemText(error: SkuaError, reason: string): string {
  const usersError = USERS_ERRORS[error.code];
  const document: { readonly [Name in keyof ProblemDocument]: unknown } = {
    code: error.code === 'sync_failed' ? 'writer_stopped' : error.code,
    title: reason,
    detail: error.message,
    hint: shown(error.data['hint']),
    ...(isSkuaError(error, 'invalid_metadata') && { key: shown(error.data.key) }),
    scavengeId: error.data['scavengeId'],
    backupId: error.data['backupId'],
    ...(PROMISED_DATA.has(error.code) && { data: error.data }),
    ...(isSkuaError(error, 'late_order') && { seen: error.data.seen }),
    ...placeOf(error),
    ...(usersError !== undefined && { success: false, error: usersError }),
  };
  return JSON.stringify(document);
}

/** Refused before a handler ran, the reference announces no methods. */
function announcesMethods(known: SkuaError | null): boolean {
  return known?.code !== 'not_authenticated' && known?.code !== 'access_denied';
}

/**
 * The reply to a failed call. Errors outside the table are bugs or broken storage: they are logged, and the caller sees
 * no internals.
 */
export function failure(error: unknown, call: Call, app: App): Reply {
  const known = error instanceof SkuaError ? error : null;
  const outcome = known === null ? INTERNAL : outcomeOf(known.code);
  if (outcome === INTERNAL) {
    app.world.log.error('request failed', { method: call.method, path: call.path, error });
    app.world.meter.count('eventstore_http_requests_failed_total');
  }
  const headers: Record<string, string> = {
    ...commonHeaders(announcesMethods(known) ? call.methods : ''),
    ...outcome.headers,
    'content-type': 'application/problem+json; charset=utf-8',
  };
  if (isSkuaError(error, 'wrong_expected_version')) {
    const current = String(error.data.actual);
    headers['es-currentversion'] = current;
    headers['kurrent-currentversion'] = current;
  }
  if (outcome.status === UNAUTHORIZED.status) headers['www-authenticate'] = challengeTo(call.request.headers);
  if (known?.code === 'too_many_failures' || typeof known?.data['retryAfterSeconds'] === 'number')
    headers['retry-after'] = String(Math.max(1, Math.ceil(Number(known.data['retryAfterSeconds'] ?? 1))));
  if (isSkuaError(error, 'range_not_satisfiable')) headers['content-range'] = `bytes */${error.data.sizeBytes}`;
  if (known?.code === 'method_not_allowed') headers['allow'] = call.methods;
  const reason = known?.code === 'stream_deleted' && call.method === 'GET' ? 'Deleted' : outcome.reason;
  const body =
    known !== null && outcome !== INTERNAL
      ? problemText(known, reason)
      : JSON.stringify({
          code: known?.code ?? 'internal',
          title: reason,
          detail: "The request failed inside the server. See the server's log for the reason.",
        });
  return { status: outcome.status, statusText: reason, headers, body };
}
