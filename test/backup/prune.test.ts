import { describe, expect, it } from 'vitest';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import { pruneRepository } from '../../core/backup/prune/prune.ts';
import type { PruneOptions } from '../../core/backup/prune/prune.ts';
import { checkErasureInRepository } from '../../core/backup/erasure-check/erasure-check.ts';
import type { Repository } from '../../core/backup/repository/api.ts';
import { verifyRepository } from '../../core/backup/verify/verify.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { listAll } from '../../core/ports/object-store.ts';
import type { RepositoryErasureSummary } from '../../core/backup/erasure-check/erasure-check.ts';
import type { ErasureFinding } from '../../core/scavenge/erasure/erasure.ts';
import { ANY } from '../../core/streams/api.ts';
import { backUpNode, danglingIn } from '../support/backup/backup-kit.ts';
import { FakeLog } from '../support/backup/fake-log.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { append, openSmall } from './hold-kit.ts';

const DAY_MS = 86_400_000;
const LAST = { last: 1, hourly: 0, daily: 0, weekly: 0 };

function prune(
  repository: Repository,
  nowMs: number,
  more: Partial<PruneOptions> = {},
): ReturnType<typeof pruneRepository> {
  return pruneRepository({
    repository,
    keep: LAST,
    clock: new ManualClock(nowMs, 'microtask'),
    ids: new SeededIds(3),
    digests: nodeDigests,
    ...more,
  });
}

async function countOf(objects: MemoryObjects, prefix: string): Promise<number> {
  let count = 0;
  for await (const _info of listAll(objects, prefix)) count++;
  return count;
}

/** A log with three backups, each of which has blobs of its own, and pieces behind each. */
async function filled(): Promise<{ objects: MemoryObjects; repository: Repository; ids: string[] }> {
  const objects = new MemoryObjects();
  const repository = await openTestRepository(objects);
  const log = new FakeLog();
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    log.write(2, 1_000);
    const { id } = await log.backUp(repository, TEST_NOW_MS + i);
    const from = log.end;
    log.write(1, 100);
    await repository.ship({ manifestId: id, from, to: log.end, shippedMs: 1 }, await log.read(from, log.end));
    ids.push(id);
  }
  return { objects, repository, ids };
}

/** Says that a backup runs. */
const RUNNING_ID = 'bbbbbbbb-0000-4000-8000-000000000009';
const RUNNING = `active/${RUNNING_ID}`;

