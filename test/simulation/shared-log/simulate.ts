import { isSkuaError, SkuaError } from '../../../core/base/errors.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { ObjectInstance, ObjectWorld } from '../../../core/shared-log/api.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { listAll } from '../../../core/ports/object-store.ts';
import { MANIFEST_PREFIX, manifestNumberOf } from '../../../core/shared-log/format/object-keys.ts';
import { readManifest } from '../../../core/shared-log/format/manifest.ts';
import {
  ANY,
  type EventStore,
  type NewEvent,
  NO_STREAM,
  type StoredEvent,
  STREAM_EXISTS,
} from '../../../core/streams/api.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { MemoryScavengeStates } from '../../../core/memory/memory-scavenge-state.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { tick } from '../../../core/shared-log/tick/tick.ts';
import { compact } from '../../shared-log/compact.ts';
import { Random } from '../../support/random.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { Timeline } from '../auto-scavenge/timeline.ts';
import { Judge, JudgedObjects } from './judge.ts';
import { SimObjects, type SimNetwork } from './sim-objects.ts';
import { EPOCH_MS, SimProcess } from './sim-process.ts';

/**
 * Several writers and two ticks on one bucket, through seven minutes of slow, lost, refused and late requests,
 * processes that stand still for longer than removed objects are kept, crash and come back; then peace, in which
 * everybody must see one log. Objects are kept one minute here and freshness is 20 seconds. Time is simulated and
 * chance is seeded.
 */
export interface SimOptions {
  /** Replies count however old the knowledge behind them is (rule 4 of core/shared-log/README.md off). */
  readonly withoutFreshness?: boolean;
  /** Objects are removed as soon as a manifest drops them (rule 5 of it off). */
  readonly withoutRemovalAge?: boolean;
  readonly withoutNonce?: boolean;
  /** Reads do not ask for other writers' commits. */
  readonly withoutRefresh?: boolean;
}

export interface SimResult {
  readonly problems: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  /** The log that came of it, in short. */
  readonly hash: number;
}

const FRESH_MS = 20_000;
const REMOVE_AFTER_MS = 60_000;
const CHAOS_MS = 420_000;
const PEACE_MS = 200_000;
const TICK_MS = 60_000;
const STREAMS = ['a', 'b', 'c'];
/** What says that a write was refused for what it asks. */
const REFUSALS = ['wrong_expected_version', 'stream_deleted'];
/** What says that a write was not made now. */
const PASSING = ['storage_unreachable', 'storage_throttled', 'commit_contended', 'too_busy'];

export async function simulate(seed: number, options: SimOptions = {}): Promise<SimResult> {
  const sim = new Simulation(seed, options);
  await sim.run();
  const { judge } = sim;
  let hash = 17;
  for (const { id, number } of judge.log)
    for (const letter of `${id}${number}`) hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) | 0;
  return { problems: judge.problems.map((problem) => `seed ${seed}, ${problem}`), counts: judge.counts, hash };
}

/** A place where a process runs; another one comes when it died. */
interface Slot {
  process: SimProcess;
  instance: ObjectInstance | null;
}

class Simulation {
  readonly judge: Judge;
  readonly #timeline = new Timeline();
  readonly #random: Random;
  readonly #options: SimOptions;
  readonly #store: JudgedObjects;
  readonly #network: SimNetwork;
  readonly #slots: Slot[] = [];
  #ids: SeededIds;
  #names = 0;
  #isPeace = false;

  readonly #seed: number;

  constructor(seed: number, options: SimOptions) {
    this.#seed = seed;
    this.#random = new Random(seed);
    this.#options = options;
    this.judge = new Judge(this.#timeline);
    this.#store = new JudgedObjects(this.judge, { nowMs: () => EPOCH_MS + this.#timeline.now });
    this.#network = {
      faults: this.#random.pick([0, 0.01, 0.05, 0.15]),
      removeAfterMs: REMOVE_AFTER_MS,
      withoutNonce: options.withoutNonce === true,
    };
    this.#ids = new SeededIds(seed);
  }

