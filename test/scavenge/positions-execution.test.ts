import { describe, expect, it } from 'vitest';
import { putI32 } from '../../core/base/bytes.ts';
import { POSITION_TABLE_VERSION, TableEntry } from '../../core/index/format/table-format.ts';
import { readBatches } from '../../core/index/format/table-scan.ts';
import { withWriter } from '../../core/index/format/table-writer.ts';
import type { TableExecuted } from '../../core/index/tables/table-store.ts';
import { HEADER_BYTES } from '../../core/log/format/chunk-format.ts';
import {
  EXECUTE_POSITIONS_JOB,
  executePositions,
  RecordRule,
  type ExecutePositionsArgs,
} from '../../core/scavenge/positions-execution.ts';
import { verifyTable } from '../../core/index/jobs/jobs.ts';
import { jobContext } from '../index/world.ts';
import { contentOf, patch } from '../log/kit.ts';
import { Random } from '../support/random.ts';
import { CHUNK_BYTES, type Entry, IndexWorld, POINT } from './index-kit.ts';

const SOURCE = 'attributes/names/00000000-0000-0000-0000-000000000001';
const TARGET = 'attributes/names/00000000-0000-0000-0000-000000000002';
/** Bytes between two records: more than one of the kit's takes. */
const STEP = 128;

type Pair = readonly [hi: number, position: number];

async function write(world: IndexWorld, pairs: readonly Pair[]): Promise<void> {
  const sorted = pairs.toSorted((a, b) => b[0] - a[0] || b[1] - a[1]);
  await withWriter(
    { path: SOURCE, bloomPath: null, cacheDepth: 8, version: POSITION_TABLE_VERSION },
    sorted.length,
    jobContext(world.storage),
    async (writer) => {
      for (const [hi, position] of sorted) writer.add(hi, 7, position, position);
    },
  );
}

async function read(world: IndexWorld, path: string): Promise<Pair[]> {
  const out: Pair[] = [];
  for await (const { hi, positions, count } of readBatches(world.storage, path))
    for (let i = 0; i < count; i++) out.push([hi[i]!, positions[i]!]);
  return out;
}

function argsOf(world: IndexWorld): ExecutePositionsArgs {
  const target = { source: SOURCE, target: TARGET, bloomPath: `${TARGET}.bloomfilter`, cacheDepth: 8 };
  return { ...target, version: POSITION_TABLE_VERSION, files: world.files, settings: world.settings };
}

async function run(world: IndexWorld): Promise<TableExecuted> {
  const jobs = world.jobs({ [EXECUTE_POSITIONS_JOB]: executePositions as never });
  return (await jobs.run(EXECUTE_POSITIONS_JOB, argsOf(world))) as TableExecuted;
}

function records(positions: readonly number[]): Entry[] {
  return positions.map((position, number) => ({ stream: 's', number, position }));
}

/** A log of a chunk as it was written, a scavenged one, three that are one file, and one that is behind the point. */
async function logOf(world: IndexWorld, random: Random) {
  const all = Array.from({ length: (6 * CHUNK_BYTES) / STEP }, (_, i) => i * STEP);
  const inChunks = (from: number, to: number) =>
    all.filter((position) => position >= from * CHUNK_BYTES && position < to * CHUNK_BYTES);
  const some = (positions: readonly number[]) => positions.filter(() => random.chance(0.4));
  const one = some(inChunks(1, 2));
  // Nothing is left of the one in the middle.
  const three = [...some(inChunks(2, 3)), ...some(inChunks(4, 5))];
  const behind = some(inChunks(5, 6));
  await world.chunk(0, records(inChunks(0, 1)), { isScavenged: false });
  await world.chunk(1, records(one));
  await world.chunk(2, records(three), { endNumber: 4 });
  await world.chunk(5, records(behind));
  world.settings = { ...world.settings, point: { ...POINT, position: 5 * CHUNK_BYTES } };
  return { all, stays: new Set([...inChunks(0, 1), ...one, ...three, ...inChunks(5, 6)]) };
}

