import { describe, expect, it } from 'vitest';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { EXECUTE_TABLE_JOB, executeTable, type ExecuteTableArgs } from '../../core/scavenge/index-execution.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { collidingHasher } from '../support/colliding-hasher.ts';
import { damage, rangeOf } from '../index/world.ts';
import { type Entry, IndexWorld, pairHasher } from './index-kit.ts';
import { contentOf, putFile } from '../log/kit.ts';

function entries(stream: string, positions: readonly number[], from = 0): Entry[] {
  return positions.map((position, i) => ({ stream, number: from + i, position }));
}

/** Entries of one stream at 0, 100, 200, ... */
const SIX = entries('a', [0, 100, 200, 300, 400, 500]);

describe('index execution of one stream', () => {
  it.each<[string, (world: IndexWorld) => void, string]>([
    ['keeps all of a stream without a row', () => {}, '0 1 2 3 4 5'],
    ['keeps from the discard point on', (w) => w.original('a', { discardPoint: 3, maybeDiscardPoint: 5 }), '3 4 5'],
    ['knows the discard point of a metastream', (w) => w.metastream('a', { discardPoint: 2 }), '2 3 4 5'],
    ['drops a metastream whose original is tombstoned', (w) => w.metastream('a', { isTombstoned: true }), ''],
    [
      'judges a tombstoned original by its discard point',
      (w) => w.original('a', { isTombstoned: true, discardPoint: 5 }),
      '5',
    ],
    [
      'asks the original before the metastream',
      (w) => {
        w.original('a', { discardPoint: 1 });
        w.metastream('a', { discardPoint: 4 });
      },
      '1 2 3 4 5',
    ],
    [
      'keeps what stands at or beyond the scavenge point',
      (w) => {
        w.original('a', { discardPoint: 6 });
        w.settings = { ...w.settings, point: { ...w.settings.point, position: 300 } };
      },
      '3 4 5',
    ],
    [
      'drops all of a tombstoned stream where hard deletes are ignored',
      (w) => {
        w.original('a', { isTombstoned: true, discardPoint: 5 });
        w.settings = { ...w.settings, unsafeIgnoreHardDelete: true };
      },
      '',
    ],
  ])('%s', async (_what, prepare, left) => {
    const world = new IndexWorld();
    const index = await world.open();
    prepare(world);
    await world.tables(index, [SIX, entries('b', [50, 150])]);
    const { error } = await world.run(index);
    expect(error).toBeNull();
    expect(
      (await world.left(index, ['a', 'b']))
        .filter((e) => e.startsWith('a'))
        .map((e) => e[2])
        .join(' '),
    ).toBe(left);
    expect(await world.left(index, ['b'])).toEqual(expect.arrayContaining(['b#0@50', 'b#1@150']));
    await index.close();
  });

  it('keeps a tombstone, and drops it where hard deletes are ignored', async () => {
    for (const unsafe of [false, true]) {
      const world = new IndexWorld();
      world.settings = { ...world.settings, unsafeIgnoreHardDelete: unsafe };
      world.original('a', { isTombstoned: true, discardPoint: 6 });
      const index = await world.open();
      await world.tables(index, [[...SIX, { stream: 'a', number: TOMBSTONE, position: 600 }]]);
      const { reports } = await world.run(index);
      expect(await world.left(index, ['a'])).toEqual(unsafe ? [] : [`a#${TOMBSTONE}@600`]);
      expect(reports).toMatchObject([
        {
          level: 0,
          index: 0,
          entriesDeleted: unsafe ? 7 : 6,
          entriesKept: unsafe ? 0 : 1,
          wasScavenged: true,
          error: '',
        },
      ]);
      // A table without an entry can be opened again.
      await index.close();
      const again = await world.open();
      expect(again.wasReset).toBeNull();
      expect(await rangeOf(again, [world.hashOf('a').hi, world.hashOf('a').lo], 0, TOMBSTONE)).toEqual(
        unsafe ? [] : [[TOMBSTONE, 600]],
      );
      await again.close();
    }
  });

  it('copies a large table block by block, with midpoints and a filter that find every entry', async () => {
    const world = new IndexWorld();
    const index = await world.open({ memTableEntriesMax: 200_000, cacheDepth: 8 });
    const streams = Array.from({ length: 500 }, (_, i) => `stream-${i}`);
    const all = streams.flatMap((stream, i) =>
      entries(
        stream,
        Array.from({ length: 200 }, (_, n) => n * 500 + i),
      ),
    );
    world.settings = { ...world.settings, point: { ...world.settings.point, position: 90_000 } };
    for (const [i, stream] of streams.entries()) if (i % 3 === 0) world.original(stream, { discardPoint: i % 250 });
    await world.tables(index, [all]);
    const expected = all.filter(
      (e, i) => e.position >= 90_000 || Math.floor(i / 200) % 3 !== 0 || e.number >= Math.floor(i / 200) % 250,
    );
    const bytesBefore = (await world.storage.size(index.tables()[0]!.file))!;
    const { reports } = await world.run(index);
    expect(reports).toMatchObject([{ entriesKept: expected.length, entriesDeleted: 100_000 - expected.length }]);
    expect(reports[0]!.spaceSaved).toBe(bytesBefore - (await world.storage.size(index.tables()[0]!.file))!);
    expect(reports[0]!.spaceSaved).toBeGreaterThanOrEqual((100_000 - expected.length) * 24);
    for (const i of [0, 1, 3, 249, 250, 252, 499]) {
      const { hi, lo } = world.hashOf(streams[i]!);
      expect(await rangeOf(index, [hi, lo], 0, 999)).toEqual(
        expected.filter((e) => e.stream === streams[i]).map((e) => [e.number, e.position]),
      );
    }
    await index.close();
    const again = await world.open({ cacheDepth: 8 });
    expect(again.wasReset).toBeNull();
    await again.close();
  });
});