describe('pruning', () => {
  it('removes backups with what was shipped after them, and blobs a day after they were first seen without use', async () => {
    const { objects, repository, ids } = await filled();
    const blobs = await countOf(objects, 'blobs/');
    const first = await prune(repository, TEST_NOW_MS);
    expect(first).toMatchObject({
      kept: [ids[2]],
      removed: [{ id: ids[0], why: 'retention' }, { id: ids[1] }],
      blobsRemoved: 0,
      blobsWaiting: 2,
      isBackupRunning: false,
    });
    expect((await repository.backups()).map(({ id }) => id)).toEqual([ids[2]]);
    expect(await countOf(objects, 'shipped/')).toBe(1);
    expect(await countOf(objects, 'blobs/')).toBe(blobs);
    expect(await prune(repository, TEST_NOW_MS + DAY_MS - 1)).toMatchObject({
      removed: [],
      blobsRemoved: 0,
      blobsWaiting: 2,
    });
    const last = await prune(repository, TEST_NOW_MS + DAY_MS);
    expect(last).toMatchObject({ blobsRemoved: 2, blobsWaiting: 0 });
    expect(last.bytesRemoved).toBeGreaterThan(2_000);
    expect(await countOf(objects, 'blobs/')).toBe(blobs - 2);
    for (const prefix of ['unreferenced', 'pruning/', 'active/']) expect(await countOf(objects, prefix)).toBe(0);
    expect((await verifyRepository({ repository })).findings).toBe(0);
  });

  it('says what it would do, and does nothing', async () => {
    const { objects, repository } = await filled();
    const before = objects.size;
    const dry = await prune(repository, TEST_NOW_MS, { isDryRun: true });
    expect(dry).toMatchObject({ blobsRemoved: 0, blobsWaiting: 2 });
    expect(dry.removed).toHaveLength(2);
    expect(objects.size).toBe(before);
    const { removed, kept } = await prune(repository, TEST_NOW_MS);
    expect({ removed, kept }).toEqual({ removed: dry.removed, kept: dry.kept });
  });

  it('a blob that is used again meanwhile stays', async () => {
    const { objects, repository, ids } = await filled();
    const old = await repository.manifest(ids[0]!);
    await prune(repository, TEST_NOW_MS);
    await repository.putManifest({ ...old, createdMs: TEST_NOW_MS + 10 });
    await prune(repository, TEST_NOW_MS + 2 * DAY_MS, { keep: null });
    expect(await danglingIn(objects)).toEqual([]);
    // And its day begins anew when it is without use once more.
    await repository.removeManifest(old.id);
    expect(await prune(repository, TEST_NOW_MS + 3 * DAY_MS, { keep: null })).toMatchObject({
      blobsRemoved: 0,
      blobsWaiting: 1,
    });
  });

  it('removes no blob beside a backup, and goes on when that has ended or is long dead', async () => {
    const { repository } = await filled();
    await prune(repository, TEST_NOW_MS);
    const later = TEST_NOW_MS + DAY_MS;
    await repository.writeObject(RUNNING, { writtenMs: later - 1_000 });
    expect(await prune(repository, later)).toMatchObject({ blobsRemoved: 0, isBackupRunning: true });
    expect(await prune(repository, later + DAY_MS)).toMatchObject({ blobsRemoved: 2, isBackupRunning: false });
  });

  it('removes nothing at all when a manifest can not be read', async () => {
    const { objects, repository, ids } = await filled();
    const { id } = await repository.manifest(ids[1]!);
    for await (const { key } of listAll(objects, 'manifests/')) {
      if (!key.endsWith(id)) continue;
      const bytes = (await objects.get(key))!;
      bytes[40]! ^= 1;
      await objects.put(key, bytes);
    }
    const before = objects.size;
    await expect(prune(await openTestRepository(objects), TEST_NOW_MS)).rejects.toMatchObject({
      code: 'repository_damaged',
    });
    expect(objects.size).toBe(before);
  });

  it('keeps a backup as long as more was shipped behind it than the newest reaches', async () => {
    const repository = await openTestRepository(new MemoryObjects());
    const log = new FakeLog();
    log.write(1, 100);
    const first = await log.backUp(repository, TEST_NOW_MS);
    const second = await log.backUp(repository, TEST_NOW_MS + 1_000);
    const shipBehind = async ({ id }: Manifest, shippedMs: number) =>
      repository.ship({ manifestId: id, from, to: log.end, shippedMs }, await log.read(from, log.end));
    const from = log.end;
    log.write(1, 100);
    await shipBehind(first, TEST_NOW_MS + 2_000);
    expect(await prune(repository, TEST_NOW_MS)).toMatchObject({ removed: [], kept: [second.id, first.id] });
    await shipBehind(second, TEST_NOW_MS + 3_000);
    expect(await prune(repository, TEST_NOW_MS)).toMatchObject({ removed: [{ id: first.id }], kept: [second.id] });
  });

  it('removes pieces whose backup is gone', async () => {
    const { objects, repository } = await filled();
    await repository.ship(
      { manifestId: 'ffffffff-0000-4000-8000-000000000000', from: 0, to: 4, shippedMs: 1 },
      new Uint8Array(4),
    );
    await prune(repository, TEST_NOW_MS, { keep: null });
    expect(await countOf(objects, 'shipped/')).toBe(3);
  });

  it('leaves a sound repository wherever it is interrupted, and a repeat completes it', async () => {
    const { objects, repository } = await filled();
    await prune(repository, TEST_NOW_MS - 2 * DAY_MS, { keep: null });
    const counted = new FaultyObjects(objects.fork());
    await prune(await openTestRepository(counted), TEST_NOW_MS);
    const calls = counted.calls.length;
    for (let n = 0; n < calls; n++) {
      const fork = objects.fork();
      const faulty = new FaultyObjects(fork, { seed: n + 1 });
      faulty.crashAfter(n);
      await openTestRepository(faulty)
        .then((opened) => prune(opened, TEST_NOW_MS))
        .catch(() => {});
      const again = await openTestRepository(fork);
      expect((await verifyRepository({ repository: again })).findings, `after call ${n}`).toBe(0);
      await prune(again, TEST_NOW_MS);
      expect(await prune(again, TEST_NOW_MS + 2 * DAY_MS)).toMatchObject({ blobsWaiting: 0 });
      expect((await verifyRepository({ repository: again })).findings, `after call ${n}`).toBe(0);
      expect(await countOf(fork, 'blobs/')).toBe(1);
    }
  });
});

