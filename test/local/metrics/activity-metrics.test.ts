import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { Activity, WebhookActivity } from '../../../local/metrics/activity-metrics.ts';
import { quantile } from '../../../local/metrics/recent.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const WRITTEN = { activity: 'written' };

function setUp() {
  const clock = new ManualClock();
  const metrics = createMetrics(clock);
  return { clock, metrics };
}

describe('what a node does', () => {
  test('is told as totals at once, and as rates from the second look on', async () => {
    const { clock, metrics } = setUp();
    const activity = new Activity(metrics, clock);
    metrics.count('eventstore_io_events_total', 7, WRITTEN);
    expect(activity.view()).toMatchObject({
      windowSeconds: null,
      eventsWrittenPerSecond: null,
      appendP99Seconds: null,
      totals: { eventsWritten: 7, eventsRead: 0 },
    });
    await clock.advance(500);
    expect(activity.view().windowSeconds).toBeNull();
    await clock.advance(1_500);
    metrics.count('eventstore_io_events_total', 10, WRITTEN);
    metrics.observe('eventstore_append_group_requests', 4);
    metrics.observe('eventstore_append_duration_seconds', 0.003);
    metrics.count('eventstore_http_requests_total', 2, { method: 'GET', status: '2xx', area: 'streams' });
    metrics.count('eventstore_http_requests_total', 2, { method: 'POST', status: '2xx', area: 'streams' });
    // Those of gRPC come when somebody looks at the metrics, all at once.
    metrics.count('eventstore_grpc_calls_total', 1_000, { activity: 'read', status: 'OK' });
    expect(activity.view()).toMatchObject({
      windowSeconds: 2,
      eventsWrittenPerSecond: 5,
      eventsReadPerSecond: 0,
      appendsPerSecond: 2,
      requestsPerSecond: 2,
      appendP99Seconds: expect.closeTo(0.003_49, 9),
      requestP99Seconds: null,
      totals: { appends: 4, requests: 4, eventsWritten: 17 },
    });
  });

  test('is that of about the last 10 seconds, and nothing of long ago', async () => {
    const { clock, metrics } = setUp();
    const activity = new Activity(metrics, clock);
    for (let i = 0; i < 20; i++) {
      activity.view();
      metrics.count('eventstore_io_events_total', i < 10 ? 100 : 2, WRITTEN);
      await clock.advance(2_000);
    }
    expect(activity.view()).toMatchObject({ windowSeconds: 10, eventsWrittenPerSecond: 1 });
    await clock.advance(3_600_000);
    expect(activity.view()).toMatchObject({
      windowSeconds: null,
      eventsWrittenPerSecond: null,
      totals: { eventsWritten: 1_020 },
    });
  });

  test('costs no memory, however often it is looked at', async () => {
    const { clock, metrics } = setUp();
    const activity = new Activity(metrics, clock);
    for (let i = 0; i < 2_000; i++) {
      activity.view();
      await clock.advance(10);
    }
    expect(activity.view().windowSeconds).toBeLessThanOrEqual(12);
  });
});

test('a share of what came since lies within its bucket, as far in as it is counted', () => {
  const bounds = [1, 2, 5];
  const none = new Float64Array(4);
  expect(quantile(Float64Array.of(99, 0, 1, 0), none, bounds, 0.99)).toBe(1);
  expect(quantile(Float64Array.of(0, 100, 0, 0), none, bounds, 0.5)).toBe(1.5);
  expect(quantile(Float64Array.of(98, 0, 2, 0), none, bounds, 0.99)).toBe(3.5);
  expect(quantile(Float64Array.of(0, 0, 0, 5), none, bounds, 0.99)).toBeNull();
  expect(quantile(none, none, bounds, 0.99)).toBeNull();
  expect(quantile(Float64Array.of(100, 4, 0, 0), Float64Array.of(100, 0, 0, 0), bounds, 0.75)).toBe(1.75);
});

test('calls of senders are told by connector and outcome', async () => {
  const { clock, metrics } = setUp();
  const webhooks = new WebhookActivity(metrics, clock);
  const call = (connector: string, outcome: string, count = 1) =>
    metrics.count('eventstore_webhook_calls_total', count, { connector, outcome });
  expect(webhooks.view()).toEqual({ windowSeconds: null, connectors: [] });
  call('parcels', 'accepted', 3);
  await clock.advance(10_000);
  call('parcels', 'accepted', 20);
  call('parcels', 'unauthorized', 10);
  call('letters', 'accepted');
  metrics.observe('eventstore_webhook_call_duration_seconds', 0.02, { connector: 'parcels' });
  expect(webhooks.view()).toEqual({
    windowSeconds: 10,
    connectors: [
      {
        connectorId: 'parcels',
        calls: 33,
        outcomes: { accepted: 23, unauthorized: 10 },
        callsPerSecond: 3.3,
        outcomesPerSecond: { accepted: 2.3, unauthorized: 1 },
        p99Seconds: expect.closeTo(0.024_85, 9),
      },
      {
        connectorId: 'letters',
        calls: 1,
        outcomes: { accepted: 1 },
        callsPerSecond: 0.1,
        outcomesPerSecond: { accepted: 0.1 },
        p99Seconds: null,
      },
    ],
  });
});