describe('index execution where streams share a hash', () => {
  it('judges each entry by the stream of its record', async () => {
    const world = new IndexWorld(new MemoryStorage(), pairHasher);
    const mixed = [
      ...entries('x', [0, 300, 600]),
      ...entries('y', [150, 450, 750]),
      ...entries('$$x', [1_000, 1_200]),
      ...entries('$$y', [1_100, 1_300]),
    ];
    await world.chunk(0, mixed);
    world.register('x', 'y', '$$x', '$$y');
    world.original('x', { discardPoint: 2 });
    world.original('y', { isTombstoned: true, discardPoint: 1 });
    world.metastream('$$x', { discardPoint: 1 });
    world.metastream('$$y', { isTombstoned: true });
    const index = await world.open();
    await world.tables(index, [mixed]);
    const { error } = await world.run(index);
    expect(error).toBeNull();
    expect(await world.left(index, ['x', '$$x'])).toEqual(['x#1@450', 'x#2@600', 'x#2@750', '$$x#1@1200']);
    await index.close();
  });

  it('drops entries without a record, also when every name has one hash and the chunks are read from disk', async () => {
    const world = new IndexWorld(new FaultyStorage({ reads: 'async' }), collidingHasher);
    const records = [...entries('a', [0, 200, 400]), ...entries('b', [100, 65_736])];
    await world.chunk(
      0,
      records.filter((e) => e.position < 65_536),
    );
    await world.chunk(
      1,
      records.filter((e) => e.position >= 65_536),
    );
    world.settings = { ...world.settings, point: { ...world.settings.point, position: 100_000 } };
    world.register('a', 'b', 'c');
    world.original('b', { discardPoint: 1 });
    const index = await world.open();
    await world.tables(index, [
      [...records, { stream: 'a', number: 3, position: 70_000 }, { stream: 'c', number: 9, position: 100_001 }],
    ]);
    expect((await world.run(index)).error).toBeNull();
    expect(await world.left(index, ['a'])).toEqual(['a#0@0', 'a#1@200', 'a#2@400', 'a#1@65736', 'a#9@100001']);
    await index.close();
  });

  it('fails with a reason when a chunk is missing', async () => {
    const world = new IndexWorld(new MemoryStorage(), collidingHasher);
    world.register('a', 'b');
    const index = await world.open();
    await world.tables(index, [SIX]);
    const { error, reports } = await world.run(index);
    expect(error).toMatchObject({ code: 'chunk_missing' });
    expect(reports).toMatchObject([{ level: -1, index: -1, entriesKept: 6 }]);
    await index.close();
  });
});

