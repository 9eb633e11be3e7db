import { i64 } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { INDEX_FOLDER } from '../../index/format/index-map.ts';
import type { TableShape } from '../../index/format/table-format.ts';
import { shapeOf } from '../../index/format/table-scan.ts';
import { decodeHeader, HEADER_BYTES } from '../../log/format/chunk-format.ts';
import { hasFooter } from '../../log/format/chunk-files.ts';
import { isChunkName, isLeftoverName, OWN_FOLDERS } from '../../ports/own-names.ts';
import { folderOf, type Storage, type StorageFile } from '../../ports/storage.ts';

/** Folders of index tables. */
const TABLE_FOLDERS = OWN_FOLDERS.filter((folder) => folder === INDEX_FOLDER || folder.startsWith('attributes/'));

export const DATABASE_FOLDER = `${INDEX_FOLDER}/scavenging`;

/** What a file is, as far as it changes what is found in it. */
export interface FileFacts {
  readonly path: string;
  /** A table of an index. */
  readonly table: TableShape | null;
  readonly isDatabase: boolean;
  /** Why no reader reads this file any more, as the end of a sentence. */
  readonly leftover: string | null;
  /** The end of the log: no reader reads what starts here or behind. */
  readonly dataEnd: number;
  /** What lies there, as the end of a sentence, where it is not what is behind the end of the log. */
  readonly behind?: string;
}

export async function fileFacts(
  storage: Storage,
  path: string,
  file: StorageFile,
  superseded: ReadonlySet<string>,
): Promise<FileFacts> {
  const isInRoot = folderOf(path) === '';
  return {
    path,
    table: TABLE_FOLDERS.includes(folderOf(path)) ? await known(shapeOf(path, file)) : null,
    isDatabase: folderOf(path) === DATABASE_FOLDER,
    leftover: leftoverText(path, superseded),
    dataEnd: isInRoot && isChunkName(path) ? await dataEndOf(storage, path, file) : Infinity,
  };
}

function leftoverText(path: string, superseded: ReadonlySet<string>): string | null {
  if (isLeftoverName(path)) return 'in a file of unfinished work, which the next start removes';
  return superseded.has(path) ? 'in a file that a newer one has replaced, which the next start removes' : null;
}

/** Where the log ends in this file, when it is the one that is being written. */
async function dataEndOf(storage: Storage, path: string, file: StorageFile): Promise<number> {
  const header = await known(Promise.resolve(file.read(0, HEADER_BYTES)).then((bytes) => decodeHeader(path, bytes)));
  const writer = await writerPosition(storage);
  if (header === null || header.isScavenged || writer === null) return Infinity;
  const start = header.startNumber * header.chunkSize;
  // A complete chunk has no end of the log in it, but writer.chk may stand at the end of its data for a moment.
  if (writer < start || writer >= start + header.chunkSize || (await known(hasFooter(storage, path))) !== false)
    return Infinity;
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

/** Bytes read at once. */
const READ_BYTES = 1_048_576;
const NOTHING = new Uint8Array(0);

/**
 * Goes through a file in large blocks, each of which also shows the beginning of the next one, so that nothing that
 * reaches over a boundary is missed.
 */
export class FileWindow {
  readonly file: StorageFile;
  readonly size: number;
  readonly #overlap: number;
  /** What lies at `start` and the `overlap` bytes behind the block. */
  bytes: Uint8Array = NOTHING;
  start = 0;
  /** Bytes of the block itself. */
  length = 0;
  /** The block after it, which is read while this one is looked at. */
  #ahead: Promise<Uint8Array> | null = null;

  constructor(file: StorageFile, overlap: number) {
    this.file = file;
    this.size = file.size;
    this.#overlap = overlap;
  }

  /** Loads the next block; false at the end. A file that has become shorter ends early. */
  async next(): Promise<boolean> {
    this.start += this.length;
    this.length = Math.min(READ_BYTES, this.size - this.start);
    if (this.length <= 0) return false;
    this.bytes = await (this.#ahead ?? this.#read(this.start));
    this.length = Math.min(this.length, this.bytes.length);
    const next = this.start + this.length;
    this.#ahead = next < this.size ? this.#read(next) : null;
    return this.length > 0;
  }

  #read(start: number): Promise<Uint8Array> {
    const reading = Promise.resolve(this.file.read(start, Math.min(READ_BYTES, this.size - start) + this.#overlap));
    // Its error is met when the block is due.
    reading.catch(() => {});
    return reading;
  }

  /** The bytes [offset, offset + length) of the file as far as they exist, without moving. */
  peek(offset: number, length: number): Uint8Array | Promise<Uint8Array> {
    const from = Math.max(0, offset);
    const count = offset + length - from;
    if (count <= 0) return NOTHING;
    const local = from - this.start;
    if (local >= 0 && local + count <= this.bytes.length) return this.bytes.subarray(local, local + count);
    return this.file.read(from, count);
  }
}
