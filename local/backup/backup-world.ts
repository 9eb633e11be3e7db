import type { BackupLanes, RepositorySpec, RestoreWorld, RunningBackup } from '../../core/backup/api.ts';
import type { CompressionMode, Repository } from '../../core/backup/repository/api.ts';
import { openRepository } from '../../core/backup/repository/repository.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { logStrangersOnce } from '../../core/ports/object-kinds.ts';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import type { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { openObjects, parseLocation } from '../../infra/objects/open-objects.ts';
import { UsageError } from '../../infra/runtime/failure.ts';
import { line, shellWord } from '../../infra/runtime/io.ts';
import type { Io } from '../../infra/runtime/io.ts';
import { Progress } from '../cli/progress.ts';
import { listenForInterrupt } from '../cli/signals.ts';
import { bundledWorker } from '../../infra/runtime/version.ts';
import { readKeyFile } from '../cli/key-files.ts';

/** How a repository is named on the command line. */
interface LocationOptions {
  readonly 'key-file': string | null;
  readonly 's3-endpoint': string | null;
  readonly 's3-region': string | null;
}

/** The place that is named, as a UsageError where it is none. */
export function placeOf(given: string | null, option: string, wanted: LocationOptions): ObjectLocation {
  if (given === null) throw new UsageError(`Name the repository with --${option}: a directory, or s3://bucket/prefix.`);
  try {
    return parseLocation(given, { endpoint: wanted['s3-endpoint'], region: wanted['s3-region'] });
  } catch (error) {
    if (isSkuaError(error, 'bad_option')) throw new UsageError(error.message);
    throw error;
  }
}

/**
 * A further command for the repository that was given, in backticks, to be typed as it stands. `rest` is quoted where
 * it has to be.
 */
export function repositoryCommand(
  command: string,
  given: string,
  wanted: LocationOptions,
  rest: readonly string[] = [],
): string {
  const words = [command === 'restore' ? '--from' : '--repository', given];
  for (const name of ['key-file', 's3-endpoint', 's3-region'] as const)
    if (wanted[name] !== null) words.push(`--${name}`, wanted[name]);
  return `\`skua ${command} ${[...words, ...rest].map(shellWord).join(' ')}\``;
}

/** Running backups that a message lists. */
const RUNNING_SHOWN_MAX = 3;

/** `A backup is being made (…)`, as the beginning of a sentence. */
export function runningText(backups: readonly RunningBackup[]): string {
  const signs = backups
    .slice(0, RUNNING_SHOWN_MAX)
    .map(({ id, lastSignMs }) => `${id}, last heartbeat at ${new Date(lastSignMs).toISOString()}`)
    .join('; ');
  return `${backups.length === 1 ? 'A backup is being made' : `${backups.length} backups are being made`} (${signs})`;
}

/** `when it has ended`, and when one that was killed stops counting, as the end of a sentence. */
export function whenEndedText(backups: readonly RunningBackup[]): string {
  if (backups.length === 0) return 'now';
  const untilMs = Math.max(...backups.map(({ countsUntilMs }) => countsUntilMs));
  return `when ${backups.length === 1 ? 'it has' : 'they have'} ended; one that was killed is ignored from ${new Date(untilMs).toISOString()}`;
}

interface RepositoryOptions {
  readonly create?: boolean;
  readonly compression?: CompressionMode;
}

/**
 * Runs `work` with a repository and what its jobs need to open it too, and closes it whatever happens. What lies in the
 * place and is not the repository's is told on `io.stderr`.
 */
export async function withRepository<T>(
  place: ObjectLocation,
  wanted: LocationOptions,
  options: RepositoryOptions,
  io: Io,
  work: (repository: Repository, spec: RepositorySpec) => Promise<T>,
): Promise<T> {
  const key = wanted['key-file'] === null ? null : await readKeyFile(wanted['key-file']);
  const objects = await openObjects(place);
  try {
    const world = {
      clock: systemClock,
      ids: systemIds,
      digests: nodeDigests,
      keys: nodeKeys,
      compression: nodeCompression,
      onStrangers: logStrangersOnce((message) => line(io.stderr, message)),
    };
    const compression = options.compression ?? 'auto';
    const repository = await openRepository(objects, { key, create: options.create ?? false, compression }, world);
    return await work(repository, { place, key, compression });
  } finally {
    await objects.close();
  }
}

/**
 * Threads for large files, where both ends are on this machine. To a bucket, waiting takes longer than digesting, and
 * each thread would need a connection of its own.
 */
export function lanesOf(jobs: Jobs | null, repository: RepositorySpec): { lanes?: BackupLanes } {
  return jobs === null || repository.place.kind !== 'directory' ? {} : { lanes: { jobs, repository } };
}

/**
 * What restoring into a directory needs of this machine. Loaded here, since other commands on a repository do without
 * it.
 */
export async function withRestoreWorld<T>(
  target: FilesystemStorage,
  io: Io,
  work: (world: RestoreWorld) => Promise<T>,
): Promise<T> {
  const [{ WorkerJobs }, { SqliteScavengeStates }, { createLog }] = await Promise.all([
    import('../../infra/jobs/worker-jobs.ts'),
    import('../../infra/sqlite/scavenge-states.ts'),
    import('../log/logger.ts'),
  ]);
  const { root, indexRoot } = target;
  const jobs = new WorkerJobs({ root, indexRoot, isOffline: true, ...bundledWorker() });
  try {
    return await work({
      target,
      ids: systemIds,
      digests: nodeDigests,
      clock: systemClock,
      start: {
        jobs,
        log: createLog(io, 'error'),
        meter: silentMeter,
        scavengeStates: new SqliteScavengeStates({ indexRoot }),
      },
    });
  } finally {
    await jobs.close();
  }
}

/** The one backup whose id begins with what was given. Throws a UsageError where several do. */
export async function backupIdOf(repository: Repository, given: string): Promise<string> {
  const found = (await repository.backups(() => {})).filter(({ id }) => id.startsWith(given.toLowerCase()));
  if (found.length > 1)
    throw new UsageError(
      `Several backups begin with '${given}': ${found
        .slice(0, 5)
        .map(({ id }) => id)
        .join(', ')}. Give more of the id.`,
    );
  return found[0]?.id ?? given;
}

export interface Work {
  /** Aborted by Ctrl+C and SIGTERM. */
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

/**
 * Runs the work of a command with a progress bar, which Ctrl+C ends with exit code 130 and `message`. Whatever the work
 * throws because it was ended, the interruption is what is told.
 */
export async function runInterruptibly<T>(message: string, io: Io, work: (parts: Work) => Promise<T>): Promise<T> {
  const interrupt = listenForInterrupt(message, io);
  const progress = new Progress({
    io,
    onLine: (text) => line(io.stderr, text),
  });
  try {
    return await work({ signal: interrupt.signal, progress });
  } catch (error) {
    if (interrupt.signal.aborted && (isSkuaError(error, 'aborted') || error === interrupt.signal.reason))
      throw interrupt.signal.reason;
    throw error;
  } finally {
    progress.clear();
    interrupt.release();
  }
}
