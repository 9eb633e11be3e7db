import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { Holds } from '../../core/store/hold/hold.ts';
import { BACKUP_JOB } from '../../core/backup/jobs/jobs.ts';
import type {
  BackupJobArgs,
  BackupJobResult,
  BackupStatus,
  BackupRequest,
  NodeBackupsParts,
} from '../../core/backup/api.ts';
import type { Manifest, ManifestSummary } from '../../core/backup/format/snapshot-manifest.ts';
import { RepositoryWatch, runBackupSchedule, Shipping } from '../../core/backup/background/background.ts';
import { NodeBackupChecks } from '../../core/backup/checks/checks.ts';
import { NodeBackups } from '../../core/backup/backups/backups.ts';
import { ensureNodeId } from '../../core/store/format/node-id.ts';
import { pruneRepository } from '../../core/backup/prune/prune.ts';
import type { Repository, RepositoryWorld } from '../../core/backup/repository/api.ts';
import { openRepository } from '../../core/backup/repository/repository.ts';
import { Shipper } from '../../core/backup/shipper/shipper.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import { logStrangersOnce } from '../../core/ports/object-kinds.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import type { ShippableLog } from '../../core/store/shippable-log/shippable-log.ts';
import type { DirectoryStore, Store } from '../../core/store/store.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { createSchedule } from '../../infra/cron-schedule.ts';
import type { Collector, MetricSink } from '../metrics/metrics.ts';
import type { LentNode } from '../store/open-node.ts';
import { checksOf, commandsOf } from './node-checks.ts';
import type { BackupSettings } from '../config/backup-settings.ts';

interface OpenBackupsOptions {
  readonly settings: BackupSettings;
  readonly node: LentNode<Store>;
  /**
   * The store where its files are its own. Null where they are objects: what a manifest names belongs together, so no
   * scavenge has to stop for a backup, and nothing is shipped.
   */
  readonly directory: DirectoryStore | null;
  /** Null where nothing is scheduled. */
  readonly autoScavenge: AutoScavenge | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** Told of each backup that begins. */
  readonly onBegun?: (backupId: string, cause: Manifest['cause']) => void;
}

/** When it is closed, so is the repository: what still wants it fails. */
export interface OpenBackups extends AsyncDisposable {
  /** For the handlers. */
  readonly holds: Holds;
  readonly node: NodeBackups;
  readonly metrics: Collector;
  readonly checks: NodeBackupChecks;
  /** What is known without asking the repository. */
  status(): BackupStatus;
  /**
   * Makes what the options ask for: scheduled backups, shipping. Resolves when aborted and nothing is under way any
   * more.
   */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Ends the backup under way, what it paused goes on, and all holds end. To be called while the store is still open,
   * and before `run` ends.
   */
  end(): Promise<void>;
}

/**
 * The backups of a node. To be called when the store is open. A repository that can't be reached does not keep the node
 * from starting.
 */
