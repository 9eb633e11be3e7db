import type { ObjectWorld } from '../../../core/shared-log/api.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { GetOptions, ListOptions, ObjectInfo, ObjectPage, ObjectStore } from '../../../core/ports/object-store.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { Random } from '../../support/random.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { Timeline } from '../auto-scavenge/timeline.ts';
import { SimObjects } from '../shared-log/sim-objects.ts';
import { EPOCH_MS, SimProcess } from '../shared-log/sim-process.ts';
import { Judge } from './judge.ts';

/**
 * Replies count, and removed objects are kept, for seconds here instead of minutes and hours: pauses are as much
 * shorter.
 */
export const FRESH_MS = 10_000;
export const REMOVE_AFTER_MS = 25_000;
export const LONG_MS = 3 * REMOVE_AFTER_MS;

/** What clients do beside what all do: nothing; redact events; append on conditions. */
export type ClientKind = 'plain' | 'redacting' | 'deciding';

/** Time, chance, the bucket, the network and whoever judges. */
export class World {
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly ids: SeededIds;
  readonly judge = new Judge(this.timeline);
  /** Processes that do not reach the bucket, and pairs of members that do not reach each other. */
  readonly cut = new Set<string>();
  readonly apart = new Set<string>();
  readonly network: {
    faults: number;
    readonly removeAfterMs: number;
    readonly withoutNonce: boolean;
    readonly cut: ReadonlySet<string>;
  };
  readonly clients: ClientKind;
  bucket: MemoryObjects;
  isPeace = false;
  /** The bucket as it was at some time. */
  past: { readonly bucket: MemoryObjects; readonly commits: number } | null = null;
  #names = 0;

  constructor(seed: number, clients: ClientKind) {
    this.clients = clients;
    this.random = new Random(seed);
    this.ids = new SeededIds(seed);
    this.bucket = new MemoryObjects({ clock: { nowMs: () => EPOCH_MS + this.timeline.now } });
    this.network = {
      faults: this.random.pick([0, 0, 0.01, 0.05, 0.15]),
      removeAfterMs: REMOVE_AFTER_MS,
      withoutNonce: false,
      cut: this.cut,
    };
  }

  newProcess(name: string): SimProcess {
    return new SimProcess(`${name}.${++this.#names}`, this.timeline, this.random);
  }

  objectWorld(process: SimProcess): ObjectWorld {
    return {
      objects: new SimObjects(new Door(this, process.name), process, this.timeline, this.random, this.network),
      clock: process,
      ids: this.ids,
      digests: nodeDigests,
      log: silentLog,
      meter: silentMeter,
    };
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.timeline.in(ms, resolve);
    });
  }

  /** What was begun gets to its first request before time goes on. */
  async run(ms: number): Promise<void> {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    await this.timeline.runTo(this.timeline.now + ms);
  }

  /** Lets time go on until the work has come to its end. */
  async settles(work: Promise<unknown>, otherwise: string): Promise<void> {
    let isDone = false;
    work.then(
      () => {
        isDone = true;
      },
      (error: unknown) => {
        isDone = true;
        this.judge.problem(`something fails in peace: ${String((error as Error).stack)}`);
      },
    );
    for (let waited = 0; !isDone && waited < 60; waited++) await this.run(1_000);
    if (!isDone) this.judge.problem(otherwise);
  }

  areApart(a: string, b: string): boolean {
    return this.apart.has(a < b ? `${a} ${b}` : `${b} ${a}`);
  }

  /** How long a message between two members takes. */
  delayMs(): number {
    const { random } = this;
    if (this.isPeace || random.chance(0.95)) return random.int(1, 10);
    return random.chance(0.9) ? random.int(20, 3_000) : random.int(5_000, LONG_MS);
  }

  newId(): string {
    return Buffer.from(this.ids.uuidBytes())
      .toString('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }
}

/** The bucket as one process is let in, watched. Which bucket that is may change. */
class Door implements ObjectStore {
  readonly place = 'simulated';
  readonly #world: World;
  readonly #name: string;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
  }

  get(key: string, options?: GetOptions): Promise<Uint8Array | null> {
    return this.#world.bucket.get(key, options);
  }
  head(key: string): Promise<ObjectInfo | null> {
    return this.#world.bucket.head(key);
  }
  put(key: string, bytes: Uint8Array): Promise<void> {
    return this.#world.bucket.put(key, bytes);
  }
  list(prefix: string, options?: ListOptions): Promise<ObjectPage> {
    return this.#world.bucket.list(prefix, options);
  }
  remove(keys: readonly string[]): Promise<void> {
    return this.#world.bucket.remove(keys);
  }
  upload(): Promise<void> {
    return Promise.reject(new Error('nothing is uploaded here but by put'));
  }
  async close(): Promise<void> {}

  async create(key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
    const reply = await this.#world.bucket.create(key, bytes);
    if (reply === 'created') this.#world.judge.created(this.#name, key, bytes);
    return reply;
  }
}
