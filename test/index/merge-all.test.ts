import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { StreamIndex } from '../../core/index/index.ts';
import type { NewEvent } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { Random } from '../support/random.ts';
import { openTestStore } from '../support/test-store.ts';
import { ceilingOf, collectingLog, floorOf, type Key, keyOf, NaiveIndex, openIndex, rangeOf } from './world.ts';

/** The merge of all tables, which administrators ask for: POST `/admin/mergeindexes`. */

const KEYS: readonly Key[] = [keyOf('order-1'), keyOf('order-2'), [7, 1], [7, 2]];

/** Fills an index table by table until its levels hold `tables` of them. */
async function grow(index: StreamIndex, naive: NaiveIndex, flushes: number, from = 0): Promise<void> {
  const random = new Random(flushes);
  for (let i = from; i < from + flushes; i++) {
    for (let n = 0; n < 3; n++) {
      const item = { key: random.pick(KEYS), version: i, position: i * 10 + n };
      index.add(item.key[0], item.key[1], item.version, item.position);
      naive.add(item);
    }
    index.endBulk(i * 10 + 2, i * 10 + 2);
    await index.flush();
  }
}

function shapeOf(index: StreamIndex): string {
  return index
    .tables()
    .map(({ level, entries }) => `${level}:${entries}`)
    .join(' ');
}

async function expectSame(index: StreamIndex, naive: NaiveIndex): Promise<void> {
  for (const key of KEYS) {
    expect(await rangeOf(index, key, 0, 1_000)).toEqual(naive.range(key, 0, 1_000));
    for (const version of [-1, 0, 3, 7, 40]) {
      expect(await floorOf(index, key, version, 1_000)).toEqual(naive.floor(key, version, 1_000));
      expect(await ceilingOf(index, key, version, 0)).toEqual(naive.ceiling(key, version, 0));
    }
  }
}

