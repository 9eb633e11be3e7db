import { SkuaError } from '../errors.ts';

/**
 * Throws `io_error` when a path could leave the data directory or has an empty part. Paths come from our own code, so
 * a bad one is a defect; refusing it keeps a defect from touching foreign files.
 */
export function checkPath(path: string): void {
  if (path === '') throw badPath(path);
  for (const part of path.split('/')) {
    if (part === '' || part === '.' || part === '..' || part.includes('\\') || part.includes('\0')) throw badPath(path);
  }
}

function badPath(path: string): SkuaError {
  return new SkuaError('io_error', `"${path}" is not a path inside the data directory: this is a defect.`, { path });
}

/** The folder of a path, '' for a file directly in the data directory. */
export function folderOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? '' : path.slice(0, slash);
}

/** Throws `io_error` when a rename would leave its folder. */
export function checkRename(from: string, to: string): void {
  checkPath(from);
  checkPath(to);
  if (folderOf(from) !== folderOf(to)) {
    throw new SkuaError('io_error', `"${from}" can't be renamed to "${to}": a file keeps its folder. This is a defect.`, { path: from, to });
  }
}

export function fileNotFound(path: string): SkuaError {
  return new SkuaError('file_not_found', `The file ${path} does not exist in the data directory.`, { path });
}

export function fileExists(path: string): SkuaError {
  return new SkuaError('file_exists', `The file ${path} exists already in the data directory.`, { path });
}

export function fileClosed(path: string): SkuaError {
  return new SkuaError('io_error', `The file ${path} was used after it had been closed: this is a defect.`, { path });
}

export function fileReadOnly(path: string): SkuaError {
  return new SkuaError('io_error', `The file ${path} is open for reading only: open it for writing first.`, { path });
}