describe('the job that copies what names records from a table of positions', () => {
  it.each([1, 2, 3])(
    'keeps the entries of records that are there, and no other before the point (seed %i)',
    async (seed) => {
      const random = new Random(seed);
      const world = new IndexWorld();
      const { all, stays } = await logOf(world, random);
      const pairs = all.flatMap((position) =>
        [3, 5, 9].filter(() => random.chance(0.7)).map((hi): Pair => [hi, position]),
      );
      await write(world, pairs);
      const result = await run(world);
      const expected = pairs
        .filter(([, position]) => stays.has(position))
        .toSorted((a, b) => b[0] - a[0] || b[1] - a[1]);
      expect(await read(world, TARGET)).toEqual(expected);
      expect(result).toMatchObject({
        entriesKept: expected.length,
        entriesDeleted: pairs.length - expected.length,
        wasWritten: true,
        entriesOutOfOrder: 0,
      });
      expect(await verifyTable({ path: TARGET }, jobContext(world.storage))).toBeNull();
      expect(await read(world, SOURCE)).toHaveLength(pairs.length);
    },
  );

  it('keeps an entry that names no record of a chunk that was never scavenged, or none at all', async () => {
    const world = new IndexWorld();
    await logOf(world, new Random(1));
    const pairs: Pair[] = [
      [9, 7 * CHUNK_BYTES],
      [9, 5 * CHUNK_BYTES + 1],
      [9, 1],
    ];
    await write(world, pairs);
    expect(await run(world)).toMatchObject({ entriesDeleted: 0, wasWritten: false });
    expect(await world.storage.size(TARGET)).toBeNull();
  });

  it('drops an entry beside a record, by a byte or by a chunk', async () => {
    const world = new IndexWorld();
    const at = CHUNK_BYTES + 10 * STEP;
    await world.chunk(0, records([10 * STEP]), { isScavenged: false });
    await world.chunk(1, records([at, at + 20 * STEP]), { endNumber: 2 });
    world.settings = { ...world.settings, point: { ...POINT, position: 3 * CHUNK_BYTES } };
    await write(world, [
      [9, at - 1],
      [9, at],
      [9, at + 1],
      [9, at + CHUNK_BYTES],
      [9, at + 19 * STEP],
      [9, at + 20 * STEP],
      [9, at + 21 * STEP],
    ]);
    await run(world);
    expect(await read(world, TARGET)).toEqual([
      [9, at + 20 * STEP],
      [9, at],
    ]);
  });

  it('judges all entries with the positions of one chunk in memory at a time, each chunk once', async () => {
    const world = new IndexWorld();
    const random = new Random(4);
    const { all, stays } = await logOf(world, random);
    world.settings = { ...world.settings, point: { ...POINT, position: 6 * CHUNK_BYTES } };
    const there = new Set([...stays].filter((position) => position < 5 * CHUNK_BYTES));
    const opened: string[] = [];
    const { storage } = world;
    const rule = new RecordRule(
      world.files,
      6 * CHUNK_BYTES,
      {
        storage: {
          ...storage,
          open: (path, access) => {
            opened.push(path);
            return storage.open(path, access);
          },
        },
        checkpoint: async () => {},
      },
      1,
    );
    const dropped = new Set<number>();
    let passes = 0;
    do {
      passes++;
      for (const position of all.filter((one) => one < 5 * CHUNK_BYTES).toReversed()) {
        const entry = Object.assign(new TableEntry(), { position });
        if (!(await rule.keeps(entry))) dropped.add(position);
      }
    } while (rule.again());
    expect(passes).toBe(2);
    expect(all.filter((one) => one < 5 * CHUNK_BYTES && !dropped.has(one))).toEqual(
      all.filter((one) => there.has(one)),
    );
    // The one without room is looked at and left for the second pass.
    expect(opened.filter((path) => path.startsWith('chunk-000001'))).toHaveLength(2);
    expect(opened.filter((path) => path.startsWith('chunk-000002'))).toHaveLength(1);
  });

  it.each([
    ['out of order', 4],
    ['closer than its record is long', 1],
  ])('ends without a table where the position map is damaged: an entry %s', async (_, entry) => {
    const world = new IndexWorld();
    const positions = [0, 1, 2, 3, 4, 5].map((n) => CHUNK_BYTES + n * STEP);
    await world.chunk(0, [], { isScavenged: false });
    await world.chunk(1, records(positions));
    world.settings = { ...world.settings, point: { ...POINT, position: 2 * CHUNK_BYTES } };
    await write(world, [[9, CHUNK_BYTES + 7]]);
    const name = world.chunks[1]!;
    const bytes = await contentOf(world.storage, name);
    const mapAt = bytes.length - 128 - 6 * 12;
    const logical = new Uint8Array(4);
    putI32(logical, 0, entry === 4 ? 0 : 1);
    expect(mapAt).toBeGreaterThan(HEADER_BYTES);
    await patch(world.storage, name, mapAt + entry * 12 + 4, logical);
    await expect(run(world)).rejects.toMatchObject({ code: 'log_corrupt' });
    expect(await world.storage.size(TARGET)).toBeNull();
    expect(await read(world, SOURCE)).toHaveLength(1);
  });

  it('ends without a table where a chunk can not be read', async () => {
    const world = new IndexWorld();
    await world.chunk(0, [], { isScavenged: false });
    await world.chunk(1, records([CHUNK_BYTES]));
    world.settings = { ...world.settings, point: { ...POINT, position: 2 * CHUNK_BYTES } };
    await write(world, [[9, CHUNK_BYTES + 7]]);
    await world.storage.remove(world.chunks[1]!);
    await expect(run(world)).rejects.toMatchObject({ code: 'file_not_found' });
    expect(await world.storage.size(TARGET)).toBeNull();
  });
});
