import { describe, expect, it } from 'vitest';
import { createBackup } from '../../core/backup/create/create.ts';
import { pruneRepository } from '../../core/backup/prune/prune.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentLog } from '../../core/ports/log.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { snapshotOfDirectory } from '../../core/store/snapshot/snapshot.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { append, openSmall } from './hold-kit.ts';

const DAY_MS = 86_400_000;
const FIRST_MS = Date.UTC(2026, 0, 5, 3);
const AHEAD_MS = Date.UTC(2031, 0, 1);

let number = 0;

async function backUpAt(storage: Storage, repository: Repository, nowMs: number): Promise<string> {
  const node = await openSmall(storage);
  await append(node, 'a', 1);
  await node.close();
  const clock = new ManualClock(nowMs, 'microtask');
  const ids = new SeededIds(++number);
  const source = await snapshotOfDirectory({ storage, clock, ids, digests: nodeDigests, log: silentLog });
  try {
    return (await createBackup({ source, repository, cause: 'manual', clock, ids, digests: nodeDigests })).manifest.id;
  } finally {
    await source.release();
  }
}

/** Ten days, on the third of which the clock is years ahead. */
const TIMES = Array.from({ length: 10 }, (_, day) => (day === 2 ? AHEAD_MS : FIRST_MS + day * DAY_MS));

describe('a clock before 1970', () => {
  const advice = { code: 'backup_failed', message: expect.stringMatching(/^The clock says 1969-12-31.*Set the clock/) };

  it('makes no backup, and says that the clock is to be set right', async () => {
    const repository = await openTestRepository(new MemoryObjects());
    await expect(backUpAt(new MemoryStorage(), repository, -1)).rejects.toMatchObject(advice);
    expect(await repository.backups()).toEqual([]);
  });

  it('makes no repository, which could never be opened', async () => {
    const objects = new MemoryObjects();
    await expect(openTestRepository(objects, {}, { clock: new ManualClock(-1, 'microtask') })).rejects.toMatchObject(
      advice,
    );
    await openTestRepository(objects);
  });
});

describe('a clock that was ahead for one backup', () => {
  it('leaves the times of the others, and the order in which they were made', async () => {
    const repository = await openTestRepository(new MemoryObjects());
    const storage = new MemoryStorage();
    const ids: string[] = [];
    for (const ms of TIMES) ids.push(await backUpAt(storage, repository, ms));
    const listed = await repository.backups();
    expect(listed.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(listed.map(({ createdMs }) => createdMs)).toEqual(TIMES.toReversed());
    expect((await repository.manifest('latest')).id).toBe(ids.at(-1));
  });

  it('leaves as many days to keep as were asked for', async () => {
    const repository = await openTestRepository(new MemoryObjects());
    const storage = new MemoryStorage();
    const ids: string[] = [];
    for (const ms of TIMES) ids.push(await backUpAt(storage, repository, ms));
    const clock = new ManualClock(TIMES.at(-1)! + 1_000, 'microtask');
    const { removed } = await pruneRepository({
      repository,
      clock,
      ids: new SeededIds(3),
      keep: { last: 0, hourly: 0, daily: 7, weekly: 0 },
    });
    expect((await repository.backups()).map(({ id }) => id)).toEqual(ids.slice(-7).toReversed());
    expect(removed.map(({ createdMs }) => createdMs)).toEqual(TIMES.slice(0, 3));
  });

  it('keeps the backups of other nodes from being passed over for old ones of this one', async () => {
    const repository = await openTestRepository(new MemoryObjects());
    const [wrong, right] = [new MemoryStorage(), new MemoryStorage()];
    await backUpAt(wrong, repository, AHEAD_MS);
    const old = await backUpAt(wrong, repository, FIRST_MS);
    const newest = await backUpAt(right, repository, FIRST_MS + DAY_MS);
    expect((await repository.manifest('latest')).id).toBe(newest);
    const listed = (await repository.backups()).map(({ id }) => id);
    expect(listed.indexOf(newest)).toBeLessThan(listed.indexOf(old));
  });

  it('keeps no content without use for years', async () => {
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects);
    const storage = new MemoryStorage();
    await backUpAt(storage, repository, FIRST_MS);
    await repository.writeBlob(3, async function* content() {
      yield Uint8Array.of(1, 2, 3);
    });
    const prune = (nowMs: number) =>
      pruneRepository({ repository, clock: new ManualClock(nowMs, 'microtask'), ids: new SeededIds(4), keep: null });
    expect(await prune(AHEAD_MS)).toMatchObject({ blobsRemoved: 0, blobsWaiting: 1 });
    expect(await prune(FIRST_MS)).toMatchObject({ blobsRemoved: 0, blobsWaiting: 1 });
    expect(await prune(FIRST_MS + 2 * DAY_MS)).toMatchObject({ blobsRemoved: 1 });
  });
});
