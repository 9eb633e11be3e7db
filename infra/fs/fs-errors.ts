import { SkuaError } from '../../core/base/errors.ts';
import { fileExists, fileNotFound } from '../../core/ports/storage.ts';

/** The error of a system call on `path` as the Storage port words it; `place` is where that lies on this machine. */
export function storageError(error: unknown, path: string, location = path): SkuaError {
  if (error instanceof SkuaError) return error;
  const code = systemCode(error);
  switch (code) {
    case 'ENOENT':
      return fileNotFound(path);
    case 'EEXIST':
      return fileExists(path);
    case 'ENOSPC':
    case 'EDQUOT':
      return new SkuaError(
        'disk_full',
        `There is no space left to write ${path}. Free space on the disk, or scavenge; writes work again when there is space.`,
        { path, systemCode: code },
        error,
      );
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new SkuaError(
        'io_error',
        `Access to ${location} was denied (${code}). Check the owner and the permissions of the data directory.`,
        { path, systemCode: code },
        error,
      );
    case 'EMFILE':
    case 'ENFILE':
      return new SkuaError(
        'io_error',
        `${path} can't be opened: too many files are open (${code}). Raise the limit of open files.`,
        { path, systemCode: code },
        error,
      );
    default:
      return new SkuaError(
        'io_error',
        `An operation on ${path} failed (${code}): ${messageOf(error)}. Check the disk and the system's log.`,
        { path, systemCode: code },
        error,
      );
  }
}

/** Any failure of a sync, for lack of space too: the system may have dropped what it could not write. */
export function syncError(error: unknown, path: string): SkuaError {
  const code = systemCode(error);
  return new SkuaError(
    'sync_failed',
    `${path} could not be made durable (${code}): ${messageOf(error)}. Check the disk, then restart; what was not acknowledged may be lost.`,
    { path, systemCode: code },
    error,
  );
}

export function systemCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : 'unknown';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
