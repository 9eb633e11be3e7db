import { statSync } from 'node:fs';
import type { Dirent, Stats } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import * as path from 'node:path';
import { OBJECT_KEY_PART_LENGTH_MAX, TEMPORARY_FOLDER } from '../../core/ports/object-store.ts';
import type { ObjectInfo } from '../../core/ports/object-store.ts';
import { isAbsent } from './file-content.ts';

/** Files whose size is asked for at the same time. */
const STATS_AT_ONCE = 16;
const PART = /^[A-Za-z0-9._-]+$/;

/**
 * Keys of the files under `root` that begin with `prefix` and lie behind `after`, ascending by code unit. Folders that
 * can't hold any are not read. What no key could have made is passed over. `look` is waited for behind each folder that
 * was read.
 */
export async function* walkKeys(
  root: string,
  prefix: string,
  after: string,
  look: () => Promise<void>,
  folder = '',
): AsyncGenerator<string, void, undefined> {
  const names = await namesInOrder(path.join(root, folder), folder === '');
  await look();
  for (const name of names) {
    const key = folder + name;
    if (!name.endsWith('/')) {
      if (key > after && key.startsWith(prefix)) yield key;
    } else if ((key.startsWith(prefix) || prefix.startsWith(key)) && (key > after || after.startsWith(key))) {
      yield* walkKeys(root, prefix, after, look, key);
    }
  }
}

/** Folders carry a `/` behind their name, because that is what their keys are ordered by: `a-b` comes before `a/b`. */
async function namesInOrder(folder: string, isRoot: boolean): Promise<string[]> {
  let entries: Dirent[];
  try {
    entries = await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
  const names: string[] = [];
  for (const entry of entries) {
    if (
      !PART.test(entry.name) ||
      entry.name.length > OBJECT_KEY_PART_LENGTH_MAX ||
      (isRoot && entry.name === TEMPORARY_FOLDER)
    )
      continue;
    if (entry.isFile()) names.push(entry.name);
    else if (entry.isDirectory()) names.push(`${entry.name}/`);
  }
  return names.sort();
}

/** What is known of these files; those that have gone in the meantime are left out. */
export async function infosOf(root: string, keys: readonly string[]): Promise<ObjectInfo[]> {
  const infos: ObjectInfo[] = [];
  for (let at = 0; at < keys.length; at += STATS_AT_ONCE) {
    const found = await Promise.all(keys.slice(at, at + STATS_AT_ONCE).map((key) => infoLater(root, key)));
    for (const info of found) if (info !== null) infos.push(info);
  }
  return infos;
}

/** On the spot, for one file: the way to another thread and back costs many times what the system takes for it. */
export function infoOf(root: string, key: string): ObjectInfo | null {
  try {
    return asInfo(key, statSync(path.join(root, key)));
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}

function asInfo(key: string, found: Stats): ObjectInfo | null {
  return found.isFile() ? { key, sizeBytes: found.size, modifiedMs: Math.floor(found.mtimeMs) } : null;
}

async function infoLater(root: string, key: string): Promise<ObjectInfo | null> {
  try {
    return asInfo(key, await stat(path.join(root, key)));
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}
