import { SkuaError } from '../base/errors.ts';
import { isSystemPath } from './system-names.ts';

/**
 * The names of our files in a data directory, those of the reference database and what either leaves behind included.
 * Whatever has another name is a stranger's: it stays where it is and stops nothing. So nothing is removed, or
 * replaced, but what `isOwnName` knows: the implementations of the Storage port ask, for every caller. A new kind of
 * file begins with a line here.
 */

const GUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const CHECKPOINT = /^(writer|chaser|epoch|proposal|truncate)\.chk$/;
const CHUNK = /^chunk-\d{6}\.\d{6}$/;
const TABLE = /^\{guid\}$/;
const TABLE_FILE = /^\{guid\}(\.bloomfilter)?$/;

/** Of an index: its map, tables and filters, and what it leaves beside them. */
const INDEX_FILES: readonly RegExp[] = [
  /^indexmap(\.\{guid\}\.indexmap\.tmp|\.copy\.tmp)?$/,
  /^\{guid\}(\.bloomfilter)?(\.copy\.tmp)?$/,
  /^proven-tables(\.tmp|\.copy\.tmp)?$/,
  /^\.forceverify$/,
];

/**
 * By folder, '' for the data directory itself: names of files that may go, or get another content; `{guid}` stands for
 * the text of any. What ends with `.tmp` is to replace the file before it, or was not finished, with `.copy.tmp` by a
 * copy of files.
 */
const REMOVABLE: ReadonlyMap<string, readonly RegExp[]> = new Map([
  [
    '',
    [
      /^chunk-\d{6}\.\d{6}(\.tmp|\.copy\.tmp|\.rest\.tmp|\.gone\.tmp|\.old|\.\{guid\}\.tmp)?$/,
      /^(writer|chaser|epoch|proposal|truncate)\.chk(\.tmp|\.copy\.tmp)?$/,
      /^(log-id|node-id|proven-chunks|block-sums|restoring|copy-unfinished|scavenge-due|redactions)(\.tmp|\.copy\.tmp)?$/,
      // Chunks that a scavenge writes, and what the reference makes them of.
      /^\{guid\}(\.merge)?\.scavenge\.tmp(\.\{guid\}\.tmp)?$/,
      // Chunks that the reference receives from another node.
      /^\{guid\}\.tmp$/,
    ],
  ],
  ['index', INDEX_FILES],
  // Tables of the attribute indexes.
  ['attributes/names', INDEX_FILES],
  ['attributes/correlations', INDEX_FILES],
  ['attributes/tags', INDEX_FILES],
  ['index/stream-existence', [/^streamExistenceFilter\.(dat|chk)(\.tmp|\.copy\.tmp)?$/]],
  ['index/scavenging', [/^scavenging\.db(-wal|-shm|-journal)?(\.copy\.tmp)?$/]],
  // Of a tick: what it adds to a chunk that is being written.
  ['filling', [/^chunk-\d{6}\.\d{6}\.tail$/]],
  ['proofs', [/^(chain|leaves-\d{6}|receipt-\d{10})(\.tmp|\.copy\.tmp)?$/, /^[0-9a-f]{32}\.tmp$/]],
]);

/**
 * By folder: what is ours, or the reference's, and stays when a directory is cleared: locks, the key of sessions, what
 * is kept of a damaged index.
 */
const STANDING: ReadonlyMap<string, readonly RegExp[]> = new Map([
  [
    '',
    [
      /^skua\.lock(\.owner|-journal)?$/,
      /^session\.key(\.\{guid\}\.tmp)?$/,
      /^eventstore\.sock$/,
      /^tag\.chk$/,
      /^kurrent\.ddb(\.wal)?$/,
      /^index-backup-\d{4}-\d{2}-\d{2}_\d{2}-\d{2}-\d{2}\.\d{3}$/,
    ],
  ],
  // Where it lies elsewhere.
  ['index', [/^skua\.lock(\.owner|-journal)?$/]],
]);

/** All of them, for tests that look whether something knows each. */
export const OWN_NAMES: readonly ReadonlyMap<string, readonly RegExp[]>[] = [REMOVABLE, STANDING];

/** Folders of a data directory that have our files in them, '' for itself. */
export const OWN_FOLDERS: readonly string[] = [...REMOVABLE.keys()];

/** Whether a path in the data directory has the name of a file of ours that may be removed or replaced. */
export function isOwnName(path: string): boolean {
  const slash = path.lastIndexOf('/');
  return matches(REMOVABLE, slash < 0 ? '' : path.slice(0, slash), path.slice(slash + 1));
}

/** Whether the name is that of unfinished work of ours, which the next start removes. */
export function isLeftoverName(path: string): boolean {
  return path.endsWith('.tmp') && isOwnName(path);
}

/**
 * Whether a file, or another thing, with this path has its name from us or the system: none of these names shows that a
 * folder is a stranger's.
 */
export function isExpectedName(path: string): boolean {
  const slash = path.lastIndexOf('/');
  const folder = slash < 0 ? '' : path.slice(0, slash);
  const name = path.slice(slash + 1);
  return isOwnName(path) || matches(STANDING, folder, name) || isSystemPath(path);
}

/** Whether a file of this name makes a folder a data directory: a checkpoint or a chunk. */
export function isDataName(name: string): boolean {
  return CHECKPOINT.test(name) || CHUNK.test(name);
}

export function isChunkName(name: string): boolean {
  return CHUNK.test(name);
}

/** Whether the name is that of a table of the index. */
export function isTableName(name: string): boolean {
  return TABLE.test(shapeOf(name));
}

/** Whether the name is that of a table of the index, or of its filter. */
export function isTableFile(name: string): boolean {
  return TABLE_FILE.test(shapeOf(name));
}

/** Throws `io_error` for what we can't name: nothing else is ever removed, replaced or renamed. */
export function checkOwnName(path: string): void {
  if (!isOwnName(path))
    throw new SkuaError('io_error', `"${path}" is not a name that Skua uses, so it is not touched: this is a defect.`, {
      path,
    });
}

function matches(table: ReadonlyMap<string, readonly RegExp[]>, folder: string, name: string): boolean {
  const shape = shapeOf(name);
  return table.get(folder)?.some((pattern) => pattern.test(shape)) ?? false;
}

/** The name with `{guid}` for each of these. A name that has this text literally is none of ours. */
function shapeOf(name: string): string {
  return name.includes('{') ? '' : name.replaceAll(GUID, '{guid}');
}

/** Names that a message or a line of the log lists. */
const LISTED_MAX = 5;

/** Some of the names, and how many more there are. */
export function listedNames(names: readonly string[]): string {
  return `${names.slice(0, LISTED_MAX).join(', ')}${names.length > LISTED_MAX ? ` and ${names.length - LISTED_MAX} more` : ''}`;
}
