import { i64 } from '../bytes.ts';
import { isSkuaError } from '../errors.ts';
import { INDEX_FOLDER } from '../index/index-map.ts';
import type { TableShape } from '../index/table-format.ts';
import { shapeOf } from '../index/table-scan.ts';
import { decodeHeader, HEADER_BYTES } from '../log/chunk-format.ts';
import { hasFooter } from '../log/open-chunks.ts';
import { folderOf } from '../ports/storage.ts';
import type { Storage, StorageFile } from '../ports/storage.ts';

export const DATABASE_FOLDER = `${INDEX_FOLDER}/scavenging`;

/** What a file is, as far as it changes what is found in it. */
export interface FileFacts {
  readonly path: string;
  /** An index table. */
  readonly table: TableShape | null;
  readonly isDatabase: boolean;
  /** Nobody reads it any more; the reason, as the end of a sentence. */
  readonly leftover: string | null;
  /** Nobody reads what starts here or behind: the end of the log. */
  readonly dataEnd: number;
}

export async function fileFacts(storage: Storage, path: string, file: StorageFile, superseded: ReadonlySet<string>): Promise<FileFacts> {
  const isInRoot = folderOf(path) === '';
  return {
    path,
    table: folderOf(path) === INDEX_FOLDER ? await known(shapeOf(path, file)) : null,
    isDatabase: folderOf(path) === DATABASE_FOLDER,
    leftover: leftoverText(path, superseded),
    dataEnd: isInRoot && path.startsWith('chunk-') ? await dataEndOf(storage, path, file) : Infinity,
  };
}

function leftoverText(path: string, superseded: ReadonlySet<string>): string | null {
  if (path.endsWith('.tmp')) return 'in a file of unfinished work, which the next start removes';
  return superseded.has(path) ? 'in a file that a newer one has replaced, which the next start removes' : null;
}

/** Where the log ends in this file, when it is the one that is being written. */
async function dataEndOf(storage: Storage, path: string, file: StorageFile): Promise<number> {
  const header = await known(Promise.resolve(file.read(0, HEADER_BYTES)).then((bytes) => decodeHeader(path, bytes)));
  const writer = await writerPosition(storage);
  if (header === null || header.isScavenged || writer === null) return Infinity;
  const start = header.startNumber * header.chunkSize;
  // A complete chunk has no end of the log in it, but writer.chk may stand at the end of its data for a moment.
  if (writer < start || writer >= start + header.chunkSize || (await known(hasFooter(storage, path))) !== false) return Infinity;
  return HEADER_BYTES + writer - start;
}

async function writerPosition(storage: Storage): Promise<number | null> {
  const file = await known(storage.open('writer.chk', 'read'));
  if (file === null) return null;
  try {
    const bytes = await file.read(0, 8);
    return bytes.length === 8 ? i64(bytes, 0) : null;
  } finally {
    await file.close();
  }
}

/** Null for a file that is damaged, gone or something else: it is searched all the same. */
async function known<T>(value: Promise<T>): Promise<T | null> {
  try {
    return await value;
  } catch (error) {
    if (isSkuaError(error)) return null;
    throw error;
  }
}
