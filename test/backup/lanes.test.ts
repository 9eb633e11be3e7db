import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createBackup } from '../../core/backup/create/create.ts';
import type { CreatedBackup } from '../../core/backup/create/create.ts';
import { STORE_PART_JOB } from '../../core/backup/create/store-part.ts';
import { blobKeyOf } from '../../core/backup/repository/repository.ts';
import type { BackupLanes } from '../../core/backup/repository/repository.ts';
import { RESTORE_FILE_JOB } from '../../core/backup/restore/restore-files.ts';
import type { RestoreFileArgs } from '../../core/backup/restore/restore-files.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { snapshotOfDirectory } from '../../core/store/snapshot/snapshot.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { JobOptions, Jobs } from '../../core/ports/jobs.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { backUpSource, danglingIn, filesOf } from '../support/backup/backup-kit.ts';
import { logText, restoreOptions, verifyErrors } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { append, openSmall } from './hold-kit.ts';

const PLACE = { kind: 'directory', path: 'memory' } as const;

/** Jobs on the test's own thread, which count by name how many were run. */
function lanesOver(
  storage: Storage,
  objects: ObjectStore,
  key: Uint8Array | null = null,
): BackupLanes & { readonly runs: Map<string, number> } {
  const inline = new InlineJobs({
    jobs: JOBS,
    storage,
    digests: nodeDigests,
    ids: new SeededIds(8),
    clock: new ManualClock(TEST_NOW_MS, 'microtask'),
    backup: { keys: nodeKeys, compression: nodeCompression, openObjects: async () => objects },
  });
  const runs = new Map<string, number>();
  const jobs: Jobs = {
    run: (name: string, args: unknown, options?: JobOptions) => {
      runs.set(name, (runs.get(name) ?? 0) + 1);
      return inline.run(name, args, options);
    },
    close: () => inline.close(),
  };
  return { jobs, runs, repository: { place: PLACE, key, compression: 'off' }, bytesMin: 10_000 };
}

async function stopped(storage: Storage, events = 60): Promise<Storage> {
  const node = await openSmall(storage);
  await append(node, 'a', events);
  await node.close();
  return storage;
}

async function backUp(
  storage: Storage,
  objects: ObjectStore,
  more: Partial<Parameters<typeof createBackup>[0]> = {},
  key: Uint8Array | null = null,
): Promise<CreatedBackup> {
  const source = await snapshotOfDirectory({
    storage,
    clock: new ManualClock(TEST_NOW_MS, 'microtask'),
    ids: new SeededIds(3),
    digests: nodeDigests,
    log: silentLog,
  });
  try {
    return await backUpSource(source, await openTestRepository(objects, { key }), more);
  } finally {
    await source.release();
  }
}

