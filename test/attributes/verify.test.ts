import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { POSITION_TABLE_VERSION } from '../../core/index/format/table-format.ts';
import { readBatches } from '../../core/index/format/table-scan.ts';
import { removeTable, withWriter } from '../../core/index/format/table-writer.ts';
import { loadIndexMap, saveIndexMap } from '../../core/index/format/index-map.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { damage, jobContext } from '../index/world.ts';
import { findingsOf } from '../support/damage.ts';
import { Random } from '../support/random.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { appendSome, differences, openIndexed, set } from './world.ts';

const SMALL = { attributes: { memTableEntriesMax: 40 } };

async function filled(): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const open = await openIndexed({ storage, ...SMALL });
  await set(open.store, { correlations: true, tags: true });
  await appendSome(open.store, new Random(2), 60);
  await open.attributes!.idle();
  await open.close();
  return storage;
}

async function tablesOf(storage: Storage, name: string): Promise<string[]> {
  const map = await loadIndexMap(storage, nodeDigests, `attributes/${name}`);
  return map!.levels.flat().map((table) => `attributes/${name}/${table}`);
}

interface Row {
  readonly hi: number;
  readonly lo: number;
  readonly position: number;
}

/** Writes a table anew, as sound as before by itself, with other entries. */
async function rewrite(storage: Storage, path: string, change: (rows: Row[]) => readonly Row[]): Promise<void> {
  const rows: Row[] = [];
  for await (const { hi, lo, positions, count } of readBatches(storage, path))
    for (let i = 0; i < count; i++) rows.push({ hi: hi[i]!, lo: lo[i]!, position: positions[i]! });
  const changed = change(rows);
  await removeTable(storage, path);
  await withWriter(
    { path, bloomPath: `${path}.bloomfilter`, cacheDepth: 8, version: POSITION_TABLE_VERSION },
    changed.length,
    jobContext(storage),
    async (writer) => {
      for (const { hi, lo, position } of changed) writer.add(hi, lo, position, position);
    },
  );
}

async function changeMap(storage: Storage, change: { anchor?: string; commitCheckpoint?: number }): Promise<void> {
  const map = await loadIndexMap(storage, nodeDigests, 'attributes/tags');
  await saveIndexMap({ ...map!, ...change }, storage, nodeDigests, new SeededIds(7), 'attributes/tags');
}

/** After a start, all is as it should be. */
async function isBuiltAnew(storage: Storage): Promise<boolean> {
  const open = await openIndexed({ storage, ...SMALL, seed: 9 });
  const wrong = await differences(open);
  await open.close();
  return wrong.length === 0 && (await findingsOf(storage)).length === 0;
}

describe('skua verify and attribute indexes', () => {
  it('finds nothing in sound ones, nor where there are none', async () => {
    const storage = await filled();
    expect(await findingsOf(storage)).toEqual([]);
    for (const name of await storage.list('attributes/tags')) await storage.remove(`attributes/tags/${name}`);
    expect(await findingsOf(storage)).toEqual([]);
  });

  it.each(['names', 'correlations', 'tags'])(
    'warns of a damaged table of %s, which a start builds anew',
    async (name) => {
      const storage = await filled();
      const [path] = await tablesOf(storage, name);
      await damage(storage, path!, 150);
      expect(await findingsOf(storage)).toEqual([`${path}: attribute_index_damaged`]);
      await storage.remove(`attributes/${name}/proven-tables`);
      expect(await isBuiltAnew(storage)).toBe(true);
    },
  );

  it('warns of a table that is gone, and of a damaged map', async () => {
    const storage = await filled();
    const [path] = await tablesOf(storage, 'tags');
    await storage.remove(path!);
    await damage(storage, 'attributes/names/indexmap', 40);
    expect(await findingsOf(storage)).toEqual([
      'attributes/names/indexmap: attribute_index_damaged',
      `${path}: attribute_index_damaged`,
    ]);
    expect(await isBuiltAnew(storage)).toBe(true);
  });

  it('warns of an index of another log, or beyond the end', async () => {
    const storage = await filled();
    await changeMap(storage, { anchor: '99999999-0000-4000-8000-000000000001 -' });
    const expected = ['attributes/tags/indexmap: attribute_index_of_another_log'];
    expect(await findingsOf(storage)).toEqual(expected);
    expect(await isBuiltAnew(storage)).toBe(true);
    await changeMap(storage, { commitCheckpoint: 1_000_000_000 });
    expect(await findingsOf(storage)).toEqual(expected);
    expect(await isBuiltAnew(storage)).toBe(true);
  });

  it.each(['names', 'correlations', 'tags'])('finds an event without its entry in %s', async (name) => {
    const storage = await filled();
    const [path] = await tablesOf(storage, name);
    await rewrite(storage, path!, (rows) => rows.filter((_, i) => i !== 3));
    expect(await findingsOf(storage)).toEqual([`attributes/${name}/indexmap: attribute_index_missing_event`]);
  });

  it('finds an entry that leads to an event without that attribute, or to no record', async () => {
    const storage = await filled();
    const [path] = await tablesOf(storage, 'names');
    await rewrite(storage, path!, (rows) => [{ ...rows[0]!, hi: 0xffff_ffff }, ...rows]);
    expect(await findingsOf(storage)).toEqual([`${path}: index_wrong_entry`]);
    await rewrite(storage, path!, ([, ...rows]) => [{ ...rows[0]!, position: rows[0]!.position + 1 }, ...rows]);
    expect(await findingsOf(storage)).toEqual([`${path}: index_wrong_entry`]);
  });

  it('warns of a table of the stream index among them', async () => {
    const storage = await filled();
    const [path] = await tablesOf(storage, 'tags');
    const map = await loadIndexMap(storage, nodeDigests);
    const other = `index/${map!.levels.flat()[0]}`;
    const file = await storage.open(other, 'read');
    const bytes = Uint8Array.from(await file.read(0, file.size));
    await file.close();
    await removeTable(storage, path!);
    const copy = await storage.create(path!);
    await copy.writeAt(0, bytes);
    await copy.close();
    const [first] = await findingsOf(storage);
    expect(first).toBe(`${path}: attribute_index_damaged`);
    expect(await isBuiltAnew(storage)).toBe(true);
  });
});
