import {
  type ErrorCode,
  isSkuaError as isAnySkuaError,
  type SkuaError,
  type SkuaErrorOf,
} from '../../core/base/errors.ts';
import type { Expected } from './api.ts';

/** What the codes of errors mean that the methods of a store reject with. */
export const STORE_ERRORS = {
  aborted: 'The operation was interrupted.',
  access_denied: "The name is reserved and can't be written to.",
  backup_failed: 'The backup could not be completed and was not added.',
  backup_running: 'A backup or a proof of erasure is reading the files: wait until it has finished.',
  bad_option: 'An option has an invalid value.',
  batch_empty: 'There is nothing to append.',
  batch_too_large: 'The events of one append do not fit into one chunk.',
  bucket_not_found: 'There is no such bucket.',
  commit_contended: 'On a bucket: other writers kept getting ahead of this write. Nothing was written.',
  commit_outcome_unknown: 'On a bucket: it is not known whether this was written. Append again with the same ids.',
  consistency_violation: 'Streams are not at the expected versions; `data.violations` lists them. Nothing was written.',
  directory_locked: 'The directory is in use by another process.',
  disk_full: 'There is no space left. Nothing was written.',
  event_not_found: 'There is no such event in the stream, or it is gone.',
  event_too_large: 'Data and metadata of one event exceed 4 MiB.',
  expression_too_large: 'The expression of a filter is too long or too complex.',
  index_corrupt: 'The index is damaged beyond repair: remove the folder `index`, and it is rebuilt.',
  invalid_count: 'A limit is not a whole number of 1 or more.',
  invalid_event:
    "An event can't be written: its type is empty or too long, its id is not a UUID, or its data is not JSON.",
  invalid_event_number: 'A version is not a whole number of 0 or more.',
  invalid_expected_version: 'The expectation is neither a version nor one of the keywords.',
  invalid_expression: 'The expression of a filter is not valid.',
  invalid_mark: 'Only `redact` writes to the stream `$redactions`.',
  invalid_metadata: 'Stream metadata has an invalid value; `data.key` names it.',
  invalid_position: 'There is no event at this position.',
  invalid_stream_name: 'This is not a valid stream name.',
  io_error: 'A file could not be read or written.',
  log_corrupt: 'The log is damaged: restore a backup.',
  log_unsupported: 'The log has a format that this version does not read.',
  not_a_data_directory: 'The directory is not a store and holds other files. Nothing was changed.',
  not_redactable: 'The event has no content of its own, or decides what is shown.',
  prefix_unsuitable: "The bucket can't hold a store: its server does not support conditional writes.",
  redactions_full: 'The store has a million redacted events: no more can be redacted. Delete whole streams.',
  repository_damaged: 'The backup repository is damaged.',
  repository_key: 'The key of the repository is wrong or missing.',
  repository_unreachable: 'The repository is not reachable.',
  scavenge_failed: 'The scavenge failed; what it had removed stays removed, and the next one resumes.',
  scavenge_in_progress: 'A scavenge is running: wait until it has finished, or stop it.',
  storage_denied: 'Access was denied with these credentials.',
  storage_unreachable: 'The bucket is not reachable.',
  store_closed: 'The store is closed.',
  stream_deleted: 'The stream was hard-deleted.',
  stream_not_found: 'There is no such stream, or it has no events.',
  too_busy: 'Too many operations are waiting: try again in a moment.',
  unsupported_expression: 'The expression of a filter uses syntax that RE2 does not support.',
  writer_stopped: 'A write failed, and writing has stopped so that nothing is lost: close the store and reopen it.',
  wrong_expected_version:
    'The stream is not at the expected version; `data` has `stream`, `expected` and `actual`, a version or null.',
} as const satisfies Partial<Record<ErrorCode, string>>;

/** Codes of the errors that a store has. */
export type StoreErrorCode = keyof typeof STORE_ERRORS;

/** What was expected of a stream, and its version, or null where it has none. */
export type Conflict = { readonly stream: string; readonly expected: Expected; readonly actual: number | null };

/** Data that a store reports in its own words. */
type OwnData = {
  readonly wrong_expected_version: Conflict;
  readonly consistency_violation: { readonly violations: readonly Conflict[] };
};

/** An error of a store whose code is known, so that its data are, too. */
export type StoreError<C extends ErrorCode> = C extends keyof OwnData
  ? Error & { readonly code: C; readonly data: OwnData[C] }
  : SkuaErrorOf<C>;

/** True when `error` is a SkuaError, of the given code if one is named. */
export function isSkuaError(error: unknown): error is SkuaError;
export function isSkuaError<C extends ErrorCode>(error: unknown, code: C): error is StoreError<C>;
export function isSkuaError(error: unknown, code?: ErrorCode): boolean {
  return isAnySkuaError(error) && (code === undefined || error.code === code);
}