async function prove(
  repository: Repository,
  stream: string,
): Promise<{ traces: ErasureFinding[]; summary: RepositoryErasureSummary }> {
  const traces: ErasureFinding[] = [];
  const run = checkErasureInRepository({ repository, stream, clock: new ManualClock(TEST_NOW_MS, 'microtask') });
  for (;;) {
    const next = await run.next();
    if (next.done === true) return { traces, summary: next.value };
    if (next.value.kind === 'trace') traces.push(next.value);
    if (next.value.kind === 'progress') expect(next.value.bytesDone).toBeLessThanOrEqual(next.value.bytesTotal);
  }
}

describe('erasure from a repository', () => {
  it.each([null, new Uint8Array(32).fill(9)])(
    'drops what a scavenge has replaced, at once, and proves it',
    async (key) => {
      const node = await openSmall(new MemoryStorage());
      const objects = new MemoryObjects();
      const repository = await openTestRepository(objects, { key, compression: key === null ? 'off' : 'on' });
      await append(node, 'kept', 5);
      await append(node, 'secret', 20);
      const asTail = await backUpNode(node, repository);
      await append(node, 'kept', 20);
      const before = await backUpNode(node, repository);
      await node.store.deleteStream('secret', ANY, 'hard');
      await append(node, 'kept', 20);
      await node.scavenger.start({ threads: 1, throttlePercent: 100, threshold: 0 });
      await node.scavenger.idle();

      // Before the scavenged chunks are in a backup nothing can be dropped.
      expect((await prune(repository, TEST_NOW_MS, { keep: null, isErased: true })).removed).toEqual([]);
      const after = await backUpNode(node, repository);
      const found = await prove(repository, 'secret');
      expect(found.traces.length).toBeGreaterThan(20);
      expect(found.traces.some(({ file }) => file.includes(before.manifest.id))).toBe(true);
      expect(found.traces.some(({ file }) => file.includes(after.manifest.id))).toBe(false);

      const report = await prune(repository, TEST_NOW_MS, { keep: null, isErased: true });
      expect(report).toMatchObject({
        kept: [after.manifest.id],
        removed: [
          { id: asTail.manifest.id, why: 'erased' },
          { id: before.manifest.id, why: 'erased' },
        ],
        isBackupRunning: false,
      });
      expect(report.blobsRemoved).toBeGreaterThan(3);
      expect(report.restorableBefore).toMatchObject([{ from: 0 }]);
      expect(report.restorableAfter[0]!.from).toBeGreaterThan(65_536);
      const proven = await prove(repository, 'secret');
      expect(proven.traces).toEqual([]);
      expect(proven.summary.files).toBeGreaterThan(3);
      expect((await verifyRepository({ repository })).findings).toBe(0);
      await node.close();
    },
  );

  it('drops backups that hold a chunk from before a scavenge emptied an event in it, be that all that the scavenge has changed', async () => {
    const node = await openSmall(new MemoryStorage());
    const repository = await openTestRepository(new MemoryObjects());
    const scavenge = async () => {
      await node.scavenger.start({ threads: 1, throttlePercent: 100, threshold: 0 });
      await node.scavenger.idle();
    };
    await append(node, 'kept', 1);
    await append(node, 'removed', 1);
    await append(node, 'secret', 1);
    // Until the chunk of the event is complete, so that no backup has it as its tail.
    await append(node, 'kept', 20);
    const unscavenged = await backUpNode(node, repository);
    await node.store.deleteStream('removed', ANY, 'hard');
    await scavenge();
    // Its first chunk has been scavenged as well, but still has the event.
    const scavenged = await backUpNode(node, repository);
    const only = { keep: null, isErased: true } as const;
    expect((await prune(repository, TEST_NOW_MS, only)).removed).toMatchObject([
      { id: unscavenged.manifest.id, why: 'erased' },
    ]);
    expect((await prove(repository, 'secret')).summary).toMatchObject({ traces: 1, redacted: 0 });
    await node.store.deleteStream('secret', ANY, 'soft');
    await scavenge();
    const emptied = await backUpNode(node, repository);
    const [before, after] = [scavenged, emptied].map(({ manifest }) => manifest.chunks[0]!);
    expect(after).toMatchObject({ sizeBytes: before!.sizeBytes, isScavenged: true });
    expect(await prune(repository, TEST_NOW_MS, only)).toMatchObject({
      kept: [emptied.manifest.id],
      removed: [{ id: scavenged.manifest.id, why: 'erased' }],
    });
    expect(await prove(repository, 'secret')).toMatchObject({ traces: [], summary: { traces: 0, redacted: 1 } });
    expect((await verifyRepository({ repository })).findings).toBe(0);
    await node.close();
  });

  it('finds what is left in blobs without use, in tails and in what was shipped', async () => {
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects);
    const log = new FakeLog();
    log.write(1, 100);
    const { id } = await log.backUp(repository, TEST_NOW_MS);
    expect((await prove(repository, 'stream')).traces).toMatchObject([
      { file: expect.stringContaining(`chunk-000000.000000 in backup ${id}`) },
    ]);
    const from = log.end;
    log.write(2, 100);
    await repository.ship({ manifestId: id, from, to: log.end, shippedMs: 1 }, await log.read(from, log.end));
    expect((await prove(repository, 'stream')).traces).toHaveLength(3);
    await repository.removeManifest(id);
    expect((await prove(repository, 'stream')).traces).toMatchObject([{ file: expect.stringContaining('unused-') }]);
  });

  it('marks what could not go beside a backup, so that the next prune removes it without waiting', async () => {
    const node = await openSmall(new MemoryStorage());
    const repository = await openTestRepository(new MemoryObjects());
    await append(node, 'secret', 40);
    await backUpNode(node, repository);
    await node.store.deleteStream('secret', ANY, 'hard');
    await node.scavenger.start({ threads: 1, throttlePercent: 100, threshold: 0 });
    await node.scavenger.idle();
    await backUpNode(node, repository);
    await repository.writeObject(RUNNING, { writtenMs: TEST_NOW_MS });
    expect(await prune(repository, TEST_NOW_MS, { keep: null, isErased: true })).toMatchObject({
      isBackupRunning: true,
      blobsRemoved: 0,
    });
    await repository.removeObjects([RUNNING]);
    expect((await prove(repository, 'secret')).traces.length).toBeGreaterThan(0);
    await prune(repository, TEST_NOW_MS, { keep: null });
    expect((await prove(repository, 'secret')).traces).toEqual([]);
    await node.close();
  });

  it.each([null, new Uint8Array(32).fill(9)])(
    'takes at once what an earlier prune has dropped, and what a killed backup has stored',
    async (key) => {
      const { node, repository, ids } = await scavengedAfterPrune(key);
      const before = await prove(repository, 'secret');
      expect(before.traces.length).toBeGreaterThan(0);
      expect(before.summary).toMatchObject({
        places: [{ kind: 'unused', traces: before.summary.traces }],
        backupsRunning: [],
      });
      expect(await prune(repository, TEST_NOW_MS, { keep: null, isErased: true, isDryRun: true })).toMatchObject({
        blobsWaiting: 0,
        removed: [],
      });
      const report = await prune(repository, TEST_NOW_MS, { keep: null, isErased: true });
      expect(report).toMatchObject({ kept: [ids.at(-1)], removed: [], blobsWaiting: 0, isBackupRunning: false });
      expect(report.blobsRemoved).toBeGreaterThan(0);
      expect(await prove(repository, 'secret')).toMatchObject({ traces: [], summary: { traces: 0, places: [] } });
      expect((await verifyRepository({ repository })).findings).toBe(0);
      await node.close();
    },
  );

  it('names the backup beside which nothing goes, and until when that counts', async () => {
    const { node, repository } = await scavengedAfterPrune(null);
    await repository.writeObject(RUNNING, { writtenMs: TEST_NOW_MS - 1_000 });
    const running = [{ id: RUNNING_ID, lastSignMs: TEST_NOW_MS - 1_000, countsUntilMs: TEST_NOW_MS - 1_000 + DAY_MS }];
    const found = await prove(repository, 'secret');
    expect(found.summary.backupsRunning).toEqual(running);
    expect(await prune(repository, TEST_NOW_MS, { keep: null, isErased: true, isDryRun: true })).toMatchObject({
      isBackupRunning: true,
      blobsRemoved: 0,
      backupsRunning: running,
    });
    expect(await prune(repository, TEST_NOW_MS, { keep: null, isErased: true })).toMatchObject({
      isBackupRunning: true,
      blobsRemoved: 0,
      backupsRunning: running,
    });
    // A killed one stops counting.
    expect(
      (await prune(repository, TEST_NOW_MS + DAY_MS, { keep: null, isErased: true })).blobsRemoved,
    ).toBeGreaterThan(0);
    expect((await prove(repository, 'secret')).traces).toEqual([]);
    await node.close();
  });

  it('is not misled by the clock of who makes the backup', async () => {
    let storeMs = TEST_NOW_MS;
    const repository = await openTestRepository(new MemoryObjects({ clock: { nowMs: () => storeMs } }));
    const log = new FakeLog();
    log.write(1, 100);
    const { id } = await log.backUp(repository, TEST_NOW_MS);
    await repository.removeManifest(id);
    await repository.writeObject(RUNNING, { writtenMs: TEST_NOW_MS - 10 * DAY_MS });
    expect(await prune(repository, TEST_NOW_MS, { keep: null, isErased: true })).toMatchObject({
      isBackupRunning: true,
      blobsRemoved: 0,
    });
    storeMs += 1;
    expect(await prune(repository, TEST_NOW_MS + DAY_MS, { keep: null, isErased: true })).toMatchObject({
      isBackupRunning: false,
      blobsRemoved: 1,
    });
  });

  it('wherever it is interrupted, a repeat removes the rest at once', async () => {
    const { objects, repository } = await filled();
    await prune(repository, TEST_NOW_MS);
    const erase = (opened: Repository) => prune(opened, TEST_NOW_MS, { keep: null, isErased: true });
    const counted = new FaultyObjects(objects.fork());
    await erase(await openTestRepository(counted));
    for (let n = 0; n < counted.calls.length; n++) {
      const fork = objects.fork();
      const faulty = new FaultyObjects(fork, { seed: n + 1 });
      faulty.crashAfter(n);
      await openTestRepository(faulty)
        .then(erase)
        .catch(() => {});
      const again = await openTestRepository(fork);
      expect((await verifyRepository({ repository: again })).findings, `after call ${n}`).toBe(0);
      expect(await erase(again)).toMatchObject({ blobsWaiting: 0, isBackupRunning: false });
      expect(await countOf(fork, 'blobs/'), `after call ${n}`).toBe(1);
    }
  });

  it('drops the backups of a node that is no more, and never all there are', async () => {
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects);
    const old = new FakeLog();
    old.write(2, 1_000);
    const gone = await old.backUp(repository, TEST_NOW_MS);
    const refused = { code: 'backup_not_found' };
    await expect(prune(repository, TEST_NOW_MS, { keep: null, forgottenNode: gone.nodeId })).rejects.toMatchObject(
      refused,
    );
    const node = await openSmall(new MemoryStorage());
    await append(node, 'kept', 5);
    const { manifest } = await backUpNode(node, repository, { clock: new ManualClock(TEST_NOW_MS + 10, 'microtask') });
    await expect(
      prune(repository, TEST_NOW_MS, { keep: null, forgottenNode: 'ffffffff-0000-4000-8000-000000000000' }),
    ).rejects.toMatchObject(refused);
    const found = await prove(repository, 'stream');
    expect(found.summary.places).toMatchObject([
      { kind: 'backup', backupId: gone.id, nodeId: gone.nodeId, isNewest: true },
    ]);
    expect(
      await prune(repository, TEST_NOW_MS, { keep: null, isErased: true, forgottenNode: gone.nodeId }),
    ).toMatchObject({ kept: [manifest.id], removed: [{ id: gone.id, why: 'forgotten' }] });
    expect((await prove(repository, 'stream')).traces).toEqual([]);
    expect(await danglingIn(objects)).toEqual([]);
    await node.close();
  });
});

