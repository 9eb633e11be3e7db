import type { Job, JobContext } from '../../ports/jobs.ts';
import { createBackup } from '../create/create.ts';
import type { BackupReport } from '../create/create.ts';
import { STORE_PART_JOB, storePartJob } from '../create/store-part.ts';
import { summaryOf } from '../format/manifest.ts';
import type { Manifest, ManifestSummary } from '../format/manifest.ts';
import { openForJob } from '../repository/repository.ts';
import type { RepositorySpec } from '../repository/repository.ts';
import { RESTORE_FILE_JOB, restoreFileJob } from '../restore/files.ts';
import { StorageSource } from '../../store/source/source.ts';
import type { Snapshot } from '../../store/api.ts';
import { CHECK_JOBS } from '../verify/jobs.ts';

/** Name of the job that backs up a snapshot of the node's own files into a repository. */
export const BACKUP_JOB = 'backup.create';

export interface BackupJobArgs extends RepositorySpec {
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
  const { digests, ids } = context;
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
  const { repository, clock } = await openForJob(args, true, args.nowMs, context);
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

export const BACKUP_JOBS: Readonly<Record<string, Job>> = { [BACKUP_JOB]: backUp as Job, [STORE_PART_JOB]: storePartJob as Job, [RESTORE_FILE_JOB]: restoreFileJob as Job, ...CHECK_JOBS };
