import { randomBytes } from 'node:crypto';
import { loadIndexMap } from '../../core/index/index-map.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import type { RunFiles, RunSettings } from '../../core/scavenge/run-files.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { chunkNames } from './scavenge-data.ts';

/** What jobs of a scavenge are given for a stopped directory, up to the start of its last chunk. */
export interface JobBench {
  readonly jobs: Jobs;
  files: RunFiles;
  settings: RunSettings;
  newTarget(kind: string): { target: string; chunkId: Uint8Array };
}

export async function jobBench(folder: string, chunkSize: number): Promise<JobBench> {
  const storage = new FilesystemStorage({ root: folder });
  const map = (await loadIndexMap(storage, nodeDigests))!;
  const names = chunkNames(folder);
  const last = Number(names.at(-1)!.slice(6, 12));
  const files: RunFiles = {
    chunkSize,
    chunks: names.slice(0, -1).map((name) => ({ name, ongoingBytes: null })),
    tables: map.levels.flatMap((tables) => tables.toReversed().map((name) => `index/${name}`)),
    memTables: [],
  };
  const settings: RunSettings = {
    point: { position: last * chunkSize, eventNumber: 0, effectiveNowMs: Date.now(), threshold: 0 },
    unsafeIgnoreHardDelete: false,
    state: { pageSizeBytes: 16_384, cacheBytes: 67_108_864, hashUsersCacheEntries: 100_000 },
    throttle: { percent: 100, elapsedMs: 0, restedMs: 0 },
  };
  return {
    jobs: new WorkerJobs({ root: storage.root, indexRoot: storage.indexRoot }),
    files,
    settings,
    newTarget: (kind) => ({ target: `${randomBytes(16).toString('hex')}.${kind}.tmp`, chunkId: randomBytes(16) }),
  };
}

