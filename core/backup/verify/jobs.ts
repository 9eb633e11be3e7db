import { TABLE_JOBS } from '../../index/jobs/jobs.ts';
import { LOG_JOBS } from '../../log/scrub/scrub.ts';
import { InlineJobs } from '../../memory/inline-jobs.ts';
import { silentLog } from '../../ports/log.ts';
import { silentMeter } from '../../ports/meter.ts';
import type { Job, JobContext } from '../../ports/jobs.ts';
import { openForJob, type RepositorySpec } from '../repository/repository.ts';
import { drillBackup, type DrillReport } from './drill.ts';
import { verifyRepository, type RepositoryFinding, type VerifyRepositoryReport } from './verify.ts';

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

async function verifyJob({ subset, seed, nowMs, ...spec }: VerifyRepositoryArgs, context: JobContext): Promise<VerifiedRepository> {
  const { repository } = await openForJob(spec, false, nowMs, context);
  const ending = new AbortController();
  const list: RepositoryFinding[] = [];
  let errors = 0;
  try {
    const report = await endedWith(ending, context, verifyRepository({
      repository, subset, seed, signal: ending.signal,
      onFinding: (finding) => {
        if (finding.kind !== 'unknown') errors++;
        if (list.length < FINDINGS_MAX) list.push(finding);
      },
      onProgress: (done, total) => context.progress({ done, total, unit: 'bytes' }),
    }));
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
  const jobs = new InlineJobs({ jobs: { ...TABLE_JOBS, ...LOG_JOBS }, storage, digests, ids, clock, scavengeStates, ...(backup !== undefined && { backup }) });
  try {
    return await endedWith(ending, context, drillBackup({
      repository, ids, digests, clock, signal: ending.signal, choice: backupId === null ? { kind: 'latest' } : { kind: 'backup', id: backupId },
      start: { jobs, log: silentLog, meter: silentMeter, scavengeStates }, scratch: () => Promise.resolve({ storage, remove: () => Promise.resolve() }),
      onProgress: ({ bytesDone, bytesTotal }) => context.progress({ done: bytesDone, total: bytesTotal, unit: 'bytes' }),
    }));
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

export const CHECK_JOBS: Readonly<Record<string, Job>> = { [VERIFY_REPOSITORY_JOB]: verifyJob as Job, [DRILL_JOB]: drillJob as Job };
