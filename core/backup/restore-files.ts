import { putI64 } from '../bytes.ts';
import { SkuaError } from '../errors.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';

/** Bytes after which a sync is begun beside the writing, so that the disk works all along and the last sync is short. */
const SYNC_EVERY_BYTES = 33_554_432;

/** Sees the bytes of a file as they pass, in order; what it throws ends the writing. */
export type Watch = (bytes: Uint8Array) => void;

/**
 * Creates a file of exactly `sizeBytes` from content that comes in pieces, and makes it durable with one sync. A file that could not be
 * written whole stays, for the marker of the restore keeps everybody from using it. `check` is asked before the sync.
 */
export async function writeFile(storage: Storage, path: string, content: AsyncIterable<Uint8Array>, sizeBytes: number, { watch, check, isSealed }: { watch?: Watch; check?: () => void; isSealed?: boolean } = {}): Promise<void> {
  const file = await storage.create(path);
  try {
    const end = await writeContent(file, 0, content, watch);
    if (end !== sizeBytes) throw new SkuaError('repository_damaged', `The backup gave ${end} of the ${sizeBytes} bytes of ${path}. Restore from another backup.`, { path, key: path });
    check?.();
    await file.sync();
    if (isSealed === true) await file.seal();
  } finally {
    await file.close();
  }
}

/** Writes pieces one behind the other from `at` on, and returns where they end. What has been written is durable after a sync of the caller's. */
export async function writeContent(file: StorageFile, at: number, content: AsyncIterable<Uint8Array>, watch?: Watch): Promise<number> {
  let end = at;
  let synced = at;
  let syncing: Promise<void> = Promise.resolve();
  let written: void | Promise<void> = undefined;
  try {
    for await (const bytes of content) {
      // A piece may be used again after the next one was asked for, so it is written before. Its bytes are looked at meanwhile.
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

/** A chunk file that is as it was backed up, and was damaged already then. */
export function damagedBefore(path: string): SkuaError {
  return new SkuaError('log_corrupt', `${path} does not fit the MD5 in its footer: the file was damaged before it was backed up. Restore from an earlier backup, or pass over it with --allow-damaged where that can be given; \`skua verify\` on the directory that was backed up tells whether it is damaged there.`, { file: path });
}

/** A small file, durable on return. */
export async function writeSmall(storage: Storage, path: string, bytes: Uint8Array): Promise<void> {
  const file = await storage.create(path);
  try {
    await file.writeAt(0, bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

export async function writeCheckpoint(storage: Storage, path: string, value: number): Promise<void> {
  const bytes = new Uint8Array(8);
  putI64(bytes, 0, value);
  await writeSmall(storage, path, bytes);
}
