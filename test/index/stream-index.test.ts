import { describe, expect, it } from 'vitest';
import type { StreamIndex } from '../../core/index/index.ts';
import { TABLE_JOBS, type WriteTableArgs } from '../../core/index/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { decodeText } from '../../core/base/text.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import {
  ceilingOf,
  collectingLog,
  damage,
  floorOf,
  type IndexOptions,
  type Item,
  type Key,
  keyOf,
  NaiveIndex,
  openIndex,
  rangeOf,
} from './world.ts';
import { contentOf, putFile } from '../log/kit.ts';

const KEYS: Key[] = [
  [0, 0],
  [0xffff_ffff, 0xffff_ffff],
  [7, 1],
  [7, 2],
];

async function compare(index: StreamIndex, naive: NaiveIndex, random: Random): Promise<void> {
  for (let i = 0; i < 30; i++) {
    const key = i === 0 ? ([5, 5] as const) : random.pick(KEYS);
    const version = random.int(-1, 41);
    const position = random.int(-1, 1_000);
    expect(await floorOf(index, key, version, position)).toEqual(naive.floor(key, version, position));
    expect(await ceilingOf(index, key, version, position)).toEqual(naive.ceiling(key, version, position));
    const to = random.int(version, 41);
    expect(await rangeOf(index, key, version, to)).toEqual(naive.range(key, version, to));
  }
}

function addBulk(index: StreamIndex, items: readonly Item[], at: number, naive?: NaiveIndex): void {
  for (const item of items) {
    index.add(item.key[0], item.key[1], item.version, item.position);
    naive?.add(item);
  }
  index.endBulk(at, at);
}

const ORDERS: Item[] = [0, 1, 2, 3, 4, 5].map((n) => ({ key: keyOf('order-42'), version: n, position: 100 * n }));

/** An index of two tables (levels 0 and 1), written and closed. */
async function twoTables(storage: Storage): Promise<readonly string[]> {
  const index = await openIndex(storage);
  for (const item of ORDERS.slice(0, 4)) {
    addBulk(index, [item], item.position);
    if (item.version < 2) await index.flush();
  }
  await index.flush();
  index.addStream(...keyOf('order-42'), 0);
  await index.initExistence();
  await index.flushExistence();
  const files = index.tables().map((table) => table.file);
  expect(index.tables().map((table) => [table.level, table.entries])).toEqual([
    [0, 2],
    [1, 2],
  ]);
  await index.close();
  return files;
}

