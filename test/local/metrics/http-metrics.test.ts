import { describe, expect, test } from 'vitest';
import { areaOf, meterRequests } from '../../../local/metrics/http-metrics.ts';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { parseExposition } from './exposition.ts';

const ORIGIN = 'http://127.0.0.1:2113';

describe('requests', () => {
  test.each([
    ['/', 'root'],
    ['', 'root'],
    ['/?a=b', 'root'],
    ['/streams/a/0', 'streams'],
    ['/streams', 'streams'],
    ['/admin/scavenge/current', 'scavenge'],
    ['/admin/shutdown', 'admin'],
    ['/stats?group=false', 'stats'],
    ['/users/kim', 'users'],
    ['/nowhere/../x', 'other'],
    ['/streamsx', 'other'],
  ])('%s belongs to %s', (path, area) => {
    expect(areaOf(ORIGIN + path)).toBe(area);
  });

  test('are counted by method, status and area, and timed', async () => {
    const clock = new ManualClock();
    const metrics = createMetrics(clock);
    const pending: (() => void)[] = [];
    const app = meterRequests(
      (request) => {
        const path = new URL(request.url).pathname;
        if (path === '/ping') return new Response('pong');
        if (path === '/boom') throw new Error('boom');
        if (path === '/users') return Promise.reject(new Error('no'));
        return new Promise((resolve) => {
          pending.push(() => resolve(new Response(null, { status: 201 })));
        });
      },
      { meter: metrics, clock },
    );
    const values = async () => parseExposition((await metrics.render(null)).body).values;

    await app(new Request(`${ORIGIN}/ping`));
    expect(() => app(new Request(`${ORIGIN}/boom`, { method: 'PATCH' }))).toThrow('boom');
    await expect(app(new Request(`${ORIGIN}/users`, { method: 'POST' }))).rejects.toThrow('no');
    const slow = app(new Request(`${ORIGIN}/streams/a`, { method: 'POST' }));
    const poll = app(new Request(`${ORIGIN}/streams/a/0/forward/20`, { headers: { 'es-longpoll': '30' } }));
    expect((await values()).get('eventstore_http_requests_under_way')).toBe(2);
    await clock.advance(2_000);
    for (const go of pending) go();
    await Promise.all([slow, poll]);

    const found = await values();
    expect(found.get('eventstore_http_requests_under_way')).toBe(0);
    expect(found.get('eventstore_http_requests_total{area="ping",method="GET",status="2xx"}')).toBe(1);
    expect(found.get('eventstore_http_requests_total{area="other",method="other",status="5xx"}')).toBe(1);
    expect(found.get('eventstore_http_requests_total{area="users",method="POST",status="5xx"}')).toBe(1);
    expect(found.get('eventstore_http_requests_total{area="streams",method="POST",status="2xx"}')).toBe(1);
    expect(found.get('eventstore_http_requests_total{area="streams",method="GET",status="2xx"}')).toBe(1);
    expect(found.get('eventstore_http_request_duration_seconds_sum{area="streams",method="POST"}')).toBe(2);
    // A long poll waits for events, which says nothing of the node.
    expect(found.has('eventstore_http_request_duration_seconds_count{area="streams",method="GET"}')).toBe(false);
  });
});
