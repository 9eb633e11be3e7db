/** Characters of the longest message. It may quote what was sent, and is repeated in answers, logs and the audit. */
const MESSAGE_LENGTH_MAX = 8_192;

/**
 * What the data of an error say, for codes whose data are read or promised. For other codes they are for the log, and
 * may say anything.
 */
export interface ErrorData {
  // Storage, log and index: where the damage is
  readonly file_not_found: { readonly path?: string; readonly key?: string; readonly place?: string };
  readonly log_corrupt: {
    readonly file?: string;
    readonly offset?: number | null;
    readonly position?: number;
    readonly key?: string;
    readonly [more: string]: unknown;
  };
  readonly index_corrupt: {
    readonly path?: string;
    readonly offset?: number;
    readonly indexed?: number;
    readonly position?: number;
  };
  // Backup
  readonly repository_damaged: {
    readonly key?: string;
    readonly place?: string;
    readonly path?: string;
    readonly isMissing?: boolean;
    readonly member?: string;
    readonly offset?: number;
    readonly position?: number;
    readonly from?: number;
    readonly to?: number;
  };
  readonly not_restorable: Restorable;
  // The cluster
  readonly log_diverged: {
    readonly position?: number;
    readonly place?: string;
    readonly number?: number;
    readonly start?: number;
    readonly end?: number;
    readonly expected?: number;
  };
  readonly member_unreachable: Unreached;
  readonly member_silent: Unreached;
  readonly member_refused: { readonly node: string; readonly status: number; readonly code: string | null };
  readonly not_leader: {
    readonly leader?: string | null;
    readonly hint?: string;
    readonly epoch?: number;
    readonly isFinal?: boolean;
  };
  // Streams
  readonly wrong_expected_version: { readonly stream: string; readonly expected: number; readonly actual: number };
  readonly condition_failed: { readonly stream: string; readonly number: number; readonly position: number };
  readonly checkpoint_unknown: {
    readonly position: { readonly commit: number; readonly prepare: number };
    readonly why: string;
  };
  readonly consistency_violation: { readonly violations: readonly StreamViolation[] };
  readonly stream_deleted: { readonly stream: string; readonly isSoftDeleted?: true };
  readonly stream_not_found: { readonly stream: string };
  readonly stream_is_view: { readonly stream: string };
  readonly invalid_metadata: { readonly stream: string; readonly key: string | null; readonly mustBe?: string };
  readonly event_too_large: { readonly index: number; readonly size: number; readonly limit: number };
  readonly bad_tags: { readonly index: number; readonly tags: number; readonly bytes: number };
  readonly batch_too_large: { readonly size: number; readonly limit: number };
  // Projections
  readonly projection_failed: {
    readonly projection: string;
    readonly stream: string;
    readonly version: number;
    readonly type: string;
    readonly id: string;
    readonly position: { readonly commit: number; readonly prepare: number };
  };
  readonly projection_running: Nothing;
  // Persistent subscriptions
  readonly persistent_subscription_exists: Group;
  readonly persistent_subscription_not_found: { readonly stream: string; readonly group?: string };
  readonly persistent_subscription_failed: { readonly stream: string; readonly group: string; readonly reason: string };
  readonly persistent_subscription_dropped: Group;
  readonly maximum_subscribers_reached: Group;
  // Scavenging
  readonly scavenge_in_progress: { readonly scavengeId: string | null; readonly hint?: string };
  readonly scavenge_not_found: {
    readonly scavengeId?: string | null;
    readonly clusterScavengeId?: string;
    readonly attempt?: number;
    readonly hint?: string;
  };
  readonly scavenge_stopping: { readonly scavengeId: string; readonly retryAfterSeconds: number };
  readonly auto_scavenge_off: { readonly reason?: string; readonly hint?: string };
  readonly late_order: { readonly clusterScavengeId: string; readonly attempt: number; readonly seen?: number };
  readonly invalid_schedule: { readonly hint?: string };
  // Security
  readonly too_many_failures: { readonly retryAfterSeconds: number };
  readonly user_not_found: Login;
  readonly user_exists: Login;
  readonly wrong_password: Login;
  readonly last_administrator: Login;
  // Connectors
  readonly invalid_connector: {
    readonly violations?: readonly { readonly field: string; readonly description: string }[];
  };
  // Configuration and certificates
  readonly certificate_invalid: {
    readonly file?: string;
    readonly reason?: string;
    readonly problems?: readonly { readonly file: string; readonly reason: string }[];
  };
  readonly reload_failed: { readonly file: string | null; readonly reason: string };
  // HTTP
  readonly method_not_allowed: { readonly hint?: string };
  readonly bad_json: { readonly hint?: string; readonly offset?: number };
  readonly range_not_satisfiable: { readonly sizeBytes: number };
  // Codes that say it all
  readonly store_closed: Nothing;
  readonly backup_off: Nothing;
  readonly not_a_member: Nothing;
  readonly licence_invalid: Nothing;
  readonly task_not_found: Nothing;
  readonly expression_too_large: Nothing;
  readonly invalid_expression: Nothing;
  readonly unsupported_expression: Nothing;
  readonly foreign_origin: Nothing;
  readonly foreign_host: Nothing;
  readonly not_acceptable: Nothing;
  readonly unsupported_media_type: Nothing;
  readonly not_found: Nothing;
  readonly not_here: Nothing;
}