describe('stream index', () => {
  it('answers like a naive list through flushes, merges and reopening, whatever collides', async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const random = new Random(seed);
      const storage = new FaultyStorage({ reads: seed % 2 === 0 ? 'async' : 'sync' });
      const options: IndexOptions = {
        memTableEntriesMax: random.int(1, 40),
        cacheDepth: random.pick([8, 16]),
        bloomFilters: random.chance(0.7),
      };
      const naive = new NaiveIndex();
      let index = await openIndex(storage, options);
      let at = 0;
      for (let bulk = 0; bulk < 60; bulk++) {
        const items = Array.from({ length: random.int(1, 6) }, (): Item => ({
          key: random.pick(KEYS),
          version: random.int(0, 40),
          position: at++,
        }));
        addBulk(index, items, at - 1, naive);
        if (random.chance(0.2)) await compare(index, naive, random);
        await index.ready();
        if (!random.chance(0.08)) continue;
        await index.flush();
        expect([index.commitCheckpoint, index.prepareCheckpoint]).toEqual([at - 1, at - 1]);
        await index.close();
        index = await openIndex(storage, options);
        expect(index.wasReset).toBeNull();
        expect(index.commitCheckpoint).toBe(at - 1);
      }
      await compare(index, naive, random);
      await index.flush();
      await compare(index, naive, random);
      expect(index.tables().reduce((sum, table) => sum + table.entries, 0)).toBe(naive.items.length);
      expect(new Set(index.tables().map((table) => table.level)).size).toBe(index.tables().length);
      await index.close();
      expect(storage.violations).toEqual([]);
    }
  });

  it('writes a full memtable at the end of a bulk, and merges two tables of a level into the next', async () => {
    const storage = new MemoryStorage();
    const index = await openIndex(storage, { memTableEntriesMax: 2 });
    const shapes: string[] = [];
    for (let i = 0; i < 8; i++) {
      addBulk(
        index,
        [0, 1, 2].map((n) => ({ key: keyOf(`s-${i}`), version: n, position: i * 10 + n })),
        i * 10 + 2,
      );
      await index.flush();
      shapes.push(
        index
          .tables()
          .map((table) => `${table.level}:${table.entries}`)
          .join(' '),
      );
    }
    expect(shapes).toEqual(['0:3', '1:6', '0:3 1:6', '2:12', '0:3 2:12', '1:6 2:12', '0:3 1:6 2:12', '3:24']);
    expect(index.commitCheckpoint).toBe(72);
    const map = decodeText(await contentOf(storage, 'index/indexmap')).split('\n');
    expect(map.slice(1)).toEqual(['2', '72/72', '2147483647', expect.stringMatching(/^3,0,[0-9a-f-]{36}$/), '']);
    const name = map[4]!.slice(4);
    expect(await storage.list('index')).toEqual([name, `${name}.bloomfilter`, 'indexmap'].sort());
    const seen: number[] = [];
    for await (const batch of index.readTable(`index/${name}`)) seen.push(...batch.positions.subarray(0, batch.count));
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 24 }, (_, i) => Math.floor(i / 3) * 10 + (i % 3)));
    await index.close();
  });

  it('fills a written memtable again, but never one whose columns somebody has', async () => {
    const index = await openIndex(new MemoryStorage(), { memTableEntriesMax: 100 });
    const inMemory = (): number[] =>
      index.memTables().flatMap(({ positions, count }) => [...positions.subarray(0, count)]);
    addBulk(index, [ORDERS[0]!], 0);
    await index.flush();
    addBulk(index, [ORDERS[1]!], 100);
    const [lent] = index.memTables();
    const heads = [...lent!.heads];
    for (let n = 2; n < 6; n++) {
      await index.flush();
      addBulk(index, [ORDERS[n]!], 100 * n);
      expect(inMemory()).toEqual([100 * n]);
      expect([lent!.positions[0], lent!.versions[0]]).toEqual([100, 1]);
      expect([...lent!.heads]).toEqual(heads);
    }
    expect(await rangeOf(index, keyOf('order-42'), 0, 9)).toEqual([0, 1, 2, 3, 4, 5].map((n) => [n, 100 * n]));
    await index.close();
  });

  it("holds writers back while two memtables wait, refuses them when those can't be written, and goes on when the disk has room again", async () => {
    const storage = new FaultyStorage();
    const clock = new ManualClock();
    const lines: string[] = [];
    const index = await openIndex(storage, { memTableEntriesMax: 1, clock, log: collectingLog(lines) });
    storage.failWhen((op) => (op === 'create' ? 'disk_full' : undefined));
    addBulk(index, [ORDERS[0]!], 0);
    expect(index.ready()).toBeNull();
    addBulk(index, [ORDERS[1]!], 100);
    await expect(index.ready()).rejects.toMatchObject({ code: 'disk_full' });
    await clock.advance(20_000);
    expect(lines.length).toBeGreaterThan(2);
    await expect(index.ready()).rejects.toMatchObject({ code: 'disk_full' });
    await expect(index.flush()).rejects.toMatchObject({ code: 'disk_full' });
    expect(await rangeOf(index, keyOf('order-42'), 0, 9)).toEqual([
      [0, 0],
      [1, 100],
    ]);
    storage.failWhen(undefined);
    await index.ready();
    expect(index.ready()).toBeNull();
    await index.flush();
    expect(index.commitCheckpoint).toBe(100);
    expect(await rangeOf(index, keyOf('order-42'), 0, 9)).toEqual([
      [0, 0],
      [1, 100],
    ]);
    await index.close();
  });

  it('tries again by itself after a pause', async () => {
    const storage = new FaultyStorage();
    const clock = new ManualClock();
    const index = await openIndex(storage, { memTableEntriesMax: 1, clock });
    storage.failWhen((op) => (op === 'sync' ? 'sync_failed' : undefined));
    addBulk(index, [ORDERS[0]!], 0);
    await clock.advance(1_000);
    storage.failWhen(undefined);
    expect(index.commitCheckpoint).toBe(-1);
    await clock.advance(5_000);
    expect(index.commitCheckpoint).toBe(0);
    expect(storage.violations).toEqual([]);
    await index.close();
  });

  it('lets go of writers and of whoever waits for a flush when it is closed', async () => {
    const storage = new FaultyStorage({ reads: 'async' });
    const index = await openIndex(storage, { memTableEntriesMax: 1 });
    addBulk(index, [ORDERS[0]!], 0);
    addBulk(index, [ORDERS[1]!], 100);
    const held = index.ready();
    const flushed = index.flush();
    const closed = index.close();
    await held;
    await expect(flushed).rejects.toMatchObject({ code: 'store_closed' });
    await closed;
    await expect(index.flush()).rejects.toMatchObject({ code: 'store_closed' });
    expect(storage.violations).toEqual([]);
  });

  it('keeps old tables readable while a merge runs', async () => {
    const storage = new FaultyStorage({ reads: 'async' });
    const index = await openIndex(storage, { memTableEntriesMax: 1 });
    const naive = new NaiveIndex();
    const random = new Random(5);
    for (let i = 0; i < 12; i++) {
      addBulk(index, [{ key: random.pick(KEYS), version: i, position: i }], i, naive);
      for (let n = 0; n < 3; n++) expect(await rangeOf(index, KEYS[n]!, 0, 40)).toEqual(naive.range(KEYS[n]!, 0, 40));
      await index.ready();
    }
    await index.close();
  });

  it.each([
    ['memTableEntriesMax', 0],
    ['tablesPerLevelMax', 1],
    ['cacheDepth', 29],
    ['existenceFilterBytes', 9_999],
  ])('refuses %s of %i', async (option, value) => {
    await expect(openIndex(new MemoryStorage(), { [option]: value })).rejects.toMatchObject({ code: 'bad_option' });
  });
});

