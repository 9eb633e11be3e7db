import { statSync } from 'node:fs';
import { SkuaError } from '../../core/base/errors.ts';

/** A directory by device and inode, as text: `stat` rounds neither. */
export function identityOf(directory: string): string | null {
  try {
    const found = statSync(directory, { bigint: true, throwIfNoEntry: false });
    return found?.isDirectory() === true ? `${found.dev}:${found.ino}` : null;
  } catch (error) {
    // A file is in the way of the path. Where the root may not be read, the error is thrown.
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return null;
    throw error;
  }
}

/** Of an identity. */
export function deviceIn(identity: string): string {
  return identity.slice(0, identity.indexOf(':'));
}

/** Whatever stood there may come back, and is used again then. */
export function rootMissing(root: string): SkuaError {
  return new SkuaError(
    'storage_unreachable',
    `The directory ${root} does not exist. If it was renamed, removed or unmounted, put it back: it is used again at once.`,
    { path: root, reason: 'missing' },
  );
}

export function rootReplaced(root: string, why: string, cause?: unknown): SkuaError {
  return new SkuaError(
    'storage_unreachable',
    `The directory at ${root} is not the one that was opened: ${why}. Nothing is read from it or written to it. Put the right one back; it is used again at once. If this is the right one, restart everything that uses it.`,
    { path: root, reason: 'replaced' },
    cause,
  );
}