/**
 * A node that was scavenged after a plain prune had dropped the backup with what is erased now; and blobs of a backup
 * that came to no manifest.
 */
async function scavengedAfterPrune(
  key: Uint8Array | null,
): Promise<{ node: Awaited<ReturnType<typeof openSmall>>; repository: Repository; ids: string[] }> {
  const node = await openSmall(new MemoryStorage());
  const repository = await openTestRepository(new MemoryObjects(), { key, compression: key === null ? 'off' : 'on' });
  await append(node, 'kept', 5);
  await append(node, 'secret', 20);
  const first = await backUpNode(node, repository);
  await append(node, 'kept', 20);
  await append(node, 'secret', 1);
  const killed = await backUpNode(node, repository);
  await repository.removeManifest(killed.manifest.id);
  await node.store.deleteStream('secret', ANY, 'hard');
  await append(node, 'kept', 20);
  await node.scavenger.start({ threads: 1, throttlePercent: 100, threshold: 0 });
  await node.scavenger.idle();
  const last = await backUpNode(node, repository, { clock: new ManualClock(TEST_NOW_MS + 10, 'microtask') });
  // As a node does by itself, with its Backup:KeepLast.
  await prune(repository, TEST_NOW_MS);
  return { node, repository, ids: [first.manifest.id, last.manifest.id] };
}