describe('the tables of an index', () => {
  it('keep level and place in the map', async () => {
    const world = new IndexWorld();
    world.original('a', { discardPoint: 1 });
    const index = await world.open({ tablesPerLevelMax: 2 });
    await world.tables(
      index,
      SIX.slice(0, 5).map((e) => [e]),
    );
    const shape = (): string =>
      index
        .tables()
        .map((table) => `${table.level}:${table.entries}`)
        .join(' ');
    expect(shape()).toBe('0:1 2:4');
    const { reports } = await world.run(index);
    expect(reports.map((r) => [r.level, r.index, r.wasScavenged])).toEqual([
      [0, 0, false],
      [2, 0, true],
    ]);
    expect(shape()).toBe('0:1 2:3');
    expect(index.commitCheckpoint).toBe(400);
    await index.close();
  });

  it('row 115: a table completed meanwhile is left alone, and merged only afterwards', async () => {
    const world = new IndexWorld();
    world.original('a', { discardPoint: 6 });
    const index = await world.open({ tablesPerLevelMax: 2 });
    await world.tables(index, [SIX.slice(0, 2)]);
    const jobs = world.jobs({
      [EXECUTE_TABLE_JOB]: async (args: never, context) => {
        const result = await executeTable(args as ExecuteTableArgs, context);
        await world.tables(index, [SIX.slice(2, 4), SIX.slice(4)]);
        expect(index.tables().map((table) => table.entries)).toEqual([2, 2, 2]);
        return result;
      },
    });
    const { reports, error } = await world.run(index, {}, jobs);
    expect(error).toBeNull();
    expect(reports).toMatchObject([{ level: 0, index: 0, entriesDeleted: 2, entriesKept: 0 }]);
    expect(await world.left(index, ['a'])).toEqual(['a#2@200', 'a#3@300', 'a#4@400', 'a#5@500']);
    await index.flush();
    expect(index.tables().map((table) => `${table.level}:${table.entries}`)).toEqual(['1:4']);
    await index.close();
  });

  it('row 116: a stop leaves the index as it was, with one report', async () => {
    const world = new IndexWorld();
    world.original('a', { discardPoint: 6 });
    world.original('b', { discardPoint: 1 });
    const index = await world.open();
    await world.tables(index, [SIX, entries('b', [50, 150])]);
    const map = await contentOf(world.storage, 'index/indexmap');
    const files = await world.storage.list('index');
    const stop = new AbortController();
    const jobs = world.jobs({
      [EXECUTE_TABLE_JOB]: (args: never, context) =>
        executeTable(args as ExecuteTableArgs, { ...context, progress: () => stop.abort() }),
    });
    const { reports, error } = await world.run(index, { signal: stop.signal }, jobs);
    expect(error).toMatchObject({ code: 'aborted' });
    expect(reports).toMatchObject([
      {
        level: -1,
        index: -1,
        entriesKept: 2,
        entriesDeleted: 0,
        wasScavenged: false,
        spaceSaved: 0,
        error: 'Scavenge cancelled',
      },
    ]);
    expect(await contentOf(world.storage, 'index/indexmap')).toEqual(map);
    expect(await world.storage.list('index')).toEqual(files);
    // Between two tables: the first one stays scavenged.
    const between = new AbortController();
    const counted: number[] = [];
    await expect(
      index.scavengeTables({
        jobOptions: { signal: between.signal },
        execute: async (execution) => (await world.jobs().run(EXECUTE_TABLE_JOB, world.args(execution))) as never,
        onTable: (report) => {
          counted.push(report.level);
          between.abort();
        },
      }),
    ).rejects.toMatchObject({ code: 'aborted' });
    expect(counted).toEqual([0, -1]);
    expect(await world.left(index, ['a', 'b'])).toEqual(
      [...SIX.map((e) => `a#${e.number}@${e.position}`), 'b#1@150'].sort(
        (x, y) => Number(x.split('@')[1]) - Number(y.split('@')[1]),
      ),
    );
    await index.close();
    const again = await world.open();
    expect(again.wasReset).toBeNull();
    await again.close();
  });

  it('row 117: a failure at any operation leaves the index as it was, with one report, and the next run completes', async () => {
    for (const op of ['create', 'writeAt', 'sync', 'seal', 'rename'] as const) {
      const storage = new FaultyStorage();
      const world = new IndexWorld(storage);
      world.original('a', { discardPoint: 4 });
      const index = await world.open();
      await world.tables(index, [SIX]);
      const files = await storage.list('index');
      let failures = 1;
      storage.failWhen((what, path) =>
        what === op && path.startsWith('index/') && failures-- > 0
          ? op === 'sync'
            ? 'sync_failed'
            : 'disk_full'
          : undefined,
      );
      const { reports, error } = await world.run(index);
      expect(error, op).toMatchObject({ code: op === 'sync' ? 'sync_failed' : 'disk_full' });
      expect(reports, op).toMatchObject([
        { level: -1, index: -1, entriesKept: 6, wasScavenged: false, error: (error as Error).message },
      ]);
      expect(await rangeOf(index, [world.hashOf('a').hi, world.hashOf('a').lo], 0, 99), op).toHaveLength(6);
      // What a failed rename left on the disk is not known, so that file stays until the next start.
      if (op !== 'rename') expect(await storage.list('index'), op).toEqual(files);
      expect((await world.run(index)).error).toBeNull();
      expect(await world.left(index, ['a']), op).toEqual(['a#4@400', 'a#5@500']);
      await index.close();
      const again = await world.open();
      expect(await storage.list('index'), op).toHaveLength(3);
      await again.close();
      expect(storage.violations).toEqual([]);
    }
  });

  it('row 118: nothing to remove writes no table, unless the format is old', async () => {
    const world = new IndexWorld();
    const index = await world.open();
    await world.tables(index, [SIX]);
    const files = await world.storage.list('index');
    const { reports } = await world.run(index);
    expect(reports).toMatchObject([
      { level: 0, index: 0, entriesDeleted: 0, entriesKept: 6, wasScavenged: false, spaceSaved: 0, error: '' },
    ]);
    expect(await world.storage.list('index')).toEqual(files);
    const path = index.tables()[0]!.file;
    await index.close();
    await toVersion3(world, path);
    const old = await world.open({ verify: false });
    const second = await world.run(old);
    expect(second.reports).toMatchObject([{ entriesDeleted: 0, entriesKept: 6, wasScavenged: true }]);
    expect(old.tables()[0]!.file).not.toBe(path);
    expect((await contentOf(world.storage, old.tables()[0]!.file))[1]).toBe(4);
    expect(await world.left(old, ['a'])).toEqual(SIX.map((e) => `a#${e.number}@${e.position}`));
    await old.close();
  });

  it('stay readable while they are replaced', async () => {
    const world = new IndexWorld(new FaultyStorage({ reads: 'async' }));
    world.original('a', { discardPoint: 4 });
    const index = await world.open();
    await world.tables(index, [SIX.slice(0, 3), SIX.slice(3), entries('b', [1, 2, 3])]);
    const { hi, lo } = world.hashOf('a');
    let isDone = false;
    const reading = (async () => {
      let reads = 0;
      for (; !isDone; reads++) {
        const numbers = (await rangeOf(index, [hi, lo], 0, 99)).map(([number]) => number);
        expect(numbers.slice(-2)).toEqual([4, 5]);
        expect(await rangeOf(index, [world.hashOf('b').hi, world.hashOf('b').lo], 0, 9)).toHaveLength(3);
      }
      return reads;
    })();
    expect((await world.run(index)).error).toBeNull();
    isDone = true;
    expect(await reading).toBeGreaterThan(3);
    await index.close();
  });

  it('rejects when the index is closed, and leaves the map alone', async () => {
    const world = new IndexWorld();
    world.original('a', { discardPoint: 4 });
    const index = await world.open();
    await world.tables(index, [SIX]);
    const map = await contentOf(world.storage, 'index/indexmap');
    const jobs = world.jobs({
      [EXECUTE_TABLE_JOB]: async (args: never, context) => {
        const result = await executeTable(args as ExecuteTableArgs, context);
        await index.close();
        return result;
      },
    });
    expect((await world.run(index, {}, jobs)).error).toMatchObject({ code: 'store_closed' });
    expect((await world.run(index)).error).toMatchObject({ code: 'store_closed' });
    expect(await contentOf(world.storage, 'index/indexmap')).toEqual(map);
    const again = await world.open();
    expect(again.wasReset).toBeNull();
    expect(await world.left(again, ['a'])).toHaveLength(6);
    await again.close();
  });

  it('says how many entries stand against the order of their positions', async () => {
    const world = new IndexWorld();
    const index = await world.open();
    await world.tables(index, [[...SIX.slice(0, 2), { stream: 'a', number: 2, position: 50 }]]);
    const [table] = index.tables();
    const result = await world
      .jobs()
      .run(
        EXECUTE_TABLE_JOB,
        world.args({ source: table!.file, target: 'index/x', bloomPath: null, cacheDepth: 16, version: 4 }),
      );
    expect(result).toMatchObject({ entriesOutOfOrder: 1, wasWritten: false });
    expect(await world.storage.size('index/x')).toBeNull();
    await index.close();
  });

  it('fails on a damaged table without touching it', async () => {
    const world = new IndexWorld();
    const index = await world.open();
    await world.tables(index, [SIX]);
    await damage(world.storage, index.tables()[0]!.file, 0, 3);
    const { error, reports } = await world.run(index);
    expect(error).toMatchObject({ code: 'index_corrupt' });
    expect(reports).toHaveLength(1);
    await index.close();
  });
});

/** Rewrites a table of version 4 as one of version 3: no midpoints and no footer. Its checksum is not made anew. */
async function toVersion3(world: IndexWorld, path: string): Promise<void> {
  const bytes = await contentOf(world.storage, path);
  const end = 128 + SIX.length * 24;
  const out = new Uint8Array(end + 16);
  out.set(bytes.subarray(0, end));
  out[1] = 3;
  await putFile(world.storage, path, out);
}
