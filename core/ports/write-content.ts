import type { StorageFile } from './storage.ts';

/**
 * Bytes after which a sync is begun beside the writing, so that the disk works all along and the last sync is short.
 */
const SYNC_EVERY_BYTES = 33_554_432;

/** Sees the bytes of a file as they pass, in order; what it throws ends the writing. */
export type Watch = (bytes: Uint8Array) => void;

/**
 * Writes pieces one behind the other from `at` on, and returns where they end. What has been written is durable after a
 * sync of the caller's.
 */
export async function writeContent(
  file: StorageFile,
  at: number,
  content: AsyncIterable<Uint8Array>,
  watch?: Watch,
): Promise<number> {
  let end = at;
  let synced = at;
  let syncing: Promise<void> = Promise.resolve();
  let written: void | Promise<void> = undefined;
  try {
    for await (const bytes of content) {
      // A piece may be used again after the next one was asked for, so it is written before. Its bytes are looked at
      // meanwhile.
      written = file.writeAt(end, bytes);
      // What it rejects with is met below, unless the look at the bytes ends the writing.
      written?.catch(() => {});
      watch?.(bytes);
      if (written !== undefined) await written;
      written = undefined;
      end += bytes.length;
      if (end - synced < SYNC_EVERY_BYTES) continue;
      await syncing;
      synced = end;
      syncing = file.sync();
      syncing.catch(() => {});
    }
  } finally {
    // The file must not be closed or cut under a write or a sync.
    await written?.catch(() => {});
    await syncing.catch(() => {});
  }
  await syncing;
  return end;
}
