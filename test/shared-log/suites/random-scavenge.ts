import { isSkuaError } from '../../../core/base/errors.ts';
import { streamHasher } from '../../../core/base/stream-hash.ts';
import { FRESH_DEFAULT_MS } from '../../../core/shared-log/api.ts';
import { startScavenge } from '../../../core/shared-log/control/control.ts';
import { ANY } from '../../../core/streams/api.ts';
import { latestPoint, type Reason } from '../../scavenge/model.ts';
import { checkClosed, findReadErrors, judge } from '../../scavenge/random-check.ts';
import { type RawRecord, readRawLog, ticksOf } from '../../scavenge/raw-log.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { Random } from '../../support/random.ts';
import { TEST_NOW_MS } from '../../support/test-store.ts';
import { newEvent } from '../../support/workload.ts';
import { CHUNK_BYTES, exportDirectory, runTick } from '../tick-kit.ts';
import type { Place } from './place.ts';
import { StoreClock, TickingStore } from './ticking-store.ts';

const STREAMS = ['load-0', 'load-1', 'load-2', 'load-3', 'load-4'];
const OPTIONS = { chunkSizeBytes: CHUNK_BYTES, cacheBytes: 1_048_576, streams: { recentIds: 1_024 } };
const HOUR_MS = 3_600_000;
const DATA_BYTES_MAX = 3_000;
const TICKS_MAX = 100;
/** Refusals that belong to a random history. */
const REFUSALS = ['stream_deleted', 'stream_not_found', 'wrong_expected_version'];

export interface Played {
  readonly wrong: string[];
  readonly removed: number;
  readonly ticks: number;
}

/**
 * A random history with scavenges that ticks carry out in parts, between which others write; says what is wrong with
 * what they left.
 */
export async function playOnObjects(place: Place, seed: number, rounds: number): Promise<Played> {
  const history = new History(place, seed);
  await history.open();
  for (let round = 0; round < rounds && history.wrong.length === 0; round++)
    await history.round(round === rounds - 1 ? 0 : -1);
  await history.close();
  return history;
}

class History implements Played {
  readonly wrong: string[] = [];
  removed = 0;
  ticks = 0;
  readonly #random: Random;
  readonly #clock = new ManualClock(TEST_NOW_MS, 'microtask');
  readonly #storeClock = new StoreClock(this.#clock);
  readonly #objects: ReturnType<Place['fresh']>;
  readonly #store: TickingStore;
  #carried: ReadonlyMap<number, Reason> = new Map();

  constructor(place: Place, seed: number) {
    this.#random = new Random(seed);
    this.#objects = place.fresh();
    this.#store = new TickingStore({
      objects: this.#objects,
      clock: this.#storeClock,
      seed,
      options: OPTIONS,
      tickChance: 0.1,
      tick: (world) => this.#tick(world),
    });
  }

  open(): Promise<void> {
    return this.#store.opened();
  }
  close(): Promise<void> {
    return this.#store.close();
  }

  async #tick(world: Parameters<typeof runTick>[0]): Promise<Awaited<ReturnType<typeof runTick>>> {
    this.ticks++;
    // Some do only a chunk or two of a scavenge.
    const ownBytesMax = this.#random.chance(0.6) ? this.#random.int(1_000, 90_000) : 1_000_000_000;
    return runTick(world, { settings: { ownBytesMax } });
  }

  async round(threshold: number): Promise<void> {
    await this.#write(this.#random.int(40, 80));
    const objects = await this.#objects;
    const universe = new Map<number, RawRecord>();
    const note = async (): Promise<void> => {
      for (const record of await readRawLog(await exportDirectory(objects))) universe.set(record.position, record);
    };
    await note();
    const startedTicks = ticksOf(this.#clock.nowMs(), 0);
    const { scavengeId } = await startScavenge(this.#store.world(), { threshold });
    for (let ticks = 0; ; ticks++) {
      const { scavenge } = await this.#tick(this.#store.world());
      if (scavenge?.scavengeId === scavengeId && scavenge.state === 'ended' && scavenge.isTold) break;
      if (ticks === TICKS_MAX) throw new Error('The scavenge does not end.');
      if (this.#random.chance(0.5)) await this.#write(this.#random.int(1, 5));
      await note();
    }
    await this.#judge(universe, startedTicks);
  }

  /** `startedTicks`: by the clock. The time of the point may be ahead of it, that of a run is not. */
  async #judge(universe: Map<number, RawRecord>, startedTicks: number): Promise<void> {
    const directory = await exportDirectory(await this.#objects);
    const after = await readRawLog(directory);
    for (const record of after) if (!universe.has(record.position)) universe.set(record.position, record);
    const records = [...universe.values()].sort((a, b) => a.position - b.position);
    const point = latestPoint(records)!;
    const { wrong, left } = await judge(directory, {
      universe: records,
      after,
      point: { ...point, ticks: Math.min(point.ticks, startedTicks) },
      carried: this.#carried,
      sharing: 'none',
      keepsDeletedData: false,
    });
    this.#carried = left;
    this.removed += records.length - after.length;
    // What was removed may be read for a while, until the store looks for a newer manifest.
    this.#storeClock.stand(FRESH_DEFAULT_MS + 1);
    this.wrong.push(
      ...wrong,
      ...(await checkClosed(directory, streamHasher)),
      ...(await findReadErrors(this.#store.store, after, new Set(left.keys()), this.#clock.nowMs())),
    );
  }

  async #write(operations: number): Promise<void> {
    for (let i = 0; i < operations; i++) {
      try {
        await this.#writeOne(this.#random.pick(STREAMS));
      } catch (error) {
        if (!isSkuaError(error) || !REFUSALS.includes(error.code)) throw error;
      }
    }
  }

  async #writeOne(stream: string): Promise<void> {
    const random = this.#random;
    const { store } = this.#store;
    const choice = random.int(0, 99);
    if (choice < 62)
      await store.append(
        stream,
        ANY,
        Array.from({ length: random.int(1, 8) }, () => newEvent(random, 'happened', null, DATA_BYTES_MAX)),
      );
    else if (choice < 78) await store.append(`$$${stream}`, ANY, [newEvent(random, '$metadata', this.#metadata())]);
    else if (choice < 82) await store.deleteStream(stream, ANY, 'soft');
    // So that not all of them end soon.
    else if (choice < 85 && stream.endsWith('0')) await store.deleteStream(stream, ANY, 'hard');
    else this.#clock.setNow(this.#clock.nowMs() + random.int(1, 12) * HOUR_MS);
  }

  #metadata(): string {
    const random = this.#random;
    const rules: Record<string, number> = {};
    if (random.chance(0.4)) rules['$maxCount'] = random.int(1, 12);
    if (random.chance(0.4)) rules['$tb'] = random.int(0, 30);
    if (random.chance(0.3)) rules['$maxAge'] = random.int(1, 5) * 86_400;
    return JSON.stringify(rules);
  }
}
