import { describe, expect, it } from 'vitest';
import { HIT } from '../../core/log/log-reader.ts';
import { IndexEntry } from '../../core/index/entries.ts';
import { BlockCache } from '../../core/cache/block-cache.ts';
import { loadIndexMap } from '../../core/index/index-map.ts';
import { BloomBudget, openTableBloom } from '../../core/index/table-bloom.ts';
import { TABLE_JOBS } from '../../core/index/table-jobs.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { installFiles, loadOracle, ORACLE_SETS, SETS, unpackSet } from '../support/fixtures.ts';
import { jobContext, keyOf, memTableOf, openIndex, rangeOf, readAll } from './world.ts';

/** The existence filter of `fresh` is 273 MB of zeros; the other sets have small ones. */
const SMALL_SETS = SETS.filter((name) => name !== 'fresh');

async function install(name: string): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  await installFiles(storage, unpackSet(name).filter((file) => file.path.startsWith('index/')));
  return storage;
}

describe('index directories recorded from the reference', () => {
  it.each(SMALL_SETS)('%s: every table, midpoint and filter is sound, and found again byte for byte', async (name) => {
    const storage = await install(name);
    const map = await loadIndexMap(storage, nodeDigests);
    const index = await openIndex(storage);
    expect(index.wasReset).toBeNull();
    expect(index.tables().map((table) => table.file)).toEqual(map!.levels.flat().map((table) => `index/${table}`));
    for (const table of index.tables()) {
      expect(await TABLE_JOBS['index.verify-table']!({ path: table.file } as never, jobContext(storage))).toBeNull();
      const bloom = await openTableBloom(storage, new BlockCache(1), new BloomBudget(), `${table.file}.bloomfilter`, silentLog);
      const out = new IndexEntry();
      const items: Parameters<typeof memTableOf>[0][number][] = [];
      for await (const batch of index.readTable(table.file)) {
        for (let i = 0; i < batch.count; i++) {
          const [hi, lo, version, position] = [batch.hi[i]!, batch.lo[i]!, batch.versions[i]!, batch.positions[i]!];
          expect(bloom!.mayContain(hi, lo)).toBe(HIT);
          expect(index.floor(hi, lo, version, position, out)).toBe(HIT);
          expect(out).toEqual({ version, position });
          items.push({ key: [hi, lo], version, position });
        }
      }
      const columns = memTableOf(items).columns();
      // The recorded tables hold no entry twice, so a memtable of their entries has them all.
      expect(columns.count).toBe(table.entries);
      await TABLE_JOBS['index.write-table']!({ path: 'index/again', bloomPath: null, cacheDepth: 16, columns } as never, jobContext(storage));
      expect(Buffer.compare(await readAll(storage, 'index/again'), await readAll(storage, table.file))).toBe(0);
      await storage.remove('index/again');
    }
    await index.close();
  });

  it.each(ORACLE_SETS.filter((name) => name !== 'fresh'))('%s: the existence filter knows the streams below its checkpoint', async (name) => {
    const index = await openIndex(await install(name));
    expect(index.existenceCheckpoint).toBeGreaterThanOrEqual(0);
    for (const [, prepare, stream] of loadOracle(name).all) {
      if (Number(prepare) < index.existenceCheckpoint) expect(index.mightContain(...keyOf(stream))).toBe(true);
    }
    await index.close();
  });

  it('a table made by a flush has the filter that the reference made', async () => {
    const storage = await install('orders-1-before');
    const index = await openIndex(storage);
    for (const table of index.tables().filter((each) => each.level === 0)) {
      const items: Parameters<typeof memTableOf>[0][number][] = [];
      for await (const batch of index.readTable(table.file)) {
        for (let i = 0; i < batch.count; i++) items.push({ key: [batch.hi[i]!, batch.lo[i]!], version: batch.versions[i]!, position: batch.positions[i]! });
      }
      await TABLE_JOBS['index.write-table']!({ path: 'index/again', bloomPath: 'index/again.bloomfilter', cacheDepth: 16, columns: memTableOf(items).columns() } as never, jobContext(storage));
      expect(Buffer.compare(await readAll(storage, 'index/again.bloomfilter'), await readAll(storage, `${table.file}.bloomfilter`))).toBe(0);
    }
    await index.close();
  });

  it('orders-1-before: the entries of a stream are where the reference says', async () => {
    const index = await openIndex(await install('orders-1-before'));
    const rows = new Map<string, [number, number][]>();
    for (const [, prepare, stream, number] of loadOracle('orders-1-before').all) {
      if (Number(prepare) > index.prepareCheckpoint || number > 2 ** 53) continue;
      rows.set(stream, [...(rows.get(stream) ?? []), [number, Number(prepare)]]);
    }
    expect(rows.size).toBeGreaterThan(20);
    for (const [stream, expected] of rows) {
      const found = await rangeOf(index, keyOf(stream), 0, 2 ** 50);
      expect(found).toEqual(expect.arrayContaining(expected));
    }
    await index.close();
  });
});
