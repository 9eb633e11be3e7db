import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isSkuaError } from '../../core/base/errors.ts';
import type { StreamIndex } from '../../core/index/index.ts';
import { TableSource } from '../../core/index/format/table-scan.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { JobOptions, Jobs } from '../../core/ports/jobs.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ANY, type NewEvent } from '../../core/streams/api.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { Random } from '../support/random.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';
import { collectingLog, type Key, keyOf, openIndex, rangeOf } from './world.ts';
import { bySize, seedsFrom } from '../support/run-size.ts';

const KEY: Key = keyOf('order-1');

/** Adds entries, each a bulk and a memtable of its own. */
async function grow(index: StreamIndex, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++) {
    index.add(...KEY, n, n * 10);
    index.endBulk(n * 10, n * 10);
    await index.ready();
  }
}

/** Resolves when `isTrue`, which other work of the process brings about. */
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue())
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
}

/** Jobs whose merges wait until they are let go, or ended. */
class SlowMerges implements Jobs {
  readonly #jobs: Jobs;
  readonly #waiting: (() => void)[] = [];
  isSlow = true;
  /** Of all merges, those of so many sources' entries in all are slow. */
  isSlowFor: ((entries: number) => boolean) | null = null;
  begun = 0;
  aborted = 0;

  constructor(storage: MemoryStorage) {
    this.#storage = storage;
    this.#jobs = new InlineJobs({
      jobs: JOBS,
      storage,
      digests: nodeDigests,
      ids: new SeededIds(11),
      clock: new ManualClock(0, 'microtask'),
    });
  }

  readonly #storage: MemoryStorage;

  get underWay(): number {
    return this.#waiting.length;
  }

  async #entriesOf(paths: readonly string[]): Promise<number> {
    let entries = 0;
    for (const path of paths) {
      const source = await TableSource.open(this.#storage, path);
      entries += source.shape.entries;
      await source.close();
    }
    return entries;
  }

  async run(name: string, args: unknown, options: JobOptions = {}): Promise<unknown> {
    if (name !== 'index.merge-tables') return this.#jobs.run(name, args, options);
    const isSlow =
      this.isSlowFor === null
        ? this.isSlow
        : this.isSlowFor(await this.#entriesOf((args as { sources: string[] }).sources));
    if (isSlow) {
      this.begun++;
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        options.signal?.addEventListener('abort', () => {
          this.aborted++;
          resolve();
        });
      });
    }
    return this.#jobs.run(name, args, options);
  }

  /** Lets one of the merges that have begun get on. */
  letGoOne(random: Random): void {
    if (this.#waiting.length > 0) this.#waiting.splice(random.int(0, this.#waiting.length - 1), 1)[0]!();
  }

  letGo(): void {
    this.isSlow = false;
    this.isSlowFor = null;
    for (const go of this.#waiting.splice(0)) go();
  }

  close(): Promise<void> {
    return this.#jobs.close();
  }
}

const event = (n: number): NewEvent => ({
  id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  type: 'made',
  isJson: false,
  data: new Uint8Array(1),
  metadata: new Uint8Array(0),
});

describe('while a merge lasts', () => {
  it('memtables are written by a thread of their own, and a close ends it at once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'skua-merging-'));
    const storage = new FilesystemStorage({ root: folder });
    const jobs = new WorkerJobs({
      root: folder,
      indexRoot: join(folder, 'index'),
      jobsUrl: new URL('./slow-merge-jobs.ts', import.meta.url),
    });
    try {
      const index = await openIndex(storage, { jobs, memTableEntriesMax: 1 });
      await grow(index, 0, 2);
      await until(() => index.isMerging);
      await grow(index, 2, 12);
      expect(index.tables().length).toBeGreaterThanOrEqual(9);
      expect(await rangeOf(index, KEY, 0, 99)).toHaveLength(12);
      await index.close();
      const again = await openIndex(storage, { jobs, tablesPerLevelMax: 100 });
      expect(again.wasReset).toBeNull();
      expect(again.tables().length).toBeGreaterThanOrEqual(9);
      // What the merge had written is gone.
      expect(await storage.list('index')).toHaveLength(again.tables().length * 2 + 1);
      await again.close();
    } finally {
      await jobs.close();
      await rm(folder, { recursive: true });
    }
  });
});

/**
 * Whether readers meet the tables newest first, as another program relies on: each one's positions lie below those of
 * the one before.
 */
async function expectInOrderOfAge(index: StreamIndex): Promise<void> {
  let ranges: readonly Range[] | null = null;
  // A table may be replaced while it is read.
  while (ranges === null)
    ranges = await rangesOf(index).catch((error: unknown) => {
      if (isSkuaError(error, 'file_not_found')) return null;
      throw error;
    });
  // Levels upwards, in each from the last to the first.
  const met = ranges.toReversed().toSorted((a, b) => a.level - b.level);
  expect(met).toEqual(met.toSorted((a, b) => b.least - a.least));
  met.slice(1).forEach((range, i) => expect(range.greatest).toBeLessThan(met[i]!.least));
}

