import { describe, expect, it } from 'vitest';
import { EntryList, IndexEntry } from '../../core/index/format/entries.ts';
import { MemTable, MemTableRooms } from '../../core/index/mem-table/mem-table.ts';
import { Random } from '../support/random.ts';
import { type Item, type Key, NaiveIndex } from './world.ts';

const KEYS: Key[] = [
  [0, 0],
  [0xffff_ffff, 0xffff_ffff],
  [1, 0],
  [0, 1],
  [0x8000_0000, 5],
];

function compareWithNaive(random: Random, table: MemTable, naive: NaiveIndex, highest: number): void {
  const out = new IndexEntry();
  const list = new EntryList();
  for (let i = 0; i < 60; i++) {
    const key = random.pick(KEYS);
    const version = random.int(-1, highest + 1);
    const position = random.int(-1, highest * 3);
    const floor = table.floor(key[0], key[1], version, position, out) ? [out.version, out.position] : undefined;
    expect(floor).toEqual(naive.floor(key, version, position));
    const ceiling = table.ceiling(key[0], key[1], version, position, out) ? [out.version, out.position] : undefined;
    expect(ceiling).toEqual(naive.ceiling(key, version, position));
    const to = random.int(version, highest + 1);
    list.clear();
    table.range(key[0], key[1], version, to, list);
    list.sortAscending();
    expect(Array.from({ length: list.length }, (_, n) => [list.versions[n], list.positions[n]])).toEqual(
      naive.range(key, version, to),
    );
  }
}

describe('memtable', () => {
  it('answers like a naive list under collisions, repeats and any order of arrival', () => {
    for (let seed = 1; seed <= 40; seed++) {
      const random = new Random(seed);
      const table = new MemTable(100);
      const naive = new NaiveIndex();
      const highest = random.int(1, 60);
      for (let i = 0; i < 150; i++) {
        const item: Item = {
          key: random.pick(KEYS),
          version: random.int(0, highest),
          position: random.int(0, highest * 2),
        };
        table.add(item.key[0], item.key[1], item.version, item.position);
        naive.add(item);
        expect(table.count).toBe(naive.items.length);
      }
      compareWithNaive(random, table, naive, highest);
    }
  });

  it('leaves its room, emptied, to the next table that grows large', () => {
    const out = new IndexEntry();
    const rooms = new MemTableRooms();
    const first = new MemTable(100_000, rooms);
    for (let i = 0; i < 100_000; i++) first.add(i % 50_000, 1, i, i);
    const { positions } = first.columns();
    first.clear();
    expect(first.count).toBe(0);
    expect(first.floor(7, 1, 100_000, 0, out)).toBe(false);
    const second = new MemTable(100_000, rooms);
    for (let i = 0; i < 70_000; i++) second.add(i, 2, 0, i);
    expect(second.columns().positions).toBe(positions);
    expect(second.floor(7, 1, 100_000, 0, out)).toBe(false);
    // Nothing of the first table's lists shows in those that grow here.
    for (let i = 1; i < 40; i++) second.add(7, 2, i, i);
    for (let i = 0; i < 40; i++) expect(second.floor(7, 2, i, 100, out) && out.version).toBe(i);
    for (let i = 0; i < 10; i++) first.add(i, 3, 0, i);
    expect(first.floor(7, 3, 0, 7, out) && out.position).toBe(7);
    expect(first.columns().positions).not.toBe(positions);
  });

  it('has room of its own once none is kept', () => {
    const rooms = new MemTableRooms();
    const first = new MemTable(100_000, rooms);
    for (let i = 0; i < 100_000; i++) first.add(i, 1, 0, i);
    const { positions } = first.columns();
    first.clear();
    rooms.forget();
    const second = new MemTable(100_000, rooms);
    for (let i = 0; i < 100_000; i++) second.add(i, 2, 0, i);
    expect(second.columns().positions).not.toBe(positions);
    // Room for all at once, as the first table had: nothing is waited for.
    expect(second.columns().positions.length).toBe(positions.length);
  });

  it('keeps its answers while it grows, and takes logarithmic steps in a long stream', () => {
    const table = new MemTable(200_000);
    const out = new IndexEntry();
    for (let i = 0; i < 150_000; i++) {
      table.add(9, 9, i, i * 10);
      table.add(i, 77, 0, i);
    }
    expect(table.count).toBe(300_000);
    for (let i = 0; i < 150_000; i += 997) {
      expect(table.floor(9, 9, i, i * 10 - 1, out) ? out.version : -1).toBe(i - 1);
      expect(table.ceiling(9, 9, i, i * 10 - 1, out) && out.version).toBe(i);
      expect(table.floor(i, 77, 5, 5, out) && out.position).toBe(i);
    }
    const { heads, hashes } = table.columns();
    expect(hashes).toBe(150_001);
    expect(heads.reduce((sum, head) => sum + (head === 0 ? 0 : 1), 0)).toBe(150_001);
  });

  it('is as good as new after it was cleared', () => {
    const random = new Random(5);
    const table = new MemTable(10_000);
    for (let round = 0; round < 4; round++) {
      const naive = new NaiveIndex();
      for (let i = 0; i < 9_000; i++) table.add(i + 100, 77, round, i);
      for (let i = 0; i < 60; i++) {
        const item: Item = { key: random.pick(KEYS), version: random.int(0, 20), position: random.int(0, 40) };
        table.add(item.key[0], item.key[1], item.version, item.position);
        naive.add(item);
      }
      if (round === 0) expect(table.count).toBe(9_000 + naive.items.length);
      compareWithNaive(random, table, naive, 20);
      table.clear();
      expect([table.count, table.columns().hashes]).toEqual([0, 0]);
      compareWithNaive(random, table, new NaiveIndex(), 20);
    }
  });
});

describe('entry list', () => {
  it('sorts runs from several sources and drops what is there twice', () => {
    const random = new Random(3);
    for (let round = 0; round < 50; round++) {
      const list = new EntryList();
      const expected = new Map<number, [number, number]>();
      for (let i = random.int(0, 300); i > 0; i--) {
        const pair: [number, number] = [random.int(0, 20), random.int(0, 20)];
        list.push(...pair);
        expected.set(pair[0] * 100 + pair[1], pair);
      }
      list.sortAscending();
      const got = Array.from({ length: list.length }, (_, n) => [list.versions[n], list.positions[n]]);
      expect(got).toEqual([...expected].sort((a, b) => a[0] - b[0]).map(([, pair]) => pair));
    }
  });
});
