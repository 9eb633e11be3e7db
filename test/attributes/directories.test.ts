import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ATTRIBUTE_FOLDERS } from '../../core/attributes/format/attribute-folders.ts';
import { copyFiles } from '../../core/backup/copy/copy.ts';
import { clearForRestore, requireEmpty } from '../../core/backup/restore/restore-directory.ts';
import { dropIndexBeyond } from '../../core/cluster/replica/truncate.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { checkErasure } from '../../core/scavenge/erasure/erasure.ts';
import { ANY } from '../../core/streams/api.ts';
import { refuseStrangers } from '../../infra/fs/strangers.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { clock, stopped } from '../backup/copy-kit.ts';
import { putFile } from '../log/kit.ts';
import { findingsOf } from '../support/damage.ts';
import { Random } from '../support/random.ts';
import { appendSome, differences, newEvent, openIndexed, set } from './world.ts';

const SMALL = { attributes: { memTableEntriesMax: 40 } };

/** A directory with all attribute indexes; `stays`: files of others in their folders. */
async function filled(seed = 2): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const open = await openIndexed({ storage, seed, ...SMALL });
  await set(open.store, { correlations: true, tags: true });
  await appendSome(open.store, new Random(seed), 50);
  await open.attributes!.idle();
  await open.close();
  for (const folder of ATTRIBUTE_FOLDERS) expect((await storage.list(folder)).length).toBeGreaterThan(2);
  return storage;
}

async function attributeFiles(storage: MemoryStorage): Promise<string[]> {
  const files: string[] = [];
  for (const folder of ATTRIBUTE_FOLDERS)
    for (const name of await storage.list(folder)) files.push(`${folder}/${name}`);
  return files;
}

async function copy(storage: MemoryStorage, target: MemoryStorage, mode: 'full' | 'differential'): Promise<void> {
  const source = await stopped(storage);
  await copyFiles({ source, target, mode, clock, digests: nodeDigests });
  await source.release();
}

/** A start builds what the log has. */
async function isWholeAfterStart(storage: MemoryStorage): Promise<boolean> {
  const open = await openIndexed({ storage, seed: 77, ...SMALL });
  expect(open.status().attributes.map(({ state }) => state)).toEqual(['live', 'live', 'live']);
  const wrong = await differences(open);
  await open.close();
  return wrong.length === 0 && (await findingsOf(storage)).length === 0;
}

describe('a copy of the files of a node', () => {
  it('leaves attribute indexes out, and a start on it builds them', async () => {
    const target = new MemoryStorage();
    await copy(await filled(), target, 'full');
    expect(await attributeFiles(target)).toEqual([]);
    expect(await isWholeAfterStart(target)).toBe(true);
  });

  it('removes those of a start on an older copy, and nothing of others', async () => {
    const source = await filled();
    const target = new MemoryStorage();
    await copy(source, target, 'full');
    expect(await isWholeAfterStart(target)).toBe(true);
    await putFile(target, 'attributes/tags/notes.txt', new Uint8Array(3));
    expect((await attributeFiles(target)).length).toBeGreaterThan(5);
    await copy(source, target, 'differential');
    expect(await attributeFiles(target)).toEqual(['attributes/tags/notes.txt']);
    expect(await isWholeAfterStart(target)).toBe(true);
  });

  it('begins in a folder that has nothing but attribute indexes', async () => {
    const target = new MemoryStorage();
    await putFile(target, 'attributes/names/indexmap', new Uint8Array(3));
    await copy(await filled(), target, 'full');
    expect(await attributeFiles(target)).toEqual([]);
  });
});

it('a restore over a directory removes its attribute indexes, and asks for that before', async () => {
  const storage = await filled();
  await clearForRestore(storage, 'a repository');
  expect(await attributeFiles(storage)).toEqual([]);
  await storage.remove('restoring');
  await requireEmpty(storage);
  await putFile(storage, 'attributes/names/indexmap', new Uint8Array(3));
  await expect(requireEmpty(storage)).rejects.toMatchObject({ code: 'directory_not_empty' });
});

it('a member whose log is cut back lets go of the attribute indexes that know more', async () => {
  const storage = await filled();
  expect(await dropIndexBeyond(storage, nodeDigests, 1_000_000)).toBe(false);
  expect((await attributeFiles(storage)).filter((path) => path.endsWith('indexmap'))).toHaveLength(3);
  expect(await dropIndexBeyond(storage, nodeDigests, 1_000)).toBe(true);
  expect((await attributeFiles(storage)).filter((path) => path.endsWith('indexmap'))).toEqual([]);
  expect(await isWholeAfterStart(storage)).toBe(true);
});

describe('a folder that has attribute indexes and no log', () => {
  const look = async (prepare: (root: string) => void) => {
    const root = mkdtempSync(join(tmpdir(), 'skua-attributes-'));
    try {
      prepare(root);
      await refuseStrangers({ root, indexRoot: join(root, 'index'), beside: [] });
    } finally {
      rmSync(root, { recursive: true });
    }
  };

  it('is no stranger’s', async () => {
    await look((root) => {
      mkdirSync(join(root, 'attributes', 'names'), { recursive: true });
      writeFileSync(join(root, 'attributes', 'names', 'indexmap'), '');
    });
  });

  it('is one where something else lies there', async () => {
    await expect(
      look((root) => {
        mkdirSync(join(root, 'attributes'), { recursive: true });
        writeFileSync(join(root, 'attributes', 'colours.txt'), '');
      }),
    ).rejects.toMatchObject({ code: 'not_a_data_directory' });
    await expect(look((root) => writeFileSync(join(root, 'attributes'), ''))).rejects.toMatchObject({
      code: 'not_a_data_directory',
    });
  });
});

describe('a proof of erasure', () => {
  async function findings(storage: MemoryStorage, what: { stream?: string; events?: string[] }): Promise<string[]> {
    const found: string[] = [];
    for await (const each of checkErasure({ storage, ...what }))
      if (each.kind !== 'progress')
        found.push(`${each.kind} ${each.file.split('/').slice(0, 2).join('/')}: ${each.what}`);
    return found;
  }

  it('tells of entries that have a stream’s name for their category, in attribute tables only', async () => {
    const storage = new MemoryStorage();
    const open = await openIndexed({ storage, ...SMALL });
    for (const stream of ['other', 'other-1', 'other-2']) await open.store.append(stream, ANY, [newEvent('thing')]);
    await open.close();
    expect(await findings(storage, { stream: 'other' })).toContain(
      `residue attributes/names: 3 index entries with the hash of the category 'other', which other streams may be of`,
    );
    const ofAnother = await findings(storage, { stream: 'other-1' });
    expect(ofAnother.filter((what) => what.includes('attributes'))).toEqual([]);
    expect(ofAnother.some((what) => what.includes("1 index entry with the hash of 'other-1'"))).toBe(true);
  });

  it('searches the files of attribute indexes as any other', async () => {
    const storage = await filled();
    const id = '3f2504e0-4f89-41d3-9a0c-0305e82c3301';
    const name = '11111111-0000-4000-8000-000000000001.bloomfilter';
    await putFile(storage, `attributes/tags/${name}`, new TextEncoder().encode(` ${id} `));
    expect(await findings(storage, { events: [id] })).toEqual([
      `trace attributes/tags: the id of event ${id}, as text`,
    ]);
  });
});
