import { existsSync, mkdirSync } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import * as path from 'node:path';
import { SkuaError } from '../../core/base/errors.ts';
import { syncError, systemCode } from './fs-errors.ts';
import { rootMissing } from './root.ts';

/** For its owner only. */
export const PRIVATE_FOLDER_MODE = 0o700;

/**
 * Creates a folder and those above it, durably; one that is there keeps its mode. Not by the recursion of Node.js,
 * which never ends where a file system says that the folder above is missing although it is there (`/proc`).
 */
export async function makeFolder(folder: string, mode?: number): Promise<void> {
  if (await isMade(folder, mode)) return;
  const parent = path.dirname(folder);
  if (parent !== folder && (await stat(parent).catch(() => null))?.isDirectory() !== true) await makeFolder(parent);
  // The folder above is there by now, made here or by another call.
  if (!(await isMade(folder, mode))) throw notMade(folder);
}

/** As `makeFolder`, for a folder below a root that has to be there: `storage_unreachable` where it is not. */
export async function makeFolderIn(folder: string, root: string): Promise<void> {
  if (existsSync(folder)) return;
  if (folder === root) throw rootMissing(root);
  await makeFolderIn(path.dirname(folder), root);
  if (!(await isMade(folder, undefined))) throw rootMissing(root);
}

/** As `makeFolder`, on the caller's thread, and not durably. Throws what the system says, or `io_error`. */
export function makeFolderNow(folder: string): void {
  if (existsSync(folder)) return;
  if (!existsSync(path.dirname(folder))) makeFolderNow(path.dirname(folder));
  try {
    mkdirSync(folder);
  } catch (error) {
    const code = systemCode(error);
    if (code !== 'EEXIST') throw code === 'ENOENT' ? notMade(folder) : error;
  }
}

function notMade(folder: string): SkuaError {
  return new SkuaError(
    'io_error',
    `The folder ${folder} can't be created in ${path.dirname(folder)}: its file system does not allow it. Name another place.`,
    { path: folder, systemCode: 'ENOENT' },
  );
}

/** False where the folder above is missing. */
async function isMade(folder: string, mode: number | undefined): Promise<boolean> {
  try {
    await mkdir(folder, { mode: mode ?? 0o777 });
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT') return false;
    if (code === 'EEXIST' && (await stat(folder)).isDirectory()) return true;
    throw error;
  }
  await syncFolder(path.dirname(folder));
  return true;
}

/** Makes the names in a folder durable. Windows can't sync a folder, and does not need to. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } catch (error) {
    throw syncError(error, folder);
  } finally {
    await handle.close();
  }
}
