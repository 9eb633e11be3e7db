import { TABLE_JOBS } from '../../index/jobs/jobs.ts';
import { LOG_JOBS } from '../../log/scrub/scrub.ts';
import { InlineJobs } from '../../memory/inline-jobs.ts';
import type { Job, JobContext } from '../../ports/jobs.ts';
import { silentLog } from '../../ports/log.ts';
import { silentMeter } from '../../ports/meter.ts';
import { createBackup } from '../create/create.ts';
import type { BackupReport } from '../create/create.ts';
import { STORE_PART_JOB, storePartJob } from '../create/store-part.ts';
import { drillBackup } from '../drill/drill.ts';
import type { DrillReport } from '../drill/drill.ts';
import { summaryOf } from '../format/snapshot-manifest.ts';
import type { Manifest, ManifestSummary } from '../format/snapshot-manifest.ts';
import { openForJob } from '../repository/repository.ts';
import type { RepositorySpec } from '../repository/repository.ts';
import { RESTORE_FILE_JOB, restoreFileJob } from '../restore/restore-files.ts';
import { StorageSource } from '../../store/source/source.ts';
import type { Snapshot } from '../../store/api.ts';
import { verifyRepository } from '../verify/verify.ts';
import type { RepositoryFinding, VerifyRepositoryReport } from '../verify/verify.ts';

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

/**
 * Progress is told in bytes of the files. Rejects as `createBackup` does, and with what opening the repository rejects
 * with.
 */
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
      source: new StorageSource(context.storage, args.snapshot, { onPiece }),
      repository,
      cause: args.cause,
      clock,
      ids,
      digests,
      known: args.known,
      ...(args.backupId !== undefined && { backupId: args.backupId }),
      ...(args.parallel !== undefined && { parallel: args.parallel }),
      throttleBytesPerSecond: args.throttleBytesPerSecond ?? 0,
      signal: ending.signal,
      onProgress: ({ bytesDone, bytesTotal }) =>
        context.progress({ done: bytesDone, total: bytesTotal, unit: 'bytes' }),
    });
    return { summary: summaryOf(manifest, null), manifest, report };
  } finally {
    await repository.close();
  }
}

/** Checks of a repository off the request loop. */

export const VERIFY_REPOSITORY_JOB = 'backup.verify';
/** Runs over the scratch place: the storage of the job is where the backup is restored to. */
export const DRILL_JOB = 'backup.drill';

/** Findings that a report lists. */
const FINDINGS_MAX = 100;

export interface VerifyRepositoryArgs extends RepositorySpec {
  /** Above 0, to 1. */
  readonly subset: number;
  readonly seed: number;
  readonly nowMs: number;
}

export interface VerifiedRepository extends VerifyRepositoryReport {
  /** What does not belong there harms no backup, and is not counted. */
  readonly errors: number;
  /** The first ones. */
  readonly list: readonly RepositoryFinding[];
}

async function verifyJob(
  { subset, seed, nowMs, ...spec }: VerifyRepositoryArgs,
  context: JobContext,
): Promise<VerifiedRepository> {
  const { repository } = await openForJob(spec, false, nowMs, context);
  const ending = new AbortController();
  const list: RepositoryFinding[] = [];
  let errors = 0;
  try {
    const report = await endedWith(
      ending,
      context,
      verifyRepository({
        repository,
        subset,
        seed,
        signal: ending.signal,
        onFinding: (finding) => {
          if (finding.kind !== 'unknown') errors++;
          if (list.length < FINDINGS_MAX) list.push(finding);
        },
        onProgress: (done, total) => context.progress({ done, total, unit: 'bytes' }),
      }),
    );
    return { ...report, errors, list };
  } finally {
    await repository.close();
  }
}

export interface DrillArgs extends RepositorySpec {
  /** Null for the newest. */
  readonly backupId: string | null;
  readonly nowMs: number;
}

/** Bytes of the three phases follow one another in the progress: each is told as its own. */
async function drillJob({ backupId, nowMs, ...spec }: DrillArgs, context: JobContext): Promise<DrillReport> {
  const { storage, digests, ids, scavengeStates, backup } = context;
  const { repository, clock } = await openForJob(spec, false, nowMs, context);
  const ending = new AbortController();
  // The thread has nothing else to do.
  const jobs = new InlineJobs({
    jobs: { ...TABLE_JOBS, ...LOG_JOBS },
    storage,
    digests,
    ids,
    clock,
    scavengeStates,
    ...(backup !== undefined && { backup }),
  });
  try {
    return await endedWith(
      ending,
      context,
      drillBackup({
        repository,
        ids,
        digests,
        clock,
        signal: ending.signal,
        choice: backupId === null ? { kind: 'latest' } : { kind: 'backup', id: backupId },
        start: { jobs, log: silentLog, meter: silentMeter, scavengeStates },
        scratch: () => Promise.resolve({ storage, remove: () => Promise.resolve() }),
        onProgress: ({ bytesDone, bytesTotal }) =>
          context.progress({ done: bytesDone, total: bytesTotal, unit: 'bytes' }),
      }),
    );
  } finally {
    await jobs.close();
    await repository.close();
  }
}

/** How often it is asked whether the job is to end. */
const LOOK_MS = 200;

/** Looks now and then whether the job is to end, while work goes on that knows a signal only. */
async function endedWith<T>(ending: AbortController, context: JobContext, work: Promise<T>): Promise<T> {
  const done = new AbortController();
  const watching = (async () => {
    while (!done.signal.aborted) await context.sleep(LOOK_MS, done.signal);
  })().catch(() => ending.abort());
  try {
    return await work;
  } finally {
    done.abort();
    await watching;
  }
}

export const BACKUP_JOBS: Readonly<Record<string, Job>> = {
  [BACKUP_JOB]: backUp as Job,
  [STORE_PART_JOB]: storePartJob as Job,
  [RESTORE_FILE_JOB]: restoreFileJob as Job,
  [VERIFY_REPOSITORY_JOB]: verifyJob as Job,
  [DRILL_JOB]: drillJob as Job,
};
