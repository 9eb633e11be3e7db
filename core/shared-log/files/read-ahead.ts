import { BlockFile } from '../../ports/block-file.ts';
import { fileNotFound, type StorageFile } from '../../ports/storage.ts';
import type { ObjectStore } from '../../ports/object-store.ts';

/** Bytes that are fetched with one request, ... */
export const FETCH_BYTES = 1_048_576;
/** ... and requests under way at once: together the memory that reading ahead takes. */
export const FETCHES_MAX = 8;

interface Listed {
  readonly key: string;
  readonly sizeBytes: number;
}
interface Block {
  readonly key: string;
  readonly from: number;
  readonly length: number;
}

/**
 * Objects that are read one after the other, from front to back: the next blocks are on their way while one is looked
 * at, also those of the objects that come next, so that many small ones take no longer than few large ones.
 */
export class ReadAhead {
  readonly #objects: ObjectStore;
  readonly #blocks: Block[] = [];
  readonly #first = new Map<string, number>();
  readonly #fetches = new Map<number, Promise<Uint8Array | null>>();

  constructor(objects: ObjectStore, listed: readonly Listed[]) {
    this.#objects = objects;
    for (const { key, sizeBytes } of listed) {
      this.#first.set(key, this.#blocks.length);
      for (let from = 0; from < sizeBytes; from += FETCH_BYTES)
        this.#blocks.push({ key, from, length: Math.min(FETCH_BYTES, sizeBytes - from) });
    }
  }

  /** The object as a file. One that is gone meanwhile is `file_not_found` when it is read. */
  open({ key, sizeBytes }: Listed, path: string): StorageFile {
    return new BlockFile({
      path,
      size: sizeBytes,
      blockBytes: FETCH_BYTES,
      block: (block) => this.#block(this.#first.get(key)! + block, path),
    });
  }

  async #block(number: number, path: string): Promise<Uint8Array> {
    for (const old of this.#fetches.keys()) if (old < number - 1) this.#fetches.delete(old);
    for (let next = number; next < Math.min(this.#blocks.length, number + FETCHES_MAX); next++) {
      if (!this.#fetches.has(next)) this.#fetches.set(next, this.#fetch(this.#blocks[next]!));
    }
    const bytes = await this.#fetches.get(number)!;
    if (bytes === null) throw fileNotFound(path);
    return bytes;
  }

  #fetch({ key, from, length }: Block): Promise<Uint8Array | null> {
    const fetching = this.#objects.get(key, { from, length });
    // Its error is met when the block is due.
    fetching.catch(() => {});
    return fetching;
  }
}
