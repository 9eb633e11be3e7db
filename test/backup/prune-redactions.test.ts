import { expect, it } from 'vitest';
import { pruneRepository } from '../../core/backup/prune/prune.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { backUp, restoreOptions } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { append } from './hold-kit.ts';
import { EMPTY, orders, redactSecret, within, write, writeOrders } from './redactions-kit.ts';

/** What a prune of erased content makes of redactions: another node's scavenge tells that an event's content goes. */

it('drops backups of any node that hold what a scavenge has redacted, but the newest of each', async () => {
  const repository = await openTestRepository(new MemoryObjects());
  const erased = async (): Promise<string[]> => {
    const { removed } = await pruneRepository({
      repository,
      keep: null,
      isErased: true,
      isDryRun: true,
      clock: new ManualClock(TEST_NOW_MS, 'microtask'),
      ids: new SeededIds(4),
      digests: nodeDigests,
    });
    return removed.map(({ id, why }) => `${id.slice(-1)} ${why}`);
  };
  const node = new MemoryStorage();
  // The first has the event in the chunk that is being written, the second in a completed one.
  await within(node, (open) => writeOrders(open));
  await backUp(node, repository, 1);
  await within(node, (open) => append(open, 'filler', 40));
  await backUp(node, repository, 2);
  await within(node, (open) => append(open, 'filler', 2));
  const third = await backUp(node, repository, 3);
  const other = new MemoryStorage();
  const choice = { kind: 'backup', id: third.id } as const;
  await restoreBackup(restoreOptions(repository, other, { choice }));
  await within(other, redactSecret);
  await backUp(other, repository, 4);
  expect(await erased()).toEqual([]);
  await within(other, async ({ scavenger }) => {
    await scavenger.start();
    await scavenger.idle();
  });
  const fifth = await backUp(other, repository, 5);
  expect(await erased()).toEqual(['1 erased', '2 erased', '4 erased']);
  // A node whose log has another event there keeps its backups.
  const stranger = new MemoryStorage();
  await within(stranger, (open) => writeOrders(open, 70));
  await backUp(stranger, repository, 6);
  await within(stranger, (open) => write(open, 78, 'elsewhere'));
  await backUp(stranger, repository, 7);
  expect(await erased()).toEqual(['1 erased', '2 erased', '4 erased']);
  await pruneRepository({
    repository,
    keep: null,
    isErased: true,
    clock: new ManualClock(TEST_NOW_MS, 'microtask'),
    ids: new SeededIds(4),
    digests: nodeDigests,
  });
  expect(await repository.missingBlobs([fifth.redactions!.blob])).toEqual([]);
  const target = new MemoryStorage();
  expect(await restoreBackup(restoreOptions(repository, target, { choice }))).toMatchObject({ redacted: 1 });
  expect(await within(target, orders)).toEqual(EMPTY);
});
