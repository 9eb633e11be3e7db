import { chmod, open, stat, unlink } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';

/** What a discarded file has behind its name until it is gone. A start removes files of that name. */
export const GONE = '.gone.tmp';
/**
 * Bytes freed at a time, and the pause between two times. Freeing 256 MiB at once was seen to hold every sync of the disk up for
 * 50 to 100 ms. A multiple of all pages that a system caches files in: a page that the end of a file falls into is filled up
 * with zeros, which somebody who is reading it would be shown; whole pages only vanish.
 */
export const DISCARD_STEP_BYTES = 8_388_608;
const DISCARD_PAUSE_MS = 10;

/** The lengths that a file of `bytes` is cut to, one after the other. */
export function cutsOf(bytes: number): number[] {
  const cuts: number[] = [];
  for (let end = Math.ceil(bytes / DISCARD_STEP_BYTES) - 1; end > 0; end--) cuts.push(end * DISCARD_STEP_BYTES);
  return cuts;
}

/**
 * Cuts a file piece by piece from its end, and then removes it; at once where it has other names (hard links). What fails is left to
 * the next start. The file must have lost its name before: that tells those who still read it, here or in another process, that
 * what they miss is no damage (`FilesystemFile`).
 */
export async function freeBitByBit(file: string): Promise<void> {
  try {
    const { nlink, size: bytes } = await stat(file);
    // Under another name it is somebody's copy, which must stay whole.
    if (nlink === 1) await cut(file, bytes);
    await unlink(file);
  } catch {
    // It takes up space until then, and does no other harm.
  }
}

async function cut(file: string, bytes: number): Promise<void> {
  await chmod(file, 0o600);
  const handle = await open(file, 'r+');
  try {
    for (const size of cutsOf(bytes)) {
      await handle.truncate(size);
      await setTimeout(DISCARD_PAUSE_MS);
    }
  } finally {
    await handle.close();
  }
}
