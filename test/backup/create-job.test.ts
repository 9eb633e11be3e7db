import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BACKUP_JOB } from '../../core/backup/jobs/jobs.ts';
import type { BackupJobArgs, BackupJobResult } from '../../core/backup/jobs/jobs.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { JobProgress } from '../../core/ports/jobs.ts';
import type { StoreHold } from '../../core/store/hold/hold.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { danglingIn } from '../support/backup/backup-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { append, openSmall } from './hold-kit.ts';

const NOW_MS = 1_800_000_000_000;

function argsOf(hold: StoreHold, path: string, more: Partial<BackupJobArgs> = {}): BackupJobArgs {
  return {
    place: { kind: 'directory', path },
    key: null,
    compression: 'auto',
    cause: 'scheduled',
    snapshot: hold.snapshot,
    known: null,
    nowMs: NOW_MS,
    ...more,
  };
}

describe('the job of a backup', () => {
  let folder = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'skua-backup-job-'));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it('backs up a directory in a worker thread, and costs little when repeated', async () => {
    const root = join(folder, 'db');
    const storage = new FilesystemStorage({ root, indexRoot: join(root, 'index') });
    const jobs = new WorkerJobs({ root, indexRoot: join(root, 'index'), isOffline: true });
    const node = await openSmall(storage);
    await append(node, 'a', 60);
    const repositoryPath = join(folder, 'repository');
    const key = new Uint8Array(32).fill(3);
    const told: JobProgress[] = [];
    const hold = await node.hold();
    const first = (await jobs.run(BACKUP_JOB, argsOf(hold, repositoryPath, { key, parallel: 2 }), {
      onProgress: (progress) => told.push(progress),
    })) as BackupJobResult;
    expect(first.summary).toMatchObject({
      cause: 'scheduled',
      logEnd: hold.snapshot.checkpoints.writer,
      shippedEnd: hold.snapshot.checkpoints.writer,
    });
    expect(told.at(-1)).toEqual({ done: told.at(-1)!.total, total: told.at(-1)!.total, unit: 'bytes' });
    const again = (await jobs.run(
      BACKUP_JOB,
      argsOf(hold, repositoryPath, { key, known: first.manifest, backupId: '11111111-2222-4333-8444-555555555555' }),
    )) as BackupJobResult;
    expect(again.report.blobsStored).toBe(0);
    expect(again.summary.id).toBe('11111111-2222-4333-8444-555555555555');
    await hold.release();
    const objects = await openObjects({ kind: 'directory', path: repositoryPath });
    expect(await danglingIn(objects, key)).toEqual([]);
    const repository = await openTestRepository(objects, { key });
    expect((await repository.backups()).map(({ id }) => id)).toEqual([again.summary.id, first.summary.id]);
    await expect(jobs.run(BACKUP_JOB, argsOf(hold, repositoryPath))).rejects.toMatchObject({ code: 'repository_key' });
    await node.close();
    await jobs.close();
  });

  it('ends when it is aborted, and a repeat goes on', async () => {
    const storage = new MemoryStorage();
    const objects = new MemoryObjects();
    const clock = new ManualClock(NOW_MS, 'microtask');
    const jobs = new InlineJobs({
      jobs: JOBS,
      storage,
      digests: nodeDigests,
      ids: new SeededIds(8),
      clock,
      backup: { keys: nodeKeys, compression: nodeCompression, openObjects: async () => objects },
    });
    const node = await openSmall(storage);
    await append(node, 'a', 60);
    const hold = await node.hold();
    const abort = new AbortController();
    const onProgress = ({ done, total }: JobProgress) => {
      if (done > total / 2) abort.abort();
    };
    await expect(
      jobs.run(BACKUP_JOB, argsOf(hold, 'memory', { parallel: 1 }), { signal: abort.signal, onProgress }),
    ).rejects.toMatchObject({ code: 'aborted' });
    expect(await danglingIn(objects)).toEqual([]);
    const { report } = (await jobs.run(BACKUP_JOB, argsOf(hold, 'memory'))) as BackupJobResult;
    expect(report.blobsStored).toBeLessThan(8);
    expect(await danglingIn(objects)).toEqual([]);
    await hold.release();
    await node.close();
  });

  it('says so where there are no object stores', async () => {
    const storage = new MemoryStorage();
    const jobs = new InlineJobs({
      jobs: JOBS,
      storage,
      digests: nodeDigests,
      ids: new SeededIds(8),
      clock: new ManualClock(),
    });
    const node = await openSmall(storage);
    const hold = await node.hold();
    await expect(jobs.run(BACKUP_JOB, argsOf(hold, 'memory'))).rejects.toMatchObject({ code: 'backup_off' });
    await hold.release();
    await node.close();
  });
});
