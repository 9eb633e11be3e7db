import type { Holds } from '../../core/backup/holds.ts';
import type { NodeBackups } from '../../core/backup/node-backups.ts';
import type { RepositoryWatch } from '../../core/backup/node-backups-watch.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Collector, MetricSink } from '../metrics/metrics.ts';

/** What is not yet in the repository; null while nothing is shipped. */
export interface ShippingFigures {
  readonly unshippedBytes: number;
  readonly lagMs: number;
}

export interface BackupFigures {
  readonly holds: Pick<Holds, 'count'>;
  readonly backups: Pick<NodeBackups, 'current'>;
  /** Null where no repository is configured. */
  readonly watch: Pick<RepositoryWatch, 'newestMs' | 'provenMs'> | null;
  readonly shipping: () => ShippingFigures | null;
  readonly clock: Clock;
}

/** Metrics of backups. What is not known is absent, so that an alert on its age can also be one on its absence. */
export function backupMetrics({ holds, backups, watch, shipping, clock }: BackupFigures): Collector {
  return (sink) => {
    const progress = backups.current();
    sink.gauge('eventstore_backup_done_bytes', progress?.bytesDone ?? 0);
    sink.gauge('eventstore_backup_total_bytes', progress?.bytesTotal ?? 0);
    sink.gauge('eventstore_backup_holds', holds.count);
    const ageOf = (sinceMs: number | null | undefined) => (sinceMs == null ? null : Math.max(0, clock.nowMs() - sinceMs) / 1_000);
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
