import { checkKey, checkPrefix, checkSmall, OBJECT_LIST_MAX, throwIfAborted } from '../../core/ports/object-store.ts';
import type { GetOptions, ListOptions, ObjectInfo, ObjectPage, ObjectStore } from '../../core/ports/object-store.ts';
import { gatherContent } from '../../infra/s3/s3-objects.ts';

export interface MemoryObjectsOptions {
  /**
   * Times of changes are from here, in milliseconds since 1970; without it every change is one millisecond after the
   * last.
   */
  readonly clock?: { nowMs(): number };
  readonly place?: string;
}

interface StoredObject {
  readonly bytes: Uint8Array;
  readonly modifiedMs: number;
}

/**
 * Objects in memory, for tests and simulations. A call takes effect at once, before its promise resolves, and bytes
 * are copied on their way in and out, so that nobody shares them.
 */
export class MemoryObjects implements ObjectStore {
  readonly place: string;
  readonly #objects = new Map<string, StoredObject>();
  /** All keys, ascending. */
  readonly #keys: string[] = [];
  readonly #clock: { nowMs(): number } | undefined;
  #changes = 0;

  constructor(options: MemoryObjectsOptions = {}) {
    this.place = options.place ?? 'memory';
    this.#clock = options.clock;
  }

  /** How many objects there are. */
  get size(): number {
    return this.#objects.size;
  }

  async get(key: string, options: GetOptions = {}): Promise<Uint8Array | null> {
    checkKey(key);
    throwIfAborted(options.signal, key);
    const object = this.#objects.get(key);
    if (object === undefined) return null;
    const from = options.from ?? 0;
    return object.bytes.slice(from, options.length === undefined ? undefined : from + options.length);
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectInfo | null> {
    checkKey(key);
    throwIfAborted(signal, key);
    const object = this.#objects.get(key);
    return object === undefined ? null : { key, sizeBytes: object.bytes.length, modifiedMs: object.modifiedMs };
  }

  async put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    checkKey(key);
    checkSmall(key, bytes);
    throwIfAborted(signal, key);
    this.#set(key, bytes.slice());
  }

  async create(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<'created' | 'exists'> {
    checkKey(key);
    checkSmall(key, bytes);
    throwIfAborted(signal, key);
    if (this.#objects.has(key)) return 'exists';
    this.#set(key, bytes.slice());
    return 'created';
  }

  async upload(
    key: string,
    sizeBytes: number,
    content: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    checkKey(key);
    throwIfAborted(signal, key);
    const bytes = await gatherContent(content, sizeBytes, key, signal);
    throwIfAborted(signal, key);
    this.#set(key, bytes);
  }

  async list(prefix: string, options: ListOptions = {}): Promise<ObjectPage> {
    checkPrefix(prefix);
    throwIfAborted(options.signal, prefix);
    const max = Math.min(options.max ?? OBJECT_LIST_MAX, OBJECT_LIST_MAX);
    const after = options.after ?? '';
    let at = after >= prefix ? this.#indexOf(after) : this.#indexOf(prefix);
    if (this.#keys[at] === after) at++;
    const objects: ObjectInfo[] = [];
    for (; at < this.#keys.length && this.#keys[at]!.startsWith(prefix); at++) {
      if (objects.length === max) return { objects, isMore: true };
      const key = this.#keys[at]!;
      const { bytes, modifiedMs } = this.#objects.get(key)!;
      objects.push({ key, sizeBytes: bytes.length, modifiedMs });
    }
    return { objects, isMore: false };
  }

  async remove(keys: readonly string[], signal?: AbortSignal): Promise<void> {
    for (const key of keys) checkKey(key);
    throwIfAborted(signal, keys[0] ?? '');
    for (const key of keys) if (this.#objects.delete(key)) this.#keys.splice(this.#indexOf(key), 1);
  }

  async close(): Promise<void> {}

  /** A copy with the same objects, for trying different ends of one history. */
  fork(): MemoryObjects {
    const fork = new MemoryObjects({ place: this.place, ...(this.#clock !== undefined && { clock: this.#clock }) });
    for (const [key, object] of this.#objects) fork.#objects.set(key, object);
    fork.#keys.push(...this.#keys);
    fork.#changes = this.#changes;
    return fork;
  }

  #set(key: string, bytes: Uint8Array): void {
    if (!this.#objects.has(key)) this.#keys.splice(this.#indexOf(key), 0, key);
    this.#objects.set(key, { bytes, modifiedMs: this.#clock?.nowMs() ?? ++this.#changes });
  }

  /** Where the key stands among all keys, or would stand. */
  #indexOf(key: string): number {
    let low = 0;
    for (let high = this.#keys.length; low < high;) {
      const middle = (low + high) >>> 1;
      if (this.#keys[middle]! < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