/** Of the positions in one table. */
interface Range {
  readonly level: number;
  readonly least: number;
  readonly greatest: number;
}

async function rangesOf(index: StreamIndex): Promise<readonly Range[]> {
  const ranges: Range[] = [];
  for (const { file, level } of index.tables()) {
    let [least, greatest] = [Infinity, -Infinity];
    for await (const { positions, count } of index.readTable(file)) {
      least = Math.min(least, ...positions.subarray(0, count));
      greatest = Math.max(greatest, ...positions.subarray(0, count));
    }
    ranges.push({ level, least, greatest });
  }
  return ranges;
}

describe('merges of different sizes', () => {
  it('a small one does not wait for a large one, and few tables come into being meanwhile', async () => {
    const storage = new MemoryStorage();
    const jobs = new SlowMerges(storage);
    const index = await openIndex(storage, {
      jobs,
      memTableEntriesMax: 1,
      smallMergeEntriesMax: 8,
      clock: new ManualClock(0, 'microtask'),
    });
    jobs.isSlow = false;
    for (let n = 0; n < 15; n++) {
      await grow(index, n, n + 1);
      await index.flush();
    }
    expect(index.tables().map(({ level }) => level)).toEqual([0, 1, 2, 3]);
    jobs.isSlowFor = (sources) => sources > 8;
    await grow(index, 15, 100);
    await until(() => jobs.begun === 1 && index.entriesInMemory === 0 && jobs.underWay === 1);
    // The two of 8 entries are being merged; of the entries behind them ten tables of 8 have been made, and some
    // smaller ones.
    await until(() => index.tables().length === 2 + 10 + 1);
    expect(index.tables().map(({ level }) => level)).toEqual([2, ...Array.from({ length: 12 }, () => 3)]);
    await expectInOrderOfAge(index);
    jobs.letGo();
    await index.flush();
    await expectInOrderOfAge(index);
    expect(await rangeOf(index, KEY, 0, 999)).toHaveLength(100);
    await index.close();
  });

  it('keep tables in the order of their age, whenever they end and whatever is asked for meanwhile', async () => {
    for (const seed of seedsFrom(1, bySize(1, 12, 100))) {
      const random = new Random(seed);
      const storage = new MemoryStorage();
      const jobs = new SlowMerges(storage);
      const index = await openIndex(storage, {
        jobs,
        memTableEntriesMax: 1,
        smallMergeEntriesMax: random.pick([1, 2, 4, 16]),
        clock: new ManualClock(0, 'microtask'),
      });
      for (let n = 0; n < 120; n++) {
        await grow(index, n, n + 1);
        if (random.chance(0.05)) index.mergeAll();
        if (random.chance(0.2)) jobs.letGoOne(random);
        for (let turn = random.int(0, 3); turn > 0; turn--)
          await new Promise((resolve) => {
            setImmediate(resolve);
          });
        if (n % 10 === 0) await expectInOrderOfAge(index);
      }
      jobs.letGo();
      await index.flush();
      await expectInOrderOfAge(index);
      expect(await rangeOf(index, KEY, 0, 999)).toHaveLength(120);
      await index.close();
      expect(await storage.list('index')).toHaveLength(
        index.commitCheckpoint < 0 ? 0 : (await reopened(storage)).length * 2 + 1,
      );
    }
  });
});

async function reopened(storage: MemoryStorage): Promise<readonly unknown[]> {
  const index = await openIndex(storage, { tablesPerLevelMax: 100 });
  expect(index.wasReset).toBeNull();
  const tables = index.tables();
  await index.close();
  return tables;
}

describe('tables that are too large to be merged', () => {
  it('stay, and the small ones behind them are merged without them, however often the process restarts', async () => {
    const storage = new MemoryStorage();
    const settings = { memTableEntriesMax: 4, tablesPerLevelMax: 2, mergedEntriesMax: 16, smallMergeEntriesMax: 16 };
    let index = await openIndex(storage, settings);
    await grow(index, 0, 64);
    await index.flush();
    expect(index.tables().map(({ entries }) => entries)).toEqual([16, 16, 16, 16]);
    for (let n = 64; n < 114; n++) {
      await grow(index, n, n + 1);
      await index.flush();
      await expectInOrderOfAge(index);
      await index.close();
      index = await openIndex(storage, settings);
      expect(index.wasReset).toBeNull();
    }
    await index.flush();
    // Of the fifty entries there are tables of 16, or nearly, and of what is not as much one of each size.
    expect(index.tables().length).toBeLessThan(4 + 4 + 6);
    expect(await rangeOf(index, KEY, 0, 999)).toHaveLength(114);
    await index.close();
  });
});

