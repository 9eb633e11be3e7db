import { describe, expect, test } from 'vitest';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { restoreCopy } from '../../core/backup/restore-copy/restore-copy.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { isOwnName, OWN_FOLDERS } from '../../core/ports/own-names.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { append, CHUNK_BYTES, copy } from '../backup/copy-kit.ts';
import { backUpNode } from '../support/backup/backup-kit.ts';
import { restoreOptions, restoreWorld, verifyErrors } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { plantStrangers, STRANGERS, strangersIn } from '../support/strangers.ts';
import { openTestStore } from '../support/test-store.ts';
import { putFile, setCheckpoint } from './kit.ts';

/** What others put into a data directory stays where it is, with its bytes and its time, and stops nothing. */

const GUID = '00000000-0000-4000-8000-000000000009';
const LEFTOVERS = [
  'chunk-000009.000000.tmp',
  `${GUID}.scavenge.tmp`,
  `index/${GUID}`,
  `index/indexmap.${GUID}.indexmap.tmp`,
  'proofs/0123456789abcdef0123456789abcdef.tmp',
];

const open = (storage: Storage): Promise<DirectoryStore> =>
  openTestStore({ storage, chunkSizeBytes: CHUNK_BYTES, memTableEntriesMax: 60, beginsProofs: true });

async function scavenge({ scavenger }: DirectoryStore): Promise<void> {
  const { scavengeId } = await scavenger.start({ threshold: -1 });
  await scavenger.idle();
  expect(scavenger.last()).toMatchObject({ scavengeId, result: 'Success' });
}

/** A directory of data with strangers in it, and who looks that they are untouched. */
async function withStrangers(): Promise<{ storage: MemoryStorage; expectUntouched(): Promise<void> }> {
  const storage = new MemoryStorage();
  const first = await open(storage);
  await append(first, 'a', 70);
  await first.close();
  return { storage, expectUntouched: await planted(storage) };
}

async function planted(storage: Storage): Promise<() => Promise<void>> {
  await plantStrangers(storage);
  const before = await strangersIn(storage);
  return async () => {
    expect(await strangersIn(storage)).toEqual(before);
  };
}

test('there are strangers of every kind, in each folder of ours', () => {
  for (const folder of OWN_FOLDERS)
    expect(
      STRANGERS.filter((path) => path.startsWith(folder === '' ? 'chunk-' : `${folder}/`)).length,
      folder,
    ).toBeGreaterThan(10);
  expect(STRANGERS.filter(isOwnName)).toEqual([]);
});

describe('strangers in a data directory', () => {
  test('stay through starts, appends, scavenges, merges and stops; what is ours and left over goes', async () => {
    const { storage, expectUntouched } = await withStrangers();
    for (const path of LEFTOVERS) await putFile(storage, path, new Uint8Array(7));
    let node = await open(storage);
    for (const path of LEFTOVERS) expect(await storage.size(path), path).toBeNull();
    await append(node, 'b', 130);
    await node.store.deleteStream('a', -2, 'soft');
    await scavenge(node);
    await expectUntouched();
    await node.store.deleteStream('b', -2, 'hard');
    await append(node, 'c', 130);
    await scavenge(node);
    await node.close();
    node = await open(storage);
    expect(await node.store.readStream('c', { direction: 'forward', from: 0, count: 1_000 })).toMatchObject({
      events: { length: 130 },
    });
    await node.close();
    await expectUntouched();
    expect(await verifyErrors(storage)).toEqual([]);
  });

  test('stay where the log is cut back, and where the index is built anew', async () => {
    const { storage, expectUntouched } = await withStrangers();
    await setCheckpoint(storage, 'truncate.chk', 0);
    await (await open(storage)).close();
    await storage.remove('index/indexmap');
    await (await open(storage)).close();
    await expectUntouched();
  });

  test('stay in copies of files, and in what is restored from them and from a repository', async () => {
    const { storage, expectUntouched } = await withStrangers();
    const target = new MemoryStorage();
    await copy(storage, target, 'full');
    expect((await target.list('')).filter((name) => !isOwnName(name))).toEqual([]);
    const expectCopyUntouched = await planted(target);
    const node = await open(storage);
    await append(node, 'b', 130);
    await scavenge(node);
    const repository = await openTestRepository(new MemoryObjects());
    await backUpNode(node, repository);
    await node.close();
    await copy(storage, target, 'differential');
    await expectCopyUntouched();
    await restoreBackup(restoreOptions(repository, storage, { force: true }));
    await expectUntouched();
    await restoreCopy({ ...restoreWorld(storage), source: target, place: 'the copy', force: true });
    await expectUntouched();
    await expectCopyUntouched();
    expect(await verifyErrors(storage)).toEqual([]);
  });

  test('are refused in one that is none of data yet, before anything is changed', async () => {
    const storage = new MemoryStorage();
    const expectUntouched = await planted(storage);
    await expect(open(storage)).rejects.toMatchObject({ code: 'not_a_data_directory' });
    await expectUntouched();
    for (const folder of OWN_FOLDERS)
      expect(
        (await storage.list(folder)).filter((name) => isOwnName(folder === '' ? name : `${folder}/${name}`)),
      ).toEqual([]);
  });
});