export async function openBackups(options: OpenBackupsOptions): Promise<OpenBackups> {
  const { settings, node, directory, autoScavenge, clock, log, meter } = options;
  const { open, storage } = node;
  const repository = new NodeRepository(settings, {
    clock,
    ids: systemIds,
    digests: nodeDigests,
    keys: nodeKeys,
    compression: nodeCompression,
    onStrangers: logStrangersOnce((message) => log.warn(message)),
  });
  const nodeId = await ensureNodeId(storage, systemIds);
  const holds = new Holds({ take: () => open.hold(), clock, ids: systemIds, log });
  const stopping = new AbortController();
  const shipper: Shipper | null =
    settings.shipEveryMs === 0
      ? null
      : new Shipper({
          repository: () => repository.open(),
          nodeId,
          log: shippedLog(directory),
          clock,
          throttleBytesPerSecond: settings.throttleBytesPerSecond,
          onBaseWanted: (reason) => shipping?.want(reason),
          signal: stopping.signal,
        });
  const watch =
    settings.place === null
      ? null
      : new RepositoryWatch({
          repository: () => repository.open(),
          nodeId,
          onNewer: () => shipper?.rebase(),
          clock,
          log,
        });
  const backups = new NodeBackups({
    place: settings.placeText,
    scavenger: directory?.scavenger ?? null,
    autoScavenge,
    hold: () => open.hold(),
    backUp: backUpInJobs(options),
    repository: () => repository.open(),
    prune: pruneIn(options, repository),
    ...(options.onBegun !== undefined && { onBegun: options.onBegun }),
    onMade: (summary) => {
      watch?.made(summary);
      shipper?.rebase();
    },
    clock,
    ids: systemIds,
    log,
    meter,
  });
  const shipping =
    shipper === null ? null : new Shipping({ shipper, backups, everyMs: settings.shipEveryMs, clock, log });
  let verified: BackupStatus['verified'] = null;
  const checks = new NodeBackupChecks({
    check: checksOf({ settings, jobs: node.jobs, clock, list: () => backups.list() }),
    clock,
    ids: systemIds,
    log,
    onDone: (report) => {
      if (report.kind === 'verify') verified = { atMs: clock.nowMs(), errors: report.verified.errors };
      else if (report.drill.isProven) watch?.proven(clock.nowMs());
    },
  });
  const run = async (signal: AbortSignal) => {
    signal.addEventListener('abort', () => stopping.abort(), { once: true });
    const work = [watch?.run(signal), shipping?.run(signal)];
    if (settings.schedule !== null)
      work.push(
        runBackupSchedule({ backups, schedule: createSchedule(), expression: settings.schedule, clock, log, signal }),
      );
    await Promise.all(work);
  };
  return {
    holds,
    node: backups,
    metrics: backupMetrics({ holds, backups, watch, shipping: () => shipper, clock }),
    run,
    checks,
    status: () => ({
      place: settings.placeText,
      schedule: settings.schedule,
      shipEverySeconds: settings.shipEveryMs === 0 || shipper === null ? null : settings.shipEveryMs / 1_000,
      newest: watch?.newest ?? null,
      restorable: restorableOf(watch, shipper),
      unshippedBytes: shipper?.unshippedBytes ?? null,
      shipLagMs: shipper?.lagMs ?? null,
      provenMs: watch?.provenMs ?? null,
      verified,
      commands: commandsOf(settings),
    }),
    end: async () => {
      await checks.close();
      await backups.close();
      await holds.close();
    },
    [Symbol.asyncDispose]: () => repository.close(),
  };
}

/** Throws `backup_off`. */
function shippedLog(directory: DirectoryStore | null): ShippableLog {
  if (directory === null)
    throw new SkuaError('backup_off', 'The log of this node is already in object storage, so it is not shipped.');
  return directory.shippableLog();
}

/** Behind the newest backup, what was shipped since. */
function restorableOf(
  watch: Pick<RepositoryWatch, 'newest'> | null,
  shipper: Pick<Shipper, 'reach'> | null,
): BackupStatus['restorable'] {
  const reach = shipper?.reach ?? null;
  if (reach !== null) return { position: reach.position, atMs: reach.shippedMs };
  const newest = watch?.newest ?? null;
  return newest === null ? null : { position: newest.logEnd, atMs: newest.createdMs };
}

/** Backups are made by jobs, which read the files that are held. What the last one stored is told to the next. */
function backUpInJobs({
  settings,
  node,
  clock,
}: OpenBackupsOptions): (request: BackupRequest) => Promise<ManifestSummary> {
  let known: Manifest | null = null;
  return async ({ backupId, cause, hold, signal, onProgress }) => {
    const args: BackupJobArgs = {
      place: settings.place!,
      key: settings.key,
      compression: settings.compression,
      cause,
      snapshot: hold.snapshot,
      known,
      backupId,
      parallel: settings.parallel,
      throttleBytesPerSecond: settings.throttleBytesPerSecond,
      nowMs: clock.nowMs(),
    };
    const { manifest, summary } = (await node.jobs.run(BACKUP_JOB, args, {
      signal,
      onProgress: ({ done, total }) => onProgress(done, total),
    })) as BackupJobResult;
    known = manifest;
    return summary;
  };
}

