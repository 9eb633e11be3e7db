import { SkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobContext, Jobs } from '../ports/jobs.ts';
import type { ObjectPlace } from '../ports/object-store.ts';
import type { CompressionMode, Repository } from './repository-api.ts';
import { openRepository } from './repository.ts';

/** Names a repository, so that a job can open it too. */
export interface RepositorySpec {
  readonly place: ObjectPlace;
  readonly key: Uint8Array | null;
  readonly compression: CompressionMode;
}

/**
 * Jobs that store and restore large files side by side, each on a thread of its own: one thread alone can't digest as fast as a
 * disk writes. They reach the directory that is backed up, or restored to, and the repository by itself.
 */
export interface BackupLanes {
  readonly jobs: Jobs;
  readonly repository: RepositorySpec;
  /** Smaller files are not worth a job. Default LANE_BYTES_MIN. */
  readonly bytesMin?: number;
}

export const LANE_BYTES_MIN = 4_194_304;

/** The lanes, where a file of this size is worth a job. */
export function lanesFor(lanes: BackupLanes | undefined, sizeBytes: number): BackupLanes | null {
  return lanes !== undefined && sizeBytes >= (lanes.bytesMin ?? LANE_BYTES_MIN) ? lanes : null;
}

/** The repository as a job sees it; the job closes it. `nowMs`: the time when the job was given out, for jobs have a clock without a date. */
export async function openForJob({ place, key, compression }: RepositorySpec, create: boolean, nowMs: number, context: JobContext): Promise<{ readonly repository: Repository; readonly clock: Clock }> {
  const { digests, ids, backup } = context;
  if (backup === undefined) throw new SkuaError('backup_off', 'This node has no object stores to back up to: its data is in memory only.');
  const clock = clockOf(nowMs, context);
  const world = { clock, ids, digests, keys: backup.keys, compression: backup.compression };
  return { repository: await openRepository(await backup.openObjects(place), { key, create, compression }, world), clock };
}

function clockOf(nowMs: number, context: JobContext): Clock {
  const startMs = context.monotonicMs();
  return {
    nowMs: () => nowMs + context.monotonicMs() - startMs,
    monotonicMs: () => context.monotonicMs(),
    sleep: (ms) => context.sleep(ms),
    yield: () => context.checkpoint(),
  };
}
