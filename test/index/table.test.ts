import { describe, expect, it, vi } from 'vitest';
import { BLOCK_BYTES, BlockCache, CachedFile } from '../../core/cache/cache.ts';
import { EntryList, IndexEntry } from '../../core/index/format/entries.ts';
import { BloomBudget } from '../../core/index/format/table-bloom.ts';
import {
  entryBytesOf,
  midpointCount,
  midpointIndex,
  POSITION_TABLE_VERSION,
  writeEntry,
} from '../../core/index/format/table-format.ts';
import { TABLE_JOBS } from '../../core/index/jobs/jobs.ts';
import { TableReader } from '../../core/index/tables/tables.ts';
import { END, HIT } from '../../core/base/step.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage, StorageFile } from '../../core/ports/storage.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { Random } from '../support/random.ts';
import { damage, type Item, jobContext, keyOf, md5Hex, NaiveIndex, writeTable } from './world.ts';
import { contentOf, putFile, step } from '../log/kit.ts';

const EXAMPLE: Item[] = [
  { key: keyOf('order-42'), version: 0, position: 1_000 },
  { key: keyOf('order-42'), version: 1, position: 1_200 },
  { key: keyOf('order-1'), version: 0, position: 1_400 },
];

const hex = (text: string): number[] => text.split(' ').map((byte) => parseInt(byte, 16));

function verify(storage: Storage, path: string): Promise<string | null> {
  return TABLE_JOBS['index.verify-table']!({ path } as never, jobContext(storage)) as Promise<string | null>;
}

async function openReader(
  storage: Storage,
  path: string,
  cacheDepth = 16,
  budget = new BloomBudget(),
  bloomFilters = true,
) {
  const cache = new BlockCache(8_388_608);
  const reader = await TableReader.open(path, { storage, cache, log: silentLog, budget, cacheDepth, bloomFilters });
  return { reader, cache };
}

