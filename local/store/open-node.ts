import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Digests } from '../../core/ports/digests.ts';
import type { Log } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { ScavengeStates } from '../../core/ports/scavenge-state.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { openStore } from '../../core/store/store.ts';
import type { OpenedForInspection } from './inspect-directory.ts';
import type {
  DirectoryStore,
  OpenStoreOptions,
  StartProgress,
  Store,
  StoreScavengeOptions,
} from '../../core/store/store.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { Disposables } from '../../infra/disposables.ts';
import type { IdleCollector } from '../../infra/garbage.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { bundledWorker } from '../../infra/runtime/version.ts';

/** How the node scavenges; what is left out has its default. */
export type ScavengeSettings = NonNullable<StoreScavengeOptions['config']>;

export interface OpenNodeOptions {
  /** Data directory; null keeps everything in memory. */
  readonly db: string | null;
  /** Folder of the index; null for `index` in the data directory. */
  readonly index: string | null;
  /** False creates the directory where it is absent. */
  readonly mustExist: boolean;
  /** The files, where the directory is one that can't be written to. */
  readonly over?: Pick<OpenedForInspection, 'storage' | 'states'>;
  /** Paths that may lie in the directory before it is one of data. Default: none. */
  readonly beside?: readonly string[];
  readonly log: Log;
  /** What else the store is opened with. */
  readonly store: Pick<OpenStoreOptions, 'log' | 'index' | 'cacheBytes' | 'beginsProofs'> & {
    readonly scavenge?: ScavengeSettings;
  };
  readonly meter?: Meter;
  /** The time of what is stored. Default: the system's. */
  readonly clock?: Clock;
  /** Collects the garbage of the process when it has come to rest. Default: that is left to V8. */
  readonly collector?: IdleCollector | null;
  readonly onProgress?: (progress: StartProgress) => void;
}

export interface OpenNode<S extends Store = DirectoryStore> {
  readonly open: S;
  /** The files of the store, and what runs jobs on them. */
  readonly storage: Storage;
  readonly jobs: Jobs;
  /** Closes the store and ends its workers. */
  close(): Promise<void>;
}

/** An open node that its owner closes, not its user. */
export type LentNode<S extends Store = DirectoryStore> = Omit<OpenNode<S>, 'close'>;

/** Opens the store of a directory, or one in memory, with all that it needs of this machine. */
export function openNode(options: OpenNodeOptions): Promise<OpenNode> {
  return openNodeBy(options, openStore);
}

/** As `openNode`, for a store that `opener` opens in the directory. */
export async function openNodeBy<S extends DirectoryStore>(
  options: OpenNodeOptions,
  opener: (options: OpenStoreOptions) => Promise<S>,
): Promise<OpenNode<S>> {
  const { storage, jobs, digests, scavengeStates } = worldOf(options);
  const opened = new Disposables();
  opened.defer(() => jobs.close());
  try {
    const open = await opener({
      ...options.store,
      world: {
        storage,
        jobs,
        clock: options.clock ?? systemClock,
        ids: systemIds,
        digests,
        log: options.log,
        meter: options.meter ?? silentMeter,
      },
      scavenge: { config: options.store.scavenge ?? {}, ...(scavengeStates !== null && { states: scavengeStates }) },
      ...(options.onProgress && { onProgress: options.onProgress }),
    });
    opened.defer(() => open.close());
    return { open, storage, jobs, close: () => opened.close() };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

function worldOf({ db, index, mustExist, over, beside = [], clock = systemClock, collector = null }: OpenNodeOptions): {
  storage: Storage;
  jobs: Jobs;
  digests: Digests;
  scavengeStates: ScavengeStates | null;
} {
  if (db === null || over !== undefined) {
    const storage = over?.storage ?? new MemoryStorage();
    // Jobs and store find the scavenge database of a storage in memory there.
    const scavengeStates = over?.states ?? null;
    return {
      storage,
      jobs: new InlineJobs({
        jobs: JOBS,
        storage,
        digests: nodeDigests,
        ids: systemIds,
        clock,
        backup: { keys: nodeKeys, compression: nodeCompression, openObjects },
        ...(scavengeStates !== null && { scavengeStates }),
      }),
      digests: nodeDigests,
      scavengeStates,
    };
  }
  const storage = new FilesystemStorage({ root: db, mustExist, beside, ...(index !== null && { indexRoot: index }) });
  const { root, indexRoot } = storage;
  const jobs = new WorkerJobs({ root, indexRoot, ...bundledWorker(), collector });
  return { storage, jobs, digests: jobs.digests, scavengeStates: new SqliteScavengeStates({ indexRoot }) };
}
