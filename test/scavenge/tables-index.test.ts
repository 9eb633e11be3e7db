import { describe, expect, test } from 'vitest';
import { loadIndexMap } from '../../core/index/index-map.ts';
import { HEADER_BYTES, MD5_BYTES } from '../../core/index/table-format.ts';
import { TableSource } from '../../core/index/table-scan.ts';
import { isSkuaError } from '../../core/errors.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { contentOf, putFile } from '../log/kit.ts';
import { Random } from '../support/random.ts';
import { newEvent } from '../support/workload.ts';
import type { TestStoreOptions } from '../support/test-store.ts';
import { checkRow, expectWorld } from './notation-check.ts';
import { readIndexEntries, World, type HistoryEvent, type Run, type RunOptions } from './notation-world.ts';

/** scavenge.md section 16.11, rows 111 to 118: merging, threads and index tables. */

describe('16.11 merging and threads', () => {
  const LOG = 'a0, b0 | a1, a2, M0(a){mc=1} | SP';

  test('row 111: merging on', async () => {
    const { world } = await checkRow({ row: 111, log: LOG, merging: true, left: 'b0 | a2, M0 | SP' });
    expect((await world.files()).map(({ start, end, isScavenged }) => [start, end, isScavenged])).toEqual([[0, 2, true]]);
  });

  test('row 112: the same, merging off', async () => {
    const { world } = await checkRow({ row: 112, log: LOG, left: 'b0 | a2, M0 | SP' });
    expect((await world.files()).map(({ start, end }) => [start, end])).toEqual([[0, 0], [1, 1], [2, 2]]);
  });

  const SIX = 'a0 | a1 | a2 | a3 | a4 | a5 | M0(a){mc=1} | SP';
  test.each([1, 4, 5])('row 113: one event of a in each of six chunks, %i threads', async (threads) => {
    await checkRow({ row: 113, log: SIX, run: { threads }, left: '∅ | ∅ | ∅ | ∅ | ∅ | a5 | M0 | SP', versions: [1, 1, 1, 1, 1, 0, 0, 0] });
  });

  // Our interface takes no number below 1; what the reference makes 1 of is refused before anything begins.
  test.each([-1, 0])('row 113: %i threads are refused', async (threads) => {
    const world = await World.create(SIX);
    await expect(world.run({ threads })).rejects.toSatisfy((error) => isSkuaError(error, 'bad_option'));
    await expectWorld(world, { left: '=' });
  });
});

/** Tables of one level stay as they are, so that a test knows which there are. */
const NO_MERGES: Partial<TestStoreOptions> = { tablesPerLevelMax: 10 };

function tableReports(run: Run): HistoryEvent['data'][] {
  return run.history.filter(({ type }) => type === '$scavengeIndexCompleted').map(({ data }) => data);
}

async function tablesOf(world: World): Promise<string[]> {
  return (await loadIndexMap(world.storage, nodeDigests))!.levels.flat();
}

/** Every file of the index folder belongs to a table that the map names. */
async function expectNoLeftovers(world: World): Promise<void> {
  const named = (await tablesOf(world)).flatMap((name) => [name, `${name}.bloomfilter`]);
  expect((await world.storage.list('index')).filter((name) => name !== 'indexmap' && name !== 'proven-tables' && !named.includes(name))).toEqual([]);
}

