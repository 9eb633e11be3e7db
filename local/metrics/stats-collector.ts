import * as v8 from 'node:v8';
import type { Clock } from '../../core/ports/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { timestampText } from '../../core/base/time.ts';
import type { StatsTree } from '../../handlers/http/node-control.ts';
import { diskIo, diskSpace, loadAverages, machineMemory, processMemory } from './machine-metrics.ts';
import type { Metrics } from './metrics.ts';
import type { ProcessMetrics } from './process-metrics.ts';

interface StatsParts {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly process: Pick<ProcessMetrics, 'cpuPercent'>;
  /** Null until the store is open. */
  readonly store: () => Pick<Store, 'status'> | null;
  /** Folder whose disk is shown; null for a node in memory. */
  readonly folder: string | null;
  readonly periodMs: number;
  /** Told of every collection, for the log file of statistics. */
  readonly onCollected?: (stats: StatsTree) => void;
}

/**
 * The statistics of `/stats`, collected every period. Branches of the reference that have no honest
 * counterpart here are left out: `proc.tcp`, rates of contentions and exceptions, the generations of its garbage
 * collector, all queues but that of the writer, caches of records and transactions.
 */
export class StatsCollector {
  readonly #parts: StatsParts;
  readonly #startTime: string;
  #current: StatsTree = {};

  constructor(parts: StatsParts) {
    this.#parts = parts;
    this.#startTime = timestampText(Math.floor(parts.clock.nowMs() - process.uptime() * 1_000), 0);
  }

  /** What was collected last. */
  current(): StatsTree {
    return this.#current;
  }

  /** Collects now and then every period, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, periodMs, onCollected } = this.#parts;
    while (!signal.aborted) {
      await this.collect();
      onCollected?.(this.#current);
      await clock.sleep(periodMs, signal);
    }
  }

  async collect(): Promise<void> {
    const [proc, sys] = await Promise.all([this.#process(), this.#system()]);
    const es = this.#database();
    this.#current = { proc, sys, ...(es !== null && { es }) };
  }

  async #process(): Promise<StatsTree> {
    const [memory, io] = await Promise.all([processMemory(), diskIo()]);
    return {
      startTime: this.#startTime,
      id: process.pid,
      mem: memory.workingSetBytes,
      cpu: this.#parts.process.cpuPercent(),
      ...(memory.threads !== null && { threadsCount: memory.threads }),
      ...(io !== null && { diskIo: { ...io } }),
      gc: { totalBytesInHeaps: v8.getHeapStatistics().used_heap_size },
    };
  }

  async #system(): Promise<StatsTree> {
    const { freeBytes, totalBytes } = machineMemory();
    const space = this.#parts.folder === null ? null : await diskSpace(this.#parts.folder);
    return {
      loadavg: { ...loadAverages() },
      freeMem: freeBytes,
      totalMem: totalBytes,
      ...(space !== null && {
        drive: {
          [space.disk]: {
            availableBytes: space.availableBytes,
            totalBytes: space.totalBytes,
            usage: `${percent(space.usedBytes, space.totalBytes)}%`,
            usedBytes: space.usedBytes,
          },
        },
      }),
    };
  }

  #database(): StatsTree | null {
    const open = this.#parts.store();
    if (open === null) return null;
    const { checkpoints, streams } = open.status();
    const size = this.#parts.metrics.summaryOf('eventstore_writer_flush_size_max');
    const seconds = this.#parts.metrics.summaryOf('eventstore_writer_flush_duration_max_seconds');
    return {
      checksum: checkpoints.writer,
      checksumNonFlushed: checkpoints.writer,
      queue: { Writer: { queueName: 'Writer', groupName: '', length: streams.appendsQueued } },
      ...(size !== null &&
        seconds !== null && {
          writer: {
            lastFlushSize: size.last,
            lastFlushDelayMs: seconds.last * 1_000,
            meanFlushSize: size.mean,
            meanFlushDelayMs: seconds.mean * 1_000,
            maxFlushSize: size.max,
            maxFlushDelayMs: seconds.max * 1_000,
            queuedFlushMessages: streams.appendsQueued,
          },
        }),
      readIndex: { cachedStreamInfo: streams.stateHits, notCachedStreamInfo: streams.stateMisses },
    };
  }
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 100);
}
