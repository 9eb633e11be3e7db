// Empties folders that builds write to.
import { readdir, rm, rmdir } from 'node:fs/promises';
import * as path from 'node:path';

const SYSTEM = /(^|\/)(\.DS_Store|Thumbs\.db|desktop\.ini)$/;
const LISTED_MAX = 5;

/**
 * Removes files of an earlier build from `folder`, known by their paths in it, and the folders that are empty then.
 * Rejects where anything else lies there, with nothing removed: it was put there by hand, and would be packed.
 */
export async function emptyBuilt(folder, isBuilt) {
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const pathOf = ({ parentPath, name }) => path.relative(folder, path.join(parentPath, name)).replaceAll(path.sep, '/');
  const files = found
    .filter((entry) => !entry.isDirectory())
    .map(pathOf)
    .filter((file) => !SYSTEM.test(file));
  const foreign = files.filter((file) => !isBuilt(file));
  if (foreign.length > 0)
    throw new Error(
      `${folder} holds what no build makes: ${foreign.slice(0, LISTED_MAX).join(', ')}${foreign.length > LISTED_MAX ? ` and ${foreign.length - LISTED_MAX} more` : ''}. Move it elsewhere, and build again.`,
    );
  for (const file of files) await rm(path.join(folder, file), { force: true });
  const folders = found
    .filter((entry) => entry.isDirectory())
    .map(pathOf)
    .sort((a, b) => b.length - a.length);
  for (const each of [...folders, '']) await rmdir(path.join(folder, each)).catch(() => {});
}
