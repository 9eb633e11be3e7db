import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { POSITION_TABLE_VERSION, TABLE_VERSION } from '../../core/index/format/table-format.ts';
import { readBatches } from '../../core/index/format/table-scan.ts';
import { TABLE_JOBS } from '../../core/index/jobs/jobs.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { Random } from '../support/random.ts';
import { contentOf } from '../log/kit.ts';
import { type Item, jobContext, memTableOf } from './world.ts';

const path = (n: number): string => `index/00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

async function write(storage: Storage, to: string, version: number, items: readonly Item[]): Promise<string> {
  await TABLE_JOBS['index.write-table']!(
    { path: to, bloomPath: `${to}.bloomfilter`, cacheDepth: 8, version, columns: memTableOf(items).columns() } as never,
    jobContext(storage),
  );
  return to;
}

async function merge(storage: Storage, to: string, version: number, sources: readonly string[]): Promise<void> {
  await TABLE_JOBS['index.merge-tables']!(
    { path: to, bloomPath: `${to}.bloomfilter`, cacheDepth: 8, version, sources } as never,
    jobContext(storage),
  );
}

function verify(storage: Storage, of: string): Promise<unknown> {
  return TABLE_JOBS['index.verify-table']!({ path: of } as never, jobContext(storage));
}

/** Entries as [hi, lo, number, position], in the order of the file. */
async function entriesOf(storage: Storage, of: string): Promise<number[][]> {
  const found: number[][] = [];
  for await (const { hi, lo, versions, positions, count } of readBatches(storage, of))
    for (let i = 0; i < count; i++) found.push([hi[i]!, lo[i]!, versions[i]!, positions[i]!]);
  return found;
}

describe('merging tables', () => {
  const kinds = [
    ['a few keys, in time after one another', 5, true],
    ['a few keys, of the same time', 5, false],
    ['many keys', 30_000, true],
  ] as const;

  for (const version of [TABLE_VERSION, POSITION_TABLE_VERSION])
    it.each(kinds)(
      `of version ${version} makes the table that all entries would: %s`,
      async (_, keyCount, isInTime) => {
        const random = new Random(keyCount + version);
        const storage = new MemoryStorage();
        const keys = Array.from({ length: keyCount }, () => [random.next(), random.next()] as const);
        // More than are read at once.
        const items = Array.from({ length: 160_000 }, (_unused, i): Item => {
          const key = random.pick(keys);
          return { key, version: i, position: i };
        });
        const parts: Item[][] = [[], [], []];
        for (const [i, item] of items.entries()) {
          const part = isInTime ? Math.floor(i / 70_000) : random.int(0, 9) < 8 ? 0 : random.int(1, 2);
          parts[part]!.push(item);
        }
        const sources: string[] = [];
        for (const [i, part] of parts.entries()) sources.unshift(await write(storage, path(i), version, part));
        await merge(storage, path(9), version, sources);
        expect(await verify(storage, path(9))).toBeNull();
        await write(storage, path(10), version, items);
        for (const suffix of ['', '.bloomfilter'])
          expect(
            Buffer.compare(await contentOf(storage, path(9) + suffix), await contentOf(storage, path(10) + suffix)),
          ).toBe(0);
      },
    );

  it('drops nothing, of whichever versions and however often an entry comes', async () => {
    const random = new Random(3);
    const storage = new MemoryStorage();
    const keys = Array.from({ length: 3 }, () => [random.next(), random.next()] as const);
    const parts = Array.from({ length: 4 }, () =>
      Array.from({ length: 500 }, (): Item => {
        const at = random.int(0, 400);
        return { key: random.pick(keys), version: at, position: at };
      }),
    );
    for (const version of [TABLE_VERSION, POSITION_TABLE_VERSION]) {
      const sources: string[] = [];
      const expected: number[][] = [];
      for (const [i, part] of parts.entries()) {
        const to = path(100 * version + i);
        sources.push(await write(storage, to, i === 2 ? TABLE_VERSION : POSITION_TABLE_VERSION, part));
        expected.push(...(await entriesOf(storage, to)));
      }
      expected.sort((a, b) => b[0]! - a[0]! || b[1]! - a[1]! || b[2]! - a[2]!);
      await merge(storage, path(100 * version + 9), version, sources);
      expect(await verify(storage, path(100 * version + 9))).toBeNull();
      expect(await entriesOf(storage, path(100 * version + 9))).toEqual(expected);
    }
  });
});
