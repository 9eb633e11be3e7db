import { expect, test } from 'vitest';
import { systemClock } from '../../../infra/system-clock.ts';
import { OWN_PROCESS } from '../../../local/node/node-world.ts';
import { startNode } from '../../../local/node/node.ts';
import { testLog } from '../../../local/testing/test-log.ts';
import { load } from '../config/support.ts';

const MINUTE_MS = 60_000;

/** Time as it is, but that minutes pass when the test says so. */
function clockOfMinutes() {
  let passedMs = 0;
  let wake: (() => void)[] = [];
  const clock = {
    nowMs: () => systemClock.nowMs() + passedMs,
    monotonicMs: () => systemClock.monotonicMs() + passedMs,
    sleep: (ms: number, signal?: AbortSignal) =>
      ms !== MINUTE_MS
        ? systemClock.sleep(ms, signal)
        : new Promise<void>((resolve) => {
            wake.push(resolve);
            signal?.addEventListener('abort', () => resolve());
          }),
    yield: () => systemClock.yield(),
  };
  const minute = () => {
    passedMs += MINUTE_MS;
    const woken = wake;
    wake = [];
    for (const each of woken) each();
  };
  return { clock, minute };
}

test('a node keeps the lines that charts begin with: of its metrics and caches, of connectors and of groups', async () => {
  const { clock, minute } = clockOfMinutes();
  const node = await startNode({
    config: load(['--mem-db', '--insecure', '--node-port=0', '--connectors-data-protection-token=for a test']),
    env: {},
    log: testLog('error', undefined),
    world: { ...OWN_PROCESS, machineClock: clock, keepsProcess: false },
  });
  const ask = async (path: string, method = 'GET', body?: unknown) => {
    const reply = await fetch(node.url + path, {
      method,
      ...(body !== undefined && {
        headers: { 'content-type': 'application/json', 'es-eventtype': 'made' },
        body: JSON.stringify(body),
      }),
    });
    return { status: reply.status, text: await reply.text() };
  };
  type History = { times: number[]; values: Record<string, (number | null)[]> };
  const historyAt = async (path: string, steps: number) => {
    let history: History = { times: [], values: {} };
    await expect
      .poll(async () => {
        history = JSON.parse((await ask(path)).text) as History;
        return history.times.length;
      })
      .toBe(steps);
    return history;
  };
  try {
    const settings = {
      instanceTypeName: 'webhook-source',
      routingScript: Buffer.from('const route = () => ({ stream: "called" });').toString('base64'),
    };
    expect((await ask('/connectors/shop', 'POST', { settings })).status).toBe(200);
    expect((await ask('/connectors/shop/start', 'POST')).status).toBe(200);
    expect((await ask('/subscriptions/orders/workers', 'PUT', {})).status).toBe(201);
    minute();
    await historyAt('/metrics/history', 1);
    expect((await ask('/streams/orders', 'POST', { n: 1 })).status).toBe(201);
    expect((await ask('/webhook/shop', 'POST', {})).status).toBe(202);
    await expect.poll(async () => (await ask('/subscriptions/orders/workers/1')).text).toContain('made');
    minute();
    const { values } = await historyAt('/metrics/history', 2);
    const text = (await ask('/metrics')).text.replaceAll(/,(?=\w+=")/g, ', ');
    for (const name of Object.keys(values)) if (!name.includes('quantile=')) expect(text).toContain(`\n${name} `);
    expect(values['eventstore_io_events_total{activity="written"}']![1]).toBeGreaterThan(0);
    expect(values['eventstore_append_duration_seconds{quantile="0.99"}']![1]).toBeGreaterThan(0);
    expect(values['eventstore_cache_hits_misses_total{cache="stream-info", kind="hits"}']![1]).toBeGreaterThan(0);
    const calls = await historyAt('/admin/webhooks/history?connector=shop', 2);
    expect(calls.values['takenPerSecond']![1]).toBeGreaterThan(0);
    const group = await historyAt('/subscriptions/orders/workers/history', 2);
    expect(group.values['sentPerSecond']![1]).toBeGreaterThan(0);
    expect(group.values['inFlight']).toEqual([null, 0]);
  } finally {
    await node.stop();
  }
});
