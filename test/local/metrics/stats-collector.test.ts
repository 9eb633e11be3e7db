import { afterEach, describe, expect, test } from 'vitest';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import type { DirectoryStore } from '../../../core/store/store.ts';
import type { StatsTree } from '../../../handlers/http/node-control.ts';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { StatsCollector } from '../../../local/metrics/stats-collector.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestStore } from '../../support/test-store.ts';

let open: DirectoryStore | null = null;
afterEach(async () => {
  await open?.close();
  open = null;
});

const EVENT = {
  id: '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11',
  type: 'made',
  isJson: true,
  data: new TextEncoder().encode('{}'),
  metadata: new Uint8Array(0),
};

describe('statistics', () => {
  test('have the documented branches that mean something here', async () => {
    const clock = new ManualClock(Date.UTC(2031, 3, 2), 'microtask');
    const metrics = createMetrics(clock);
    let store: DirectoryStore | null = null;
    const collector = new StatsCollector({
      clock,
      metrics,
      process: { cpuPercent: () => 12.5 },
      store: () => store,
      folder: process.cwd(),
      periodMs: 30_000,
    });
    expect(collector.current()).toEqual({});
    await collector.collect();
    expect(Object.keys(collector.current())).toEqual(['proc', 'sys']);

    store = open = await openTestStore({ storage: new MemoryStorage(), clock, meter: metrics });
    await store.store.append('orders', -1, [EVENT]);
    await collector.collect();
    const { proc, sys, es } = collector.current() as Record<string, StatsTree>;
    expect(proc).toMatchObject({
      id: process.pid,
      cpu: 12.5,
      mem: expect.any(Number),
      startTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      gc: { totalBytesInHeaps: expect.any(Number) },
    });
    expect(sys).toMatchObject({
      loadavg: { '1m': expect.any(Number) },
      totalMem: expect.any(Number),
      drive: { [process.cwd()]: { usage: expect.stringMatching(/^\d+%$/) } },
    });
    expect(es).toMatchObject({
      checksum: store.store.end,
      checksumNonFlushed: store.store.end,
      queue: { Writer: { queueName: 'Writer', length: 0 } },
      writer: { lastFlushSize: expect.any(Number), maxFlushDelayMs: expect.any(Number) },
      readIndex: { cachedStreamInfo: expect.any(Number) },
    });
    const numbers = JSON.stringify(collector.current());
    expect(numbers).not.toContain('null');
  });

  test('are collected every period until the signal', async () => {
    const clock = new ManualClock();
    const seen: StatsTree[] = [];
    const stop = new AbortController();
    const first = Promise.withResolvers<void>();
    const second = Promise.withResolvers<void>();
    const collector = new StatsCollector({
      clock,
      metrics: createMetrics(clock),
      process: { cpuPercent: () => 0 },
      store: () => null,
      folder: null,
      periodMs: 30_000,
      onCollected: (stats) => {
        if (seen.push(stats) === 1) first.resolve();
        else second.resolve();
      },
    });
    const running = collector.run(stop.signal);
    await first.promise;
    await clock.advance(29_999);
    expect(seen).toHaveLength(1);
    await clock.advance(1);
    await second.promise;
    expect(seen).toHaveLength(2);
    stop.abort();
    await running;
  });
});