type Nothing = Readonly<Record<string, never>>;
type Unreached = { readonly node: string; readonly reason: string; readonly isBroken?: boolean };
/** What can be had instead of the position or time that was asked for. */
type Restorable = {
  readonly position?: number;
  readonly below?: number | null;
  readonly above?: number | null;
  readonly timeMs?: number;
  readonly earliestMs?: number;
  readonly belowMs?: number | null;
  readonly aboveMs?: number | null;
};
/** A check that did not hold. */
export interface StreamViolation {
  /** Of the check among all. */
  readonly index: number;
  readonly stream: string;
  readonly expected: number;
  /** The number of the last event, NO_STREAM, IS_SOFT_DELETED or IS_TOMBSTONED. */
  readonly actual: number;
}
type Group = { readonly stream: string; readonly group: string };
type Login = { readonly loginName: string };

type LooseData = Readonly<Record<string, unknown>>;

/** The data of an error of this code. */
export type DataOf<C extends ErrorCode> = C extends keyof ErrorData ? ErrorData[C] : LooseData;

/** Data may be left out where no member must be there; those of a code that is not known before may be anything. */
type Details<C extends ErrorCode> = ErrorCode extends C
  ? [data?: LooseData, cause?: unknown]
  : {} extends DataOf<C>
    ? [data?: DataOf<C>, cause?: unknown]
    : [data: DataOf<C>, cause?: unknown];

/**
 * The one error type of the core. `code` is stable and part of the public interface; `message` says what happened and
 * what to do; `data` holds what a caller needs to react (expected and actual version, path, limit, offset).
 */
export interface SkuaError extends Error {
  readonly code: ErrorCode;
  readonly data: LooseData;
}

/** An error whose code is known, so that its data are, too. */
export type SkuaErrorOf<C extends ErrorCode> = Error & { readonly code: C; readonly data: DataOf<C> };

interface SkuaErrorConstructor {
  new <C extends ErrorCode>(code: C, message: string, ...details: Details<C>): SkuaErrorOf<C>;
  readonly prototype: SkuaError;
}

/** By which an error is known whatever bundle its class is of: a program may load several, each with one of its own. */
const BRAND: unique symbol = Symbol.for('skua.error');

/** The constructor checks the data by the code, which a class alone can't. */
export const SkuaError = class extends Error {
  readonly code: ErrorCode;
  readonly data: LooseData;

  static override [Symbol.hasInstance](error: unknown): boolean {
    return typeof error === 'object' && error !== null && BRAND in error;
  }

  get [BRAND](): true {
    return true;
  }

  constructor(code: ErrorCode, message: string, data: LooseData = {}, cause?: unknown) {
    super(
      message.length > MESSAGE_LENGTH_MAX ? `${message.slice(0, MESSAGE_LENGTH_MAX - 1).toWellFormed()}…` : message,
      cause === undefined ? undefined : { cause },
    );
    this.name = 'SkuaError';
    this.code = code;
    this.data = data;
  }
} as SkuaErrorConstructor;

