import { afterEach, describe, expect, test, vi } from 'vitest';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import type { DirectoryStore } from '../../../core/store/store.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { RecentRate, watchProcess } from '../../../local/metrics/process-metrics.ts';
import { nodeMetrics } from '../../../local/metrics/store-metrics.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestStore } from '../../support/test-store.ts';
import { parseExposition } from './exposition.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const event = (n: number) => ({
  id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  type: 'made',
  isJson: true,
  data: new TextEncoder().encode('{"n":1}'),
  metadata: new Uint8Array(0),
});

async function setUp() {
  const clock = new ManualClock(Date.UTC(2031, 3, 2), 'microtask');
  const metrics = createMetrics(clock);
  const open = await openTestStore({ storage: new MemoryStorage(), clock, meter: metrics });
  closing.push(() => open.close());
  const values = async () => parseExposition((await metrics.render(null)).body).values;
  return { clock, metrics, open, values };
}

describe('the metrics of a store', () => {
  test('appends and reads are counted where they happen', async () => {
    const { open, values } = await setUp();
    const before = await values();
    await open.store.append('orders', -1, [event(1), event(2), event(3)]);
    await open.store.readStream('orders', { direction: 'forward', from: 0, count: 2 });
    await open.store.readEvent('orders', 2);
    await open.store.readAll({ direction: 'forward', from: 'start', count: 1 });
    const stop = new AbortController();
    for await (const message of open.store.subscribeToStream('orders', { after: -1, signal: stop.signal }))
      if (message.kind === 'caught-up') break;
    const after = await values();
    const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    expect(grown('eventstore_io_events_total{activity="written"}')).toBe(3);
    expect(grown('eventstore_io_events_total{activity="read"}')).toBe(2 + 1 + 1 + 3);
    expect(grown('eventstore_io_bytes_total{activity="written"}')).toBeGreaterThan(3 * 7);
    expect(grown('eventstore_io_bytes_total{activity="read"}')).toBeGreaterThanOrEqual(6 * 7);
    expect(grown('eventstore_append_duration_seconds_count')).toBe(1);
    expect(grown('eventstore_append_group_requests_count')).toBe(1);
    expect(after.get('eventstore_writer_flush_size_max{range="16-20 seconds"}')).toBeGreaterThan(0);
  });

  test('what is listed without its content counts as read with it, as it was', async () => {
    const { open, values } = await setUp();
    await open.store.append('orders', -1, [event(1), event(2), event(3)]);
    await open.store.readStream('orders', { direction: 'forward', from: 0, count: 2, payloads: false });
    await open.store.readAll({ direction: 'backward', from: 'end', count: 1, payloads: false });
    expect((await values()).get('eventstore_io_events_total{activity="read"}')).toBe(3);
    expect((await values()).get('eventstore_io_bytes_total{activity="read"}')).toBe(3 * 7);
  });

  test('the time to an acknowledgement is that of the request that waited longest', async () => {
    const { clock, metrics, open, values } = await setUp();
    const seen = vi.spyOn(metrics, 'observe');
    const waits = [open.store.append('a', -2, [event(1)]), open.store.append('b', -2, [event(2)])];
    await Promise.all(waits);
    const durations = seen.mock.calls.filter(([name]) => name === 'eventstore_append_duration_seconds');
    expect(durations).toHaveLength(1);
    expect((await values()).get('eventstore_append_group_requests_bucket{le="1"}')).toBe(1);
    expect(clock.monotonicMs()).toBe(0);
  });

  test('checkpoints, caches, index and statuses are looked at by each scrape', async () => {
    const { metrics, open, values } = await setUp();
    let store: DirectoryStore | null = null;
    let work: { phase: string; bytesDone: number; bytesTotal: number } | null = {
      phase: 'rebuilding-index',
      bytesDone: 10,
      bytesTotal: 40,
    };
    let days: number | null = 12.5;
    metrics.collect(
      nodeMetrics(metrics, {
        state: () => (work === null ? 'Leader' : 'Initializing'),
        store: () => store,
        startUpWork: () => work,
        certificateDaysLeft: () => days,
        connections: async () => 3,
      }),
    );
    const starting = await values();
    expect(starting.has('eventstore_statuses{name="Node",status="Initializing"}')).toBe(true);
    expect(starting.has('eventstore_statuses{name="Index",status="Rebuilding"}')).toBe(true);
    expect(starting.get('eventstore_start_done_bytes')).toBe(10);
    expect(starting.get('eventstore_certificate_expiry_days')).toBe(12.5);
    expect([...starting.keys()].filter((key) => key.startsWith('eventstore_checkpoints'))).toEqual([]);

    store = open;
    work = null;
    days = null;
    await open.store.append('orders', -1, [event(1)]);
    const serving = await values();
    expect(serving.has('eventstore_statuses{name="Node",status="Leader"}')).toBe(true);
    expect(serving.has('eventstore_statuses{name="Index",status="Idle"}')).toBe(true);
    expect(serving.has('eventstore_statuses{name="Scavenge",status="Idle"}')).toBe(true);
    expect(serving.get('eventstore_checkpoints{name="writer",read="non-flushed"}')).toBe(open.store.end);
    for (const name of ['chaser', 'epoch', 'proposal', 'truncate', 'index', 'streamExistenceFilter'])
      expect(serving.has(`eventstore_checkpoints{name="${name}",read="non-flushed"}`), name).toBe(true);
    expect(serving.get('eventstore_index_memtable_entries')).toBeGreaterThan(0);
    expect(serving.get('eventstore_cache_resources_bytes{cache="chunk",kind="capacity"}')).toBe(16 * 1024 * 1024);
    expect(serving.get('eventstore_cache_resources_entries{cache="stream-info",kind="count"}')).toBeGreaterThan(0);
    expect(serving.get('eventstore_kestrel_connections')).toBe(3);
    expect(serving.has('eventstore_certificate_expiry_days')).toBe(false);
    expect(open.status().lastCommitPosition).toBe(
      (await open.store.readAll({ direction: 'backward', from: 'end', count: 1 })).lastCommitPosition,
    );
  });

  test('a scavenge shows its phases, and that it is over', async () => {
    const { metrics, open, values } = await setUp();
    const seen = vi.spyOn(metrics, 'gauge');
    metrics.collect(nodeMetrics(metrics, { state: () => 'Leader', store: () => open, startUpWork: () => null }));
    await open.store.append('orders', -1, [event(1)]);
    await open.scavenger.start();
    await open.scavenger.idle();
    const statuses = seen.mock.calls
      .filter(([name, , labels]) => name === 'eventstore_statuses' && labels?.['name'] === 'Scavenge')
      .map(([, , labels]) => labels!['status']);
    expect(statuses).toEqual(
      expect.arrayContaining([
        'Accumulation Phase',
        'Calculation Phase',
        'Chunk execution Phase',
        'Cleaning Phase',
        'Idle',
      ]),
    );
    expect((await values()).has('eventstore_statuses{name="Scavenge",status="Idle"}')).toBe(true);
  });
});

