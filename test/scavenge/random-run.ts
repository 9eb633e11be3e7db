import { isSkuaError } from '../../core/base/errors.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { JobOptions, Jobs } from '../../core/ports/jobs.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import type { ScavengeStates } from '../../core/ports/scavenge-state.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { ScavengeOptions } from '../../core/scavenge/api.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';
import { newEvent } from '../support/workload.ts';
import { HASHERS, type HasherName } from './hashers.ts';
import { latestPoint, type Point, type Reason } from './model.ts';
import { checkClosed, findReadErrors, judge, readEverything, type Reads, streamsOf } from './random-check.ts';
import { emptiedBytes, type RawRecord, readRawLog, ticksOf } from './raw-log.ts';

const STREAMS = ['load-0', 'load-1', 'load-2', 'load-3', 'load-4', 'load-5', 'load-6'];
const CHUNK_BYTES = 65_536;
const HOUR_MS = 3_600_000;
const DAY_S = 86_400;
const DATA_BYTES_MAX = 3_000;
/** Interruptions of one scavenge before it is let go to its end. */
const INTERRUPTIONS_MAX = 4;
/** Refusals that belong to a random history. */
const REFUSALS = ['stream_deleted', 'stream_not_found', 'wrong_expected_version'];

/** Where a history happens that is not on the faulty disk. */
export interface Place {
  readonly storage: Storage;
  readonly states: ScavengeStates;
  /** Default: this thread. */
  readonly jobs?: () => Jobs;
}

export interface HistoryOptions {
  readonly seed: number;
  readonly rounds?: number;
  readonly place?: Place;
  readonly hasher?: HasherName;
  /** The clock is also set back by hours, and streams are limited by age. */
  readonly stepsBack?: boolean;
}

/** What happened in a history, so that a test can see that everything was met. */
export interface Tally {
  emptied: number;
  runs: number;
  stopped: number;
  errored: number;
  shutDown: number;
  skipped: number;
  removed: number;
  merged: number;
  forgotten: number;
}
export function newTally(): Tally {
  return { emptied: 0, runs: 0, stopped: 0, errored: 0, shutDown: 0, skipped: 0, removed: 0, merged: 0, forgotten: 0 };
}

/** Plays a random history with several scavenges and returns what went wrong. */
export async function playHistory(options: HistoryOptions, tally = newTally()): Promise<string[]> {
  const history = new History(options, tally);
  try {
    await history.play(options.rounds ?? 3);
  } catch (error) {
    history.wrong.push(`it threw ${(error as Error).stack ?? String(error)}`);
  } finally {
    await history.close();
  }
  return history.wrong.map((problem) => `seed ${options.seed} (${history.about}): ${problem}`);
}

class History {
  readonly wrong: string[] = [];
  readonly #tally: Tally;
  readonly #random: Random;
  readonly #ids: SeededIds;
  readonly #clock = new ManualClock(TEST_NOW_MS, 'microtask');
  readonly #storage: Storage;
  readonly #faulty: FaultyStorage | null;
  readonly #place: Place | null;
  readonly #hasherName: HasherName;
  readonly #disableMerging: boolean;
  readonly #mergesWhileExecuting: boolean;
  readonly #keepsDeletedData: boolean;
  /** Metadata of a history with one kind of rule show what the others would hide. */
  readonly #rules: 'all' | 'count' | 'tb' | 'age';
  readonly #memTableEntriesMax: number;
  readonly #stepsBack: boolean;
  #states: ScavengeStates;
  #open: DirectoryStore | null = null;
  #jobs: Jobs | null = null;
  #carried: ReadonlyMap<number, Reason> = new Map();
  #interruption: (() => void) | null = null;
  #countdown = 0;