describe('a backup whose large files are stored in lanes', () => {
  for (const key of [null, new Uint8Array(32).fill(9)]) {
    it(`is the same backup as without them (${key === null ? 'plain' : 'encrypted'}), and is restored in lanes`, async () => {
      const storage = await stopped(new MemoryStorage());
      const [plain, objects] = [new MemoryObjects(), new MemoryObjects()];
      const expected = await backUp(storage, plain, {}, key);
      const lanes = lanesOver(storage, objects, key);
      const told: number[] = [];
      const made = await backUp(
        storage,
        objects,
        { lanes, onProgress: ({ bytesDone, bytesTotal }) => told.push(bytesDone / bytesTotal) },
        key,
      );
      expect(lanes.runs.get(STORE_PART_JOB)).toBeGreaterThan(3);
      const { id: _, ...manifest } = expected.manifest;
      // The key has an id of its own in each repository, and so have blobs in an encrypted one.
      if (key === null) expect(made.manifest).toMatchObject(manifest);
      expect(made.report).toMatchObject({
        files: expected.report.files,
        sizeBytes: expected.report.sizeBytes,
        blobsStored: expected.report.blobsStored,
        bytesNew: expected.report.bytesNew,
      });
      expect(told.at(-1)).toBe(1);
      expect(told.every((part, i) => part >= (told[i - 1] ?? 0))).toBe(true);
      expect(await danglingIn(objects, key)).toEqual([]);

      const target = new MemoryStorage();
      const back = lanesOver(target, objects, key);
      const seen: number[] = [];
      await restoreBackup(
        restoreOptions(await openTestRepository(objects, { key }), target, {
          lanes: back,
          onProgress: ({ phase, bytesDone, bytesTotal }) => {
            if (phase === 'copying') seen.push(bytesDone / bytesTotal);
          },
        }),
      );
      expect(seen.at(-1)).toBeGreaterThan(0.95);
      expect(seen.every((part, i) => part <= 1 && part >= (seen[i - 1] ?? 0))).toBe(true);
      expect(back.runs.get(RESTORE_FILE_JOB)).toBeGreaterThan(2);
      expect(await logText(target)).toEqual(await logText(storage));
      expect(await verifyErrors(target)).toEqual([]);
    });
  }

  it('leaves no manifest that points to something missing, wherever it is interrupted', async () => {
    const storage = await stopped(new MemoryStorage(), 30);
    const counted = new FaultyObjects(new MemoryObjects());
    await backUp(storage, counted, { lanes: lanesOver(storage, counted), parallel: 1 });
    const calls = counted.calls.length;
    expect(calls).toBeGreaterThan(20);
    for (let n = 0; n < calls; n++) {
      const objects = new MemoryObjects();
      const faulty = new FaultyObjects(objects, { seed: n + 1 });
      faulty.crashAfter(n);
      const failure = await backUp(storage, faulty, { lanes: lanesOver(storage, faulty), parallel: 1 }).then(
        () => null,
        (error: { code: string }) => error.code,
      );
      // The intent is removed last of all, and a backup is none the worse for what it leaves there.
      if (faulty.calls.at(-1)?.key.startsWith('active/') !== true) expect(failure, `call ${n}`).toBe('storage_crashed');
      expect(await danglingIn(objects), `after call ${n}`).toEqual([]);
      await backUp(storage, objects, { lanes: lanesOver(storage, objects) });
      expect(await danglingIn(objects)).toEqual([]);
    }
  });

  it('stores a blob anew that a check found damaged', async () => {
    const storage = await stopped(new MemoryStorage());
    const objects = new MemoryObjects();
    const { manifest } = await backUp(storage, objects);
    const key = blobKeyOf(manifest.chunks[1]!.blob);
    const sound = (await objects.get(key))!.slice();
    const bad = sound.slice();
    bad[bad.length >> 1]! ^= 1;
    await objects.put(key, bad);
    await (await openTestRepository(objects)).writeObject('suspect', { blobs: [manifest.chunks[1]!.blob] });
    await backUp(storage, objects, { lanes: lanesOver(storage, objects) });
    const target = new MemoryStorage();
    await restoreBackup(
      restoreOptions(await openTestRepository(objects), target, { lanes: lanesOver(target, objects) }),
    );
    expect(await logText(target)).toEqual(await logText(storage));
  });

  it('does not use them where there is a limit of bytes a second', async () => {
    const storage = await stopped(new MemoryStorage());
    const objects = new MemoryObjects();
    const lanes = lanesOver(storage, objects);
    await backUp(storage, objects, { lanes, throttleBytesPerSecond: 1e9 });
    expect(lanes.runs.size).toBe(0);
  });

  it('ends in the middle of a file when it is aborted, and so does its restore', async () => {
    const storage = new MemoryStorage();
    const node = await openSmall(storage, { chunkSizeBytes: 4_194_304 });
    await append(node, 'a', 300);
    await node.close();
    const objects = new MemoryObjects();
    for (const at of [0, 0.4]) {
      const abort = new AbortController();
      let last = 0;
      const onProgress = ({ bytesDone, bytesTotal }: { bytesDone: number; bytesTotal: number }): void => {
        if (abort.signal.aborted) last = Math.max(last, bytesDone);
        if (bytesDone > bytesTotal * at) abort.abort();
      };
      await expect(
        backUp(storage, objects, { lanes: lanesOver(storage, objects), signal: abort.signal, onProgress, parallel: 1 }),
      ).rejects.toMatchObject({ code: 'aborted' });
      expect(last).toBeLessThan(3_000_000);
    }
    expect(await danglingIn(objects)).toEqual([]);
    await backUp(storage, objects);
    const target = new MemoryStorage();
    const abort = new AbortController();
    const { jobs, repository } = lanesOver(target, objects);
    // What a lane is given ends it: nothing else is under way here.
    const told: number[] = [];
    const [segment] = (await (await openTestRepository(objects)).manifest('latest')).tail!.segments;
    const args: RestoreFileArgs = {
      repository,
      path: 'chunk-000000.000000',
      ref: segment!,
      at: null,
      isSealed: false,
      nowMs: TEST_NOW_MS,
    };
    await expect(
      jobs.run(RESTORE_FILE_JOB, args, {
        signal: abort.signal,
        onProgress: ({ done }) => {
          told.push(done);
          abort.abort();
        },
      }),
    ).rejects.toMatchObject({ code: 'aborted' });
    expect(told).toHaveLength(1);
    expect(told[0]).toBeLessThan(segment!.sizeBytes);
  });

  it('is restored with no more files at a time than were asked for', async () => {
    const storage = await stopped(new MemoryStorage());
    const objects = new MemoryObjects();
    await backUp(storage, objects);
    for (const parallel of [1, 3]) {
      const target = new MemoryStorage();
      let [open, most] = [0, 0];
      const create = target.create.bind(target);
      target.create = async (path) => {
        const file = await create(path);
        const close = file.close.bind(file);
        // `writer.chk` is written last; then a store is opened, which has an index table and its bloom filter open
        // together.
        if ((await target.size('writer.chk')) === null) most = Math.max(most, open + 1);
        open++;
        file.close = async () => {
          open--;
          await close();
        };
        return file;
      };
      await restoreBackup(restoreOptions(await openTestRepository(objects), target, { parallel }));
      expect(most).toBe(parallel);
    }
  });

  it('gives its signal to the lanes of a restore', async () => {
    const storage = await stopped(new MemoryStorage());
    const objects = new MemoryObjects();
    await backUp(storage, objects);
    const target = new MemoryStorage();
    const lanes = lanesOver(target, objects);
    const { signal } = new AbortController();
    const signals: unknown[] = [];
    const jobs: Jobs = {
      run: (name, args, options) => {
        signals.push(options?.signal);
        return lanes.jobs.run(name, args, options);
      },
      close: async () => {},
    };
    await restoreBackup(
      restoreOptions(await openTestRepository(objects), target, { lanes: { ...lanes, jobs }, signal }),
    );
    expect(new Set(signals)).toEqual(new Set([signal]));
  });

  it('leaves to the snapshot what a running node goes on changing', async () => {
    const storage = new MemoryStorage();
    const node = await openSmall(storage);
    await append(node, 'a', 40);
    const hold = await node.hold();
    await append(node, 'b', 60);
    const objects = new MemoryObjects();
    const repository = await openTestRepository(objects);
    const { manifest } = await backUpSource(hold, repository, {
      lanes: { ...lanesOver(storage, objects), bytesMin: 1 },
    });
    const files = await filesOf(repository, manifest);
    for (const { path, content } of hold.snapshot.files)
      if (content !== undefined && files.has(path)) expect(files.get(path), path).toEqual(new Uint8Array(content));
    expect(files.has('index/indexmap')).toBe(true);
    await hold.release();
    await node.close();
  });

  it('is refused when it is damaged, with the name of the object', async () => {
    const storage = await stopped(new MemoryStorage());
    const objects = new MemoryObjects();
    const { manifest } = await backUp(storage, objects);
    const key = blobKeyOf(manifest.chunks[1]!.blob);
    const bad = (await objects.get(key))!.slice();
    bad[5_000]! ^= 1;
    await objects.put(key, bad);
    const repository = await openTestRepository(objects);
    const target = new MemoryStorage();
    await expect(
      restoreBackup(restoreOptions(repository, target, { lanes: lanesOver(target, objects) })),
    ).rejects.toMatchObject({ code: 'repository_damaged', data: { key } });
    const other = new MemoryStorage();
    const report = await restoreBackup(
      restoreOptions(repository, other, { lanes: lanesOver(other, objects), allowDamaged: true }),
    );
    expect(report.skipped[0]).toMatchObject({ key, path: manifest.chunks[1]!.path });
  });

  it('gives the log before a damaged part of its end where damage is allowed', async () => {
    const storage = new MemoryStorage();
    const objects = new MemoryObjects();
    for (const stream of ['a', 'b']) {
      const node = await openSmall(storage, { chunkSizeBytes: 4_194_304 });
      await append(node, stream, 60);
      await node.close();
      await backUp(storage, objects);
    }
    const manifest = await (await openTestRepository(objects)).manifest('latest');
    const [first, second] = manifest.tail!.segments;
    const key = blobKeyOf(second!.blob);
    const bad = (await objects.get(key))!.slice();
    bad[bad.length - 100]! ^= 1;
    await objects.put(key, bad);
    const target = new MemoryStorage();
    const lanes = lanesOver(target, objects);
    const refused = new MemoryStorage();
    await expect(
      restoreBackup(restoreOptions(await openTestRepository(objects), refused, { lanes: lanesOver(refused, objects) })),
    ).rejects.toMatchObject({ code: 'repository_damaged', data: { key } });
    const report = await restoreBackup(
      restoreOptions(await openTestRepository(objects), target, { lanes, allowDamaged: true }),
    );
    expect(report.position).toBe(first!.to);
    expect(report.skipped[0]).toMatchObject({ key, lost: { from: first!.to, to: manifest.checkpoints.writer } });
    expect(lanes.runs.get(RESTORE_FILE_JOB)).toBeGreaterThan(1);
    expect(await verifyErrors(target)).toEqual([]);
  });

  it('goes through worker threads on a disk', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'skua-lanes-'));
    const workers: WorkerJobs[] = [];
    const lanesOn = (root: string): BackupLanes => {
      const jobs = new WorkerJobs({ root, indexRoot: join(root, 'index'), isOffline: true });
      workers.push(jobs);
      return {
        jobs,
        repository: { place: { kind: 'directory', path: join(folder, 'repository') }, key: null, compression: 'auto' },
        bytesMin: 10_000,
      };
    };
    try {
      const storage = await stopped(new FilesystemStorage({ root: join(folder, 'db') }), 120);
      const objects = await openObjects({ kind: 'directory', path: join(folder, 'repository') });
      const made = await backUp(storage, objects, { lanes: lanesOn(join(folder, 'db')) });
      expect(made.report.blobsStored).toBeGreaterThan(5);
      expect(await danglingIn(objects)).toEqual([]);
      const target = new FilesystemStorage({ root: join(folder, 'back') });
      const lanes = lanesOn(join(folder, 'back'));
      await restoreBackup(restoreOptions(await openTestRepository(objects), target, { lanes }));
      expect(await logText(target)).toEqual(await logText(storage));
      expect(await verifyErrors(target)).toEqual([]);
      for (const { path } of made.manifest.chunks)
        expect((await stat(join(folder, 'back', path))).mode & 0o222, path).toBe(0);
    } finally {
      for (const jobs of workers) await jobs.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