  async run(): Promise<void> {
    const random = this.#random;
    for (let i = random.int(2, 4); i > 0; i--) this.#begin();
    for (let i = random.int(1, 5); i > 0; i--) void this.#client();
    for (let i = 0; i < 2; i++) void this.#tick();
    this.#trouble();
    await this.#timeline.runTo(CHAOS_MS);
    this.#isPeace = true;
    this.#network.faults = 0;
    for (const { process } of this.#slots) process.thaw();
    // What hangs in the network arrives in this time too.
    await this.#timeline.runTo(CHAOS_MS + PEACE_MS);
    const last = { process: this.#newProcess(), instance: null };
    this.#open(last);
    const ends = this.#slots.map((slot) => this.#end(slot));
    await this.#letRun(PEACE_MS);
    // Somebody who has seen nothing of all this.
    ends.push(this.#end(last));
    await this.#letRun(PEACE_MS);
    if ((await isSettled(Promise.all(ends))) === false) this.judge.problem('somebody does not come to an end in peace');
  }

  /** What was begun gets to its first request before time goes on. */
  async #letRun(ms: number): Promise<void> {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    await this.#timeline.runTo(this.#timeline.now + ms);
  }

  #newProcess(): SimProcess {
    return new SimProcess(`p${++this.#names}`, this.#timeline, this.#random);
  }

  #worldOf(process: SimProcess): ObjectWorld {
    return {
      objects: new SimObjects(this.#store, process, this.#timeline, this.#random, this.#network),
      clock: process,
      ids: this.#ids,
      digests: nodeDigests,
      log: silentLog,
      meter: silentMeter,
    };
  }

  #begin(): void {
    const slot: Slot = { process: this.#newProcess(), instance: null };
    this.#slots.push(slot);
    this.#open(slot);
  }

  #open(slot: Slot): void {
    const { process } = slot;
    const isTime = this.#options.withoutFreshness === true;
    const opening = openObjectStore(this.#worldOf(process), {
      chunkSizeBytes: 65_536,
      cacheBytes: 4_194_304,
      freshMs: isTime ? Number.MAX_SAFE_INTEGER / 4 : FRESH_MS,
      removeAfterMs: isTime ? Number.MAX_SAFE_INTEGER : REMOVE_AFTER_MS,
      streams: { recentIds: this.#random.pick([16, 256]), idLookbackEvents: 1_000, readThroughBytes: 0 },
    });
    opening.then(
      (instance) => {
        if (slot.process === process) slot.instance = instance;
      },
      (error: unknown) => {
        if (!this.#isExpected(error, PASSING)) return;
        this.#timeline.in(1_000, () => {
          if (slot.process === process) this.#open(slot);
        });
      },
    );
  }

