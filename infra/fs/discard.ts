import { chmod, lstat, open, unlink } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';

/** What a discarded file has behind its name until it is gone. A start removes files of that name. */
export const GONE = '.gone.tmp';
/**
 * Bytes freed at a time, and the pause between two times. Freeing 256 MiB at once was seen to hold every sync of the
 * disk up for 50 to 100 ms. A multiple of all pages that a system caches files in: a page that the end of a file falls
 * into is filled up with zeros, which a reader of the file would be given; whole pages only vanish.
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
 * Cuts a file piece by piece from its end, and then removes it; at once where it has other names (hard links) or is a
 * symbolic link, and when `signal` aborts. What fails is left to the next start. The file must have lost its name
 * before: by that its readers, here or in another process, know that what they miss is no damage (`FilesystemFile`). A
 * program that copies the files by itself finds no name but that of what is gone, and one that has taken a hard link
 * before has the whole file; one that had opened it is cut off, as files are not to be copied one by one while a
 * scavenge runs.
 */
export async function freeBitByBit(file: string, signal?: AbortSignal): Promise<void> {
  try {
    const found = await lstat(file);
    // Under another name it is a copy that a user made, and behind a symbolic link a user's file: both must stay whole.
    if (found.isFile() && found.nlink === 1) await cut(file, found.size, signal);
    await unlink(file);
  } catch {
    // It takes up space until then, and does no other harm.
  }
}

async function cut(file: string, bytes: number, signal: AbortSignal | undefined): Promise<void> {
  await chmod(file, 0o600);
  const handle = await open(file, 'r+');
  try {
    for (const size of cutsOf(bytes)) {
      if (signal?.aborted === true) return;
      await handle.truncate(size);
      await setTimeout(DISCARD_PAUSE_MS, undefined, { signal }).catch(() => {});
    }
  } finally {
    await handle.close();
  }
}

/** The files of one directory that are being freed. */
export class Discards {
  readonly #underWay = new Set<Promise<void>>();
  #ending = new AbortController();

  begin(file: string): void {
    const freed = freeBitByBit(file, this.#ending.signal).finally(() => {
      this.#underWay.delete(freed);
    });
    this.#underWay.add(freed);
  }

  /** Removes what is left at once: nothing waits for the syncs of this process any more. */
  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#underWay);
    // The directory may be locked again.
    this.#ending = new AbortController();
  }
}
