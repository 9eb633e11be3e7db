import { statSync } from 'node:fs';
import { SkuaError } from '../../core/base/errors.ts';

/** A directory by device and inode, as text: `stat` rounds neither. */
export function identityOf(directory: string): string | null {
  try {
    const found = statSync(directory, { bigint: true, throwIfNoEntry: false });
    return found?.isDirectory() === true ? `${found.dev}:${found.ino}` : null;
  } catch (error) {
    // A file in the way of the path; whoever may not look learns that.
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
  return new SkuaError('storage_unreachable', `The directory ${root} is not there. It is made only when something is begun in it; where it was renamed, removed or unmounted, put it back: it is used again at once.`, { path: root, reason: 'missing' });
}

export function rootReplaced(root: string, why: string, cause?: unknown): SkuaError {
  return new SkuaError('storage_unreachable', `Another directory lies at ${root} than the one that was opened: ${why}. Nothing is read from it or written to it. Put the right one back; it is used again at once. Where this is the right one, stop all that use it, and start them anew.`, { path: root, reason: 'replaced' }, cause);
}
