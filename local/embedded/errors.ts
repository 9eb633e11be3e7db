import { type ErrorCode, isSkuaError as isAnySkuaError, type SkuaError, type SkuaErrorOf } from '../../core/base/errors.ts';
import type { Expected } from './api.ts';

/** What the codes of errors mean that the methods of a store reject with. */
export const STORE_ERRORS = {
  aborted: 'The work was ended before it was complete.',
  access_denied: 'The name is reserved: nobody may write there.',
  backup_failed: 'The backup could not be completed; none was added.',
  backup_running: 'A backup or a proof of erasure reads the files: wait for its end.',
  bad_option: 'An option has a value that it can\'t have.',
  batch_empty: 'There is nothing to append.',
  batch_too_large: 'The events of one append hold more than a chunk takes.',
  bucket_not_found: 'There is no such bucket.',
  commit_contended: 'On a bucket: others write so fast that this write did not get in. Nothing was written.',
  commit_outcome_unknown: 'On a bucket: whether this was written could not be found out. Append again with the same ids.',
  consistency_violation: 'Streams are not what was expected of them; `data.violations` has them all. Nothing was written.',
  directory_locked: 'Another process has opened the directory.',
  disk_full: 'There is no space left. Nothing was written.',
  event_too_large: 'Data and metadata of one event have more than 4 MiB.',
  expression_too_large: 'The expression of a filter is longer, or more complex, than is taken.',
  index_corrupt: 'The index is damaged in a way that can\'t be mended: remove the folder `index`, and it is built anew.',
  invalid_count: 'A limit is no whole number of 1 or more.',
  invalid_event: 'An event can\'t be written: its type is empty or too long, its id is no UUID, its data are no JSON.',
  invalid_event_number: 'A version is no whole number of 0 or more.',
  invalid_expected_version: 'What is expected is neither a version nor one of the words.',
  invalid_expression: 'The expression of a filter is none.',
  invalid_metadata: 'Metadata of a stream have a value that means nothing; `data.key` names it.',
  invalid_position: 'No event has this position.',
  invalid_stream_name: 'No stream can have this name.',
  io_error: 'A file could not be read or written.',
  log_corrupt: 'The log is damaged: restore a backup.',
  log_unsupported: 'The log has a format that this version does not read.',
  not_a_data_directory: 'The directory is none of a store, and holds what is somebody else\'s. Nothing was changed.',
  prefix_unsuitable: 'The bucket can\'t hold a store: its server does not keep an object from being written over.',
  repository_damaged: 'The repository of backups is damaged.',
  repository_key: 'The key is not that of the repository, or one is missing.',
  repository_unreachable: 'The repository does not answer.',
  scavenge_failed: 'The scavenge ended with an error; what it removed by then is gone, and the next one goes on.',
  scavenge_in_progress: 'A scavenge runs: wait for its end, or stop it.',
  storage_denied: 'The credentials don\'t let in.',
  storage_unreachable: 'The bucket does not answer.',
  store_closed: 'The store is closed.',
  stream_deleted: 'The stream was deleted for ever.',
  stream_not_found: 'There is no such stream, or it has no events.',
  too_busy: 'Too much waits already: try again in a moment.',
  unsupported_expression: 'The expression of a filter has what RE2 does not know.',
  writer_stopped: 'Writing failed, and has stopped so that nothing is lost: close the store and open it again.',
  wrong_expected_version: 'The stream is not what was expected of it; `data` has `stream`, `expected` and `actual`, a version or null.',
} as const satisfies Partial<Record<ErrorCode, string>>;

/** Codes of the errors that a store has. */
export type StoreErrorCode = keyof typeof STORE_ERRORS;

/** What was expected of a stream, and its version, or null where it has none. */
export type Conflict = { readonly stream: string; readonly expected: Expected; readonly actual: number | null };

/** Data that a store tells in its own words. */
type OwnData = {
  readonly wrong_expected_version: Conflict;
  readonly consistency_violation: { readonly violations: readonly Conflict[] };
};

/** An error of a store whose code is known, so that its data are, too. */
export type StoreError<C extends ErrorCode> = C extends keyof OwnData ? Error & { readonly code: C; readonly data: OwnData[C] } : SkuaErrorOf<C>;

/** True when `error` is a SkuaError, of the given code if one is named. */
export function isSkuaError(error: unknown): error is SkuaError;
export function isSkuaError<C extends ErrorCode>(error: unknown, code: C): error is StoreError<C>;
export function isSkuaError(error: unknown, code?: ErrorCode): boolean {
  return isAnySkuaError(error) && (code === undefined || error.code === code);
}
