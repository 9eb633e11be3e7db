import { SkuaError } from '../../core/errors.ts';
import { systemCode } from '../fs/errors.ts';

/** The error of a system call on the file of an object, as the port of object stores words it. */
export function directoryError(error: unknown, key: string, root: string): SkuaError {
  if (error instanceof SkuaError) return error;
  const code = systemCode(error);
  const data = { key, path: root, systemCode: code };
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new SkuaError('disk_full', `There is no space left to write ${key} in ${root}. Free space on that disk and try again.`, data, error);
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new SkuaError('storage_denied', `Access to ${key} in ${root} was denied (${code}). Check the owner and the permissions of the directory, and that its file system is mounted for writing.`, data, error);
    case 'EMFILE':
    case 'ENFILE':
      return new SkuaError('io_error', `${key} in ${root} can't be opened: too many files are open (${code}). Raise the limit of open files.`, data, error);
    case 'ENOTDIR':
    case 'EISDIR':
    case 'ENOTEMPTY':
      return new SkuaError('io_error', `${key} in ${root} is a folder where a file is needed, or the reverse (${code}). Move away what does not belong in ${root}.`, data, error);
    default:
      return new SkuaError('io_error', `An operation on ${key} in ${root} failed (${code}): ${error instanceof Error ? error.message : String(error)}. Check the disk and the system's log.`, data, error);
  }
}

/** True for what says that there is no such file. */
export function isAbsent(error: unknown): boolean {
  const code = systemCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