describe('tables that have come while merges were held', () => {
  it('are merged into none that is larger than a table may become', async () => {
    const storage = new MemoryStorage();
    // Large merges alone, which take what there is: small ones have a bound of their own.
    const settings = { memTableEntriesMax: 4, tablesPerLevelMax: 2, mergedEntriesMax: 16, smallMergeEntriesMax: 4 };
    const index = await openIndex(storage, settings);
    const release = await index.holdMerges();
    await grow(index, 0, 64);
    await until(() => index.tables().length === 16);
    release();
    await index.flush();
    expect(index.tables().map(({ entries }) => entries)).toEqual([16, 16, 16, 16]);
    expect(await rangeOf(index, KEY, 0, 999)).toHaveLength(64);
    await expectInOrderOfAge(index);
    await index.close();
  });
});

describe('merges that fall behind without end', () => {
  it('refuse writers before the tables are too many, and take them again when they get on', async () => {
    const storage = new MemoryStorage();
    const jobs = new SlowMerges(storage);
    const lines: string[] = [];
    const index = await openIndex(storage, {
      jobs,
      memTableEntriesMax: 1,
      log: collectingLog(lines),
      clock: new ManualClock(0, 'microtask'),
    });
    const refused = await grow(index, 0, 1_000).then(
      () => null,
      (error: unknown) => error,
    );
    expect(refused).toMatchObject({ code: 'too_busy', data: { limit: 512 } });
    expect(index.tables().length).toBe(513);
    for (let again = 0; again < 5; again++) await expect(index.ready()).rejects.toMatchObject({ code: 'too_busy' });
    expect(lines).toHaveLength(1);
    jobs.letGo();
    await until(() => index.tables().length < 512);
    await index.ready();
    await index.flush();
    expect(index.tables().length).toBeLessThan(12);
    await index.close();
  });

  it('do not keep a stop from writing what is in memory', async () => {
    const storage = new MemoryStorage();
    const jobs = new SlowMerges(storage);
    const index = await openIndex(storage, { jobs, memTableEntriesMax: 10, clock: new ManualClock(0, 'microtask') });
    for (let n = 0; n < 20; n++) {
      index.add(...KEY, n, n * 10);
      index.endBulk(n * 10, n * 10);
      await until(() => index.entriesInMemory < 10);
    }
    index.add(...KEY, 20, 200);
    index.endBulk(200, 200);
    await until(() => jobs.begun === 1);
    index.endMerges();
    await index.writeLast();
    expect([index.commitCheckpoint, index.entriesInMemory, jobs.aborted]).toEqual([200, 0, 1]);
    await index.close();
    expect(await reopened(storage)).toHaveLength(3);
  });
});

describe('a stop', () => {
  it('takes at most the table that is being written, and leaves what came behind it to the replay', async () => {
    const storage = new MemoryStorage();
    const jobs = new SlowMerges(storage);
    jobs.isSlow = false;
    const writing = Promise.withResolvers<void>();
    const begun: string[] = [];
    const index = await openIndex(storage, {
      memTableEntriesMax: 2,
      clock: new ManualClock(0, 'microtask'),
      jobs: {
        close: () => jobs.close(),
        run: async (name, args, options) => {
          begun.push(name);
          await writing.promise;
          return jobs.run(name, args, options);
        },
      },
    });
    for (let n = 0; n < 5; n++) {
      index.add(...KEY, n, n * 10);
      index.endBulk(n * 10, n * 10);
    }
    await until(() => begun.length === 1);
    const ended = index.writeLast();
    writing.resolve();
    await ended;
    expect(begun).toEqual(['index.write-table']);
    expect([index.commitCheckpoint, index.entriesInMemory]).toEqual([10, 3]);
    await index.close();
    expect(await reopened(storage)).toHaveLength(1);
  });

  it('ends the merge under way, which begins again after the start by itself', async () => {
    const storage = new MemoryStorage();
    const jobs = new SlowMerges(storage);
    const open = await openTestStore({ storage, jobs, memTableEntriesMax: 4 });
    for (let n = 0; n < 16; n++) await open.store.append('s', ANY, [event(n)]);
    await until(() => jobs.begun > 0);
    await open.close();
    expect(jobs.aborted).toBe(jobs.begun);
    const before = open.status().indexTables;
    jobs.letGo();
    const again = await openTestStore({ storage, jobs, writeEpoch: false });
    await until(() => again.status().indexMerges > 0 && !again.status().isIndexMerging);
    expect(again.status().indexTables).not.toBe(before);
    expect((await again.store.readStream('s', { direction: 'forward', from: 0, count: 99 })).events).toHaveLength(16);
    await again.close();
  });
});
