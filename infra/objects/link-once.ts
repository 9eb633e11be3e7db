import { link, stat } from 'node:fs/promises';
import { SkuaError } from '../../core/errors.ts';
import { systemCode } from '../fs/errors.ts';

/** Gives the file the name `target`, unless that is taken: then false. Of several processes that try, one succeeds. */
export async function linkOnce(file: string, target: string, key: string, root: string): Promise<boolean> {
  try {
    await link(file, target);
    return true;
  } catch (error) {
    switch (systemCode(error)) {
      // Over a network the reply of a link that succeeded may be lost, and its repeat finds its own work.
      case 'EEXIST': return (await stat(file)).nlink > 1;
      case 'EIO': throw outcomeUnknown(key, root, error);
      case 'EPERM':
      case 'ENOTSUP':
      case 'EMLINK':
        throw new SkuaError('storage_denied', `${key} can't be created in ${root}: its file system has no hard links (${systemCode(error)}), which are needed so that only one of several writers succeeds. Use a directory on another file system.`, { key, path: root }, error);
      default: throw error;
    }
  }
}

export function outcomeUnknown(key: string, root: string, cause: unknown): SkuaError {
  return new SkuaError('outcome_unknown', `It is not known whether ${key} was created in ${root} (${systemCode(cause)}): put the same bytes there again, then look which are there.`, { key, path: root }, cause);
}
