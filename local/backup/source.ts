import * as path from 'node:path';
import { snapshotOfDirectory } from '../../core/store/snapshot/snapshot.ts';
import type { BackupSource } from '../../core/store/api.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import type { Io } from '../../infra/runtime/io.ts';
import { EXIT, line } from '../../infra/runtime/io.ts';
import { requireDirectory } from '../cli/data-directory.ts';
import { createLog } from '../log/logger.ts';
import { openForInspection } from '../store/inspect-directory.ts';
import type { OpenedForInspection } from '../store/inspect-directory.ts';
import { AnswerError, NodeClient } from '../cli/node-client.ts';
import { bundledWorker } from '../../infra/runtime/version.ts';
import { openHttpSource } from './http-source.ts';
import { whileNoScavenge } from './pause-scavenge.ts';

export interface SourceOptions {
  readonly node: string | null;
  readonly ca: string | null;
  readonly db: string | null;
  readonly index: string | null;
  readonly 'pause-scavenge': boolean;
}

/** Throws a UsageError where node and directory are both named, or what belongs to one is given for the other. */
export function checkSource(wanted: SourceOptions): void {
  if (wanted.db !== null && wanted.node !== null)
    throw new UsageError('Name a running node with --node or a stopped directory with --db, not both.');
  if (wanted.db !== null && wanted.ca !== null)
    throw new UsageError('--ca is for running nodes: a directory has no certificate.');
  if (wanted.db !== null && wanted['pause-scavenge'])
    throw new UsageError('--pause-scavenge is for running nodes: in a stopped directory no scavenge runs.');
  if (wanted.db === null && wanted.index !== null)
    throw new UsageError('--index needs --db: a running node knows where its index is.');
}

/**
 * Runs `work` with the files of a node, and lets go of them whatever happens. `jobs` reach those of a stopped
 * directory.
 */
export async function withSource<T>(
  wanted: SourceOptions,
  io: Io,
  signal: AbortSignal,
  work: (source: BackupSource, jobs: Jobs | null) => Promise<T>,
): Promise<T> {
  const over = wanted.db === null ? null : await overOf(wanted.db, wanted.index, io);
  const open =
    wanted.db === null ? () => heldFiles(node, signal) : () => stoppedFiles(wanted.db!, wanted.index, over, io);
  const node = wanted.db === null ? NodeClient.of(wanted, io.env) : null!;
  const backUp = async () => {
    const source = await open();
    // Threads read the directory itself, and not what stands over it.
    const jobs = wanted.db === null || over !== null ? null : jobsOver(wanted.db, wanted.index);
    try {
      signal.throwIfAborted();
      return await work(source, jobs);
    } finally {
      await jobs?.close();
      await source.release();
    }
  };
  try {
    if (!wanted['pause-scavenge']) return await backUp();
    return await whileNoScavenge(
      { node, clock: systemClock, signal, tell: (message) => line(io.stderr, message) },
      backUp,
    );
  } finally {
    await over?.remove();
  }
}

function jobsOver(db: string, index: string | null): WorkerJobs {
  const { root, indexRoot } = new FilesystemStorage({ root: db, ...(index !== null && { indexRoot: index }) });
  return new WorkerJobs({ root, indexRoot, isOffline: true, ...bundledWorker() });
}

async function heldFiles(node: NodeClient, signal: AbortSignal): Promise<BackupSource> {
  try {
    return await openHttpSource({ node, clock: systemClock, signal });
  } catch (error) {
    if (error instanceof AnswerError && error.code === 'scavenge_in_progress') {
      throw new CommandError(
        error.code,
        `${error.message} Files are not copied while a scavenge replaces them: wait until it has finished, or add --pause-scavenge.`,
        EXIT.refused,
      );
    }
    throw error;
  }
}

/** Where the directory can't be written to; null else. */
async function overOf(db: string, index: string | null, io: Io): Promise<OpenedForInspection | null> {
  const root = path.resolve(db);
  await requireDirectory(root);
  return openForInspection(root, index, true, io);
}

async function stoppedFiles(
  db: string,
  index: string | null,
  over: OpenedForInspection | null,
  io: Io,
): Promise<BackupSource> {
  const root = path.resolve(db);
  const storage =
    over?.storage ?? new FilesystemStorage({ root, mustExist: true, ...(index !== null && { indexRoot: index }) });
  try {
    return await snapshotOfDirectory({
      storage,
      clock: systemClock,
      ids: systemIds,
      digests: nodeDigests,
      log: createLog(io, 'warn'),
    });
  } catch (error) {
    if (isSkuaError(error, 'directory_locked'))
      throw new CommandError(
        error.code,
        `${error.message} For a running node use --node URL instead of --db.`,
        EXIT.unreachable,
      );
    if (isSkuaError(error, 'file_not_found'))
      throw new CommandError('not_a_data_directory', `${error.message} Directory: ${root}.`, EXIT.unreachable);
    throw error;
  }
}
