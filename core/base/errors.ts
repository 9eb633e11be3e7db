/** Characters of the longest message. It may quote what was sent, and is repeated in answers, logs and the audit. */
const MESSAGE_LENGTH_MAX = 8_192;

/**
 * The one error type of the core. `code` is stable and part of the public interface; `message` says what happened and
 * what to do; `data` holds what a caller needs to react (expected and actual version, path, limit, offset).
 */
export class SkuaError extends Error {
  readonly code: ErrorCode;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, data: Record<string, unknown> = {}, cause?: unknown) {
    super(message.length > MESSAGE_LENGTH_MAX ? `${message.slice(0, MESSAGE_LENGTH_MAX - 1).toWellFormed()}…` : message, cause === undefined ? undefined : { cause });
    this.name = 'SkuaError';
    this.code = code;
    this.data = data;
  }
}

export type ErrorCode =
  // Storage
  | 'file_not_found' | 'file_exists' | 'disk_full' | 'io_error' | 'sync_failed' | 'directory_locked' | 'not_a_data_directory'
  // Log and recovery
  | 'log_corrupt' | 'log_unsupported' | 'checkpoint_corrupt' | 'chunk_missing' | 'chunk_unexpected' | 'truncation_too_large'
  | 'writer_stopped' | 'store_closed' | 'bad_option'
  // Index
  | 'index_corrupt'
  // Object stores
  | 'storage_unreachable' | 'bucket_not_found' | 'storage_denied' | 'wrong_region' | 'clock_skewed' | 'storage_throttled' | 'outcome_unknown'
  // Backup
  | 'backup_running' | 'backup_not_running' | 'hold_not_found' | 'repository_not_found' | 'repository_damaged' | 'repository_key' | 'repository_busy' | 'repository_unreachable' | 'backup_not_found'
  | 'not_restorable' | 'other_node' | 'directory_not_empty' | 'backup_failed' | 'backup_off'
  // The log on object storage
  | 'commit_lost' | 'commit_outcome_unknown' | 'commit_contended' | 'prefix_unsuitable' | 'manifest_invalid' | 'scavenge_state_too_large' | 'scavenge_stopping'
  // The cluster
  | 'log_diverged' | 'other_log' | 'copy_behind' | 'copy_attached' | 'commit_not_applied' | 'epoch_lost' | 'write_expired' | 'member_unreachable' | 'member_silent' | 'member_refused' | 'not_a_member' | 'address_in_use' | 'format_too_new'
  // Streams
  | 'wrong_expected_version' | 'consistency_violation' | 'stream_deleted' | 'stream_not_found' | 'event_not_found' | 'access_denied'
  | 'invalid_stream_name' | 'invalid_event' | 'invalid_expected_version' | 'invalid_metadata'
  | 'event_too_large' | 'batch_too_large' | 'body_too_large' | 'batch_empty' | 'page_too_large' | 'invalid_count'
  | 'invalid_position' | 'invalid_event_number' | 'too_busy' | 'aborted'
  | 'invalid_expression' | 'unsupported_expression' | 'expression_too_large'
  // Persistent subscriptions
  | 'persistent_subscription_exists' | 'persistent_subscription_not_found' | 'persistent_subscription_failed' | 'persistent_subscription_dropped' | 'maximum_subscribers_reached'
  // Scavenging
  | 'scavenge_in_progress' | 'scavenge_not_found' | 'scavenge_state_invalid' | 'scavenge_failed'
  // The proof that nothing was changed
  | 'proof_damaged' | 'proof_invalid' | 'proof_failed' | 'proof_absent'
  // Security
  | 'not_authenticated' | 'too_many_failures' | 'not_ready' | 'user_not_found' | 'user_exists' | 'wrong_password' | 'invalid_user' | 'last_administrator'
  // Connectors
  | 'invalid_connector' | 'connector_exists' | 'connector_not_found' | 'connector_state' | 'secret_refused'
  // What was asked for and goes on in the background
  | 'task_running' | 'task_not_found'
  // Configuration and certificates
  | 'certificate_invalid' | 'reload_failed'
  // Auto-scavenge
  | 'auto_scavenge_off' | 'not_leader' | 'no_leader' | 'invalid_schedule' | 'auto_scavenge_pausing' | 'auto_scavenge_busy' | 'late_order' | 'licence_invalid'
  // HTTP
  | 'foreign_origin' | 'foreign_host' | 'bad_request' | 'bad_json' | 'bad_header' | 'not_acceptable' | 'unsupported_media_type' | 'not_found' | 'not_here' | 'method_not_allowed' | 'range_not_satisfiable' | 'page_unavailable';

/**
 * What the code itself ensures where data become durable does not hold: nothing more may be written, so that nothing is
 * spoilt.
 */
export function brokenInvariant(what: string, data: Record<string, unknown>): SkuaError {
  return new SkuaError('writer_stopped', `${what}: this is a defect, so nothing more is written. Reading goes on. Restart the node, and report it.`, data);
}

/** True when `error` is a SkuaError, of the given code if one is named. */
export function isSkuaError(error: unknown, code?: ErrorCode): error is SkuaError {
  return error instanceof SkuaError && (code === undefined || error.code === code);
}
