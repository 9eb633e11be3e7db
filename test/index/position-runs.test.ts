import { expect, it } from 'vitest';
import { BlockCache } from '../../core/cache/cache.ts';
import type { IndexHome } from '../../core/index/index-settings.ts';
import { POSITION_TABLE_VERSION } from '../../core/index/format/table-format.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { TableReader } from '../../core/index/tables/tables.ts';
import { Random } from '../support/random.ts';
import { step } from '../log/kit.ts';
import { type Key, openIndex } from './world.ts';

const KEYS: readonly Key[] = [
  [0, 0],
  [0xffff_ffff, 0xffff_ffff],
  [7, 1],
  [7, 2],
];
const HOME: IndexHome = { folder: 'index', tableVersion: POSITION_TABLE_VERSION };

it.each([1, 2, 3, 4])('of positions are those of a naive list, in both directions, seed %i', async (seed) => {
  const random = new Random(seed);
  const index = await openIndex(new MemoryStorage(), {
    home: HOME,
    memTableEntriesMax: 40,
    tablesPerLevelMax: 3,
    cache: new BlockCache(seed % 2 === 0 ? 0 : 8_388_608),
  });
  const all = KEYS.map((): number[] => []);
  const out: number[] = [];
  for (let at = 0, added = 0; added < 1_000; at += random.int(1, 9)) {
    KEYS.forEach(([hi, lo], i) => {
      if (!random.chance([0.9, 0.5, 0.1, 0.01][i]!)) return;
      index.add(hi, lo, at, at);
      all[i]!.push(at);
      added++;
    });
    index.endBulk(at, at);
    await index.ready();
    if (!random.chance(0.3)) continue;
    const i = random.int(0, KEYS.length - 1);
    const [hi, lo] = KEYS[i]!;
    const from = random.int(0, at + 10);
    const isUpwards = random.chance(0.5);
    const count = random.pick([1, 3, 20, 200, Infinity]);
    await step(() => index.run(hi, lo, from, isUpwards, count, out));
    const wanted = isUpwards ? all[i]!.filter((p) => p >= from) : all[i]!.filter((p) => p <= from).toReversed();
    expect(out).toEqual(wanted.slice(0, count));
  }
  expect(index.tables().length).toBeGreaterThan(1);
  await index.close();
});

it('of positions are looked for in the tables alone that can have them', async () => {
  const index = await openIndex(new MemoryStorage(), { home: HOME, memTableEntriesMax: 100, tablesPerLevelMax: 20 });
  for (let at = 0; at < 1_000; at++) {
    index.add(1, 1, at, at);
    index.endBulk(at, at);
    await index.ready();
  }
  await index.saveAll();
  expect(index.tables()).toHaveLength(10);
  const asked = new Set<TableReader>();
  const { run } = TableReader.prototype;
  TableReader.prototype.run = function (...args) {
    asked.add(this);
    return run.apply(this, args);
  };
  try {
    for (const isUpwards of [true, false])
      for (const from of [150, 550, 950]) {
        asked.clear();
        const out: number[] = [];
        await step(() => index.run(1, 1, from, isUpwards, 1, out));
        expect(out).toEqual([from]);
        expect(asked.size).toBe(1);
      }
  } finally {
    TableReader.prototype.run = run;
  }
  await index.close();
});
