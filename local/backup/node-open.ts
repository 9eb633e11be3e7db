import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { Holds } from '../../core/backup/holds.ts';
import { BACKUP_JOB } from '../../core/backup/jobs.ts';
import type { BackupJobArgs, BackupJobResult } from '../../core/backup/jobs.ts';
import type { Manifest, ManifestSummary } from '../../core/backup/manifest.ts';
import { NodeBackups } from '../../core/backup/node-backups.ts';
import type { BackupRequest, NodeBackupsParts } from '../../core/backup/node-backups.ts';
import { runBackupSchedule } from '../../core/backup/node-backups-schedule.ts';
import { RepositoryWatch } from '../../core/backup/node-backups-watch.ts';
import { Shipping } from '../../core/backup/node-backups-shipping.ts';
import { ensureNodeId } from '../../core/backup/node-id.ts';
import { pruneRepository } from '../../core/backup/prune.ts';
import { Shipper } from '../../core/backup/shipper.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import { nodeCompression } from '../../infra/compression.ts';
import { nodeDigests } from '../../infra/digests.ts';
import { systemIds } from '../../infra/ids.ts';
import { nodeKeys } from '../../infra/keys.ts';
import { createSchedule } from '../../infra/schedule.ts';
import type { Collector } from '../metrics/metrics.ts';
import type { OpenNode } from '../open-node.ts';
import { backupMetrics } from './node-metrics.ts';
import { NodeRepository } from './node-repository.ts';
import type { BackupSettings } from './node-settings.ts';

export interface OpenBackupsOptions {
  readonly settings: BackupSettings;
  readonly node: OpenNode;
  /** Null where nothing is scheduled. */
  readonly autoScavenge: AutoScavenge | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

export interface OpenBackups {
  /** For the handlers. */
  readonly holds: Holds;
  readonly node: NodeBackups;
  readonly metrics: Collector;
  /** Makes what the options ask for: scheduled backups, shipping. Resolves when aborted and nothing is under way any more. */
  run(signal: AbortSignal): Promise<void>;
  /** Ends the backup under way, what it paused goes on, and all holds end. To be called while the store is still open. */
  close(): Promise<void>;
}

/** The backups of a node. To be called when the store is open. A repository that can't be reached does not keep the node from starting. */
export async function openBackups(options: OpenBackupsOptions): Promise<OpenBackups> {
  const { settings, node, autoScavenge, clock, log, meter } = options;
  const { open, storage } = node;
  const repository = new NodeRepository(settings, { clock, ids: systemIds, digests: nodeDigests, keys: nodeKeys, compression: nodeCompression });
  const nodeId = await ensureNodeId(storage, systemIds);
  const holds = new Holds({ take: () => open.hold(), clock, ids: systemIds, log });
  const stopping = new AbortController();
  const shipper: Shipper | null = settings.shipEveryMs === 0 ? null : new Shipper({
    repository: () => repository.open(), nodeId, log: open.shippableLog(), clock, throttleBytesPerSecond: settings.throttleBytesPerSecond, onBaseWanted: (reason) => shipping?.want(reason), signal: stopping.signal,
  });
  const watch = settings.place === null ? null : new RepositoryWatch({ repository: () => repository.open(), nodeId, onNewer: () => shipper?.rebase(), clock, log });
  const backups = new NodeBackups({
    place: settings.placeText, scavenger: open.scavenger, autoScavenge, hold: () => open.hold(), backUp: backUpInJobs(options), repository: () => repository.open(), prune: pruneIn(options, repository),
    onMade: (summary) => {
      watch?.made(summary);
      shipper?.rebase();
    },
    clock, ids: systemIds, log, meter,
  });
  const shipping = shipper === null ? null : new Shipping({ shipper, backups, everyMs: settings.shipEveryMs, clock, log });
  const run = async (signal: AbortSignal) => {
    signal.addEventListener('abort', () => stopping.abort(), { once: true });
    const work = [watch?.run(signal), shipping?.run(signal)];
    if (settings.schedule !== null) work.push(runBackupSchedule({ backups, schedule: createSchedule(), expression: settings.schedule, clock, log, signal }));
    await Promise.all(work);
    await repository.close();
  };
  return {
    holds, node: backups, metrics: backupMetrics({ holds, backups, watch, shipping: () => shipper, clock }), run,
    close: async () => {
      await backups.close();
      await holds.close();
    },
  };
}

/** Backups are made by jobs, which read the files that are held. What the last one stored is told to the next. */
function backUpInJobs({ settings, node, clock }: OpenBackupsOptions): (request: BackupRequest) => Promise<ManifestSummary> {
  let known: Manifest | null = null;
  return async ({ backupId, cause, hold, signal, onProgress }) => {
    const args: BackupJobArgs = {
      place: settings.place!, key: settings.key, compression: settings.compression, cause, snapshot: hold.snapshot, known, backupId,
      parallel: settings.parallel, throttleBytesPerSecond: settings.throttleBytesPerSecond, nowMs: clock.nowMs(),
    };
    const { manifest, summary } = await node.jobs.run(BACKUP_JOB, args, { signal, onProgress: ({ done, total }) => onProgress(done, total) }) as BackupJobResult;
    known = manifest;
    return summary;
  };
}

/** Keeps what the options say; null where all backups are kept. */
function pruneIn({ settings, clock, log }: OpenBackupsOptions, repository: NodeRepository): NodeBackupsParts['prune'] {
  const { keep } = settings;
  if (keep === null) return null;
  return async (signal) => {
    const { removed, kept } = await pruneRepository({ repository: await repository.open(), keep, clock, ids: systemIds, signal });
    log.info('backups that need not be kept were removed', { removed: removed.length, kept: kept.length });
  };
}
