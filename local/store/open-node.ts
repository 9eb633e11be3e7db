import { stat } from 'node:fs/promises';
import * as path from 'node:path';
import { isSkuaError } from '../../core/errors.ts';
import { JOBS } from '../../core/workers/jobs.ts';
import { existenceBytesOf } from '../../core/backup/restore/directory.ts';
import { InlineJobs } from '../../core/ports/inline-jobs.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/ports/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { ScavengeStates } from '../../core/ports/scavenge-state.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { openStore } from '../../core/store/open-store.ts';
import type { OpenStore, OpenStoreOptions, StartProgress, StoreScavengeOptions } from '../../core/store/open-store.ts';
import { systemClock } from '../../infra/clock.ts';
import { nodeCompression } from '../../infra/compression.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/ids.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { nodeKeys } from '../../infra/keys.ts';
import { openObjects } from '../../infra/objects/open.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { requireDirectory } from '../cli/directory.ts';
import { CommandError } from '../cli/failure.ts';
import { EXIT, line } from '../cli/io.ts';
import type { Io } from '../cli/io.ts';
import { Progress } from '../cli/progress.ts';
import type { Phases } from '../cli/progress.ts';
import { bundledWorker } from '../cli/version.ts';
import { createLog } from '../log/logger.ts';

/** How the node scavenges; what is left out has its default. */
type ScavengeSettings = NonNullable<StoreScavengeOptions['config']>;

export interface OpenNodeOptions {
  /** Data directory; null keeps everything in memory. */
  readonly db: string | null;
  /** Folder of the index; null for `index` in the data directory. */
  readonly index: string | null;
  /** False creates the directory where it is absent. */
  readonly mustExist: boolean;
  readonly log: Log;
  /** What else the store is opened with. */
  readonly store: Pick<OpenStoreOptions, 'log' | 'index' | 'cacheBytes'> & { readonly scavenge?: ScavengeSettings };
  readonly meter?: Meter;
  /** The time of what is stored. Default: the system's. */
  readonly clock?: Clock;
  readonly onProgress?: (progress: StartProgress) => void;
}

export interface OpenNode {
  readonly open: OpenStore;
  /** The files of the store, and what runs jobs on them. */
  readonly storage: Storage;
  readonly jobs: Jobs;
  /** Closes the store and ends its workers. */
  close(): Promise<void>;
}

/** Opens the store of a directory, or one in memory, with all that it needs of this machine. */
export function openNode(options: OpenNodeOptions): Promise<OpenNode> {
  return openNodeBy(options, openStore);
}

/** As `openNode`, for a store that `opener` opens in the directory. */
export async function openNodeBy<S extends OpenStore>(options: OpenNodeOptions, opener: (options: OpenStoreOptions) => Promise<S>): Promise<OpenNode & { readonly open: S }> {
  const { storage, jobs, scavengeStates } = worldOf(options);
  try {
    const open = await opener({
      ...options.store,
      world: { storage, jobs, clock: options.clock ?? systemClock, ids: systemIds, digests: nodeDigests, log: options.log, meter: options.meter ?? silentMeter },
      scavenge: { config: options.store.scavenge ?? {}, ...(scavengeStates !== null && { states: scavengeStates }) },
      ...(options.onProgress && { onProgress: options.onProgress }),
    });
    const close = async () => {
      await open.close();
      await jobs.close();
    };
    return { open, storage, jobs, close };
  } catch (error) {
    await jobs.close();
    throw error;
  }
}

function worldOf({ db, index, mustExist, clock = systemClock }: OpenNodeOptions): { storage: Storage; jobs: Jobs; scavengeStates: ScavengeStates | null } {
  if (db === null) {
    const storage = new MemoryStorage();
    // Jobs and store find the scavenge database of this storage in memory.
    return { storage, jobs: new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids: systemIds, clock, backup: { keys: nodeKeys, compression: nodeCompression, openObjects } }), scavengeStates: null };
  }
  const storage = new FilesystemStorage({ root: db, mustExist, ...(index !== null && { indexRoot: index }) });
  const { root, indexRoot } = storage;
  return { storage, jobs: new WorkerJobs({ root, indexRoot, ...bundledWorker() }), scavengeStates: new SqliteScavengeStates({ indexRoot }) };
}

const LABELS: Readonly<Record<StartProgress['phase'], string>> = { 'catching-up': 'catching up with the log', 'recovering-log': 'recovering the log', 'rebuilding-index': 'rebuilding the index', 'verifying-index': 'verifying the index' };
const PHASES: Phases = { [LABELS['recovering-log']]: 20, [LABELS['verifying-index']]: 15, [LABELS['rebuilding-index']]: 65 };

/** How far the opening of a store is, for a bar. */
export function openingState({ phase, bytesDone, bytesTotal }: StartProgress) {
  return { label: LABELS[phase], phases: PHASES, bytesDone, bytesTotal };
}

interface DirectoryUse {
  /** What to do where the node is not stopped. */
  readonly whileRunning?: string;
  /** Nothing is appended to its log: so the copy of a member of a cluster may be opened too. */
  readonly appendsNothing?: boolean;
}

/** Opens the directory of a stopped node as that node would, but for its start record. */
export async function openDirectory(directory: string, index: string | null, scavenge: ScavengeSettings | undefined, io: Io, use: DirectoryUse = {}): Promise<OpenNode> {
  const { whileRunning = 'For a running node use `skua scavenge start` or `skua explain` with --node.', appendsNothing = false } = use;
  await requireDirectory(directory);
  await requireDatabase(directory);
  const progress = new Progress({ output: io.stderr, env: io.env, clock: systemClock, onLine: (message) => line(io.stderr, message) });
  try {
    // With the filter of another size than the node's own it would be made anew here, and once more by the next start.
    const existenceFilterBytes = await existenceBytesOf({ target: new FilesystemStorage({ root: directory, mustExist: true, ...(index !== null && { indexRoot: index }) }) });
    return await openNode({
      db: directory, index, mustExist: true, log: createLog(io, 'warn'),
      store: { ...(existenceFilterBytes !== null && { index: { existenceFilterBytes } }), log: { writeEpoch: false, verifyChunks: false, isCopy: appendsNothing }, ...(scavenge !== undefined && { scavenge }) },
      onProgress: (state) => progress.update(openingState(state)),
    });
  } catch (error) {
    if (isSkuaError(error, 'directory_locked')) throw new CommandError(error.code, `${error.message} ${whileRunning}`, EXIT.unreachable);
    throw error;
  } finally {
    progress.clear();
  }
}

/** An empty directory would become a new database. */
async function requireDatabase(directory: string): Promise<void> {
  const found = await stat(path.join(directory, 'writer.chk')).catch(() => null);
  if (found === null) throw new CommandError('not_a_data_directory', `${directory} holds no writer.chk, so it is no data directory. Name the value of a node's --db.`, EXIT.unreachable);
}
