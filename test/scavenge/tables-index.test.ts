import { describe, expect, test } from 'vitest';
import { loadIndexMap } from '../../core/index/format/index-map.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { checkRow, expectWorld } from './notation-check.ts';
import { readIndexEntries, World } from './notation-world.ts';

/** Rows 111 to 118: merging, threads and index tables. */

describe('16.11 merging and threads', () => {
  const LOG = 'a0, b0 | a1, a2, M0(a){mc=1} | SP';

  test('row 111: merging on', async () => {
    const { world } = await checkRow({ row: 111, log: LOG, merging: true, left: 'b0 | a2, M0 | SP' });
    expect((await world.files()).map(({ start, end, isScavenged }) => [start, end, isScavenged])).toEqual([
      [0, 2, true],
    ]);
  });

  test('row 112: the same, merging off', async () => {
    const { world } = await checkRow({ row: 112, log: LOG, left: 'b0 | a2, M0 | SP' });
    expect((await world.files()).map(({ start, end }) => [start, end])).toEqual([
      [0, 0],
      [1, 1],
      [2, 2],
    ]);
  });

  const SIX = 'a0 | a1 | a2 | a3 | a4 | a5 | M0(a){mc=1} | SP';
  test.each([1, 4, 5])('row 113: one event of a in each of six chunks, %i threads', async (threads) => {
    await checkRow({
      row: 113,
      log: SIX,
      run: { threads },
      left: '∅ | ∅ | ∅ | ∅ | ∅ | a5 | M0 | SP',
      versions: [1, 1, 1, 1, 1, 0, 0, 0],
    });
  });

  // Our interface takes no number below 1; what the reference makes 1 of is refused before anything begins.
  test.each([-1, 0])('row 113: %i threads are refused', async (threads) => {
    const world = await World.create(SIX);
    await expect(world.run({ threads })).rejects.toSatisfy((error) => isSkuaError(error, 'bad_option'));
    await expectWorld(world, { left: '=' });
  });
});

async function tablesOf(world: World): Promise<string[]> {
  return (await loadIndexMap(world.storage, nodeDigests))!.levels.flat();
}

/** Every file of the index folder belongs to a table that the map names. */
async function expectNoLeftovers(world: World): Promise<void> {
  const named = (await tablesOf(world)).flatMap((name) => [name, `${name}.bloomfilter`]);
  expect(
    (await world.storage.list('index')).filter(
      (name) => name !== 'indexmap' && name !== 'proven-tables' && !named.includes(name),
    ),
  ).toEqual([]);
}

describe('16.11 index tables', () => {
  test('row 114: three tables of two entries, three records gone', async () => {
    const log = 'a0, a1 | !a2 | !a3 | a4, a5 | b0 | SP';
    // With a shared hash every entry's record is looked up.
    const world = await World.create(log, {
      collide: { b: 'a' },
      gone: ['a5'],
      tables: [
        ['a4', 'a5'],
        ['a2', 'a3'],
        ['a0', 'a1'],
      ],
      tablesTo: 'a5',
    });
    const before = await tablesOf(world);
    // Tables of one level stay as they are.
    const run = await world.run({ store: { tablesPerLevelMax: 10 } });
    expect(run.last.result).toBe('Success');
    // The first one is of what the log had beyond the tables.
    const told = run.history.filter(({ type }) => type === '$scavengeIndexCompleted').slice(1);
    const reports = told.map(({ data: { level, index, entriesDeleted, entriesKept, wasScavenged, errorMessage } }) => ({
      level,
      index,
      entriesDeleted,
      entriesKept,
      wasScavenged,
      errorMessage,
    }));
    expect(reports).toEqual([
      { level: 0, index: 0, entriesDeleted: 1, entriesKept: 1, wasScavenged: true, errorMessage: '' },
      { level: 1, index: 0, entriesDeleted: 2, entriesKept: 0, wasScavenged: true, errorMessage: '' },
      { level: 2, index: 0, entriesDeleted: 0, entriesKept: 2, wasScavenged: false, errorMessage: '' },
    ]);
    const { hi, lo } = world.hash('a');
    const a = (await readIndexEntries(world.storage)).filter(
      (entry) => entry.hi === hi && entry.lo === lo && entry.position < world.log.chunkSize * 4,
    );
    expect(a.map(({ version }) => version)).toEqual([4, 1, 0]);
    const after = await tablesOf(world);
    expect(before.map((name) => after.includes(name))).toEqual([false, false, true]);
    await expectNoLeftovers(world);
  });
});