  #isExpected(error: unknown, codes: readonly string[]): error is SkuaError {
    if (isSkuaError(error) && codes.includes(error.code)) return true;
    this.judge.problem(`an unexpected error: ${String((error as Error).stack)}`);
    return false;
  }

  /** Freezes and kills processes now and then. */
  #trouble(): void {
    const random = this.#random;
    this.#timeline.in(random.int(2_000, 40_000), () => {
      if (this.#isPeace) return;
      const slot = random.pick(this.#slots);
      if (random.chance(0.7)) {
        this.judge.counts['freezes']!++;
        slot.process.freeze(
          random.chance(0.6) ? random.int(1_000, FRESH_MS) : random.int(FRESH_MS, 3 * REMOVE_AFTER_MS),
        );
      } else {
        this.judge.counts['crashes']!++;
        slot.process.isDead = true;
        slot.process = this.#newProcess();
        slot.instance = null;
        this.#open(slot);
      }
      this.#trouble();
    });
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#timeline.in(ms, resolve);
    });
  }

  async #client(): Promise<void> {
    const random = this.#random;
    while (!this.#isPeace) {
      await this.#wait(random.chance(0.9) ? random.int(10, 4_000) : random.int(5_000, 40_000));
      const slot = random.pick(this.#slots);
      if (slot.instance === null) continue;
      const stream = random.pick(STREAMS);
      const work = random.chance(0.35) ? this.#read(slot, stream) : this.#append(slot, stream);
      // Whoever asks a process that died hears nothing; clients do not wait for ever.
      await Promise.race([work, this.#wait(30_000)]);
    }
  }

  async #read(slot: Slot, stream: string): Promise<void> {
    const least = this.judge.acknowledgedLast(stream);
    const { instance } = slot;
    this.judge.counts['reads']!++;
    try {
      const store = this.#options.withoutRefresh === true ? instance!.internals : instance!.store;
      this.judge.read(stream, await this.#eventsOf(store, stream), least);
    } catch (error) {
      this.#isExpected(error, PASSING);
    }
  }

  /**
   * All events of a stream, which is alone in its category, by either way to them: none where nobody has written to it
   * yet.
   */
  async #eventsOf(store: EventStore, stream: string): Promise<readonly StoredEvent[]> {
    if (this.#random.chance(0.5)) {
      try {
        return (await store.readStream(stream, { direction: 'forward', from: 0, count: 4_000 })).events;
      } catch (error) {
        if (isSkuaError(error, 'stream_not_found')) return [];
        throw error;
      }
    }
    this.judge.counts['queries']!++;
    const filter = { on: 'stream', query: { category: stream } } as const;
    return (await store.readAll({ direction: 'forward', from: 'start', count: 4_000, filter })).events;
  }

  #newEvent(): NewEvent {
    const id = Buffer.from(this.#ids.uuidBytes())
      .toString('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    return {
      id,
      type: 'T',
      isJson: false,
      data: new Uint8Array(this.#random.chance(0.15) ? this.#random.int(1_000, 16_000) : 10),
      metadata: new Uint8Array(0),
    };
  }

  /** One write, which its client sends again, somewhere, while it does not know what became of it. */
  async #append(first: Slot, stream: string): Promise<void> {
    const random = this.#random;
    const events = Array.from({ length: random.chance(0.8) ? 1 : random.int(2, 4) }, () => this.#newEvent());
    const known = this.judge.lastAt(stream, this.#timeline.now - random.pick([0, 0, 0, 10_000]));
    const expected = random.pick([ANY, ANY, STREAM_EXISTS, NO_STREAM, known, known, known + random.int(0, 1)]);
    let wasUnknown = false;
    let slot = first;
    for (let tries = 0; tries < 4; tries++) {
      const outcome = await this.#send(slot, stream, expected, events, wasUnknown);
      if (outcome === 'done') return;
      wasUnknown ||= outcome === 'unknown';
      await this.#wait(random.int(1, 20_000));
      slot = random.pick(this.#slots);
      if (slot.instance === null) return;
    }
  }

  async #send(
    slot: Slot,
    stream: string,
    expected: number,
    events: readonly NewEvent[],
    wasUnknown: boolean,
  ): Promise<'done' | 'unknown' | 'failed'> {
    const { judge } = this;
    const startedMs = this.#timeline.now;
    const { store, internals } = slot.instance!;
    const isInternal = this.#random.chance(0.05);
    try {
      const result = await (isInternal
        ? internals.appendInternal(stream, expected, events, { completeChunkAfter: true })
        : store.append(stream, expected, events));
      judge.counts[result.isRepeat ? 'repeats' : 'acknowledged']!++;
      if (wasUnknown && !result.isRepeat) judge.counts['lateTakeovers']!++;
      events.forEach(({ id }, i) => judge.acknowledged(stream, id, result.firstEventNumber + i));
      return 'done';
    } catch (error) {
      if (isSkuaError(error, 'commit_outcome_unknown')) {
        judge.counts['unknown']!++;
        return 'unknown';
      }
      // Within the store nobody looks for the newest manifest when a file is gone.
      if (!this.#isExpected(error, [...REFUSALS, ...PASSING, ...(isInternal ? ['file_not_found'] : [])])) return 'done';
      if (REFUSALS.includes(error.code)) {
        judge.counts['refused']!++;
        for (const { id } of events) judge.refused(id);
        if (!this.#mayRefuse(stream, expected, startedMs))
          judge.problem(
            `a write to ${stream} that expected ${expected} was refused, and ${judge.lastAt(stream, this.#timeline.now)} was its last event all the time`,
          );
        return 'done';
      }
      judge.counts['failed']!++;
      if (!wasUnknown && this.#random.chance(0.3)) {
        for (const { id } of events) judge.refused(id);
        return 'done';
      }
      return 'failed';
    }
  }

  /** A refusal is right when the stream was in such a state at some time between request and answer. */
  #mayRefuse(stream: string, expected: number, startedMs: number): boolean {
    const before = this.judge.lastAt(stream, startedMs);
    const after = this.judge.lastAt(stream, this.#timeline.now);
    if (expected === ANY) return false;
    if (expected === STREAM_EXISTS) return before < 0;
    return before !== expected || after !== expected;
  }

  /** A tick after the other, in a process that may stand still in the middle of one. */
  async #tick(): Promise<void> {
    const random = this.#random;
    while (!this.#isPeace) {
      await this.#wait(random.int(5_000, 50_000));
      const process = this.#newProcess();
      if (random.chance(0.1)) process.freeze(random.int(1_000, 2 * REMOVE_AFTER_MS));
      if (random.chance(0.1))
        this.#timeline.in(random.int(1, 2_000), () => process.freeze(random.int(1_000, 2 * REMOVE_AFTER_MS)));
      if (random.chance(0.1))
        this.#timeline.in(random.int(1, 2_000), () => {
          process.isDead = true;
        });
      const work = this.#tickOnce(this.#worldOf(process)).catch((error: unknown) => {
        this.#isExpected(error, [...PASSING, 'outcome_unknown', 'io_error']);
      });
      await Promise.race([work, this.#wait(120_000)]);
    }
  }

  /** Of every other seed they are the product's own, which write attribute indexes too; else the least that counts. */
  async #tickOnce(world: ObjectWorld): Promise<void> {
    if (this.#options.withoutRemovalAge !== true && this.#seed % 2 === 0) {
      const { outcome } = await tick({
        world,
        scratch: new MemoryStorage(),
        scavengeStates: new MemoryScavengeStates(),
        deadlineMs: world.clock.monotonicMs() + TICK_MS,
        open: () => Promise.reject(new Error('no scavenge was asked for')),
        options: { chunkSizeBytes: 65_536, freshMs: FRESH_MS, removeAfterMs: REMOVE_AFTER_MS },
        settings: { compactCommitsMin: 1 },
      });
      if (outcome === 'published') this.judge.counts['compactions']!++;
      return;
    }
    const compacted = await compact(world, this.#random.chance(0.5) ? {} : { commitsMax: this.#random.int(1, 20) });
    if (compacted.kind !== 'done') return;
    this.judge.counts['compactions']!++;
    await this.#sweep(world, compacted.manifest.number);
  }

  /** Removes what the newest manifest that is old enough, by the store's clock, says was dropped. */
  async #sweep(world: ObjectWorld, own: number): Promise<void> {
    const { objects, digests } = world;
    let nowMs = 0;
    for await (const { key, modifiedMs } of listAll(objects, MANIFEST_PREFIX)) {
      nowMs = Math.max(nowMs, modifiedMs);
      const number = manifestNumberOf(key)!;
      const isOld = this.#options.withoutRemovalAge === true ? number <= own : modifiedMs <= nowMs - REMOVE_AFTER_MS;
      if (!isOld) continue;
      const keys = (await readManifest(objects, number, digests))!.dropped.map((dropped) => dropped.key);
      this.judge.counts['removed']! += keys.length;
      if (keys.length > 0) await objects.remove(keys);
      return;
    }
  }

  /** In peace every process writes and sees the whole log. */
  async #end(slot: Slot): Promise<void> {
    const { judge } = this;
    try {
      const { store } = slot.instance!;
      const event = this.#newEvent();
      const result = await store.append('end', ANY, [event]);
      judge.acknowledged('end', event.id, result.lastEventNumber);
      const seen = judge.log.length;
      const { events } = await store.readAll({ direction: 'forward', from: 'start', count: 4_000 });
      if (judge.log.length === seen) judge.readAll(slot.process.name, events);
      for (const stream of STREAMS) {
        const least = judge.acknowledgedLast(stream);
        judge.read(stream, await this.#eventsOf(store, stream), least);
      }
    } catch (error) {
      judge.problem(`${slot.process.name} fails in peace: ${String((error as Error).stack)}`);
    }
  }
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([
    promise.then(() => true),
    new Promise<boolean>((resolve) => {
      setImmediate(() => resolve(false));
    }),
  ]);
}