describe('merging all tables', () => {
  it('makes one table of all levels, at the highest, and answers as before, also after reopening', async () => {
    const storage = new FaultyStorage({ reads: 'async' });
    const naive = new NaiveIndex();
    let index = await openIndex(storage);
    await grow(index, naive, 7);
    expect(shapeOf(index)).toBe('0:3 1:6 2:12');
    expect(index.mergeAll()).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    await index.flush();
    expect(shapeOf(index)).toBe('2:21');
    await expectSame(index, naive);
    const [table] = index.tables();
    expect((await storage.list('index')).toSorted()).toEqual(
      [table!.file, `${table!.file}.bloomfilter`, 'index/indexmap']
        .map((path) => path.slice('index/'.length))
        .toSorted(),
    );
    await index.close();
    index = await openIndex(storage);
    expect(index.wasReset).toBeNull();
    expect(shapeOf(index)).toBe('2:21');
    expect(index.commitCheckpoint).toBe(62);
    await expectSame(index, naive);
    // Tables to come are merged as ever, and find it in its level.
    await grow(index, naive, 4, 7);
    expect(shapeOf(index)).toBe('3:33');
    await expectSame(index, naive);
    await index.close();
    expect(storage.violations).toEqual([]);
  });

  it('keeps readers right while it runs, and leaves a table alone that is written meanwhile', async () => {
    const storage = new FaultyStorage({ reads: 'async' });
    const naive = new NaiveIndex();
    const index = await openIndex(storage);
    await grow(index, naive, 3);
    expect(shapeOf(index)).toBe('0:3 1:6');
    index.mergeAll();
    await grow(index, naive, 1, 3);
    expect(shapeOf(index)).toBe('0:3 1:9');
    await expectSame(index, naive);
    await index.close();
    expect(storage.violations).toEqual([]);
  });

  it('is one piece of work until it has ended', async () => {
    const index = await openIndex();
    await grow(index, new NaiveIndex(), 3);
    const id = index.mergeAll();
    expect(index.mergeAll()).toBe(id);
    await index.flush();
    const next = index.mergeAll();
    expect(next).not.toBe(id);
    await index.flush();
    expect(shapeOf(index)).toBe('1:9');
    await index.close();
  });

  it.each([0, 1])('has nothing to do with %i tables', async (flushes) => {
    const index = await openIndex();
    await grow(index, new NaiveIndex(), flushes);
    const before = shapeOf(index);
    index.mergeAll();
    await index.flush();
    expect(shapeOf(index)).toBe(before);
    await index.close();
  });

  it('waits while merges are held, as a scavenge of the index holds them', async () => {
    const index = await openIndex();
    await grow(index, new NaiveIndex(), 3);
    const release = await index.holdMerges();
    index.mergeAll();
    await index.flush();
    expect(shapeOf(index)).toBe('0:3 1:6');
    release();
    await index.flush();
    expect(shapeOf(index)).toBe('1:9');
    await index.close();
  });

  it('is awaited by whoever wants to hold merges', async () => {
    const storage = new FaultyStorage({ reads: 'async' });
    const index = await openIndex(storage);
    await grow(index, new NaiveIndex(), 3);
    const begun = Promise.withResolvers<void>();
    storage.failWhen((op) => {
      if (op === 'create') begun.resolve();
      return undefined;
    });
    index.mergeAll();
    await begun.promise;
    expect(shapeOf(index)).toBe('0:3 1:6');
    const release = await index.holdMerges();
    expect(shapeOf(index)).toBe('1:9');
    release();
    await index.close();
  });

  it('leaves everything as it was when it fails, says so once, and is not tried again by itself', async () => {
    const storage = new FaultyStorage();
    const naive = new NaiveIndex();
    const lines: string[] = [];
    const index = await openIndex(storage, { log: collectingLog(lines) });
    await grow(index, naive, 3);
    storage.failWhen((op) => (op === 'create' ? 'disk_full' : undefined));
    const id = index.mergeAll();
    await index.flush();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(id);
    expect(shapeOf(index)).toBe('0:3 1:6');
    await expectSame(index, naive);
    storage.failWhen(undefined);
    await index.flush();
    expect(shapeOf(index)).toBe('0:3 1:6');
    index.mergeAll();
    await index.flush();
    expect(shapeOf(index)).toBe('1:9');
    await index.close();
  });

  it('ends with the index', async () => {
    const storage = new FaultyStorage({ reads: 'async' });
    const lines: string[] = [];
    const index = await openIndex(storage, { log: collectingLog(lines) });
    await grow(index, new NaiveIndex(), 3);
    index.mergeAll();
    await index.close();
    expect(lines).toEqual([]);
    const again = await openIndex(storage);
    expect(again.wasReset).toBeNull();
    expect(again.tables().reduce((sum, { entries }) => sum + entries, 0)).toBe(9);
    await again.close();
  });
});

describe('of a store', () => {
  const event = (n: number): NewEvent => ({
    id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    type: 'made',
    isJson: true,
    data: encodeText(`{"n":${n}}`),
    metadata: new Uint8Array(0),
  });

  it('reads are right before, during and after', async () => {
    const storage = new MemoryStorage();
    const open = await openTestStore({ storage, memTableEntriesMax: 8 });
    for (let n = 0; n < 60; n++) await open.store.append(`s-${n % 3}`, -2, [event(n)]);
    const numbersOf = async (stream: string): Promise<number[]> =>
      (await open.store.readStream(stream, { direction: 'forward', from: 0, count: 100 })).events.map(
        ({ number }) => number,
      );
    const all = Array.from({ length: 20 }, (_, n) => n);
    for (const stream of ['s-0', 's-1', 's-2']) expect(await numbersOf(stream)).toEqual(all);
    const id = open.mergeIndexes();
    expect(open.mergeIndexes()).toBe(id);
    for (const stream of ['s-0', 's-1', 's-2']) expect(await numbersOf(stream)).toEqual(all);
    // Ended by the next scavenge, which holds merges while it works on the tables.
    await open.scavenger.start();
    await open.scavenger.idle();
    for (const stream of ['s-0', 's-1', 's-2']) expect(await numbersOf(stream)).toEqual(all);
    await open.close();
    expect(() => open.mergeIndexes()).toThrow(expect.objectContaining({ code: 'store_closed' }));
  });
});
