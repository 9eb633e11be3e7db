/**
 * The object store as one process reaches it through a bad network. The fault model, in words:
 *
 * - A request takes its time to the store, and its reply takes its time back: mostly milliseconds, sometimes seconds,
 *   and now and then longer than objects are kept.
 * - A request may be refused (409, 500, 503) without effect, may never arrive, or may take effect and lose its reply.
 *   Of a `create` all of these are `outcome_unknown`.
 * - A request may hang: the process is told that its outcome is unknown, and it takes effect minutes later, or after
 *   hours.
 * - The store itself is consistent: what it has acknowledged it has.
 */
import { SkuaError } from '../../../core/base/errors.ts';
import type { GetOptions, ListOptions, ObjectInfo, ObjectPage, ObjectStore } from '../../../core/ports/object-store.ts';
import type { Random } from '../../support/random.ts';
import type { Timeline } from '../auto-scavenge/timeline.ts';
import type { SimProcess } from './sim-process.ts';

export interface SimNetwork {
  /** Chance of each fault at each request; 0 in peace. */
  faults: number;
  readonly removeAfterMs: number;
  /** The process takes any object that it finds at its number for its own. */
  readonly withoutNonce: boolean;
  /** Names of processes that the store can't be reached from at the moment. */
  readonly cut?: ReadonlySet<string>;
}

export class SimObjects implements ObjectStore {
  readonly place = 'simulated';
  readonly #store: ObjectStore;
  readonly #process: SimProcess;
  readonly #timeline: Timeline;
  readonly #random: Random;
  readonly #network: SimNetwork;
  readonly #attempts = new Map<string, Uint8Array>();

  constructor(store: ObjectStore, process: SimProcess, timeline: Timeline, random: Random, network: SimNetwork) {
    this.#store = store;
    this.#process = process;
    this.#timeline = timeline;
    this.#random = random;
    this.#network = network;
  }

  get(key: string, options?: GetOptions): Promise<Uint8Array | null> {
    return this.#call(false, async () => {
      const there = await this.#store.get(key, options);
      return this.#network.withoutNonce && there !== null ? (this.#attempts.get(key) ?? there) : there;
    });
  }

  head(key: string): Promise<ObjectInfo | null> {
    return this.#call(false, () => this.#store.head(key));
  }

  put(key: string, bytes: Uint8Array): Promise<void> {
    const copy = bytes.slice();
    return this.#call(false, () => this.#store.put(key, copy));
  }

  create(key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
    const copy = bytes.slice();
    if (this.#network.withoutNonce) this.#attempts.set(key, copy);
    return this.#call(true, () => this.#store.create(key, copy));
  }

  async upload(key: string, sizeBytes: number, content: AsyncIterable<Uint8Array>): Promise<void> {
    const bytes = new Uint8Array(sizeBytes);
    let filled = 0;
    for await (const piece of content) {
      bytes.set(piece, filled);
      filled += piece.length;
    }
    return this.put(key, bytes);
  }

  list(prefix: string, options?: ListOptions): Promise<ObjectPage> {
    return this.#call(false, () => this.#store.list(prefix, options));
  }

  remove(keys: readonly string[]): Promise<void> {
    return this.#call(false, () => this.#store.remove(keys));
  }

  async close(): Promise<void> {}

  #call<T>(isCreate: boolean, effect: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const random = this.#random;
    const fail = (ms: number): void => {
      const error = new SkuaError(isCreate ? 'outcome_unknown' : 'storage_unreachable', 'The network lost it.', {});
      this.#timeline.in(ms, () => this.#process.deliver(() => reject(error)));
    };
    const arrive = (replyMs: number | null): void => {
      void effect().then((value) => {
        if (replyMs !== null) this.#timeline.in(replyMs, () => this.#process.deliver(() => resolve(value)));
      }, reject);
    };
    if (this.#network.cut?.has(this.#process.name) === true) {
      fail(random.int(1, 3_000));
      return promise;
    }
    const thereMs = this.#delayMs();
    const fault = random.chance(this.#network.faults) ? random.int(0, 3) : -1;
    if (fault === 0 || fault === 1) fail(thereMs + this.#delayMs());
    else if (fault === 2) {
      this.#timeline.in(thereMs, () => arrive(null));
      fail(thereMs + this.#delayMs());
    } else if (fault === 3) {
      const late = random.chance(0.5)
        ? random.int(2_000, 20_000)
        : random.int(this.#network.removeAfterMs, 3 * this.#network.removeAfterMs);
      this.#timeline.in(thereMs + late, () => arrive(null));
      fail(thereMs + 5_000);
    } else this.#timeline.in(thereMs, () => arrive(this.#delayMs()));
    return promise;
  }

  #delayMs(): number {
    const random = this.#random;
    if (this.#network.faults === 0 || random.chance(0.96)) return random.int(1, 15);
    if (random.chance(0.9)) return random.int(100, 4_000);
    return random.int(5_000, 2 * this.#network.removeAfterMs);
  }
}
