import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { BackupLanes } from '../../../core/backup/repository/repository.ts';
import type { Repository } from '../../../core/backup/repository/api.ts';
import { restoreBackup } from '../../../core/backup/restore/restore.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { WorkerJobs } from '../../../infra/jobs/worker-jobs.ts';
import { SqliteScavengeStates } from '../../../infra/sqlite/scavenge-states.ts';
import { alternate, row } from '../figure.ts';
import type { Figure, Row, Settings } from '../figure.ts';
import {
  backUp,
  copyAndSync,
  megabytesIn,
  openBenchRepository,
  emptyAndSync,
  removeAndSync,
  secondsOf,
  sourceOf,
} from '../backups.ts';
import { halfDeletedLog } from '../scavenge-data.ts';

const CHUNKS = 4;
const SMALL_CHUNKS = 100;
const SMALL_CHUNK_BYTES = 262_144;
const REPEATS = 20;
const THREADS = 4;

export const backup: Figure = {
  name: 'backup',
  how: 'A stopped directory of four chunks of 256 MiB. A full backup to a repository in a new directory, and a verified restore of it into another new one, beside `cp -r` of the data directory and a sync of the file system; files are in the page cache, every copy begins on an empty place, and the worker threads have begun. A repeated backup of 100 chunks in the process that made the last one, with nothing new, beside a stat of every file and one synced write of 64 KiB: values are means of 20.',
  async run(settings) {
    const folder = join(settings.folder, 'four-chunks');
    await halfDeletedLog(folder, CHUNKS, settings.scavengeChunkBytes, settings.say);
    return [...(await whole(settings, folder)), await repeated(settings)];
  },
};

async function whole(settings: Settings, folder: string): Promise<Row[]> {
  const repository = join(settings.folder, 'backup-repository');
  const restored = join(settings.folder, 'backup-restored');
  const copy = join(settings.folder, 'backup-copy');
  const megabytes = await megabytesIn(folder);
  const clean = (): void => {
    removeAndSync(copy);
    emptyAndSync([repository, restored]);
  };
  const limit = async (): Promise<number> => {
    clean();
    return megabytes / (await secondsOf(() => copyAndSync(folder, copy)));
  };
  const source = await sourceOf(folder);
  const saving = await threadsOver(folder);
  const full = async (): Promise<number> => {
    clean();
    const opened = await openBenchRepository({ kind: 'directory', path: repository });
    try {
      return megabytes / (await secondsOf(() => backUp(opened, source, null, lanesOf(saving, repository))));
    } finally {
      await opened.close();
    }
  };
  await limit();
  await full();
  const saved = await alternate(settings.windows, limit, full);
  await full();
  await saving.close();
  await source.release();
  const kept = join(settings.folder, 'backup-kept');
  renameSync(repository, kept);
  const opened = await openBenchRepository({ kind: 'directory', path: kept });
  const restoring = await threadsOver(restored);
  const restore = async (): Promise<number> => {
    clean();
    return megabytes / (await secondsOf(() => restoreFrom(opened, restoring, lanesOf(restoring, kept), restored)));
  };
  await restore();
  const restoredRates = await alternate(settings.windows, limit, restore);
  await restoring.close();
  await opened.close();
  for (const path of [repository, restored, copy]) removeAndSync(path);
  return [
    row('full backup to a directory', 'MB/s', saved, { kind: 'at least', value: 0.7 }),
    row('restore from a directory, verified', 'MB/s', restoredRates, { kind: 'at least', value: 0.5 }),
  ];
}

/** With the start that proves the result. */
function restoreFrom(repository: Repository, jobs: WorkerJobs, lanes: BackupLanes, folder: string): Promise<unknown> {
  const target = new FilesystemStorage({ root: folder, isOffline: true });
  return restoreBackup({
    repository,
    lanes,
    choice: { kind: 'latest' },
    target,
    ids: systemIds,
    digests: nodeDigests,
    clock: systemClock,
    start: {
      jobs,
      log: silentLog,
      meter: silentMeter,
      scavengeStates: new SqliteScavengeStates({ indexRoot: target.indexRoot }),
    },
  });
}

/** Threads that have begun: what that takes does not grow with the data. */
async function threadsOver(root: string): Promise<WorkerJobs> {
  const jobs = new WorkerJobs({ root, indexRoot: join(root, 'index'), isOffline: true });
  await Promise.all(Array.from({ length: THREADS }, () => jobs.run('backup.none', null).catch(() => {})));
  return jobs;
}

function lanesOf(jobs: WorkerJobs, repository: string): BackupLanes {
  return { jobs, repository: { place: { kind: 'directory', path: repository }, key: null, compression: 'auto' } };
}

async function repeated(settings: Settings): Promise<Row> {
  const folder = join(settings.folder, 'backup-small');
  await halfDeletedLog(folder, SMALL_CHUNKS, SMALL_CHUNK_BYTES, settings.say);
  const opened = await openBenchRepository({
    kind: 'directory',
    path: join(settings.folder, 'backup-small-repository'),
  });
  const source = await sourceOf(folder);
  try {
    let { manifest } = await backUp(opened, source);
    const again = async (): Promise<number> => {
      const begin = performance.now();
      for (let i = 0; i < REPEATS; i++) {
        const { manifest: next, report } = await backUp(opened, source, manifest);
        if (report.blobsStored > 0)
          throw new Error(`${report.blobsStored} blobs were stored anew though nothing has changed.`);
        manifest = next;
      }
      return (performance.now() - begin) / REPEATS;
    };
    const files = [folder, join(folder, 'index')].flatMap((inside) =>
      readdirSync(inside).map((name) => join(inside, name)),
    );
    const scratch = join(settings.folder, 'backup-small-limit');
    mkdirSync(scratch);
    const limit = (): number => {
      const begin = performance.now();
      for (let i = 0; i < REPEATS; i++) {
        for (const path of files) statSync(path);
        writeSynced(join(scratch, `${i}`));
      }
      const ms = (performance.now() - begin) / REPEATS;
      for (let i = 0; i < REPEATS; i++) rmSync(join(scratch, `${i}`));
      return ms;
    };
    limit();
    await again();
    return row(
      'repeated backup with nothing new, 100 chunks, in process',
      'ms',
      await alternate(settings.windows, limit, again),
      { kind: 'at most', value: 10 },
      [`${source.snapshot.files.length} files`],
    );
  } finally {
    await source.release();
    await opened.close();
  }
}

const BYTES = new Uint8Array(65_536);

function writeSynced(path: string): void {
  const file = openSync(path, 'w');
  writeSync(file, BYTES);
  fsyncSync(file);
  closeSync(file);
}
