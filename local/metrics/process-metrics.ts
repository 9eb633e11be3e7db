import { monitorEventLoopDelay, performance, PerformanceObserver } from 'node:perf_hooks';
import type { EventLoopUtilization } from 'node:perf_hooks';
import * as v8 from 'node:v8';
import type { Clock } from '../../core/ports/clock.ts';
import { diskIo, diskSpace, loadAverages, machineMemory, processMemory } from './machine-metrics.ts';
import type { Metrics, MetricSink } from './metrics.ts';

/** Rates and delays are of the time since the last scrape, at least this long: two scrapers then see the same. */
const WINDOW_MS = 10_000;
/** How often the delay of timers is looked at. */
const DELAY_RESOLUTION_MS = 20;
const NS = 1_000_000_000;

/** Garbage collections by the number that Node.js gives their kind. */
const GENERATIONS: Readonly<Record<number, string>> = { 1: 'young', 4: 'old', 8: 'incremental', 16: 'weak-callbacks' };
const YOUNG_SPACES: ReadonlySet<string> = new Set(['new_space', 'new_large_object_space']);
const LARGE_SPACES: ReadonlySet<string> = new Set([
  'large_object_space',
  'code_large_object_space',
  'shared_large_object_space',
]);

export interface ProcessMetrics {
  /** Processor time that the process used lately, in percent of one processor. */
  cpuPercent(): number;
  close(): void;
}

/**
 * Watches the process: garbage collections as they happen, everything else when the metrics are asked for. `folder` is
 * on the disk whose space is shown.
 */
export function watchProcess(metrics: Metrics, clock: Clock, folder: string | null): ProcessMetrics {
  const watch = new ProcessWatch(metrics, clock, folder);
  const leave = metrics.collect((sink) => watch.collect(sink));
  return {
    cpuPercent: () => watch.cpuPercent(),
    close: () => {
      leave();
      watch.close();
    },
  };
}

class ProcessWatch {
  readonly #clock: Clock;
  readonly #folder: string | null;
  readonly #delay: ReturnType<typeof monitorEventLoopDelay>;
  readonly #gc: PerformanceObserver;
  readonly #cpu: RecentRate;
  readonly #gcTime: RecentRate;
  #gcSeconds = 0;
  #utilization: EventLoopUtilization = performance.eventLoopUtilization();
  #busy = 0;
  #windowStartMs: number;

