/**
 * An object store that fails, for tests of what is built on one. The fault model, in words:
 *
 * - Every call but `close` may fail before it has an effect (`before`), or after it (`after`: the reply was lost), be
 *   refused because the store is busy (`throttle`), or take its time (`delay`, by the clock that was given).
 * - `late` is a write whose reply is lost and which reaches the store only after some of the calls that follow: a
 *   request that hung in the network. At the latest `settle` lets it arrive.
 * - `create` rejects with `outcome_unknown` in all of these cases, as the contract has it; the others with
 *   `storage_unreachable` or `storage_throttled`.
 * - A failing `remove` may have removed some of its keys, a failing `upload` has read some of its content.
 * - After a crash every call rejects with a `Crash`; what had its effect before stays. The call that meets the crash
 *   may or may not have its effect. `restart` gives another client of the same store.
 */
import { SkuaError } from '../../core/base/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { GetOptions, ListOptions, ObjectInfo, ObjectPage, ObjectStore } from '../../core/ports/object-store.ts';
import { Crash } from './crash.ts';
import { Random } from './random.ts';

export type ObjectOp = 'get' | 'head' | 'put' | 'create' | 'upload' | 'list' | 'remove';
export type ObjectFault = 'before' | 'after' | 'late' | 'throttle' | 'delay';

export interface FaultyObjectsOptions {
  readonly seed?: number;
  /** Sleeps through delays; without it a delay lets other work run once. */
  readonly clock?: Clock;
  /** How likely each fault is at each call, 0 to 1. */
  readonly chances?: Partial<Record<ObjectFault, number>>;
  /** Longest delay in milliseconds. */
  readonly delayMsMax?: number;
}

/** A call that was made. For `list` the key is the prefix, for `remove` the first key. */
export interface ObjectCall {
  readonly op: ObjectOp;
  readonly key: string;
  readonly fault?: ObjectFault | 'crash';
}

/** Calls until a late write arrives, at most. */
const LATE_CALLS_MAX = 6;

export class FaultyObjects implements ObjectStore {
  readonly #objects: ObjectStore;
  readonly #options: FaultyObjectsOptions;
  readonly #random: Random;
  readonly #faults = new Map<number, ObjectFault>();
  #faultWhen: ((op: ObjectOp, key: string, n: number) => ObjectFault | undefined) | undefined;
  #crashAfter = Number.MAX_SAFE_INTEGER;
  #late: { left: number; arrive: () => Promise<unknown> }[] = [];
  isCrashed = false;
  /** Every call, in order, with the fault that it met. */
  readonly calls: ObjectCall[] = [];

  constructor(objects: ObjectStore, options: FaultyObjectsOptions = {}) {
    this.#objects = objects;
    this.#options = options;
    this.#random = new Random(options.seed ?? 1);
  }

  get place(): string {
    return this.#objects.place;
  }

  /** The n-th call from now on (the next is 1) meets the fault. */
  faultAt(n: number, fault: ObjectFault): void {
    this.#faults.set(this.calls.length + n, fault);
  }

  /** Every call for which the function names a fault meets it; undefined ends that. */
  faultWhen(choose: ((op: ObjectOp, key: string, n: number) => ObjectFault | undefined) | undefined): void {
    this.#faultWhen = choose;
  }

  /** `n` more calls are answered; the one after them meets the crash, and all later calls reject. */
  crashAfter(n: number): void {
    this.#crashAfter = this.calls.length + n;
  }

  crash(): void {
    this.isCrashed = true;
  }

