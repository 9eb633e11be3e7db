import { CountingObjects } from '../support/counting-objects.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { GetOptions, ListOptions, ObjectInfo, ObjectPage, ObjectStore } from '../../core/ports/object-store.ts';
import type { ObjectInstance, ObjectLogOptions, ObjectWorld } from '../../core/shared-log/api.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import type { NewEvent } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';

/** Time that jumps to whatever is slept for, so that waits between attempts take none. */
export class JumpingClock implements Clock {
  #now = Date.UTC(2026, 10, 22);
  #monotonic = 0;

  nowMs(): number {
    return this.#now;
  }
  monotonicMs(): number {
    return this.#monotonic;
  }
  /** The process stands still; `monotonic` says whether that clock goes on meanwhile. */
  stand(ms: number, monotonic = true): void {
    this.#now += ms;
    if (monotonic) this.#monotonic += ms;
  }

  async sleep(ms: number): Promise<void> {
    await this.yield();
    this.#now += ms;
    this.#monotonic += ms;
  }

  yield(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

export const NO_BYTES = new Uint8Array(0);

/** Small memory: tests open many instances. */
export const SMALL: ObjectLogOptions = { chunkSizeBytes: 65_536, cacheBytes: 4_194_304, streams: { recentIds: 1_024 } };

export function worldOf(
  objects: ObjectStore,
  options: { readonly clock?: Clock; readonly seed?: number } = {},
): ObjectWorld {
  return {
    objects,
    clock: options.clock ?? new ManualClock(),
    ids: new SeededIds(options.seed ?? 1),
    digests: nodeDigests,
    log: silentLog,
    meter: silentMeter,
  };
}

/** One bucket, and instances over it, each with its own count of requests. */
export class Bucket {
  readonly objects = new MemoryObjects();
  readonly clock: JumpingClock;
  #seeds = 1;

  constructor(clock = new JumpingClock()) {
    this.clock = clock;
  }

  async open(
    options: ObjectLogOptions = {},
    through: (objects: ObjectStore) => ObjectStore = (objects) => objects,
  ): Promise<ObjectInstance & { readonly counting: CountingObjects }> {
    const counting = new CountingObjects(through(this.objects));
    const instance = await openObjectStore(worldOf(counting, { clock: this.clock, seed: this.#seeds++ }), {
      ...SMALL,
      ...options,
    });
    return Object.assign(instance, { counting });
  }

  /** Of somebody who is no instance; its ids are its own. */
  world(): ObjectWorld {
    return worldOf(this.objects, { clock: this.clock, seed: this.#seeds++ });
  }
}

/** Lets a test act around the calls of one client. What a hook returns, if anything, is the answer. */
export class HookedObjects implements ObjectStore {
  readonly place = 'hooked';
  readonly #objects: ObjectStore;
  onCreate: ((key: string, create: () => Promise<'created' | 'exists'>) => Promise<'created' | 'exists'>) | null = null;
  onGet: ((key: string, get: () => Promise<Uint8Array | null>) => Promise<Uint8Array | null>) | null = null;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  get(key: string, options?: GetOptions): Promise<Uint8Array | null> {
    const get = () => this.#objects.get(key, options);
    return this.onGet === null ? get() : this.onGet(key, get);
  }

  create(key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
    const copy = bytes.slice();
    const create = () => this.#objects.create(key, copy);
    return this.onCreate === null ? create() : this.onCreate(key, create);
  }

  head(key: string): Promise<ObjectInfo | null> {
    return this.#objects.head(key);
  }
  put(key: string, bytes: Uint8Array): Promise<void> {
    return this.#objects.put(key, bytes);
  }
  upload(key: string, sizeBytes: number, content: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#objects.upload(key, sizeBytes, content);
  }
  list(prefix: string, options?: ListOptions): Promise<ObjectPage> {
    return this.#objects.list(prefix, options);
  }
  remove(keys: readonly string[]): Promise<void> {
    return this.#objects.remove(keys);
  }
  close(): Promise<void> {
    return this.#objects.close();
  }
}

let ids = 0;

export function uuid(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

/** An event with a fresh id, or the given one. */
export function event(text = '{}', id?: string): NewEvent {
  return { id: id ?? uuid(++ids), type: 'T', isJson: true, data: new TextEncoder().encode(text), metadata: NO_BYTES };
}
