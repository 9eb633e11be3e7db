import { OBJECT_LIST_MAX, SINGLE_UPLOAD_BYTES_MAX, uploadPartBytes } from '../../core/ports/object-store.ts';
import type { GetOptions, ListOptions, ObjectInfo, ObjectPage, ObjectStore } from '../../core/ports/object-store.ts';

/** Requests by kind, as an S3 server would bill them, and bytes of content. */
export interface ObjectCounts {
  readonly gets: number;
  readonly heads: number;
  /** Single writes, conditional ones included. */
  readonly puts: number;
  readonly lists: number;
  /** Requests, of up to 1 000 keys each. */
  readonly deletes: number;
  /** Parts of large uploads. */
  readonly parts: number;
  /** Beginnings and ends of large uploads. */
  readonly multiparts: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

const NONE: ObjectCounts = {
  gets: 0,
  heads: 0,
  puts: 0,
  lists: 0,
  deletes: 0,
  parts: 0,
  multiparts: 0,
  bytesIn: 0,
  bytesOut: 0,
};

/**
 * An object store that counts what is asked of it, whether it succeeds or not; repeats inside the store are not seen
 * here.
 */
export class CountingObjects implements ObjectStore {
  readonly #objects: ObjectStore;
  #counts = { ...NONE };

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  get place(): string {
    return this.#objects.place;
  }

  counts(): ObjectCounts {
    return { ...this.#counts };
  }

  reset(): void {
    this.#counts = { ...NONE };
  }

  async get(key: string, options?: GetOptions): Promise<Uint8Array | null> {
    this.#counts.gets++;
    const bytes = await this.#objects.get(key, options);
    this.#counts.bytesOut += bytes?.length ?? 0;
    return bytes;
  }

  head(key: string, signal?: AbortSignal): Promise<ObjectInfo | null> {
    this.#counts.heads++;
    return this.#objects.head(key, signal);
  }

  put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    this.#counts.puts++;
    this.#counts.bytesIn += bytes.length;
    return this.#objects.put(key, bytes, signal);
  }

  create(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<'created' | 'exists'> {
    this.#counts.puts++;
    this.#counts.bytesIn += bytes.length;
    return this.#objects.create(key, bytes, signal);
  }

  upload(key: string, sizeBytes: number, content: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    if (sizeBytes <= SINGLE_UPLOAD_BYTES_MAX) this.#counts.puts++;
    else {
      this.#counts.parts += Math.ceil(sizeBytes / uploadPartBytes(sizeBytes));
      this.#counts.multiparts += 2;
    }
    this.#counts.bytesIn += sizeBytes;
    return this.#objects.upload(key, sizeBytes, content, signal);
  }

  list(prefix: string, options?: ListOptions): Promise<ObjectPage> {
    this.#counts.lists++;
    return this.#objects.list(prefix, options);
  }

  remove(keys: readonly string[], signal?: AbortSignal): Promise<void> {
    this.#counts.deletes += Math.ceil(keys.length / OBJECT_LIST_MAX);
    return this.#objects.remove(keys, signal);
  }

  close(): Promise<void> {
    return this.#objects.close();
  }
}