  /** Another client of the same store. Late writes of this one have arrived, or never will, as the seed decides. */
  async restart(options: FaultyObjectsOptions = this.#options): Promise<FaultyObjects> {
    this.crash();
    for (const write of this.#late.splice(0)) if (this.#random.chance(0.5)) await write.arrive();
    return new FaultyObjects(this.#objects, options);
  }

  /** Lets all late writes arrive. */
  async settle(): Promise<void> {
    for (const write of this.#late.splice(0)) await write.arrive();
  }

  get(key: string, options?: GetOptions): Promise<Uint8Array | null> {
    return this.#call('get', key, () => this.#objects.get(key, options));
  }

  head(key: string, signal?: AbortSignal): Promise<ObjectInfo | null> {
    return this.#call('head', key, () => this.#objects.head(key, signal));
  }

  put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    const copy = bytes.slice();
    return this.#call('put', key, () => this.#objects.put(key, copy, signal));
  }

  create(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<'created' | 'exists'> {
    const copy = bytes.slice();
    return this.#call('create', key, () => this.#objects.create(key, copy, signal));
  }

  upload(key: string, sizeBytes: number, content: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    return this.#call(
      'upload',
      key,
      () => this.#objects.upload(key, sizeBytes, content, signal),
      async () => {
        let left = this.#random.int(0, 3);
        for await (const _piece of content) if (left-- === 0) break;
      },
    );
  }

  list(prefix: string, options?: ListOptions): Promise<ObjectPage> {
    return this.#call('list', prefix, () => this.#objects.list(prefix, options));
  }

  remove(keys: readonly string[], signal?: AbortSignal): Promise<void> {
    return this.#call(
      'remove',
      keys[0] ?? '',
      () => this.#objects.remove(keys, signal),
      () =>
        this.#objects.remove(
          keys.filter(() => this.#random.chance(0.5)),
          signal,
        ),
    );
  }

  /** Ends this client alone: the store below may have others. */
  async close(): Promise<void> {}

  async #call<T>(op: ObjectOp, key: string, effect: () => Promise<T>, some?: () => Promise<void>): Promise<T> {
    if (this.isCrashed) throw crashed();
    const n = this.calls.length + 1;
    if (n > this.#crashAfter) return this.#meetCrash(op, key, effect, some);
    const fault = this.#choose(op, key, n);
    this.calls.push({ op, key, ...(fault !== undefined && { fault }) });
    await this.#arrivals();
    if (this.isCrashed) throw crashed();
    switch (fault) {
      case undefined:
        break;
      case 'delay':
        await this.#delay();
        break;
      case 'throttle':
        throw failure(op, key, 'storage_throttled');
      case 'before':
        await some?.();
        throw failure(op, key, 'storage_unreachable');
      case 'after':
        await effect();
        throw failure(op, key, 'storage_unreachable');
      case 'late':
        this.#late.push({ left: this.#random.int(1, LATE_CALLS_MAX), arrive: effect });
        throw failure(op, key, 'storage_unreachable');
    }
    const result = await effect();
    // A client that died while the store was at work never sees the answer.
    if (this.isCrashed) throw crashed();
    return result;
  }

  async #meetCrash<T>(op: ObjectOp, key: string, effect: () => Promise<T>, some?: () => Promise<void>): Promise<T> {
    this.crash();
    this.calls.push({ op, key, fault: 'crash' });
    const outcome = this.#random.int(0, 2);
    if (outcome === 1) await some?.();
    if (outcome === 2) await effect();
    throw crashed();
  }

  #choose(op: ObjectOp, key: string, n: number): ObjectFault | undefined {
    const planned = this.#faults.get(n) ?? this.#faultWhen?.(op, key, n) ?? this.#byChance();
    // Only a single write can hang in the network as a whole; for the others a lost reply is the nearest thing.
    return planned === 'late' && op !== 'put' && op !== 'create' ? 'after' : planned;
  }

  #byChance(): ObjectFault | undefined {
    const { chances } = this.#options;
    if (chances === undefined) return undefined;
    for (const fault of ['before', 'after', 'late', 'throttle', 'delay'] as const) {
      if (chances[fault] !== undefined && this.#random.chance(chances[fault])) return fault;
    }
    return undefined;
  }

  async #arrivals(): Promise<void> {
    for (const write of this.#late) write.left--;
    const due = this.#late.filter((write) => write.left <= 0);
    this.#late = this.#late.filter((write) => write.left > 0);
    for (const write of due) await write.arrive();
  }

  async #delay(): Promise<void> {
    const { clock, delayMsMax = 1_000 } = this.#options;
    if (clock === undefined) await Promise.resolve();
    else await clock.sleep(this.#random.int(1, delayMsMax));
  }
}

function failure(op: ObjectOp, key: string, code: 'storage_unreachable' | 'storage_throttled'): SkuaError {
  if (op === 'create')
    return new SkuaError('outcome_unknown', `The test made it unknown whether ${key} was created.`, { key });
  return new SkuaError(code, `The test made ${op} of ${key} fail.`, { key });
}

function crashed(): Crash {
  return new Crash('The simulated process has crashed: restart the store.');
}
