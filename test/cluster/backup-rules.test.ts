import { expect, test } from 'vitest';
import { copyFiles } from '../../core/backup/copy/copy.ts';
import { restoreCopy } from '../../core/backup/restore-copy/restore-copy.ts';
import { readNodeId } from '../../core/store/format/node-id.ts';
import { readLogId } from '../../core/cluster/replica/identity/identity.ts';
import { LOG_ID_FILE } from '../../core/log/format/markers.ts';
import type { MemberStore } from '../../core/cluster/replica/replica.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { compactionTick, worldOf } from '../shared-log/tick-kit.ts';
import { clone, filesOf } from '../backup/copy-kit.ts';
import { restoreWorld } from '../support/backup/restore-kit.ts';
import { Cluster, event } from './replica/kit.ts';
import { readRawLog } from '../scavenge/raw-log.ts';

/** Rules of backups in a cluster: of one member, for any number of members. */

async function fill(member: MemberStore, count: number): Promise<void> {
  for (let i = 0; i < count; i++)
    await member.store.append(`s${i % 4}`, ANY, [event('parcel', `"${'x'.repeat(2_000)}"`)]);
}

/** A copy of the files of a running member, which goes on working. */
async function copyOf(member: MemberStore, cluster: Cluster): Promise<MemoryStorage> {
  const target = new MemoryStorage();
  const source = await member.hold();
  try {
    await copyFiles({ source, target, mode: 'full', clock: cluster.clock, digests: nodeDigests });
  } finally {
    await source.release();
  }
  return target;
}

let seeds = 50;

async function restored<S extends Storage>(backup: MemoryStorage, target: S, force = false): Promise<S> {
  await restoreCopy({ ...restoreWorld(target, seeds++), source: backup, place: '/backup', force });
  return target;
}

test('from one backup of one member any number of members are restored, which catch up and are the same', async () => {
  const cluster = new Cluster();
  const first = await cluster.open();
  await fill(first, 60);
  const backup = await copyOf(first, cluster);
  expect([...(await filesOf(backup)).keys()]).not.toContain(LOG_ID_FILE);
  await fill(first, 60);
  // Some of what the backup lacks is in files of the bucket by then, the rest in its tail.
  await compactionTick(worldOf(cluster.objects, cluster.clock, 800));
  await fill(first, 10);

  const storages = [await restored(backup, new MemoryStorage()), await restored(backup, new MemoryStorage())];
  for (const storage of storages) expect(await readLogId(storage)).toBe(null);
  const members = [
    await cluster.open(storages[0]),
    await cluster.open(storages[1]),
    await cluster.open(new MemoryStorage()),
  ];
  for (const member of members) {
    expect(member.log).toMatchObject({ isCaughtUp: true, end: first.log.end, applied: first.log.applied });
    expect(await readLogId(member.storage)).toBe(first.log.logId);
  }
  await fill(members[0]!, 3);
  for (const member of [first, ...members]) await member.log.refresh();
  await Promise.all([first, ...members].map((member) => member.close()));
  const records = await readRawLog(first.storage);
  expect(records.length).toBeGreaterThan(130);
  for (const { storage } of members) expect(await readRawLog(storage)).toEqual(records);
  // Each is a node of its own to repositories of backups.
  expect(new Set(await Promise.all([first, ...members].map(({ storage }) => readNodeId(storage)))).size).toBe(
    members.length + 1,
  );
});

test('a restore over the directory of a member takes its log from it, and brings none along', async () => {
  const cluster = new Cluster();
  const first = await cluster.open();
  await fill(first, 8);
  await first.close();
  expect(await readLogId(first.storage)).toBe(first.log.logId);
  // A snapshot of the disk holds every file, that one too.
  const snapshot = new MemoryStorage();
  await clone(first.storage, snapshot);
  const over = await restored(snapshot, first.storage, true);
  expect(await readLogId(over)).toBe(null);
  const again = await cluster.open(over);
  expect(again.log).toMatchObject({ isCaughtUp: true, logId: first.log.logId });
  await again.close();
});

test('a backup of another log is refused, and stays as it is', async () => {
  const [mine, other] = [new Cluster(), new Cluster()];
  const first = await mine.open();
  const foreign = await other.open();
  await fill(first, 5);
  await foreign.store.append('elsewhere', ANY, [{ ...event('parcel'), data: encodeText('{}') }]);
  await fill(foreign, 20);
  const backup = await restored(await copyOf(foreign, other), new MemoryStorage());
  await expect(mine.open(backup)).rejects.toMatchObject({ code: 'log_diverged' });
  expect(await readLogId(backup)).toBe(null);
  await Promise.all([first.close(), foreign.close()]);
});
