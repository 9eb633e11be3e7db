import type { KeyKind } from '../../ports/object-kinds.ts';
import { isOfKind } from '../../ports/object-kinds.ts';

/** The names that a repository gives its objects. Whatever has another one is not of the repository. */

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** What makes a place a repository, and says how to read it. */
export const REPOSITORY_KEY = 'skua-repository';
/** The time when the backup was made, in milliseconds, and its id. */
export const MANIFESTS: KeyKind = {
  prefix: 'manifests/',
  rest: /^\d{15}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
};
/** The beginning of the content's id, and all of it: `blobIdOf` tells whether they belong together. */
export const BLOBS: KeyKind = { prefix: 'blobs/', rest: /^[0-9a-f]{2}\/[0-9a-f]{64}$/ };
/** Id of the backup behind which log was shipped, and where it begins. */
export const SHIPPED: KeyKind = {
  prefix: 'shipped/',
  rest: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\/\d{20}$/,
};
/** Ids of backups and prunes that say that they run. */
export const ACTIVE: KeyKind = { prefix: 'active/', rest: UUID };
export const PRUNING: KeyKind = { prefix: 'pruning/', rest: UUID };
/** Marks of redaction that were known from backups of a node that was forgotten, by its id. */
export const KEPT_MARKS: KeyKind = { prefix: 'kept-redactions/', rest: UUID };
/** Which backup was last proven to be good, blobs that no backup needs, and those that are damaged. */
export const TESTED_KEY = 'proven';
export const UNREFERENCED_KEY = 'unreferenced';
export const SUSPECT_KEY = 'suspect';

const KINDS = [MANIFESTS, BLOBS, SHIPPED, ACTIVE, PRUNING, KEPT_MARKS];
const SINGLE: ReadonlySet<string> = new Set([REPOSITORY_KEY, TESTED_KEY, UNREFERENCED_KEY, SUSPECT_KEY]);

/** Whether an object has a name of a repository. */
export function isRepositoryKey(key: string): boolean {
  return SINGLE.has(key) || KINDS.some((kind) => isOfKind(kind, key));
}
