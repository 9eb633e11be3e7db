import { SkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { Job, JobContext } from '../ports/jobs.ts';
import type { ObjectPlace } from '../ports/object-store.ts';
import { createBackup } from './create.ts';
import type { BackupReport } from './create.ts';
import { summaryOf } from './manifests.ts';
import type { Manifest, ManifestSummary } from './manifest.ts';
import type { CompressionMode } from './repository-api.ts';
import { openRepository } from './repository.ts';
import type { Snapshot } from './source.ts';
import { StorageSource } from './storage-source.ts';

/** Name of the job that backs up a snapshot of the node's own files into a repository. */
export const BACKUP_JOB = 'backup.create';

export interface BackupJobArgs {
  readonly place: ObjectPlace;
  readonly key: Uint8Array | null;
  readonly compression: CompressionMode;
  readonly cause: Manifest['cause'];
  /** The files that it lists stay as they are until the job has ended: the caller holds them. */
  readonly snapshot: Snapshot;
  /** `manifest` of the result of this process's last backup of the same directory. */
  readonly known: Manifest | null;
  /** Text of a UUID; drawn where it is left out. */
  readonly backupId?: string;
  readonly parallel?: number;
  /** 0 for no limit. */
  readonly throttleBytesPerSecond?: number;
  /** The time when the job is given out: jobs have a clock without a date. */
  readonly nowMs: number;
}

export interface BackupJobResult {
  readonly summary: ManifestSummary;
  readonly manifest: Manifest;
  readonly report: BackupReport;
}

/** Progress is told in bytes of the files. Rejects as `createBackup` does, and with what opening the repository rejects with. */
async function backUp(args: BackupJobArgs, context: JobContext): Promise<BackupJobResult> {
  const { digests, ids, backup } = context;
  if (backup === undefined) throw new SkuaError('backup_off', 'This node has no object stores to back up to: its data is in memory only.');
  const { keys, compression } = backup;
  const clock = clockOf(args.nowMs, context);
  const ending = new AbortController();
  const onPiece = async () => {
    try {
      await context.checkpoint();
    } catch (error) {
      // The other files that are being read end at once.
      ending.abort();
      throw error;
    }
  };
  const repository = await openRepository(await backup.openObjects(args.place), { key: args.key, create: true, compression: args.compression }, { clock, ids, digests, keys, compression });
  try {
    const { manifest, report } = await createBackup({
      source: new StorageSource(context.storage, args.snapshot, { onPiece }), repository, cause: args.cause, clock, ids, digests, known: args.known,
      ...(args.backupId !== undefined && { backupId: args.backupId }), ...(args.parallel !== undefined && { parallel: args.parallel }),
      throttleBytesPerSecond: args.throttleBytesPerSecond ?? 0, signal: ending.signal,
      onProgress: ({ bytesDone, bytesTotal }) => context.progress({ done: bytesDone, total: bytesTotal, unit: 'bytes' }),
    });
    return { summary: summaryOf(manifest, null), manifest, report };
  } finally {
    await repository.close();
  }
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

export const BACKUP_JOBS: Readonly<Record<string, Job>> = { [BACKUP_JOB]: backUp as Job };
