import { expect, it } from 'vitest';
import { keepMarks, keptMarksKeys, marksOfForgotten } from '../../core/backup/kept-marks/kept-marks.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import { pruneRepository } from '../../core/backup/prune/prune.ts';
import { verifyRepository } from '../../core/backup/verify/verify.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { backUpNode } from '../support/backup/backup-kit.ts';
import { shipperOf } from '../support/backup/shipping-kit.ts';
import { backUp, restoreOptions } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { append } from './hold-kit.ts';
import { EMPTY, orders, redactSecret, SECRET, within, write, writeOrders } from './redactions-kit.ts';

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

/** A backup of the orders, and another node, which was restored from it and has redacted an event of them. */
async function twoNodes() {
  const repository = await openTestRepository(new MemoryObjects());
  const node = new MemoryStorage();
  await within(node, (open) => writeOrders(open));
  const first = await backUp(node, repository, 1);
  const other = new MemoryStorage();
  const choice = { kind: 'backup', id: first.id } as const;
  await restoreBackup(restoreOptions(repository, other, { choice }));
  const forget = (nodeId: string, isDryRun = false) =>
    pruneRepository({
      repository,
      keep: null,
      isErased: true,
      forgottenNode: nodeId,
      isDryRun,
      clock: new ManualClock(TEST_NOW_MS, 'microtask'),
      ids: new SeededIds(4),
      digests: nodeDigests,
    });
  const restored = async (times = 1) => {
    const target = new MemoryStorage();
    const { redacted, warnings } = await restoreBackup(restoreOptions(repository, target, { choice }));
    expect({ redacted, warnings }).toEqual({ redacted: times, warnings: [] });
    return within(target, orders);
  };
  return { repository, other, forget, restored, choice };
}

it('keeps in mind what only backups of a forgotten node knew to be redacted', async () => {
  const { repository, other, forget, restored } = await twoNodes();
  await within(other, (open) => redactSecret(open, { metadata: ['$correlationId'] }));
  const { nodeId } = await backUp(other, repository, 2);
  const hidden = EMPTY.with(SECRET, 'redacted ');
  expect(await forget(nodeId, true)).toMatchObject({ redactionsKept: 1 });
  expect(await keptMarksKeys(repository)).toEqual([]);
  expect(await forget(nodeId)).toMatchObject({ redactionsKept: 1, removed: [{ why: 'forgotten' }] });
  expect(await repository.backups()).toHaveLength(1);
  expect(await restored()).toEqual(hidden);
  // Another prune takes nothing of it away.
  await forget(nodeId).catch(() => {});
  expect(await restored()).toEqual(hidden);
  expect(await verifyRepository({ repository })).toMatchObject({ findings: 0 });
});

it('keeps in mind what was only in log that was shipped behind them', async () => {
  const { repository, other, forget, restored } = await twoNodes();
  const nodeId = await within(other, async (open) => {
    const { manifest } = await backUpNode(open, repository);
    const { shipper } = shipperOf(open.shippableLog(), async () => repository, manifest.nodeId);
    await redactSecret(open);
    await shipper.tick();
    return manifest.nodeId;
  });
  expect(await forget(nodeId)).toMatchObject({ redactionsKept: 1 });
  expect(await restored()).toEqual(EMPTY);
});

it('keeps in mind what was shipped, also where another prune forgets the node meanwhile', async () => {
  const { repository, other, forget, restored } = await twoNodes();
  const manifest = await within(other, async (open) => {
    await redactSecret(open, { numbers: [1] });
    const { manifest: made } = await backUpNode(open, repository);
    const { shipper } = shipperOf(open.shippableLog(), async () => repository, made.nodeId);
    await redactSecret(open);
    await shipper.tick();
    return made;
  });
  const { nodeId } = manifest;
  const interrupted = new Proxy(repository, {
    get: (target, name: keyof Repository) => {
      if (name !== 'shipped') return typeof target[name] === 'function' ? target[name].bind(target) : target[name];
      return async (...args: Parameters<Repository['shipped']>) => {
        await forget(nodeId);
        return target.shipped(...args);
      };
    },
  });
  const parts = { repository: interrupted, digests: nodeDigests, nodeId, manifests: [manifest] };
  await keepMarks(parts, (await marksOfForgotten(parts))!);
  expect(await restored(2)).toEqual(EMPTY.with(1, EMPTY[SECRET]!));
});

it('keeps nothing in mind that other backups know', async () => {
  const { repository, other, forget, restored, choice } = await twoNodes();
  await within(other, redactSecret);
  const { nodeId } = await backUp(other, repository, 2);
  const third = new MemoryStorage();
  const { id } = (await repository.backups())[0]!;
  const more = { choice: { ...choice, id }, ids: new SeededIds(77) };
  await restoreBackup(restoreOptions(repository, third, more));
  await backUp(third, repository, 3);
  expect(await forget(nodeId)).toMatchObject({ redactionsKept: 0 });
  expect(await keptMarksKeys(repository)).toEqual([]);
  expect(await restored()).toEqual(EMPTY);
});