describe('the metrics of the process', () => {
  test('are there, and say something', async () => {
    const metrics = createMetrics(systemClock);
    const watch = watchProcess(metrics, systemClock, process.cwd());
    closing.push(() => watch.close());
    const found = parseExposition((await metrics.render(null)).body).values;
    expect(found.get(`eventstore_proc_up_time_seconds_total{pid="${process.pid}"}`)).toBeGreaterThan(0);
    expect(found.get('eventstore_proc_cpu_seconds_total{kind="user"}')).toBeGreaterThan(0);
    expect(found.get('eventstore_proc_mem_bytes{kind="working-set"}')).toBeGreaterThan(1_000_000);
    expect(found.get('eventstore_gc_heap_size_bytes')).toBeGreaterThan(1_000_000);
    expect(found.get('eventstore_sys_mem_bytes{kind="total"}')).toBeGreaterThan(1_000_000);
    for (const period of ['1m', '5m', '15m'])
      expect(found.has(`eventstore_sys_load_avg{period="${period}"}`)).toBe(true);
    const disk = process.cwd().replaceAll('\\', '\\\\');
    expect(found.get(`eventstore_sys_disk_bytes{disk="${disk}",kind="total"}`)).toBeGreaterThan(
      found.get(`eventstore_sys_disk_bytes{disk="${disk}",kind="used"}`)!,
    );
    for (const kind of ['mean', 'p99', 'max'])
      expect(found.get(`eventstore_event_loop_delay_seconds{kind="${kind}"}`)).toBeGreaterThanOrEqual(0);
    expect(watch.cpuPercent()).toBeGreaterThanOrEqual(0);
  });

  test('a rate is that of the last whole window, whoever asks how often', () => {
    const rate = new RecentRate(10_000, 0, 100);
    expect(rate.read(5_000, 600)).toBe(0);
    expect(rate.read(10_000, 600)).toBe(50);
    expect(rate.read(10_001, 9_000)).toBe(50);
    expect(rate.read(20_000, 600)).toBe(0);
  });
});
