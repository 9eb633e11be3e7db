import type { ObjectInstance, ObjectLogOptions, ObjectWorld } from '../../../core/shared-log/api.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { FRESH_DEFAULT_MS } from '../../../core/shared-log/api.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import type { ObjectStore } from '../../../core/ports/object-store.ts';
import { type Call, layer, performWrite } from '../../../core/streams/layer/layer.ts';
import type { EventStoreInternals } from '../../../core/streams/streams.ts';
import { Random } from '../../support/random.ts';
import { compactionTick, worldOf } from '../tick-kit.ts';

/** New files of a tick that leaves a part of the tail where it is, in bytes. */
const SMALL_TICK_BYTES = 1_500;
const NO_HOLD = null;

/** The wall clock of a test, and a monotonic one that jumps to whatever the store sleeps for or stands still. */
export class StoreClock implements Clock {
  readonly #clock: Clock;
  #stoodMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }
  monotonicMs(): number {
    return this.#clock.monotonicMs() + this.#stoodMs;
  }
  stand(ms: number): void {
    this.#stoodMs += ms;
  }
  async sleep(ms: number): Promise<void> {
    await this.yield();
    this.stand(ms);
  }

  yield(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

export interface TickingOptions {
  readonly objects: Promise<ObjectStore>;
  readonly clock: StoreClock;
  readonly seed: number;
  readonly options: ObjectLogOptions;
  /** How likely a tick is before a call that nothing else is under way beside. */
  readonly tickChance: number;
  /** The same instance is used from beginning to end. */
  readonly isOneInstance?: boolean;
  /** Default: a tick without a scavenge. */
  readonly tick?: (world: ObjectWorld, ownBytesMax?: number) => Promise<unknown>;
}

interface Held {
  readonly go: () => void;
  readonly reject: (error: unknown) => void;
}

const INTERNAL: readonly (keyof EventStoreInternals)[] = [
  'appendInternal',
  'completeChunk',
  'writeEpoch',
  'primeRecentIds',
];

type Method = (...args: unknown[]) => Promise<unknown>;

/**
 * A store on objects for tests that know nothing of ticks: they come between its calls at random places, so that data
 * lie partly in files and partly in the tail, or beside them. Behind a tick an instance has to look for the new
 * manifest, or another one opens; calls go to either of the last two. Calls keep their order and, made at once, stay
 * together. It is open from the beginning: calls wait for that.
 */
export class TickingStore {
  /** How many ticks there were, in all stores. */
  static ticks = 0;
  readonly store: EventStoreInternals;
  readonly #given: TickingOptions;
  readonly #random: Random;
  readonly #instances: ObjectInstance[] = [];
  #held: Held[] | null = NO_HOLD;
  #underWay = 0;
  #turn = 1;
  #beside: Promise<void> | null = null;
  #opening: Promise<void>;
  #failure: unknown = null;
  #objects: ObjectStore | null = null;
  #seeds: number;

  constructor(given: TickingOptions) {
    this.#given = given;
    this.#random = new Random(given.seed);
    this.#seeds = given.seed * 1_000;
    this.store = this.#facade();
    this.#opening = this.#holdFor(() => this.#open());
  }

  /** Resolves when the store is open; rejects when it could not be opened. */
  async opened(): Promise<void> {
    await this.#opening;
    if (this.#failure !== null) throw this.#failure;
  }

  async close(): Promise<void> {
    await this.#opening;
    await this.#beside;
    for (const instance of this.#instances.splice(0)) await instance.close();
    if (this.#failure !== null) throw this.#failure;
  }

  world(): ObjectWorld {
    return worldOf(this.#objects!, this.#given.clock, this.#seeds++);
  }

  async #open(): Promise<void> {
    this.#objects ??= await this.#given.objects;
    this.#instances.push(await openObjectStore(this.world(), this.#given.options));
  }

  /** Whose turn it is, of the last two. */
  get #instance(): ObjectInstance {
    return this.#instances.at(-this.#turn) ?? this.#instances[0]!;
  }

  #facade(): EventStoreInternals {
    const instanceOf = () => this.#instance;
    const endOf = () => Math.max(0, ...this.#instances.map(({ store }) => store.end));
    const members: Record<string, unknown> = {
      close: () => this.close(),
      figures: () => this.#instance.internals.figures(),
    };
    for (const name of INTERNAL)
      members[name] = (...args: unknown[]) =>
        this.#call(() => (this.#instance.internals[name as 'append'] as unknown as Method)(...args));
    return Object.assign(
      layer(
        {
          get redactions() {
            return instanceOf().store.redactions;
          },
          get end() {
            return endOf();
          },
        },
        {
          write: (write) => this.#call(() => performWrite(this.#instance.store, write)),
          read: (call) => this.#call(() => call(this.#instance.store)),
          wait: (call) => this.#whenFree(() => call(this.#instance.store)),
          follow: (call) => this.#subscription(call),
        },
      ),
      members,
    ) as unknown as EventStoreInternals;
  }

  async #call<T>(call: () => Promise<T>): Promise<T> {
    if (this.#held === NO_HOLD && this.#underWay === 0) {
      this.#turn = this.#random.int(1, 2);
      if (this.#random.chance(this.#given.tickChance)) this.#tick();
    }
    return this.#whenFree(async () => {
      this.#underWay++;
      try {
        return await call();
      } finally {
        this.#underWay--;
      }
    });
  }

  #whenFree<T>(call: () => Promise<T>): Promise<T> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#held === NO_HOLD) return call();
    return new Promise((resolve, reject) => {
      this.#held!.push({
        go: () => {
          call().then(resolve, reject);
        },
        reject,
      });
    });
  }

  /** Calls wait for the work, and are then made at once and in their order. */
  async #holdFor(work: () => Promise<void>): Promise<void> {
    const held: Held[] = [];
    this.#held = held;
    try {
      await work();
    } catch (error) {
      this.#failure = error;
    }
    this.#held = NO_HOLD;
    for (const { go, reject } of held) {
      if (this.#failure === null) go();
      else reject(this.#failure);
    }
  }

  #tick(): void {
    const { clock, isOneInstance = false } = this.#given;
    const isBeside = this.#random.chance(0.3);
    if (isBeside) {
      this.#beside ??= this.#runTick()
        .then(() => {
          clock.stand(FRESH_DEFAULT_MS + 1);
        })
        .catch((error: unknown) => {
          this.#failure = error;
        })
        .finally(() => {
          this.#beside = null;
        });
      return;
    }
    this.#opening = this.#holdFor(async () => {
      await this.#beside;
      await this.#runTick();
      if (this.#random.chance(0.5) && !isOneInstance) await this.#open();
      else clock.stand(FRESH_DEFAULT_MS + 1);
    });
  }

  async #runTick(): Promise<void> {
    TickingStore.ticks++;
    const { tick = (world, ownBytesMax) => compactionTick(world, ownBytesMax === undefined ? {} : { ownBytesMax }) } =
      this.#given;
    await tick(this.world(), this.#random.chance(0.4) ? SMALL_TICK_BYTES : undefined);
  }

  /** Goes on with the instance that was there when it began. */
  #subscription<T>(call: Call<AsyncIterable<T>>): AsyncIterable<T> {
    const messages = (async function* (self: TickingStore): AsyncGenerator<T, void, undefined> {
      yield* await self.#whenFree(async () => call(self.#instance.store));
    })(this);
    const next = (): Promise<IteratorResult<T>> => {
      const promise = messages.next();
      // A test may leave it alone, and then its store is closed.
      promise.catch(() => {});
      return promise;
    };
    return { [Symbol.asyncIterator]: () => ({ next, return: () => messages.return(undefined) }) };
  }
}
