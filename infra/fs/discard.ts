import { chmod, open, stat, unlink } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';

/** What a discarded file has behind its name until it is gone. A start removes files of that name. */
export const GONE = '.gone.tmp';
/** Bytes freed at a time, and the pause between two times. Freeing 256 MiB at once was seen to hold every sync of the disk up for 50 to 100 ms. */
export const DISCARD_STEP_BYTES = 8_388_608;
const DISCARD_PAUSE_MS = 10;

/** Cuts a file piece by piece from its end, and then removes it; at once where it has other names (hard links). What fails is left to the next start. */
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
    for (let size = bytes; size > DISCARD_STEP_BYTES; size -= DISCARD_STEP_BYTES) {
      await handle.truncate(size - DISCARD_STEP_BYTES);
      await setTimeout(DISCARD_PAUSE_MS);
    }
  } finally {
    await handle.close();
  }
}
