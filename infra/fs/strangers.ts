import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import * as path from 'node:path';
import { SkuaError } from '../../core/base/errors.ts';
import { isDataName, isExpectedName, OWN_FOLDERS } from '../../core/ports/own-names.ts';
import { notADataDirectory } from '../../core/ports/storage.ts';
import { storageError, systemCode } from './fs-errors.ts';

/** Names that are looked for in one folder at most: a message has room for a few. */
const FOUND_MAX = 100;

interface Places {
  readonly root: string;
  readonly indexRoot: string;
  /** What else may lie there, by its path: what options of the same start name. */
  readonly beside: readonly string[];
}

/**
 * Throws `not_a_data_directory` (data: path, found) for a folder that is no data directory yet, without checkpoints and
 * chunk files, and holds anything that is neither ours by name nor the system's: the configuration names the wrong
 * folder. Changes nothing. What a first start leaves that was cut off has names of ours.
 */
export async function refuseStrangers({ root, indexRoot, beside }: Places): Promise<void> {
  const entries = await entriesOf(root);
  if (entries.some((entry) => !entry.isDirectory() && isDataName(entry.name))) return;
  const found: string[] = [];
  await look({ at: root, folder: '', entries, beside, found });
  if (indexRoot !== path.join(root, 'index'))
    await look({ at: indexRoot, folder: 'index', entries: await entriesOf(indexRoot), beside, found });
  if (found.length > 0) throw notADataDirectory(root, found);
}

/**
 * The other way round: throws `directory_not_empty` (data: path, found) for a folder with the checkpoints or chunk
 * files of a node, where something else would begin. Neither would know the other's files.
 */
export async function refuseNodeData(root: string): Promise<void> {
  const found = (await entriesOf(root)).find((entry) => !entry.isDirectory() && isDataName(entry.name))?.name;
  if (found !== undefined)
    throw new SkuaError(
      'directory_not_empty',
      `${root} is the data directory of a node (it holds ${found}). Name another directory. Nothing was changed.`,
      { path: root, found },
    );
}

interface Look {
  readonly at: string;
  readonly folder: string;
  readonly entries: readonly Dirent[];
  readonly beside: readonly string[];
  readonly found: string[];
}

async function look({ at, folder, entries, beside, found }: Look): Promise<void> {
  for (const entry of entries) {
    const name = folder === '' ? entry.name : `${folder}/${entry.name}`;
    const location = path.join(at, entry.name);
    if (OWN_FOLDERS.some((own) => own === name || own.startsWith(`${name}/`))) {
      // A link to another disk is a folder, too; a file in place of a folder is none of ours.
      const inside = await entriesOf(location);
      if (entry.isFile()) found.push(name);
      await look({ at: location, folder: name, entries: inside, beside, found });
    } else if (
      (entry.isDirectory() && isDataName(entry.name)) ||
      !(isExpectedName(name) || beside.some((one) => isOnTheWay(location, one)))
    ) {
      found.push(entry.isDirectory() ? `${name}/` : name);
    }
    if (found.length >= FOUND_MAX) return;
  }
}

/**
 * Whether the path is the place, leads to it, or has the name of one of its family: files that follow each other have a
 * period in theirs (`audit20310402.json`).
 */
function isOnTheWay(at: string, location: string): boolean {
  const { dir, name, ext } = path.parse(location);
  const isOfFamily = ext !== '' && path.dirname(at) === dir && path.basename(at).startsWith(name) && at.endsWith(ext);
  return location === at || location.startsWith(at + path.sep) || isOfFamily;
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw storageError(error, folder);
  }
}
