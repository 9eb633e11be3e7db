import { SkuaError } from '../base/errors.ts';
import type { Storage, StorageFile } from './storage.ts';

/** What every part of the log does in the same way to make bytes outlive a crash. */

/** Bytes that are read and written again at once. */
const REWRITE_BYTES = 1_048_576;

/**
 * Makes what was written to the file durable. Whatever makes that fail, the content of the file is unknown from then
 * on: `sync_failed`.
 */
export async function syncFile(file: StorageFile): Promise<void> {
  try {
    await file.sync();
  } catch (error) {
    throw new SkuaError('sync_failed', `${file.path} could not be made durable.`, { file: file.path }, error);
  }
}

/**
 * True for errors after which the writer must not go on: a failed sync, and one that is no error of the storage's,
 * since it is not known what that one left.
 */
export function isFinal(error: unknown): boolean {
  return !(error instanceof SkuaError) || error.code === 'sync_failed';
}

/** Keeps others from writing to the file by mistake. It is as complete without that. */
export async function trySeal(file: StorageFile): Promise<void> {
  await file.seal().catch((error: unknown) => {
    if (isFinal(error)) throw error;
  });
}

/**
 * Writes what a file shows in [from, to) once more, so that the next sync really brings it to the disk. After a sync
 * that failed, the system may show bytes that it holds for written and that are on no disk; another process can't know
 * them from others, and a sync of its own does nothing for them.
 */
export async function rewrite(file: StorageFile, from: number, to: number): Promise<void> {
  const end = Math.min(to, file.size);
  const buffer = new Uint8Array(Math.max(0, Math.min(REWRITE_BYTES, end - from)));
  for (let at = from; at < end;) {
    const bytes = await file.read(at, Math.min(REWRITE_BYTES, end - at), buffer);
    if (bytes.length === 0)
      throw new SkuaError('io_error', `${file.path} gave no bytes at offset ${at}, though it has ${file.size}.`, {
        file: file.path,
        offset: at,
      });
    await file.writeAt(at, bytes);
    at += bytes.length;
  }
}

/** Makes a small file, durable on return. Throws what the storage throws. */
export async function createFile(storage: Storage, path: string, content: Uint8Array): Promise<void> {
  const file = await storage.create(path);
  try {
    await file.writeAt(0, content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Gives a small file another content, durably and all at once: under a temporary name, which a start removes, and then
 * renamed. Throws what the storage throws; the old content is there until the new one is.
 */
export async function replaceFile(storage: Storage, path: string, content: Uint8Array): Promise<void> {
  const temporary = `${path}.tmp`;
  await storage.remove(temporary);
  try {
    await createFile(storage, temporary, content);
    await storage.rename(temporary, path);
  } catch (error) {
    // A full disk gets its space back at once; what can't be removed now goes with the next writing, or at the next
    // start.
    await storage.remove(temporary).catch(() => {});
    throw error;
  }
}
