import { expect, it } from 'vitest';
import { EntryList } from '../../core/index/format/entries.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { StorageFile } from '../../core/ports/storage.ts';
import { RunSources } from '../../core/scavenge/sources/run-sources.ts';
import { Random } from '../support/random.ts';
import { type Item, jobContext, type Key, writeTable } from '../index/world.ts';

/** Reads after which a search is taken for one that never ends. */
const READS_MAX = 10_000;

/** A storage that answers later, as a disk does, and does not let itself be read for ever. */
class SlowStorage extends MemoryStorage {
  #reads = 0;

  override async open(path: string, mode: 'read' | 'write'): Promise<StorageFile> {
    const file = await super.open(path, mode);
    const read = file.read.bind(file);
    file.read = async (position, length, into) => {
      if (++this.#reads > READS_MAX) throw new Error('The search does not end.');
      return read(position, length, into);
    };
    return file;
  }
}

it('a stream is found in more tables than the cache has blocks', async () => {
  const storage = new SlowStorage();
  const random = new Random(1);
  // In the first, whole block of each table.
  const key: Key = [0xc000_0000, 7];
  const tables: string[] = [];
  // The smallest cache has 64 blocks, and each of these tables is larger than one.
  for (let table = 0; table < 80; table++) {
    const items: Item[] = [{ key, version: table, position: 10_000 * table }];
    for (let i = 0; i < 2_999; i++)
      items.push({ key: [random.next(), random.next()], version: 0, position: 10_000 * table + i });
    const path = `index/00000000-0000-4000-8000-${String(table).padStart(12, '0')}`;
    await writeTable(storage, path, items);
    tables.unshift(path);
  }
  const files = { chunkSize: 1_000_000, chunks: [], tables, memTables: [] };
  const sources = await RunSources.open(files, 1_000_000, jobContext(storage), 0);
  const stream = { hi: key[0], lo: key[1], name: null };
  const list = new EntryList();
  expect(await sources.index.lastNumber(stream)).toBe(79);
  expect(await sources.index.slice(stream, 3, 79, 5, list)).toBe(8);
  expect(Array.from(list.versions.slice(0, list.length))).toEqual([3, 4, 5, 6, 7]);
  await sources.close();
});
