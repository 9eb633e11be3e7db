import { readdir, stat } from 'node:fs/promises';
import * as path from 'node:path';

/** Bytes that the files of a folder take on disk: of files with holes only what is filled. */
export async function diskBytes(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    // A file may have gone since the folder was read.
    const found = await stat(path.join(entry.parentPath, entry.name)).catch(() => null);
    if (found !== null) bytes += found.blocks * 512;
  }
  return bytes;
}
