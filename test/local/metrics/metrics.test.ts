import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { SERIES_MAX } from '../../../local/metrics/series.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { parseExposition } from './exposition.ts';

const START_MS = Date.UTC(2031, 3, 2, 9, 15, 30);
const WRITTEN = { activity: 'written' };

function setUp() {
  const clock = new ManualClock(START_MS);
  const metrics = createMetrics(clock);
  const values = async (accept: string | null = null) => parseExposition((await metrics.render(accept)).body);
  return { clock, metrics, values };
}

describe('metrics', () => {
  test('count, show gauges, and sort into buckets', async () => {
    const { metrics, values } = setUp();
    metrics.count('eventstore_io_events_total', 3, WRITTEN);
    metrics.count('eventstore_io_events_total', 2, { activity: 'written' });
    metrics.count('eventstore_http_requests_failed_total');
    metrics.gauge('eventstore_append_queue_length', 7);
    metrics.gauge('eventstore_append_queue_length', 5);
    for (const seconds of [0.0004, 0.0005, 0.003, 60]) metrics.observe('eventstore_append_duration_seconds', seconds);
    const { values: found, types } = await values();
    expect(found.get('eventstore_io_events_total{activity="written"}')).toBe(5);
    expect(found.get('eventstore_http_requests_failed_total')).toBe(1);
    expect(found.get('eventstore_append_queue_length')).toBe(5);
    expect(found.get('eventstore_append_duration_seconds_bucket{le="0.0005"}')).toBe(2);
    expect(found.get('eventstore_append_duration_seconds_bucket{le="0.0025"}')).toBe(2);
    expect(found.get('eventstore_append_duration_seconds_bucket{le="0.005"}')).toBe(3);
    expect(found.get('eventstore_append_duration_seconds_bucket{le="10"}')).toBe(3);
    expect(found.get('eventstore_append_duration_seconds_bucket{le="+Inf"}')).toBe(4);
    expect(found.get('eventstore_append_duration_seconds_count')).toBe(4);
    expect(found.get('eventstore_append_duration_seconds_sum')).toBeCloseTo(60.0039);
    expect(types.get('eventstore_append_duration_seconds')).toBe('histogram');
    expect(types.get('eventstore_writer_flush_size_max')).toBe('gauge');
  });

  test('keep combinations of labels apart that are given in turns, and begin anew once they were cleared', async () => {
    const { metrics, values } = setUp();
    const read = { activity: 'read' };
    for (const labels of [WRITTEN, WRITTEN, read, WRITTEN, read])
      metrics.count('eventstore_io_events_total', 1, labels);
    const count = async (activity: string) =>
      (await values()).values.get(`eventstore_io_events_total{activity="${activity}"}`);
    expect([await count('written'), await count('read')]).toEqual([3, 2]);
    metrics.collect((sink) => {
      sink.clear('eventstore_io_events_total');
      sink.total('eventstore_io_events_total', 11, read);
    });
    expect([await count('written'), await count('read')]).toEqual([undefined, 11]);
  });

  test('a recent maximum is forgotten after 16 to 20 seconds', async () => {
    const { clock, metrics, values } = setUp();
    const name = 'eventstore_writer_flush_size_max{range="16-20 seconds"}';
    expect((await values()).values.get(name)).toBe(0);
    metrics.observe('eventstore_writer_flush_size_max', 900);
    await clock.advance(4_000);
    metrics.observe('eventstore_writer_flush_size_max', 100);
    await clock.advance(12_000);
    expect((await values()).values.get(name)).toBe(900);
    await clock.advance(4_000);
    expect((await values()).values.get(name)).toBe(100);
    await clock.advance(1_000_000);
    expect((await values()).values.get(name)).toBe(0);
    expect(metrics.summaryOf('eventstore_writer_flush_size_max')).toEqual({ last: 100, mean: 500, max: 900 });
  });

  test('of a status only the present one is shown, with the time of the scrape', async () => {
    const { clock, metrics, values } = setUp();
    metrics.gauge('eventstore_statuses', 1, { name: 'Scavenge', status: 'Accumulation Phase' });
    metrics.gauge('eventstore_statuses', 2, { name: 'Scavenge', status: 'Cleaning Phase' });
    await clock.advance(5_000);
    const { values: found } = await values();
    expect([...found].filter(([key]) => key.startsWith('eventstore_statuses'))).toEqual([
      ['eventstore_statuses{name="Scavenge",status="Cleaning Phase"}', START_MS / 1_000 + 5],
    ]);
    expect(metrics.statusOf('Scavenge')).toBe('Cleaning Phase');
    expect(metrics.statusOf('Index')).toBeNull();
  });

  test('OpenMetrics for those who prefer it, as often as they like, and the text format for others', async () => {
    const { metrics } = setUp();
    metrics.count('eventstore_io_events_total', 3, WRITTEN);
    for (let scrape = 0; scrape < 2; scrape++) {
      const open = await metrics.render(
        'application/openmetrics-text;version=1.0.0;q=0.8, text/plain;version=0.0.4;q=0.5, */*;q=0.1',
      );
      expect(open.contentType).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
      expect(open.body).toContain(
        '# TYPE eventstore_io_events counter\neventstore_io_events_total{activity="written"} 3\n',
      );
      expect(open.body).toMatch(/\n# EOF\n$/);
      expect(open.body).not.toContain('_total_total');
      expect(open.body).not.toContain('\n\n');
      const text = await metrics.render('text/plain');
      expect(text.contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
      expect(text.body).toContain(
        '# TYPE eventstore_io_events_total counter\neventstore_io_events_total{activity="written"} 3\n',
      );
    }
    for (const accept of [
      'application/openmetrics-text;q=0.2, text/plain',
      'application/openmetrics-text;q=0',
      '*/*',
      null,
    ]) {
      expect((await metrics.render(accept)).contentType, String(accept)).toContain('text/plain');
    }
  });

  test('nothing that is handed to them makes them fail or grow without end', async () => {
    const { metrics, values } = setUp();
    metrics.count('nobody_knows_this');
    metrics.gauge('nobody_knows_this', 1);
    metrics.observe('nobody_knows_this', 1, { a: 'b' });
    metrics.observe('eventstore_append_duration_seconds', Number.NaN);
    metrics.count('eventstore_io_events_total', -5, WRITTEN);
    metrics.observe('eventstore_append_queue_length', 3);
    for (let i = 0; i < SERIES_MAX + 100; i++)
      metrics.count('eventstore_io_bytes_total', 1, { activity: `"tricky\\\n${i}` });
    const { values: found } = await values();
    expect([...found.keys()].filter((key) => key.startsWith('eventstore_io_bytes_total'))).toHaveLength(SERIES_MAX + 1);
    // What is too much is counted together.
    expect(
      [...found].find(([key]) => key.startsWith('eventstore_io_bytes_total') && key.includes('"others"'))?.[1],
    ).toBe(100);
    expect(found.get('eventstore_append_duration_seconds_count')).toBe(0);
  });

  test('collectors are asked at every scrape, once for those at the same time; one that fails spoils nothing', async () => {
    const { metrics, values } = setUp();
    let asked = 0;
    metrics.collect(() => {
      throw new Error('no');
    });
    metrics.collect(async () => {
      throw new Error('no');
    });
    const leave = metrics.collect(async (sink) => {
      sink.gauge('eventstore_subscriptions', ++asked);
      sink.total('eventstore_index_merges_total', 40);
      sink.total('eventstore_index_merges_total', 41);
    });
    const [one, other] = await Promise.all([values(), values('application/openmetrics-text')]);
    expect(asked).toBe(1);
    expect(one.values.get('eventstore_subscriptions')).toBe(1);
    expect(other.values.get('eventstore_index_merges_total')).toBe(41);
    expect((await values()).values.get('eventstore_subscriptions')).toBe(2);
    leave();
    expect((await values()).values.get('eventstore_subscriptions')).toBe(2);
  });
});
