import { SkuaError } from '../../core/base/errors.ts';
import { storageError } from '../fs/fs-errors.ts';

/** Where the database lies, as messages name it. */
const STATE_PATH = 'index/scavenging/scavenging.db';
const REMEDY = `Stop the node and delete index/scavenging: the next scavenge then rebuilds it from the log. Nothing else is lost.`;

/** Primary result codes of SQLite. */
const SQL_ERROR = 1;
const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const NOT_A_DATABASE = 26;

/** The error of a call to SQLite in the words of the project. */
export function stateError(error: unknown): SkuaError {
  if (error instanceof SkuaError) return error;
  const resultCode = (error as { errcode?: unknown } | null)?.errcode;
  if (typeof resultCode !== 'number') return storageError(error, STATE_PATH);
  const message = error instanceof Error ? error.message : String(error);
  const data = { path: STATE_PATH, resultCode };
  switch (resultCode & 0xff) {
    case FULL:
      return new SkuaError(
        'disk_full',
        `There is no space left to write ${STATE_PATH}. Free space on the disk, then start the scavenge again: it resumes where it was.`,
        data,
        error,
      );
    case SQL_ERROR:
      // The statements never change, so it is the tables that do not fit them.
      return invalidState(`is not of the known schema (${message})`, error);
    case CORRUPT:
    case NOT_A_DATABASE:
      return invalidState(`is damaged (${message})`, error);
    case BUSY:
    case LOCKED:
      return new SkuaError(
        'io_error',
        `${STATE_PATH} is in use by another process or run: start the scavenge again when that has finished.`,
        data,
        error,
      );
    default:
      return new SkuaError(
        'io_error',
        `An operation on ${STATE_PATH} failed: ${message}. Check the disk, the permissions and the system's log.`,
        data,
        error,
      );
  }
}

export function invalidState(why: string, cause?: unknown): SkuaError {
  return new SkuaError('scavenge_state_invalid', `${STATE_PATH} ${why}. ${REMEDY}`, { path: STATE_PATH }, cause);
}

/** Calls SQLite; for calls that are not made for each record. */
export function guarded<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw stateError(error);
  }
}