describe('16.11 index tables', () => {
  test('row 114: three tables of two entries, three records gone', async () => {
    const log = 'a0, a1 | !a2 | !a3 | a4, a5 | b0 | SP';
    // With a shared hash every entry's record is looked up.
    const world = await World.create(log, { collide: { b: 'a' }, gone: ['a5'], tables: [['a4', 'a5'], ['a2', 'a3'], ['a0', 'a1']], tablesTo: 'a5' });
    const before = await tablesOf(world);
    const run = await world.run({ store: NO_MERGES });
    expect(run.last.result).toBe('Success');
    // The first one is of what the log had beyond the tables.
    const reports = tableReports(run).slice(1).map(({ level, index, entriesDeleted, entriesKept, wasScavenged, errorMessage }) => ({ level, index, entriesDeleted, entriesKept, wasScavenged, errorMessage }));
    expect(reports).toEqual([
      { level: 0, index: 0, entriesDeleted: 1, entriesKept: 1, wasScavenged: true, errorMessage: '' },
      { level: 1, index: 0, entriesDeleted: 2, entriesKept: 0, wasScavenged: true, errorMessage: '' },
      { level: 2, index: 0, entriesDeleted: 0, entriesKept: 2, wasScavenged: false, errorMessage: '' },
    ]);
    const { hi, lo } = world.hash('a');
    const a = (await readIndexEntries(world.storage)).filter((entry) => entry.hi === hi && entry.lo === lo && entry.position < world.log.chunkSize * 4);
    expect(a.map(({ version }) => version)).toEqual([4, 1, 0]);
    const after = await tablesOf(world);
    expect(before.map((name) => after.includes(name))).toEqual([false, false, true]);
    await expectNoLeftovers(world);
  });

  test('row 115: a table is completed while another is being scavenged', async () => {
    const world = await World.create('M0(a){mc=1}, a0, a1 | SP');
    let before: string[] = [];
    let written: string[] = [];
    const run = await world.run({
      store: { ...NO_MERGES, memTableEntriesMax: 50 },
      hooks: {
        job: async (name) => {
          if (name !== 'scavenge.execute-table' || written.length > 0) return;
          before = await tablesOf(world);
          const random = new Random(115);
          await world.opened!.store.append('c', -2, Array.from({ length: 60 }, () => newEvent(random, 'late', '{}')));
          while (written.length === 0) {
            await new Promise((resolve) => { setImmediate(resolve); });
            written = (await tablesOf(world)).filter((table) => !before.includes(table));
          }
        },
      },
    });
    expect(run.last.result).toBe('Success');
    expect(before).toHaveLength(1);
    expect(tableReports(run)).toHaveLength(1);
    const after = await tablesOf(world);
    expect(after).toEqual(expect.arrayContaining(written));
    expect(after).not.toContain(before[0]);
    await expectWorld(world, { left: 'M0, a1 | SP' });
  });

  test.each([
    { row: 116, what: 'a stop', error: 'Scavenge cancelled', result: 'Stopped' },
    { row: 117, what: 'a failure', error: 'the disk is on fire', result: 'Errored' },
  ])('row $row: $what while a table is being scavenged', async ({ error, result }) => {
    const world = await World.create('M0(a){mc=1}, a0, a1 | SP');
    let before: string[] = [];
    const checkpoint = (name: string): void => {
      if (name !== 'scavenge.execute-table') return;
      if (result === 'Stopped') world.stop();
      else throw new Error(error);
    };
    const job = async (name: string): Promise<void> => {
      if (name === 'scavenge.execute-table') before = await tablesOf(world);
    };
    const run = await world.run({ store: NO_MERGES, hooks: { job, checkpoint } });
    expect(run.last.result).toBe(result);
    expect(tableReports(run)).toEqual([expect.objectContaining({ level: -1, index: -1, entriesDeleted: 0, wasScavenged: false, spaceSaved: 0, errorMessage: error })]);
    expect(await tablesOf(world)).toEqual(expect.arrayContaining(before));
    await expectNoLeftovers(world);
    expect((await world.indexLeft()).map((record) => record.label)).toEqual(['M0(a)', 'a0', 'a1', 'SP']);
    // The records that are gone are not found any more, those that are left are.
    const open = await world.open();
    expect((await open.store.readEvent('a', 1)).number).toBe(1);
    await open.close();
  });

  const unchanged = (): Promise<World> => World.create('a0, a1 | SP', { tables: [['a0', 'a1', 'SP']] });
  const options: RunOptions = { store: NO_MERGES };

  test('row 118: nothing removed, same format version', async () => {
    const world = await unchanged();
    const [table] = await tablesOf(world);
    const run = await world.run(options);
    expect(tableReports(run).at(-1)).toMatchObject({ entriesDeleted: 0, entriesKept: 3, wasScavenged: false, errorMessage: '', spaceSaved: 0 });
    expect(await tablesOf(world)).toContain(table);
    await expectNoLeftovers(world);
  });

  test('row 118: nothing removed, from an older format version', async () => {
    const world = await unchanged();
    const [table] = await tablesOf(world);
    await toVersion3(world, `index/${table}`);
    const run = await world.run(options);
    expect(tableReports(run).at(-1)).toMatchObject({ entriesDeleted: 0, entriesKept: 3, wasScavenged: true, errorMessage: '' });
    const after = await tablesOf(world);
    expect(after).not.toContain(table);
    for (const name of after) {
      const source = await TableSource.open(world.storage, `index/${name}`);
      expect(source.shape.version).toBe(4);
      await source.close();
    }
    await expectWorld(world, { left: '=' });
  });
});

/** A table of version 3 has neither midpoints nor a footer. */
async function toVersion3(world: World, path: string): Promise<void> {
  const source = await TableSource.open(world.storage, path);
  const entryBytes = source.shape.entries * source.shape.entryBytes;
  await source.close();
  const old = await contentOf(world.storage, path);
  const bytes = new Uint8Array(HEADER_BYTES + entryBytes + MD5_BYTES);
  bytes.set(old.subarray(0, HEADER_BYTES + entryBytes));
  bytes[1] = 3;
  const md5 = nodeDigests.md5();
  md5.update(bytes.subarray(0, bytes.length - MD5_BYTES));
  bytes.set(md5.finish(), bytes.length - MD5_BYTES);
  await putFile(world.storage, path, bytes);
}
