import { SkuaError } from '../errors.ts';
import { PROOFS_FILE } from '../log/chunk-proofs.ts';
import type { Storage } from '../ports/storage.ts';
import { COPY_MARKER } from './copy-marker.ts';
import { NODE_ID_FILE } from './node-id.ts';
import { putRestoreMarker, RESTORE_MARKER } from './restore-marker.ts';

/** Folders with files of Skua, in the order in which they are cleared. The log goes last. */
export const DATA_FOLDERS = ['index/scavenging', 'index/stream-existence', 'index', ''];
const GUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
/** Names that Skua gives: what it keeps, what is being made, and what it is about to remove. */
const OWN: Readonly<Record<string, RegExp>> = {
  'index/scavenging': /^scavenging\.db/,
  'index/stream-existence': /^streamExistenceFilter\.(dat|chk)/,
  index: new RegExp(`^(indexmap.*|${GUID}(\\.bloomfilter)?(\\..+)?)$`),
  '': new RegExp(`^(chunk-\\d{6}[.-].*|(writer|chaser|epoch|proposal|truncate)\\.chk(\\.tmp)?|(${NODE_ID_FILE}|${PROOFS_FILE})(\\.tmp)?|${RESTORE_MARKER}|${COPY_MARKER})$`),
};
const CHUNK = /^chunk-/;
/** Names that an error message lists. */
const LISTED_MAX = 5;

/** Files in the folders that Skua uses, whoever made them. */
export async function filesOf(storage: Storage): Promise<string[]> {
  const paths: string[] = [];
  for (const folder of DATA_FOLDERS) for (const name of await storage.list(folder)) paths.push(folder === '' ? name : `${folder}/${name}`);
  return paths;
}

/** Throws `directory_not_empty` (data: files, isUnfinished). */
export async function requireEmpty(storage: Storage): Promise<void> {
  const files = await filesOf(storage);
  if (files.length === 0) return;
  const isUnfinished = files.includes(RESTORE_MARKER);
  const what = isUnfinished ? 'holds a restore that has not ended' : `is not empty: it holds ${files.slice(0, LISTED_MAX).join(', ')}${files.length > LISTED_MAX ? ` and ${files.length - LISTED_MAX} more` : ''}`;
  throw new SkuaError('directory_not_empty', `The directory to restore to ${what}. Name an empty one, or give --force to remove the data in it first.`, { files: files.length, isUnfinished });
}

/**
 * Removes what Skua keeps in a directory, and nothing else; the marker of a restore stands from before the first removal, so that no
 * start takes what a crash leaves for a whole. The caller holds the lock.
 */
export async function clearForRestore(storage: Storage, from: string): Promise<void> {
  await putRestoreMarker(storage, from);
  for (const folder of DATA_FOLDERS) {
    const names = (await storage.list(folder)).filter((name) => OWN[folder]!.test(name) && (folder !== '' || name !== RESTORE_MARKER));
    // The end of the log goes first, so that what is left is never a log with gaps.
    const ordered = folder === '' ? [...names.filter((name) => !CHUNK.test(name)), ...names.filter((name) => CHUNK.test(name)).reverse()] : names;
    for (const name of ordered) await storage.remove(folder === '' ? name : `${folder}/${name}`);
  }
}
