import type { MeterLabels } from '../../core/ports/meter.ts';
import type { Store } from '../../core/store/store.ts';
import type { Collector, Metrics } from './metrics.ts';

const NONE = { name: '', read: 'non-flushed' };

/**
 * Metrics of the open store: checkpoints, caches, index. `index` is the status of the index while nothing else is going
 * on.
 */
function storeMetrics(open: Pick<Store, 'status'>): Collector {
  return (metrics) => {
    const { checkpoints, indexCheckpoint, existenceCheckpoint, cache, streams, proofs, checksummedTo, ...status } =
      open.status();
    const positions = { ...checkpoints, index: indexCheckpoint, streamExistenceFilter: existenceCheckpoint };
    for (const [name, position] of Object.entries(positions))
      metrics.gauge('eventstore_checkpoints', position, { ...NONE, name });
    for (const [labels, count] of cacheLookups({ cache, streams }))
      metrics.total('eventstore_cache_hits_misses_total', count, labels);
    metrics.gauge('eventstore_cache_resources_bytes', cache.capacityBytes, { cache: 'chunk', kind: 'capacity' });
    metrics.gauge('eventstore_cache_resources_bytes', cache.usedBytes, { cache: 'chunk', kind: 'size' });
    metrics.gauge('eventstore_cache_resources_entries', streams.statesInMemory, {
      cache: 'stream-info',
      kind: 'count',
    });
    metrics.gauge('eventstore_append_queue_length', streams.appendsQueued);
    metrics.gauge('eventstore_subscriptions', streams.subscriptions);
    metrics.gauge('eventstore_index_memtable_entries', status.indexEntriesInMemory);
    metrics.gauge('eventstore_index_table_entries', status.indexTableEntries);
    metrics.gauge('eventstore_index_tables', status.indexTables);
    metrics.total('eventstore_index_merges_total', status.indexMerges);
    metrics.clear('eventstore_attribute_index_lag_bytes');
    metrics.clear('eventstore_attribute_index_entries');
    for (const { name, state, coveredTo, logEnd, entries } of status.attributes) {
      if (state === 'off') continue;
      metrics.gauge('eventstore_attribute_index_lag_bytes', Math.max(0, logEnd - coveredTo), { index: name });
      metrics.gauge('eventstore_attribute_index_entries', entries, { index: name });
    }
    metrics.gauge('eventstore_log_chunks', status.chunks);
    if (proofs !== null) metrics.gauge('eventstore_log_unproven_bytes', proofs.bytesUnproven);
    if (checksummedTo !== null)
      metrics.gauge('eventstore_log_unprotected_bytes', Math.max(0, checkpoints.writer - checksummedTo));
    const ageMs = proofs?.oldestProofAgeMs ?? null;
    if (ageMs === null) metrics.clear('eventstore_log_oldest_proof_age_seconds');
    else metrics.gauge('eventstore_log_oldest_proof_age_seconds', ageMs / 1_000);
  };
}

/** How often something was looked for in a cache, and found or not. */
export interface LookupCounts {
  readonly cache: Pick<Status['cache'], 'hits' | 'misses'>;
  readonly streams: Pick<Status['streams'], 'stateHits' | 'stateMisses'>;
}

type Status = ReturnType<Store['status']>;

export function cacheLookups({ cache, streams }: LookupCounts): readonly (readonly [MeterLabels, number])[] {
  return [
    [{ cache: 'chunk', kind: 'hits' }, cache.hits],
    [{ cache: 'chunk', kind: 'misses' }, cache.misses],
    [{ cache: 'stream-info', kind: 'hits' }, streams.stateHits],
    [{ cache: 'stream-info', kind: 'misses' }, streams.stateMisses],
  ];
}

/** What the collectors below ask of the node. */
interface NodeFigures {
  /** State name as in `/gossip`. */
  readonly state: () => string;
  /** Null until the store is open. */
  readonly store: () => Pick<Store, 'status'> | null;
  /** What the start is at; null once it is over. */
  readonly startUpWork: () => {
    readonly phase: string;
    readonly bytesDone: number;
    readonly bytesTotal: number;
  } | null;
  /** Null where there is no certificate. */
  readonly certificateDaysLeft?: () => number | null;
  readonly connections?: () => number | Promise<number>;
}

/** Status of the index by the phase of a start. */
const INDEX_AT_START: Readonly<Record<string, string>> = {
  'recovering-log': 'Opening',
  'verifying-index': 'Initializing',
  'rebuilding-index': 'Rebuilding',
};

/** Statuses, the start's progress, the certificate's end, connections; and the store's metrics once it is open. */
export function nodeMetrics(metrics: Metrics, figures: NodeFigures): Collector {
  return async (sink) => {
    const store = figures.store();
    const work = figures.startUpWork();
    sink.gauge('eventstore_statuses', 0, { name: 'Node', status: figures.state() });
    sink.gauge('eventstore_statuses', 0, { name: 'Index', status: indexStatus(metrics, store, work?.phase ?? null) });
    if (metrics.statusOf('Scavenge') === null)
      sink.gauge('eventstore_statuses', 0, { name: 'Scavenge', status: 'Idle' });
    sink.gauge('eventstore_start_done_bytes', work?.bytesDone ?? 0);
    sink.gauge('eventstore_start_total_bytes', work?.bytesTotal ?? 0);
    const days = figures.certificateDaysLeft?.() ?? null;
    if (days === null) sink.clear('eventstore_certificate_expiry_days');
    else sink.gauge('eventstore_certificate_expiry_days', days);
    if (figures.connections !== undefined) sink.gauge('eventstore_kestrel_connections', await figures.connections());
    if (store !== null) await storeMetrics(store)(sink);
  };
}

function indexStatus(metrics: Metrics, store: Pick<Store, 'status'> | null, phase: string | null): string {
  if (phase !== null) return INDEX_AT_START[phase] ?? 'Opening';
  // A scavenge says itself when it comes to the index and when it leaves it.
  if (metrics.statusOf('Index') === 'Scavenging' && metrics.statusOf('Scavenge') === 'Index execution Phase')
    return 'Scavenging';
  return store?.status().isIndexMerging === true ? 'Merging' : 'Idle';
}