export type ErrorCode =
  // Storage
  | 'file_not_found'
  | 'file_exists'
  | 'disk_full'
  | 'io_error'
  | 'sync_failed'
  | 'directory_locked'
  | 'not_a_data_directory'
  // Log and recovery
  | 'log_corrupt'
  | 'log_unsupported'
  | 'checkpoint_corrupt'
  | 'chunk_missing'
  | 'chunk_unexpected'
  | 'truncation_too_large'
  | 'writer_stopped'
  | 'store_closed'
  | 'bad_option'
  // Index
  | 'index_corrupt'
  // Object stores
  | 'storage_unreachable'
  | 'bucket_not_found'
  | 'storage_denied'
  | 'wrong_region'
  | 'clock_skewed'
  | 'storage_throttled'
  | 'outcome_unknown'
  // Backup
  | 'backup_running'
  | 'backup_not_running'
  | 'hold_not_found'
  | 'repository_not_found'
  | 'repository_damaged'
  | 'repository_key'
  | 'repository_busy'
  | 'repository_unreachable'
  | 'backup_not_found'
  | 'not_restorable'
  | 'other_node'
  | 'directory_not_empty'
  | 'backup_failed'
  | 'backup_off'
  // The log on object storage
  | 'commit_lost'
  | 'commit_outcome_unknown'
  | 'commit_contended'
  | 'prefix_unsuitable'
  | 'manifest_invalid'
  | 'scavenge_state_too_large'
  | 'scavenge_stopping'
  // The cluster
  | 'log_diverged'
  | 'other_log'
  | 'copy_behind'
  | 'copy_attached'
  | 'commit_not_applied'
  | 'epoch_lost'
  | 'write_expired'
  | 'member_unreachable'
  | 'member_silent'
  | 'member_refused'
  | 'not_a_member'
  | 'address_in_use'
  | 'format_too_new'
  // Streams
  | 'wrong_expected_version'
  | 'consistency_violation'
  | 'stream_deleted'
  | 'stream_not_found'
  | 'stream_is_view'
  | 'event_not_found'
  | 'not_redactable'
  | 'redactions_full'
  | 'access_denied'
  | 'invalid_stream_name'
  | 'invalid_event'
  | 'event_invalid'
  | 'event_unknown'
  | 'invalid_expected_version'
  | 'invalid_mark'
  | 'invalid_metadata'
  | 'event_too_large'
  | 'bad_tags'
  | 'checkpoint_unknown'
  | 'condition_failed'
  | 'condition_too_broad'
  | 'index_building'
  | 'index_off'
  | 'position_unknown'
  | 'batch_too_large'
  | 'body_too_large'
  | 'batch_empty'
  | 'page_too_large'
  | 'invalid_count'
  | 'invalid_position'
  | 'invalid_event_number'
  | 'too_busy'
  | 'aborted'
  | 'invalid_expression'
  | 'unsupported_expression'
  | 'expression_too_large'
  // Projections
  | 'projection_failed'
  | 'projection_running'
  // Persistent subscriptions
  | 'persistent_subscription_exists'
  | 'persistent_subscription_not_found'
  | 'persistent_subscription_failed'
  | 'persistent_subscription_dropped'
  | 'maximum_subscribers_reached'
  // Scavenging
  | 'scavenge_in_progress'
  | 'scavenge_not_found'
  | 'scavenge_state_invalid'
  | 'scavenge_failed'
  // The proof that nothing was changed
  | 'proof_damaged'
  | 'proof_invalid'
  | 'proof_failed'
  | 'proof_absent'
  // Security
  | 'not_authenticated'
  | 'too_many_failures'
  | 'not_ready'
  | 'user_not_found'
  | 'user_exists'
  | 'wrong_password'
  | 'invalid_user'
  | 'last_administrator'
  // Connectors
  | 'invalid_connector'
  | 'connector_exists'
  | 'connector_not_found'
  | 'connector_state'
  | 'secret_refused'
  // What was asked for and goes on in the background
  | 'task_running'
  | 'task_not_found'
  // Configuration and certificates
  | 'certificate_invalid'
  | 'reload_failed'
  // Auto-scavenge
  | 'auto_scavenge_off'
  | 'not_leader'
  | 'no_leader'
  | 'invalid_schedule'
  | 'auto_scavenge_pausing'
  | 'auto_scavenge_busy'
  | 'late_order'
  | 'licence_invalid'
  // HTTP
  | 'foreign_origin'
  | 'foreign_host'
  | 'bad_request'
  | 'bad_json'
  | 'bad_header'
  | 'not_acceptable'
  | 'unsupported_media_type'
  | 'not_found'
  | 'not_here'
  | 'method_not_allowed'
  | 'range_not_satisfiable'
  | 'page_unavailable'
  // A client of a server
  | 'unreachable'
  | 'unexpected_reply'
  | 'reply_too_large';

/**
 * What the code itself ensures where data become durable does not hold: nothing more may be written, so that nothing is
 * spoilt.
 */
export function brokenInvariant(what: string, data: Record<string, unknown>): SkuaError {
  return new SkuaError(
    'writer_stopped',
    `${what}: this is a defect, so nothing more is written. Reading goes on. Restart the node, and report it.`,
    data,
  );
}

/** True when `error` is a SkuaError, of the given code if one is named. */
export function isSkuaError(error: unknown): error is SkuaError;
export function isSkuaError<C extends ErrorCode>(error: unknown, code: C): error is SkuaErrorOf<C>;
export function isSkuaError(error: unknown, code?: ErrorCode): boolean {
  return error instanceof SkuaError && (code === undefined || error.code === code);
}