  constructor({ seed, place, hasher, stepsBack }: HistoryOptions, tally: Tally) {
    this.#tally = tally;
    this.#random = new Random(seed);
    this.#ids = new SeededIds(seed);
    this.#place = place ?? null;
    this.#faulty =
      place === undefined
        ? new FaultyStorage({ seed, reads: this.#random.pick(['sync', 'async', 'async', 'async', 'async']) })
        : null;
    this.#storage = place?.storage ?? this.#faulty!;
    this.#states = place?.states ?? new MemoryScavengeStates();
    this.#hasherName = hasher ?? this.#random.pick(['plain', 'plain', 'pairs', 'withMetastream', 'all']);
    this.#disableMerging = this.#random.chance(0.5);
    this.#mergesWhileExecuting = seed % 4 !== 0;
    this.#keepsDeletedData = seed % 3 === 0;
    const rules = this.#random.pick(['all', 'all', 'all', 'count', 'tb', 'age', 'age'] as const);
    this.#stepsBack = stepsBack ?? false;
    this.#rules = this.#stepsBack && (rules === 'count' || rules === 'tb') ? 'age' : rules;
    this.#memTableEntriesMax = this.#random.int(15, 150);
  }

  get about(): string {
    return `hashes ${this.#hasherName}, rules ${this.#rules}, data of deleted streams ${this.#keepsDeletedData ? 'kept' : 'removed'}, merging ${this.#disableMerging ? 'off' : this.#mergesWhileExecuting ? 'at once' : 'on'}`;
  }
  get #hasher() {
    return HASHERS[this.#hasherName];
  }
  get #store() {
    return this.#open!.store;
  }

  async play(rounds: number): Promise<void> {
    await this.#reopen();
    for (let round = 0; round < rounds && this.wrong.length === 0; round++) {
      await this.#write(this.#random.int(15, 60));
      if (this.#random.chance(0.15)) await this.#syncOnly();
      await this.#scavenge(round === rounds - 1 ? 0 : this.#random.pick([0, 0, 0, -1, 1, 2, 6, 20, 1_000]));
    }
  }

  async close(): Promise<void> {
    await this.#open?.close();
    this.#open = null;
    await this.#jobs?.close();
    this.#jobs = null;
  }

  async #reopen(): Promise<void> {
    await this.close();
    const inner =
      this.#place?.jobs?.() ??
      new InlineJobs({
        jobs: JOBS,
        storage: this.#storage,
        digests: nodeDigests,
        ids: this.#ids,
        clock: this.#clock,
        hasher: this.#hasher,
        scavengeStates: this.#states,
      });
    const jobs: Jobs = (this.#jobs = {
      run: (name: string, args: unknown, options?: JobOptions) => {
        if (this.#faulty === null && name.startsWith('scavenge.')) this.#countDown();
        return inner.run(name, args, options);
      },
      close: () => inner.close(),
    });
    this.#open = await openTestStore({
      storage: this.#storage,
      clock: this.#clock,
      ids: this.#ids,
      jobs,
      hasher: this.#hasher,
      scavengeStates: this.#states,
      chunkSizeBytes: CHUNK_BYTES,
      memTableEntriesMax: this.#memTableEntriesMax,
      verifyChunks: false,
      scavenge: {
        disableMerging: this.#disableMerging,
        mergesWhileExecuting: this.#mergesWhileExecuting,
        keepsDeletedData: this.#keepsDeletedData,
      },
    });
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
    const choice = random.int(0, 99);
    if (choice < 60)
      await this.#store.append(
        stream,
        ANY,
        Array.from({ length: random.int(1, 8) }, () => newEvent(random, 'happened', null, DATA_BYTES_MAX)),
      );
    else if (choice < 76)
      await this.#store.append(`$$${stream}`, ANY, [newEvent(random, '$metadata', this.#metadata())]);
    else if (choice < 80 && this.#rules !== 'age') await this.#store.deleteStream(stream, ANY, 'soft');
    // So that not all of them end soon.
    else if (choice < 83 && /[01]$/.test(stream)) await this.#store.deleteStream(stream, ANY, 'hard');
    else if (this.#stepsBack && random.chance(0.45))
      this.#clock.setNow(this.#clock.nowMs() - random.int(1, 30) * HOUR_MS);
    else this.#clock.setNow(this.#clock.nowMs() + random.int(1, this.#stepsBack ? 40 : 12) * HOUR_MS);
  }

  #metadata(): string {
    const random = this.#random;
    const keys: Record<string, number> = {};
    const isUsed = (rule: string): boolean =>
      this.#rules === 'all' ? random.chance(0.4) : this.#rules === rule && random.chance(0.8);
    if (isUsed('count')) keys['$maxCount'] = random.int(1, 12);
    if (isUsed('tb')) keys['$tb'] = random.int(0, 30);
    if (isUsed('age')) keys['$maxAge'] = random.int(1, 5) * DAY_S;
    return JSON.stringify(keys);
  }

  /** Without a new scavenge point there is nothing to do. */
  async #syncOnly(): Promise<void> {
    const before = await readRawLog(this.#storage);
    await this.#run({ syncOnly: true });
    if (this.#open!.scavenger.last()?.result !== 'Success')
      this.wrong.push(`a run that has nothing to do ended ${JSON.stringify(this.#open!.scavenger.last())}`);
    const after = await readRawLog(this.#storage);
    if (before.some((record, i) => after[i]!.bytes !== record.bytes))
      this.wrong.push('a run that had nothing to do changed the log');
    if (latestPoint(after)?.number !== latestPoint(before)?.number)
      this.wrong.push('a run with syncOnly wrote a scavenge point');
  }

  async #run(options: ScavengeOptions): Promise<void> {
    await this.#open!.scavenger.start(options);
    await this.#open!.scavenger.idle();
  }

  #options(threshold: number): ScavengeOptions {
    const threads = this.#random.int(1, 4);
    // Time stands still on the faulty disk, and so there are no pauses.
    return {
      threshold,
      threads,
      throttlePercent: threads === 1 && this.#faulty !== null ? this.#random.pick([1, 50, 100]) : 100,
    };
  }

  /** Starts again and again until a run has completed, and judges what it left. */
  async #scavenge(threshold: number): Promise<void> {
    const universe = new Map<number, RawRecord>();
    let reads: Reads | null = await this.#look(universe);
    if (this.#carried.size === 0 && this.#place === null && this.#random.chance(0.1)) await this.#forgetState();
    for (let attempt = 0; ; attempt++) {
      if (attempt < INTERRUPTIONS_MAX && this.#random.chance(0.5)) this.#armInterruption();
      const reading = this.#readMeanwhile();
      await this.#run(this.#options(threshold));
      this.#disarm();
      const last = this.#open?.scavenger.last();
      const seen = await reading();
      if (last?.result === 'Success') {
        await this.#judge(universe, seen);
        break;
      }
      if (attempt > INTERRUPTIONS_MAX) throw new Error(`The run ended ${JSON.stringify(last)}.`);
      await this.#afterInterruption(universe);
      if (this.#random.chance(0.4)) {
        reads = null;
        await this.#write(this.#random.int(1, 10));
      }
      const point = latestPoint(await readRawLog(this.#storage));
      if (this.#carried.size === 0 && this.#place === null && (point?.threshold ?? 1) <= 0 && this.#random.chance(0.1))
        await this.#forgetState();
      if (this.#random.chance(0.3)) await this.#reopen();
      for (const record of await readRawLog(this.#storage)) universe.set(record.position, record);
    }
    if (reads !== null && this.wrong.length === 0) await this.#compareReads(reads);
    if (this.wrong.length === 0) await this.#checkClosed();
  }

  /** Notes the log and what readers are given. */
  async #look(universe: Map<number, RawRecord>): Promise<Reads> {
    const log = await readRawLog(this.#storage);
    for (const record of log) universe.set(record.position, record);
    return readEverything(this.#store, streamsOf(log));
  }

  /** As when the scavenge database was deleted while the node was stopped. */
  async #forgetState(): Promise<void> {
    this.#tally.forgotten++;
    await this.close();
    this.#states = new MemoryScavengeStates();
    await this.#reopen();
  }

  #armInterruption(): void {
    const kind = this.#random.pick(
      this.#faulty === null ? (['stop', 'close'] as const) : (['stop', 'stop', 'close', 'disk-full'] as const),
    );
    this.#countdown = this.#faulty === null ? this.#random.int(1, 12) : this.#random.int(1, 160);
    let isFull = false;
    this.#interruption = () => {
      if (kind === 'disk-full') isFull = true;
      else if (kind === 'stop') void this.#open!.scavenger.stop('current').catch(() => {});
      else {
        this.#tally.shutDown++;
        void this.#open!.scavenger.close();
      }
    };
    this.#faulty?.failWhen((op, path) => {
      if (op !== 'read') this.#countDown();
      if (!isFull || (op !== 'writeAt' && op !== 'create') || !/\.scavenge\.tmp$|^index\/[0-9a-f-]{36}/.test(path))
        return undefined;
      return 'disk_full';
    });
  }

  #countDown(): void {
    if (this.#interruption === null || --this.#countdown > 0) return;
    const act = this.#interruption;
    this.#interruption = null;
    act();
  }

  #disarm(): void {
    this.#interruption = null;
    this.#faulty?.failWhen(undefined);
  }

  /** Reads `$all` again and again until told to end; resolves with the texts. */
  #readMeanwhile(): () => Promise<readonly string[]> {
    let isOver = false;
    const store = this.#store;
    const texts: string[] = [];
    const reading = (async () => {
      while (!isOver) {
        const { all } = await readEverything(store, []);
        if (texts.at(-1) !== all) texts.push(all);
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
    })();
    return async () => {
      isOver = true;
      await reading;
      return texts;
    };
  }

  async #afterInterruption(universe: ReadonlyMap<number, RawRecord>): Promise<void> {
    const last = this.#open!.scavenger.last();
    if (last?.result === 'Errored') this.#tally.errored++;
    else this.#tally.stopped++;
    const names = await this.#storage.list('');
    const temporary = names.filter((name) => name.endsWith('.tmp'));
    if (temporary.length > 0) this.wrong.push(`a run that ended ${last?.result} left ${temporary.join()}`);
    const after = await readRawLog(this.#storage);
    for (const record of after) {
      const before = universe.get(record.position);
      if (
        before !== undefined &&
        before.bytes !== record.bytes &&
        (this.#keepsDeletedData || before.prepare === null || record.bytes !== emptiedBytes(before))
      )
        this.wrong.push(`the record at ${record.position} changed in a run that ended ${last?.result}`);
    }
    const unsure = new Set(after.map((record) => record.position));
    this.wrong.push(
      ...(await findReadErrors(this.#store, after, unsure, this.#clock.nowMs())).map(
        (problem) => `after a run that ended ${last?.result}: ${problem}`,
      ),
    );
    // A scavenger that was closed does not open again.
    if (last?.result !== 'Stopped' && last?.result !== 'Errored') await this.#reopen();
  }

  async #judge(universe: Map<number, RawRecord>, seen: readonly string[]): Promise<void> {
    const after = await readRawLog(this.#storage);
    for (const record of after) if (!universe.has(record.position)) universe.set(record.position, record);
    const records = [...universe.values()].sort((a, b) => a.position - b.position);
    const point = this.#asCounted(latestPoint(records)!);
    const sharing = this.#hasherName === 'all' ? 'all' : this.#hasherName === 'plain' ? 'none' : 'some';
    const { wrong, left } = await judge(this.#storage, {
      universe: records,
      after,
      point,
      carried: this.#carried,
      sharing,
      keepsDeletedData: this.#keepsDeletedData,
    });
    this.wrong.push(...wrong.map((problem) => `after ${JSON.stringify(point)}: ${problem}`));
    this.#carried = left;
    this.#checkState(point);
    this.#tally.runs++;
    this.#tally.removed += records.length - after.length;
    this.#tally.emptied += after.filter(({ prepare }) => prepare?.isEmptied === true).length;
    if (left.size > 0) this.#tally.skipped++;
    const names = await this.#storage.list('');
    if (names.some((name) => name.endsWith('.tmp'))) this.wrong.push(`a completed run left ${names.join()}`);
    const chunks = names.filter((name) => name.startsWith('chunk-'));
    // A number that is missing is covered by the file before it.
    if (Number(chunks.at(-1)!.slice(6, 12)) >= chunks.length) this.#tally.merged++;
    this.wrong.push(...(await findReadErrors(this.#store, after, new Set(left.keys()), this.#clock.nowMs())));
    this.#checkSeen(seen, records, after);
  }

  /** The point with the time that the run took for now, which is not ahead of the clock. */
  #asCounted(point: Point): Point {
    const state = this.#states.open({ pageSizeBytes: 16_384, cacheBytes: 1_048_576, hashUsersCacheEntries: 100 });
    const { effectiveNowMs = 0, effectiveNowTicks = 0 } = state.checkpoint()?.point ?? {};
    state.close();
    const ticks = ticksOf(effectiveNowMs, effectiveNowTicks);
    if (ticks > point.ticks)
      this.wrong.push(`the run took ${ticks} for the time of a point that was written at ${point.ticks}`);
    return { ...point, ticks };
  }

  /** The point is done, and where every chunk with weight was rewritten, there is nothing left to do. */
  #checkState(point: Point): void {
    const state = this.#states.open({ pageSizeBytes: 16_384, cacheBytes: 1_048_576, hashUsersCacheEntries: 100 });
    const checkpoint = state.checkpoint();
    if (checkpoint?.stage !== 'Done' || checkpoint.point.eventNumber !== point.number)
      this.wrong.push(`the checkpoint is ${JSON.stringify(checkpoint)} after a run to ${JSON.stringify(point)}`);
    if (point.threshold <= 0 && !state.allWeightsZero())
      this.wrong.push('weights are left although every chunk was rewritten');
    state.close();
  }

  /**
   * Readers during the run saw, each time, everything that stays as far as it was written by then, and nothing twice.
   */
  #checkSeen(seen: readonly string[], records: readonly RawRecord[], after: readonly RawRecord[]): void {
    const known = new Set(records.map((record) => record.position));
    const lasting = after
      .filter(({ prepare }) => prepare !== null && prepare.stream !== '$epoch-information' && !prepare.isEmptied)
      .map((record) => record.position);
    for (const text of seen) {
      const positions = text === '' ? [] : text.split(' ').map((event) => Number(event.split('@')[1]));
      const has = new Set(positions);
      if (has.size !== positions.length) this.wrong.push('a reader during the run saw an event twice');
      const end = positions.at(-1) ?? -1;
      if (positions.some((position) => !known.has(position)))
        this.wrong.push('a reader during the run saw an event that is not in the log');
      const missed = lasting.filter((position) => position <= end && !has.has(position));
      if (missed.length > 0) this.wrong.push(`a reader during the run missed ${missed.join()}`);
    }
  }

  /** Nothing was written since: what was visible still is, but for the history of the runs. */
  async #compareReads(before: Reads): Promise<void> {
    const streams = [...before.streams.keys()].filter((stream) => !/^(\$\$)?\$scavenge/.test(stream));
    const after = await readEverything(this.#store, streams);
    for (const stream of streams) {
      if (after.streams.get(stream) !== before.streams.get(stream))
        this.wrong.push(
          `${stream} read ${before.streams.get(stream)} before the run, and ${after.streams.get(stream)} after it`,
        );
    }
  }

  async #checkClosed(): Promise<void> {
    const streams = streamsOf(await readRawLog(this.#storage));
    const before = await readEverything(this.#store, streams);
    await this.close();
    this.wrong.push(...(await checkClosed(this.#storage, this.#hasher)));
    this.wrong.push(...(this.#faulty?.violations ?? []));
    await this.#reopen();
    const after = await readEverything(this.#store, streams);
    for (const [stream, text] of before.streams)
      if (after.streams.get(stream) !== text)
        this.wrong.push(
          `${stream} read ${text} before it was closed, and ${after.streams.get(stream)} when it was opened again`,
        );
  }
}