/** Keeps what the options say; null where all backups are kept. */
function pruneIn({ settings, clock, log }: OpenBackupsOptions, repository: NodeRepository): NodeBackupsParts['prune'] {
  const { keep } = settings;
  if (keep === null) return null;
  return async (signal) => {
    const { removed, kept } = await pruneRepository({
      repository: await repository.open(),
      keep,
      clock,
      ids: systemIds,
      digests: nodeDigests,
      signal,
    });
    log.info('expired backups were removed', { removed: removed.length, kept: kept.length });
  };
}

/**
 * The repository of a node, opened when it is first needed and made where there is none. One that could not be opened
 * is tried again at the next call.
 */
class NodeRepository {
  readonly #settings: BackupSettings;
  readonly #world: RepositoryWorld;
  #objects: Promise<ObjectStore> | null = null;
  #opening: Promise<Repository> | null = null;
  #isClosed = false;

  constructor(settings: BackupSettings, world: RepositoryWorld) {
    this.#settings = settings;
    this.#world = world;
  }

  /** Rejects with what `openRepository` rejects with, and `store_closed`. */
  open(): Promise<Repository> {
    if (this.#isClosed)
      return Promise.reject(new SkuaError('store_closed', 'The node is stopping: its backup repository is closed.'));
    if (this.#opening !== null) return this.#opening;
    const opening = this.#open();
    this.#opening = opening;
    opening.catch(() => {
      this.#opening = null;
    });
    return opening;
  }

  async #open(): Promise<Repository> {
    const { place, key, compression } = this.#settings;
    // The store of a repository that could not be opened serves the next attempt.
    this.#objects ??= openObjects(place!).catch((error: unknown) => {
      this.#objects = null;
      throw error;
    });
    return openRepository(await this.#objects, { key, create: true, compression }, this.#world);
  }

  /** Work that is still under way fails; nothing waits for a repository that does not answer. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#objects?.catch(() => null))?.close();
  }
}

/** What is not yet in the repository; null while nothing is shipped. */
interface ShippingFigures {
  readonly unshippedBytes: number;
  readonly lagMs: number;
}

interface BackupFigures {
  readonly holds: Pick<Holds, 'count'>;
  readonly backups: Pick<NodeBackups, 'current'>;
  /** Null where no repository is configured. */
  readonly watch: Pick<RepositoryWatch, 'newestMs' | 'provenMs'> | null;
  readonly shipping: () => ShippingFigures | null;
  readonly clock: Clock;
}

/** Metrics of backups. What is not known is absent, so that an alert on its age can also be one on its absence. */
function backupMetrics({ holds, backups, watch, shipping, clock }: BackupFigures): Collector {
  return (sink) => {
    const progress = backups.current();
    sink.gauge('eventstore_backup_done_bytes', progress?.bytesDone ?? 0);
    sink.gauge('eventstore_backup_total_bytes', progress?.bytesTotal ?? 0);
    sink.gauge('eventstore_backup_holds', holds.count);
    const ageOf = (sinceMs: number | null | undefined) =>
      sinceMs == null ? null : Math.max(0, clock.nowMs() - sinceMs) / 1_000;
    set(sink, 'eventstore_backup_age_seconds', ageOf(watch?.newestMs));
    set(sink, 'eventstore_backup_proven_age_seconds', ageOf(watch?.provenMs));
    const shipped = shipping();
    set(sink, 'eventstore_backup_unshipped_bytes', shipped?.unshippedBytes ?? null);
    set(sink, 'eventstore_backup_ship_lag_seconds', shipped === null ? null : shipped.lagMs / 1_000);
  };
}

function set(sink: MetricSink, name: string, value: number | null): void {
  if (value === null) sink.clear(name);
  else sink.gauge(name, value);
}
