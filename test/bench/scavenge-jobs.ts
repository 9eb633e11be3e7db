import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadIndexMap } from '../../core/index/format/index-map.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import type { RunFiles, RunSettings } from '../../core/scavenge/sources/run-settings.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { chunkNames } from './scavenge-data.ts';

/** What jobs of a scavenge are given for a stopped directory. */
export interface JobBench {
  readonly jobs: Jobs;
  readonly files: RunFiles;
  readonly settings: RunSettings;
  newTarget(kind: string): { target: string; chunkId: Uint8Array };
}

export async function jobBench(folder: string, chunkSize: number): Promise<JobBench> {
  const storage = new FilesystemStorage({ root: folder });
  const map = (await loadIndexMap(storage, nodeDigests))!;
  const names = chunkNames(folder);
  const end = Number(readFileSync(join(folder, 'writer.chk')).readBigInt64LE(0));
  const files: RunFiles = {
    chunkSize,
    chunks: names.map((name, i) => ({
      name,
      ongoingBytes: i < names.length - 1 ? null : end - Number(name.slice(6, 12)) * chunkSize,
    })),
    tables: map.levels.flatMap((tables) => tables.toReversed().map((name) => `index/${name}`)),
    memTables: [],
  };
  const settings: RunSettings = {
    point: { position: end, eventNumber: 0, effectiveNowMs: Date.now(), threshold: 0 },
    unsafeIgnoreHardDelete: false,
    keepsDeletedData: false,
    state: { pageSizeBytes: 16_384, cacheBytes: 67_108_864, hashUsersCacheEntries: 100_000 },
    throttle: { percent: 100, elapsedMs: 0, restedMs: 0 },
  };
  return {
    jobs: new WorkerJobs({ root: storage.root, indexRoot: storage.indexRoot, isOffline: true }),
    files,
    settings,
    newTarget: (kind) => ({ target: `${randomBytes(16).toString('hex')}.${kind}.tmp`, chunkId: randomBytes(16) }),
  };
}