describe('index table', () => {
  it('is the documented one byte for byte', async () => {
    const storage = new MemoryStorage();
    await writeTable(storage, 'index/00000000-0000-4000-8000-000000000001', EXAMPLE);
    const bytes = await contentOf(storage, 'index/00000000-0000-4000-8000-000000000001');
    expect(bytes.length).toBe(416);
    expect([...bytes.subarray(0, 3)]).toEqual([1, 4, 0]);
    expect([...bytes.subarray(128, 200)]).toEqual([
      ...hex('00 00 00 00 00 00 00 00 dc 3f 29 f5 2b 8c 6d fb 78 05 00 00 00 00 00 00'),
      ...hex('01 00 00 00 00 00 00 00 11 72 9b e9 5f 67 19 f1 b0 04 00 00 00 00 00 00'),
      ...hex('00 00 00 00 00 00 00 00 11 72 9b e9 5f 67 19 f1 e8 03 00 00 00 00 00 00'),
    ]);
    for (let k = 0; k < 3; k++) {
      expect(bytes.subarray(200 + k * 24, 216 + k * 24)).toEqual(bytes.subarray(128 + k * 24, 144 + k * 24));
      expect([...bytes.subarray(216 + k * 24, 224 + k * 24)]).toEqual([k, 0, 0, 0, 0, 0, 0, 0]);
    }
    expect([...bytes.subarray(272, 279)]).toEqual([1, 4, 3, 0, 0, 0, 0]);
    expect(Buffer.from(bytes.subarray(400)).toString('hex')).toBe('a06fb5f628fe38ad5ddc24872d825135');
    expect(md5Hex(bytes.subarray(0, 400))).toBe('a06fb5f628fe38ad5ddc24872d825135');
    expect(await storage.size('index/00000000-0000-4000-8000-000000000001.bloomfilter')).toBe(10_752);
    expect(await verify(storage, 'index/00000000-0000-4000-8000-000000000001')).toBeNull();
  });

  it('is read through by one buffer for each pass, however long it is', async () => {
    const storage = new MemoryStorage();
    const path = 'index/00000000-0000-4000-8000-000000000001';
    const entries = 150_000;
    await writeTable(
      storage,
      path,
      Array.from({ length: entries }, (_, i) => ({ key: keyOf(`s-${i % 300}`), version: (i / 300) | 0, position: i })),
    );
    const buffers = new Set<ArrayBufferLike>();
    let fresh = 0;
    const open = storage.open.bind(storage);
    storage.open = async (...args) => {
      const file = await open(...args);
      const read = file.read.bind(file);
      // As on a disk, where a read without a buffer makes one.
      file.read = (position, length, into) => {
        if (into === undefined) fresh += length;
        else buffers.add(into.buffer);
        return read(position, length, into);
      };
      return file;
    };
    expect(await verify(storage, path)).toBeNull();
    // Midpoints are held, and the header and the digest are short.
    expect([buffers.size, fresh < midpointCount(entries, 16) * 24 + 1_024]).toEqual([2, true]);
    buffers.clear();
    fresh = 0;
    // Fewer midpoints than are stored, and a filter for which there is no room.
    const { reader } = await openReader(storage, path, 14, new BloomBudget(0));
    expect([buffers.size, fresh < 65_536]).toEqual([2, true]);
    await reader.close();
  });

  it('has midpoints where the format puts them', () => {
    expect([0, 1, 3, 65_536, 2_000_000, 100_000_000].map((n) => midpointCount(n, 16))).toEqual([
      0, 2, 3, 65_536, 65_536, 524_288,
    ]);
    expect([0, 1, 2, 3].map((k) => midpointIndex(k, 4, 10))).toEqual([0, 3, 6, 9]);
    expect([0, 1].map((k) => midpointIndex(k, 2, 1))).toEqual([0, 0]);
  });

  it('holds a single entry, and a tombstone as 2^63-1', async () => {
    const storage = new MemoryStorage();
    await writeTable(storage, 'index/00000000-0000-4000-8000-000000000001', [
      { key: keyOf('gone'), version: TOMBSTONE, position: 2 ** 40 },
    ]);
    const bytes = await contentOf(storage, 'index/00000000-0000-4000-8000-000000000001');
    expect(bytes.length).toBe(128 + 24 + 48 + 128 + 16);
    expect([...bytes.subarray(128, 136)]).toEqual([255, 255, 255, 255, 255, 255, 255, 127]);
    expect(await verify(storage, 'index/00000000-0000-4000-8000-000000000001')).toBeNull();
    const { reader } = await openReader(storage, 'index/00000000-0000-4000-8000-000000000001');
    const out = new IndexEntry();
    expect(reader.floor(...keyOf('gone'), TOMBSTONE, 2 ** 50, out)).toBe(HIT);
    expect(out).toEqual({ version: TOMBSTONE, position: 2 ** 40 });
  });

  it.each([8, 16])(
    'answers like a naive list at depth %i, with waiting reads, with and without filters',
    async (depth) => {
      const random = new Random(depth);
      const storage = new FaultyStorage({ reads: 'async' });
      const naive = new NaiveIndex();
      const keys = Array.from({ length: 40 }, () => [random.next(), random.next()] as const);
      for (let i = 0; i < 9_000; i++)
        naive.add({
          key: keys[Math.floor(random.int(0, 1_599) ** 0.5)]!,
          version: random.int(0, 300),
          position: random.int(0, 50),
        });
      await writeTable(storage, 'index/00000000-0000-4000-8000-000000000001', naive.items, depth);
      expect(await verify(storage, 'index/00000000-0000-4000-8000-000000000001')).toBeNull();
      for (const [budget, bloom] of [
        [new BloomBudget(), true],
        [new BloomBudget(0), true],
        [new BloomBudget(), false],
      ] as const) {
        const { reader } = await openReader(
          storage,
          'index/00000000-0000-4000-8000-000000000001',
          depth,
          budget,
          bloom,
        );
        const out = new IndexEntry();
        for (let i = 0; i < 150; i++) {
          const key = i % 10 === 0 ? ([random.next(), random.next()] as const) : random.pick(keys);
          const version = random.int(-1, 301);
          const position = random.int(-1, 51);
          const floor = await step(() => reader.floor(...key, version, position, out));
          expect(floor === HIT ? [out.version, out.position] : undefined).toEqual(naive.floor(key, version, position));
          const ceiling = await step(() => reader.ceiling(...key, version, position, out));
          expect(ceiling === HIT ? [out.version, out.position] : undefined).toEqual(
            naive.ceiling(key, version, position),
          );
          const to = version + random.int(0, 100);
          const list = new EntryList();
          await step(() => {
            list.clear();
            return reader.range(...key, version, to, list);
          });
          list.sortAscending();
          expect(Array.from({ length: list.length }, (_, n) => [list.versions[n], list.positions[n]])).toEqual(
            naive.range(key, version, to),
          );
        }
        await reader.close();
      }
    },
  );

  it.each([8, 16])(
    'that is larger than its part of the cache is read past it, once for questions of one place, where the storage has it at hand (depth %i)',
    async (depth) => {
      const random = new Random(depth);
      const memory = new MemoryStorage();
      const naive = new NaiveIndex();
      const keys = Array.from({ length: 4_000 }, () => [random.next(), random.next()] as const);
      for (let i = 0; i < 60_000; i++)
        naive.add({ key: random.pick(keys), version: random.int(0, 30), position: random.int(0, 50) });
      await writeTable(memory, 'index/00000000-0000-4000-8000-000000000001', naive.items, depth);
      let isAtHand = true;
      let waited = 0;
      let atOnce = 0;
      const opened = async (path: string): Promise<StorageFile> => {
        const file = await memory.open(path, 'read');
        return {
          path,
          size: file.size,
          writeAt: () => {},
          truncate: async () => {},
          sync: async () => {},
          seal: async () => {},
          close: () => file.close(),
          async read(position, length) {
            waited++;
            return file.read(position, length);
          },
          readNow(position, length, into, at) {
            if (!isAtHand) return -1;
            atOnce++;
            const bytes = file.read(position, length) as Uint8Array;
            into.set(bytes, at);
            return bytes.length;
          },
        };
      };
      const storage: Storage = Object.assign(Object.create(memory) as Storage, {
        open: opened,
        size: (path: string) => memory.size(path),
      });
      const open = () =>
        TableReader.open('index/00000000-0000-4000-8000-000000000001', {
          storage,
          cache: new BlockCache(0),
          log: silentLog,
          budget: new BloomBudget(),
          cacheDepth: depth,
          bloomFilters: true,
          order: 'none',
        });
      let reader = await open();
      const out = new IndexEntry();
      const answers = async (key: readonly [number, number]): Promise<void> => {
        const version = random.int(-1, 31);
        const floor = await step(() => reader.floor(...key, version, 25, out));
        expect(floor === HIT ? [out.version, out.position] : undefined).toEqual(naive.floor(key, version, 25));
        const ceiling = await step(() => reader.ceiling(...key, version, 25, out));
        expect(ceiling === HIT ? [out.version, out.position] : undefined).toEqual(naive.ceiling(key, version, 25));
        const list = new EntryList();
        await step(() => {
          list.clear();
          return reader.range(...key, version, version + 3, list);
        });
        list.sortAscending();
        expect(Array.from({ length: list.length }, (_, n) => [list.versions[n], list.positions[n]])).toEqual(
          naive.range(key, version, version + 3),
        );
      };
      waited = 0;
      for (let i = 0; i < 100; i++) await answers(keys[i]!);
      // What is asked for again although another place was asked for meanwhile comes into the cache.
      expect(waited).toBeLessThan(30);
      expect(atOnce).toBeGreaterThan(20);
      // Of three questions each.
      expect(atOnce).toBeLessThan(200);
      await reader.close();
      // The storage has them at hand now and then.
      reader = await open();
      for (let i = 100; i < 300; i++) {
        isAtHand = i % 3 === 0;
        await answers(keys[i]!);
      }
      await reader.close();
    },
  );

  it.each([2, 3, POSITION_TABLE_VERSION])(
    'of version %i is searched in the blocks of the cache where they lie, also where a search comes to two of them',
    async (version) => {
      const random = new Random(version);
      const entryBytes = entryBytesOf(version);
      const headerBytes = 128;
      const entries = 40_000;
      // Greatest first, four of each hash.
      const his = Uint32Array.from({ length: entries / 4 }, () => random.next()).toSorted((a, b) => b - a);
      const all = Array.from({ length: entries }, (_, i) => {
        const position = (entries - i) * 100;
        return {
          hi: his[i >> 2]!,
          lo: 5,
          version: version === POSITION_TABLE_VERSION ? position : 9 - (i & 3),
          position,
        };
      });
      const end = headerBytes + entries * entryBytes;
      const footerBytes = version === POSITION_TABLE_VERSION ? 128 : 0;
      const content = new Uint8Array(end + footerBytes + 16);
      content.set([1, version]);
      if (footerBytes > 0) content.set([1, version], end);
      const entry = new Uint8Array(24);
      for (const [i, one] of all.entries()) {
        writeEntry(entry, 0, one.hi, one.lo, one.version, one.position);
        const at = headerBytes + i * entryBytes;
        if (version === 2) content.set(entry.subarray(0, 4), at);
        content.set(version === 3 ? entry : entry.subarray(8), at + (version === 2 ? 4 : 0));
      }
      const storage = new MemoryStorage();
      const path = 'index/00000000-0000-4000-8000-000000000001';
      await putFile(storage, path, content);
      const { reader } = await openReader(storage, path, 8);
      const copied: number[] = [];
      const { bytes } = CachedFile.prototype;
      const spy = vi.spyOn(CachedFile.prototype, 'bytes').mockImplementation(function (this: CachedFile, at, length) {
        if (Math.floor(at / BLOCK_BYTES) !== Math.floor((at + length - 1) / BLOCK_BYTES)) copied.push(length);
        return bytes.call(this, at, length);
      });
      const out = new IndexEntry();
      try {
        for (let block = 1; block * BLOCK_BYTES < content.length; block++) {
          const middle = Math.floor((block * BLOCK_BYTES - headerBytes) / entryBytes);
          for (let i = Math.max(0, middle - 300); i < Math.min(entries, middle + 300); i++) {
            const one = all[i]!;
            const found = await step(() => reader.floor(one.hi, one.lo, one.version, one.position, out));
            expect([found, out.version, out.position]).toEqual([HIT, one.version, one.position]);
            const next = await step(() => reader.ceiling(one.hi, one.lo, one.version, one.position, out));
            expect([next, out.version, out.position]).toEqual([HIT, one.version, one.position]);
            expect(await step(() => reader.floor(one.hi, one.lo - 1, one.version, one.position, out))).toBe(END);
          }
        }
      } finally {
        spy.mockRestore();
      }
      // An entry that lies in two blocks is put together, and nothing longer.
      expect(Math.max(0, ...copied)).toBe(65_536 % entryBytes === 0 ? 0 : entryBytes);
      await reader.close();
    },
  );

  it('reads versions 2 and 3, which have no midpoints', async () => {
    const storage = new MemoryStorage();
    await writeTable(storage, 'index/00000000-0000-4000-8000-000000000004', [
      ...EXAMPLE,
      { key: keyOf('gone'), version: TOMBSTONE, position: 7 },
    ]);
    const v4 = await contentOf(storage, 'index/00000000-0000-4000-8000-000000000004');
    const entries = Array.from({ length: 4 }, (_, i) => v4.subarray(128 + i * 24, 152 + i * 24));
    for (const version of [2, 3]) {
      const body = entries.flatMap((entry) =>
        version === 3
          ? [...entry]
          : [...entry.subarray(0, 4).map((b, i) => (entry[7] === 127 && i === 3 ? 127 : b)), ...entry.subarray(8)],
      );
      const content = Uint8Array.from([1, version, ...new Uint8Array(126), ...body]);
      const path = `index/00000000-0000-4000-8000-00000000000${version}`;
      await putFile(storage, path, Uint8Array.from([...content, ...Buffer.from(md5Hex(content), 'hex')]));
      expect(await verify(storage, path)).toBeNull();
      const { reader } = await openReader(storage, path);
      const out = new IndexEntry();
      for (const [name, number, position] of [
        ['order-42', 1, 1_200],
        ['order-1', 0, 1_400],
        ['gone', TOMBSTONE, 7],
      ] as const) {
        expect(reader.floor(...keyOf(name), TOMBSTONE, TOMBSTONE, out)).toBe(HIT);
        expect(out).toEqual({ version: number, position });
      }
    }
    await TABLE_JOBS['index.merge-tables']!(
      {
        sources: [
          'index/00000000-0000-4000-8000-000000000002',
          'index/00000000-0000-4000-8000-000000000003',
          'index/00000000-0000-4000-8000-000000000004',
        ],
        path: 'index/00000000-0000-4000-8000-000000000005',
        bloomPath: null,
        cacheDepth: 16,
      } as never,
      jobContext(storage),
    );
    expect(await verify(storage, 'index/00000000-0000-4000-8000-000000000005')).toBeNull();
    const merged = await contentOf(storage, 'index/00000000-0000-4000-8000-000000000005');
    // Nothing is dropped in a merge: each of the four entries is there three times.
    expect((merged.length - 128 - 128 - 16) / 48).toBe(12);
    for (let i = 0; i < 12; i++)
      expect(merged.subarray(128 + i * 24, 152 + i * 24)).toEqual(entries[Math.floor(i / 3)]);
  });

  it('is found unsound after a change of any byte', async () => {
    const storage = new MemoryStorage();
    await writeTable(storage, 'index/00000000-0000-4000-8000-000000000001', EXAMPLE);
    for (let at = 0; at < 416; at += 3) {
      await damage(storage, 'index/00000000-0000-4000-8000-000000000001', at);
      expect(await verify(storage, 'index/00000000-0000-4000-8000-000000000001')).toMatch(/index\/0{8}/);
      await damage(storage, 'index/00000000-0000-4000-8000-000000000001', at);
    }
    const bytes = await contentOf(storage, 'index/00000000-0000-4000-8000-000000000001');
    for (const length of [0, 100, 128, 300, 415]) {
      await putFile(storage, 'index/00000000-0000-4000-8000-000000000001', bytes.subarray(0, length));
      expect(await verify(storage, 'index/00000000-0000-4000-8000-000000000001')).not.toBeNull();
    }
  });

  it('is found unsound when entries are out of order or a midpoint is wrong, although its MD5 holds', async () => {
    const storage = new MemoryStorage();
    await writeTable(storage, 'index/00000000-0000-4000-8000-000000000001', EXAMPLE);
    const sound = await contentOf(storage, 'index/00000000-0000-4000-8000-000000000001');
    const change = async (edit: (bytes: Uint8Array) => void): Promise<void> => {
      const bytes = sound.slice();
      edit(bytes);
      bytes.set(Buffer.from(md5Hex(bytes.subarray(0, 400)), 'hex'), 400);
      await putFile(storage, 'index/00000000-0000-4000-8000-000000000001', bytes);
    };
    await change((bytes) => {
      bytes[128 + 15] = bytes[200 + 15] = 0;
    });
    expect(await verify(storage, 'index/00000000-0000-4000-8000-000000000001')).toMatch(/out of order/);
    await change((bytes) => {
      bytes[200 + 24] = 5;
    });
    expect(await verify(storage, 'index/00000000-0000-4000-8000-000000000001')).toMatch(/midpoint/);
    await change((bytes) => {
      bytes[1] = 1;
    });
    expect(await verify(storage, 'index/00000000-0000-4000-8000-000000000001')).toMatch(/version 1/);
  });
});