describe('a damaged index', () => {
  const empty = { commitCheckpoint: -1, prepareCheckpoint: -1 };

  it.each<[string, RegExp, (storage: MemoryStorage, files: readonly string[]) => Promise<void>]>([
    ['a damaged map', /indexmap.*MD5/, (storage) => damage(storage, 'index/indexmap', 40)],
    ['a damaged table', /MD5/, (storage, files) => damage(storage, files[1]!, 140)],
    [
      'a table cut short',
      /footer/,
      async (storage, files) => putFile(storage, files[0]!, (await contentOf(storage, files[0]!)).subarray(0, 300)),
    ],
    ['a table of version 1', /version 1/, (storage, files) => damage(storage, files[0]!, 1, 5)],
    ['a missing table', /.*/, (storage, files) => storage.remove(files[0]!)],
  ])('is discarded for %s, with a warning', async (_what, reason, harm) => {
    const storage = new MemoryStorage();
    const files = await twoTables(storage);
    await harm(storage, files);
    const lines: string[] = [];
    const index = await openIndex(storage, { log: collectingLog(lines) });
    expect(index).toMatchObject(empty);
    expect(index.wasReset).toMatch(reason);
    expect(lines).toHaveLength(1);
    expect(await storage.list('index')).toEqual([]);
    expect(index.existenceCheckpoint).toBeGreaterThanOrEqual(0);
    addBulk(index, ORDERS, 500);
    await index.flush();
    await index.close();
    const again = await openIndex(storage);
    expect(again.wasReset).toBeNull();
    expect(await floorOf(again, keyOf('order-42'), 99, 0)).toEqual([5, 500]);
    await again.close();
  });

  it('is discarded when it reaches the end of the log', async () => {
    for (const [logEnd, isKept] of [
      [301, true],
      [300, false],
      [10, false],
    ] as const) {
      const storage = new MemoryStorage();
      await twoTables(storage);
      const index = await openIndex(storage, { logEnd });
      expect(index.commitCheckpoint).toBe(isKept ? 300 : -1);
      expect(index.wasReset === null).toBe(isKept);
      await index.close();
    }
  });

  it('skips the MD5 when verification is off, unless it is forced', async () => {
    const storage = new MemoryStorage();
    const files = await twoTables(storage);
    await damage(storage, files[0]!, (await storage.size(files[0]!))! - 1);
    const unchecked = await openIndex(storage, { verify: false });
    expect(unchecked.wasReset).toBeNull();
    await unchecked.close();
    await putFile(storage, 'index/.forceverify', new Uint8Array(0));
    const checked = await openIndex(storage, { verify: false });
    expect(checked.wasReset).toMatch(/MD5/);
    expect(await storage.list('index')).toEqual([]);
    await checked.close();
  });

  it('removes files that no map names, and leaves folders alone', async () => {
    const storage = new MemoryStorage();
    const files = await twoTables(storage);
    const before = await storage.list('index');
    for (const name of [
      'indexmap.00000000-0000-4000-8000-000000000001.indexmap.tmp',
      '3f2504e0-4f89-11d3-9a0c-0305e82c3301',
      '3f2504e0-4f89-11d3-9a0c-0305e82c3301.bloomfilter',
      'scavenging/scavenging.db',
    ])
      await putFile(storage, `index/${name}`, new Uint8Array(3));
    const index = await openIndex(storage);
    expect(await storage.list('index')).toEqual(before);
    expect(await storage.list('index/scavenging')).toEqual(['scavenging.db']);
    expect(index.tables().map((table) => table.file)).toEqual(files);
    await index.close();
  });

  it('goes without a bloom filter that is missing or damaged', async () => {
    for (const harm of ['remove', 'header', 'lines']) {
      const storage = new MemoryStorage();
      const files = await twoTables(storage);
      const path = `${files[0]!}.bloomfilter`;
      if (harm === 'remove') await storage.remove(path);
      else if (harm === 'header') await damage(storage, path, 0);
      else {
        const bytes = await contentOf(storage, path);
        await putFile(
          storage,
          path,
          bytes.map((byte, i) => (i > 64 && i < 64 * 12 ? 0x55 : byte)),
        );
      }
      const lines: string[] = [];
      const index = await openIndex(storage, { log: collectingLog(lines) });
      expect(index.wasReset).toBeNull();
      expect(lines).toHaveLength(harm === 'remove' ? 0 : 1);
      expect(await rangeOf(index, keyOf('order-42'), 0, 9)).toEqual([
        [0, 0],
        [1, 100],
        [2, 200],
        [3, 300],
      ]);
      await index.close();
    }
  });
});