  constructor(metrics: Metrics, clock: Clock, folder: string | null) {
    this.#clock = clock;
    this.#folder = folder;
    const now = clock.monotonicMs();
    this.#windowStartMs = now;
    this.#cpu = new RecentRate(WINDOW_MS, now, cpuSeconds().total);
    this.#gcTime = new RecentRate(WINDOW_MS, now, 0);
    this.#delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
    this.#delay.enable();
    this.#gc = new PerformanceObserver((list) => {
      for (const { duration, detail } of list.getEntries() as unknown as readonly {
        readonly duration: number;
        readonly detail?: { readonly kind?: number };
      }[]) {
        const seconds = duration / 1_000;
        this.#gcSeconds += seconds;
        metrics.count('eventstore_gc_collection_count_total', 1, {
          generation: GENERATIONS[detail?.kind ?? 0] ?? 'other',
        });
        metrics.observe('eventstore_gc_pause_duration_max_seconds', seconds);
      }
    });
    this.#gc.observe({ entryTypes: ['gc'] });
  }

  close(): void {
    this.#gc.disconnect();
    this.#delay.disable();
  }

  cpuPercent(): number {
    return this.#cpu.read(this.#clock.monotonicMs(), cpuSeconds().total) * 100;
  }

  async collect(sink: MetricSink): Promise<void> {
    this.#collectProcess(sink);
    this.#collectHeap(sink);
    this.#collectLoop(sink);
    await Promise.all([this.#collectSystem(sink), this.#collectDisk(sink)]);
  }

  #collectProcess(sink: MetricSink): void {
    const { user, system } = cpuSeconds();
    sink.total('eventstore_proc_up_time_seconds_total', process.uptime(), { pid: String(process.pid) });
    sink.gauge('eventstore_proc_cpu', this.cpuPercent());
    sink.total('eventstore_proc_cpu_seconds_total', user, { kind: 'user' });
    sink.total('eventstore_proc_cpu_seconds_total', system, { kind: 'system' });
  }

  #collectHeap(sink: MetricSink): void {
    sink.gauge('eventstore_gc_time_in_gc', this.#gcTime.read(this.#clock.monotonicMs(), this.#gcSeconds) * 100);
    sink.gauge('eventstore_gc_heap_size_bytes', v8.getHeapStatistics().used_heap_size);
    const sizes = { young: 0, old: 0, large: 0 };
    for (const { space_name: name, space_used_size: bytes } of v8.getHeapSpaceStatistics())
      sizes[YOUNG_SPACES.has(name) ? 'young' : LARGE_SPACES.has(name) ? 'large' : 'old'] += bytes;
    for (const [generation, bytes] of Object.entries(sizes))
      sink.gauge('eventstore_gc_generation_size_bytes', bytes, { generation });
  }

  #collectLoop(sink: MetricSink): void {
    const delay = this.#delay;
    // Nothing was measured yet in a process that has only just started.
    const seconds = (ns: number) => (Number.isFinite(ns) ? Math.max(0, ns / NS - DELAY_RESOLUTION_MS / 1_000) : 0);
    sink.gauge('eventstore_event_loop_delay_seconds', seconds(delay.mean), { kind: 'mean' });
    sink.gauge('eventstore_event_loop_delay_seconds', seconds(delay.percentile(99)), { kind: 'p99' });
    sink.gauge('eventstore_event_loop_delay_seconds', delay.count === 0 ? 0 : seconds(delay.max), { kind: 'max' });
    const now = this.#clock.monotonicMs();
    const utilization = performance.eventLoopUtilization();
    this.#busy = performance.eventLoopUtilization(utilization, this.#utilization).utilization;
    sink.gauge('eventstore_event_loop_utilization', this.#busy);
    if (now - this.#windowStartMs < WINDOW_MS) return;
    this.#windowStartMs = now;
    this.#utilization = utilization;
    delay.reset();
  }

  async #collectSystem(sink: MetricSink): Promise<void> {
    for (const [period, load] of Object.entries(loadAverages()))
      sink.gauge('eventstore_sys_load_avg', load, { period });
    const { freeBytes, totalBytes } = machineMemory();
    sink.gauge('eventstore_sys_mem_bytes', freeBytes, { kind: 'free' });
    sink.gauge('eventstore_sys_mem_bytes', totalBytes, { kind: 'total' });
    const { workingSetBytes, virtualBytes } = await processMemory();
    sink.gauge('eventstore_proc_mem_bytes', workingSetBytes, { kind: 'working-set' });
    if (virtualBytes !== null) sink.gauge('eventstore_proc_mem_bytes', virtualBytes, { kind: 'virtual-bytes' });
  }

  async #collectDisk(sink: MetricSink): Promise<void> {
    const io = await diskIo();
    if (io !== null) {
      sink.total('eventstore_disk_io_bytes_total', io.readBytes, { activity: 'read' });
      sink.total('eventstore_disk_io_bytes_total', io.writtenBytes, { activity: 'written' });
      sink.total('eventstore_disk_io_operations_total', io.readOps, { activity: 'read' });
      sink.total('eventstore_disk_io_operations_total', io.writeOps, { activity: 'written' });
    }
    const space = this.#folder === null ? null : await diskSpace(this.#folder);
    if (space === null) return;
    sink.gauge('eventstore_sys_disk_bytes', space.usedBytes, { disk: space.disk, kind: 'used' });
    sink.gauge('eventstore_sys_disk_bytes', space.totalBytes, { disk: space.disk, kind: 'total' });
  }
}

export function cpuSeconds(): { readonly user: number; readonly system: number; readonly total: number } {
  const { user, system } = process.cpuUsage();
  return { user: user / 1e6, system: system / 1e6, total: (user + system) / 1e6 };
}

/** How much a growing figure grew per second lately: between two readings that lie at least `windowMs` apart. */
export class RecentRate {
  readonly #windowMs: number;
  #fromMs: number;
  #from: number;
  #rate = 0;

  constructor(windowMs: number, nowMs: number, value: number) {
    this.#windowMs = windowMs;
    this.#fromMs = nowMs;
    this.#from = value;
  }

  /** The rate per second by this reading; the one before while the window has not passed, so that several may ask. */
  read(nowMs: number, value: number): number {
    const passedMs = nowMs - this.#fromMs;
    if (passedMs >= this.#windowMs) {
      this.#rate = Math.max(0, ((value - this.#from) / passedMs) * 1_000);
      this.#fromMs = nowMs;
      this.#from = value;
    }
    return this.#rate;
  }
}
