import { SkuaError } from '../errors.ts';

/** An object of a repository that is not what was written. `what` completes "The object ...". */
export function damaged(place: string, key: string, what: string, cause?: unknown): SkuaError {
  return new SkuaError('repository_damaged', `The object ${key} in ${place} ${what}. Run \`skua backup verify\` for all damage, take a new backup, and restore from one that does not need this object.`, { key, place, isMissing: what.startsWith('is missing') }, cause);
}
