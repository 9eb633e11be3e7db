import { describe, expect, it } from 'vitest';
import { HIT } from '../../core/base/step.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import type { StreamIndex } from '../../core/index/index.ts';
import { IndexEntry } from '../../core/index/format/entries.ts';
import { BlockCache } from '../../core/cache/cache.ts';
import { loadIndexMap } from '../../core/index/format/index-map.ts';
import { BloomBudget, openTableBloom } from '../../core/index/format/table-bloom.ts';
import { TABLE_JOBS } from '../../core/index/jobs/jobs.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { installFiles, loadOracle, ORACLE_SETS, SETS, unpackSet } from '../support/fixtures.ts';
import { jobContext, keyOf, memTableOf, openIndex, rangeOf } from './world.ts';
import { contentOf } from '../log/kit.ts';

/** The existence filter of `fresh` is 273 MB of zeros; the other sets have small ones. */
const SMALL_SETS = SETS.filter((name) => name !== 'fresh');

async function install(name: string): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  await installFiles(
    storage,
    unpackSet(name).filter((file) => file.path.startsWith('index/')),
  );
  return storage;
}

type Items = Parameters<typeof memTableOf>[0][number][];

async function itemsOf(index: StreamIndex, file: string): Promise<Items> {
  const items: Items = [];
  for await (const batch of index.readTable(file)) {
    for (let i = 0; i < batch.count; i++)
      items.push({ key: [batch.hi[i]!, batch.lo[i]!], version: batch.versions[i]!, position: batch.positions[i]! });
  }
  return items;
}

async function writeAgain(storage: MemoryStorage, items: Items): Promise<void> {
  const columns = memTableOf(items).columns();
  // The recorded tables hold no entry twice, so a memtable of their entries has them all.
  expect(columns.count).toBe(items.length);
  await TABLE_JOBS['index.write-table']!(
    {
      path: 'index/00000000-0000-4000-8000-000000000006',
      bloomPath: 'index/00000000-0000-4000-8000-000000000006.bloomfilter',
      cacheDepth: 16,
      columns,
    } as never,
    jobContext(storage),
  );
}

describe('index directories recorded from the reference', () => {
  it.each(SMALL_SETS)(
    '%s: every table, midpoint and filter is sound, and written again byte for byte',
    async (name) => {
      const storage = await install(name);
      const map = await loadIndexMap(storage, nodeDigests);
      const index = await openIndex(storage);
      expect(index.wasReset).toBeNull();
      expect(index.tables().map((table) => table.file)).toEqual(map!.levels.flat().map((table) => `index/${table}`));
      const out = new IndexEntry();
      for (const table of index.tables()) {
        expect(await TABLE_JOBS['index.verify-table']!({ path: table.file } as never, jobContext(storage))).toBeNull();
        const bloom = await openTableBloom(
          storage,
          new BlockCache(1),
          new BloomBudget(),
          `${table.file}.bloomfilter`,
          silentLog,
        );
        const items = await itemsOf(index, table.file);
        expect(items).toHaveLength(table.entries);
        const isFound = ({ key, version, position }: Items[number]): boolean =>
          bloom!.mayContain(...key) === HIT &&
          index.floor(...key, version, position, out) === HIT &&
          out.version === version &&
          out.position === position &&
          index.ceiling(...key, version, position, out) === HIT &&
          out.version === version &&
          out.position === position;
        expect(items.filter((item) => !isFound(item))).toEqual([]);
        await writeAgain(storage, items);
        expect(
          Buffer.compare(
            await contentOf(storage, 'index/00000000-0000-4000-8000-000000000006'),
            await contentOf(storage, table.file),
          ),
        ).toBe(0);
        await storage.remove('index/00000000-0000-4000-8000-000000000006');
        await storage.remove('index/00000000-0000-4000-8000-000000000006.bloomfilter');
      }
      await index.close();
    },
  );

  it.each(ORACLE_SETS.filter((name) => name !== 'fresh'))(
    '%s: the existence filter knows the streams below its checkpoint',
    async (name) => {
      const index = await openIndex(await install(name));
      // A server that was stopped within half a minute had not written its checkpoint yet: then the filter comes from
      // the tables.
      const isRecorded = index.existenceCheckpoint >= 0;
      await index.initExistence();
      const rows = loadOracle(name).all.filter(([commit, prepare]) =>
        isRecorded ? Number(prepare) < index.existenceCheckpoint : Number(commit) <= index.commitCheckpoint,
      );
      expect(rows.length).toBeGreaterThan(0);
      expect(rows.filter(([, , stream]) => !index.mightContain(...keyOf(stream)))).toEqual([]);
      await index.close();
    },
  );

  it('a table made by a flush has the filter that the reference made', async () => {
    const storage = await install('orders-1-before');
    const index = await openIndex(storage);
    for (const table of index.tables()) {
      await writeAgain(storage, await itemsOf(index, table.file));
      expect(
        Buffer.compare(
          await contentOf(storage, 'index/00000000-0000-4000-8000-000000000006.bloomfilter'),
          await contentOf(storage, `${table.file}.bloomfilter`),
        ),
      ).toBe(0);
      await storage.remove('index/00000000-0000-4000-8000-000000000006');
      await storage.remove('index/00000000-0000-4000-8000-000000000006.bloomfilter');
    }
    await index.close();
  });

  it('orders-1-before: the entries of a stream are where the reference says', async () => {
    const index = await openIndex(await install('orders-1-before'));
    const rows = loadOracle('orders-1-before').all.filter(([, prepare]) => Number(prepare) <= index.prepareCheckpoint);
    expect(rows.length).toBeGreaterThan(1_000);
    for (const stream of new Set(rows.map((row) => row[2]))) {
      const found = new Set((await rangeOf(index, keyOf(stream), 0, TOMBSTONE)).map((pair) => pair.join()));
      const missing = rows.filter(
        (row) => row[2] === stream && !found.has(`${row[3] > TOMBSTONE ? TOMBSTONE : row[3]},${row[1]}`),
      );
      expect(missing).toEqual([]);
    }
    await index.close();
  });
});
