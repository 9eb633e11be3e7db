import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { HASHERS, type HasherName } from './hashers.ts';
import { playHistory } from './random-run.ts';
import { bySize } from '../support/run-size.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skua-scavenge-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('random histories on files, with the scavenge database in SQLite', () => {
  it.each(bySize([501], [501], [501, 502]))(
    'leave exactly what must stay, worked on by worker threads (seed %i)',
    async (seed) => {
      const indexRoot = join(folder, 'index');
      const place = {
        storage: new FilesystemStorage({ root: folder }),
        states: new SqliteScavengeStates({ indexRoot }),
        jobs: () => new WorkerJobs({ root: folder, indexRoot, threads: 1, isOffline: true }),
      };
      expect(await playHistory({ seed, place, hasher: 'plain', rounds: bySize(1, 1, 2) })).toEqual([]);
    },
  );

  it.each<[HasherName, number]>([
    ['pairs', 511],
    ['withMetastream', 512],
  ])('leave exactly what must stay when hashes collide (%s, seed %i)', async (hasher, seed) => {
    const place = {
      storage: new FilesystemStorage({ root: folder }),
      states: new SqliteScavengeStates({ indexRoot: join(folder, 'index'), hasher: HASHERS[hasher] }),
    };
    expect(await playHistory({ seed, place, hasher, rounds: 2 })).toEqual([]);
  });
});
