import { expect, test } from 'vitest';
import { snapshotOfDirectory, takeSnapshot } from '../../core/store/snapshot/snapshot.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { NO_MARKS } from '../../core/streams/format/mark-columns.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { append, contentOf, copied, lastOf, openSmall } from './hold-kit.ts';
import { findingsOf } from '../support/damage.ts';
import { putFile } from '../log/kit.ts';

const stopped = (storage: Storage) =>
  snapshotOfDirectory({
    storage,
    clock: new ManualClock(),
    ids: new SeededIds(3),
    digests: nodeDigests,
    log: silentLog,
  });
const pathsOf = (source: { snapshot: { files: readonly { path: string }[] } }) =>
  source.snapshot.files.map(({ path }) => path);

async function filled(storage: Storage, events: number): Promise<void> {
  const open = await openSmall(storage);
  await append(open, 'orders', events);
  await open.close();
}

test('a stopped directory is listed under its lock, with an id that stays', async () => {
  const storage = new MemoryStorage();
  await filled(storage, 40);
  const source = await stopped(storage);
  await expect(stopped(storage)).rejects.toMatchObject({ code: 'directory_locked' });
  await expect(openSmall(storage)).rejects.toMatchObject({ code: 'directory_locked' });
  const copy = await copied(source);
  await source.release();
  const again = await stopped(storage);
  expect(again.snapshot).toEqual(source.snapshot);
  await again.release();
  const open = await openSmall(copy, { writeEpoch: false });
  expect(await lastOf(open, 'orders')).toBe(39);
  await open.close();
  expect(await findingsOf(copy)).toEqual([]);
});

test('of a directory that was not closed, what was acknowledged is in the snapshot', async () => {
  for (const moment of ['keep', 'drop', 'partial', 'clean'] as const) {
    const storage = new FaultyStorage();
    const open = await openSmall(storage);
    await append(open, 'orders', 40);
    const end = open.status().checkpoints.writer;
    storage.crash();
    await open.close().catch(() => {});
    const crashed = storage.restart(moment, 5);
    const source = await stopped(crashed);
    expect(source.snapshot.checkpoints).toMatchObject({ writer: end, chaser: end });
    const copy = await copied(source);
    await source.release();
    const reopened = await openSmall(copy, { writeEpoch: false });
    expect(await lastOf(reopened, 'orders')).toBe(39);
    await reopened.close();
    expect(await findingsOf(copy)).toEqual([]);
  }
});

test('what is no data directory is refused, and left as it is', async () => {
  const storage = new MemoryStorage();
  await expect(stopped(storage)).rejects.toMatchObject({ code: 'file_not_found' });
  expect(await storage.list('')).toEqual([]);
  await filled(storage, 5);
  await putFile(storage, 'restoring', new Uint8Array(1));
  await expect(stopped(storage)).rejects.toMatchObject({ code: 'backup_failed' });
  await storage.remove('restoring');
  await (await stopped(storage)).release();
});

test('files that no map names, old chunks and leftovers are not listed', async () => {
  const storage = new MemoryStorage();
  await filled(storage, 40);
  for (const path of [
    'index/11111111-2222-4333-8444-555555555555',
    'chunk-000009.000000.tmp',
    'stray',
    'index/scavenging/other',
  ])
    await putFile(storage, path, new Uint8Array(9));
  await putFile(storage, 'index/scavenging/scavenging.db', new Uint8Array(4_096));
  await putFile(storage, 'index/scavenging/scavenging.db-wal', new Uint8Array(32));
  const source = await stopped(storage);
  const paths = pathsOf(source);
  expect(
    paths.filter(
      (path) =>
        path.includes('1111') ||
        path.includes('tmp') ||
        path.includes('stray') ||
        path.includes('other') ||
        path === 'node-id',
    ),
  ).toEqual([]);
  expect(paths.slice(paths.indexOf('index/scavenging/scavenging.db') - 1, paths.indexOf('chaser.chk'))).toEqual([
    'index/stream-existence/streamExistenceFilter.dat',
    'index/scavenging/scavenging.db',
    'index/scavenging/scavenging.db-wal',
  ]);
  await source.release();
});

test('an index that is damaged is left out: it is built anew', async () => {
  const damaged = async (storage: Storage): Promise<void> => {
    const source = await stopped(storage);
    const paths = pathsOf(source);
    expect(paths.filter((path) => path.startsWith('index/') && !path.includes('existence'))).toEqual([]);
    expect(paths).toContain('chunk-000000.000000');
    await source.release();
  };
  const storage = new MemoryStorage();
  await filled(storage, 40);
  const [table] = (await storage.list('index')).filter((name) => name.length === 36);
  await storage.remove(`index/${table!}`);
  await damaged(storage);
  await putFile(storage, 'index/indexmap', new Uint8Array(100));
  await damaged(storage);
  await storage.remove('index/indexmap');
  await damaged(storage);
});

test('a map that changes while it is read is read again', async () => {
  const storage = new MemoryStorage();
  await filled(storage, 10);
  const before = await mapOf(storage);
  await filled(storage, 100);
  const now = await mapOf(storage);
  expect(Buffer.compare(before, now)).not.toBe(0);
  // The first look still shows the old map, whose tables have been merged and removed.
  await putFile(storage, 'index/indexmap', before);
  const changing: Storage = Object.assign(Object.create(storage) as Storage, {
    list: (folder: string) => storage.list(folder),
    open: (path: string, access: 'read') => storage.open(path, access),
    size: async (path: string) => {
      const size = await storage.size(path);
      if (size === null && /[0-9a-f-]{36}$/.test(path)) await putFile(storage, 'index/indexmap', now);
      return size;
    },
  });
  const checkpoints = { writer: 0, chaser: 0, epoch: -1, proposal: -1 };
  const log = async () => ({ takenMs: 0, checkpoints, chunks: [], marks: NO_MARKS });
  const snapshot = await takeSnapshot({
    storage: changing,
    digests: nodeDigests,
    nodeId: 'x',
    chunkSizeBytes: 65_536,
    log,
  });
  expect(Buffer.compare(snapshot.files[0]!.content!, now)).toBe(0);
  expect(snapshot.files.filter(({ kind }) => kind === 'index-table').length).toBeGreaterThan(0);
});

async function mapOf(storage: Storage): Promise<Uint8Array> {
  const source = await stopped(storage);
  const content = await contentOf(source, 'index/indexmap');
  await source.release();
  return content;
}