describe('the worker that writes a table', () => {
  it('is called once before the memtable is full', async () => {
    const storage = new MemoryStorage();
    const jobs = new InlineJobs({
      jobs: TABLE_JOBS,
      storage,
      digests: nodeDigests,
      ids: new SeededIds(3),
      clock: new ManualClock(),
    });
    let called = 0;
    const index = await openIndex(storage, {
      memTableEntriesMax: 8,
      jobs: {
        run: (...job) => jobs.run(...job),
        close: () => jobs.close(),
        prepare: () => {
          called++;
        },
      },
    });
    const seen: number[] = [];
    for (let n = 0; n < 16; n++) {
      addBulk(index, [{ key: keyOf('order-42'), version: n, position: 100 * n }], 100 * n);
      seen.push(called);
    }
    expect(seen).toEqual([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
    await index.close();
  });
});

describe('the memory of a memtable that was written', () => {
  it('is kept for the next one while more entries come, and not once hardly any have come for 5 s', async () => {
    const storage = new MemoryStorage();
    const clock = new ManualClock();
    const jobs = new InlineJobs({ jobs: TABLE_JOBS, storage, digests: nodeDigests, ids: new SeededIds(3), clock });
    const memory: ArrayBufferLike[] = [];
    let rests = 0;
    const index = await openIndex(storage, {
      // Large enough that its memory is worth keeping.
      memTableEntriesMax: 70_000,
      tablesPerLevelMax: 100,
      clock,
      jobs: {
        run: (name, args, options) => {
          memory.push((args as WriteTableArgs).columns.positions.buffer);
          return jobs.run(name, args, options);
        },
        rest: () => rests++,
        close: () => jobs.close(),
      },
    });
    let added = 0;
    const addMore = (count: number): void => {
      for (let n = 0; n < count; n++) index.add(added++, 1, 0, added);
      index.endBulk(added, added);
    };
    addMore(70_000);
    for (let seconds = 0; seconds < 60; seconds += 4) {
      await clock.advance(4_000);
      addMore(700);
    }
    addMore(60_000);
    await index.flush();
    expect(memory[1]).toBe(memory[0]);
    expect(rests).toBe(0);
    await clock.advance(10_000);
    expect(rests).toBe(1);
    addMore(70_000);
    await index.flush();
    expect(memory[2]).not.toBe(memory[1]);
    await index.close();
    await clock.advance(10_000);
    expect(rests).toBe(1);
  });
});
