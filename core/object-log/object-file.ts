import { SkuaError } from '../errors.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { StorageFile } from '../ports/storage.ts';

/** Bytes [from, from + length) of an object. Throws `file_not_found`, with the key, when there is no such object, and `io_error` when it is too short. */
export async function getRange(objects: ObjectStore, key: string, from: number, length: number): Promise<Uint8Array> {
  const bytes = await objects.get(key, { from, length });
  if (bytes === null) throw new SkuaError('file_not_found', `The object ${key}, which a manifest names, is not there (any more): the manifest in use may be an old one, and the newest names what has taken its place.`, { path: key, key });
  if (bytes.length !== length) throw new SkuaError('io_error', `The object ${key} gave ${bytes.length} of ${length} bytes at offset ${from}: it is shorter than its manifest says. Restore it from a version or a backup of the bucket.`, { path: key, key, offset: from });
  return bytes;
}

/** Read-only files: what nobody may do with them. */
export abstract class ReadOnlyFile implements StorageFile {
  abstract readonly path: string;
  abstract readonly size: number;
  readonly isRemote = true;
  abstract read(position: number, length: number): Uint8Array | Promise<Uint8Array>;

  writeAt(): void { throw this.#refusal(); }
  truncate(): Promise<void> { return Promise.reject(this.#refusal()); }
  async sync(): Promise<void> {}
  async seal(): Promise<void> {}
  async close(): Promise<void> {}

  #refusal(): SkuaError {
    return new SkuaError('io_error', `${this.path} is an object that never changes: this is a defect.`, { path: this.path });
  }
}

/** A whole object as a file, read by range. Opening and closing it costs nothing. */
export class ObjectFileReader extends ReadOnlyFile {
  readonly path: string;
  readonly size: number;
  readonly #objects: ObjectStore;
  readonly #key: string;

  constructor(objects: ObjectStore, path: string, key: string, size: number) {
    super();
    this.path = path;
    this.size = size;
    this.#objects = objects;
    this.#key = key;
  }

  read(position: number, length: number): Promise<Uint8Array> | Uint8Array {
    const count = Math.min(length, this.size - position);
    return count <= 0 ? new Uint8Array(0) : getRange(this.#objects, this.#key, position, count);
  }
}
