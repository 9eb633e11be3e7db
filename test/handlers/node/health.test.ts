import { describe, expect, test } from 'vitest';
import type { StartUpWork } from '../../../handlers/documents/node.ts';
import { createStartingApp } from '../../../handlers/starting.ts';
import type { StartingParts } from '../../../handlers/starting.ts';
import { Readiness } from '../../../local/node/control.ts';
import { FakeNode } from '../../support/fake-node.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { harness, ORIGIN } from '../harness.ts';

const WORK: StartUpWork = {
  phase: 'rebuilding-index',
  bytesDone: 25,
  bytesTotal: 100,
  elapsedSeconds: 3,
  remainingSeconds: 9,
};

describe('/health', () => {
  test('of a node that serves', async () => {
    const { get, send } = harness({ node: new FakeNode() });
    for (const method of ['GET', 'HEAD']) {
      const live = await send(method, '/health/live');
      expect([live.status, live.text, live.headers.get('cache-control')]).toEqual([204, '', 'no-store']);
    }
    const ready = await get('/health/ready');
    expect([ready.status, ready.json()]).toEqual([200, { status: 'ready' }]);
    expect((await send('POST', '/health/live')).status).toBe(405);
    expect((await send('HEAD', '/health/ready')).text).toBe('');
  });

  test('tells how much of the log is proved', async () => {
    const node = new FakeNode();
    node.proofs = { bytesUnproven: 4_096, oldestProofSeconds: 60 };
    const { get } = harness({ node });
    expect((await get('/health/ready')).json()).toEqual({
      status: 'ready',
      log: { bytesUnproven: 4_096, oldestProofSeconds: 60 },
    });
    node.work = WORK;
    expect((await get('/health/ready')).json()).toEqual({ status: 'starting', ...WORK });
  });

  test('of a node that still has work to do before it serves', async () => {
    const node = new FakeNode();
    node.isStarting = true;
    node.work = WORK;
    const { get, send } = harness({ node });
    for (const method of ['GET', 'HEAD']) expect((await send(method, '/health/live')).status).toBe(503);
    const ready = await get('/health/ready');
    expect([ready.status, ready.json()]).toEqual([503, { status: 'starting', ...WORK }]);
    expect(ready.headers.get('retry-after')).toBe('5');
  });

  test('of a member that lives without its bucket', async () => {
    const node = new FakeNode();
    node.work = { ...WORK, phase: 'storage_unreachable' };
    const { get, send } = harness({ node });
    for (const method of ['GET', 'HEAD']) expect((await send(method, '/health/live')).status).toBe(204);
    expect((await get('/health/ready')).json()).toMatchObject({ phase: 'storage_unreachable' });
  });

  test('of a node that goes away: alive, but not ready', async () => {
    const node = new FakeNode();
    node.state = 'ShuttingDown';
    const { get } = harness({ node });
    expect((await get('/health/live')).status).toBe(204);
    const ready = await get('/health/ready');
    expect([ready.status, ready.json()]).toEqual([503, { status: 'stopping' }]);
  });

  test('where there is no node around the handlers', async () => {
    const { get } = harness();
    expect((await get('/health/live')).status).toBe(204);
    expect((await get('/health/ready')).status).toBe(200);
  });
});

describe('while the store is being opened', () => {
  const metrics = async () => ({ contentType: 'text/plain', body: 'a 1\n' });
  const ask = (parts: Partial<StartingParts>, path: string, method = 'GET') =>
    createStartingApp({
      startUpWork: () => WORK,
      metrics,
      allowAnonymousMetrics: true,
      disableStatsOnHttp: false,
      ...parts,
    })(new Request(ORIGIN + path, { method }));

  test('health tells how far it is', async () => {
    expect((await ask({}, '/health/live')).status).toBe(503);
    expect((await ask({}, '/health/live', 'HEAD')).status).toBe(503);
    const ready = await ask({}, '/health/ready?a=b');
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'starting', ...WORK }]);
    expect(await (await ask({ startUpWork: () => null }, '/health/ready')).json()).toMatchObject({
      status: 'starting',
      phase: 'opening',
    });
  });

  test('senders of webhooks are told to come again, and nothing else', async () => {
    const reply = await ask({}, '/webhook/parcels', 'POST');
    expect([reply.status, await reply.text(), reply.headers.get('content-type')]).toEqual([503, '', null]);
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('metrics are there for those who may see them without a login', async () => {
    const head = await ask({}, '/metrics', 'HEAD');
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '4', '']);
    const reply = await ask({}, '/metrics');
    expect([reply.status, await reply.text()]).toEqual([200, 'a 1\n']);
    expect((await ask({ allowAnonymousMetrics: false }, '/metrics')).status).toBe(503);
    expect((await ask({ disableStatsOnHttp: true }, '/metrics')).status).toBe(503);
    // A page whose name was pointed at the node.
    expect([
      (await ask({ plainHostOf: () => 'evil.example.com' }, '/metrics')).status,
      (await ask({ plainHostOf: () => 'evil.example.com', allowedHosts: ['.example.com'] }, '/metrics')).status,
      (await ask({ plainHostOf: () => null }, '/metrics')).status,
    ]).toEqual([503, 200, 200]);
    expect(
      (
        await ask(
          {
            metrics: async () => {
              throw new Error('no');
            },
          },
          '/metrics',
        )
      ).status,
    ).toBe(503);
  });

  test.each([
    ['GET', '/'],
    ['POST', '/streams/a'],
    ['DELETE', '/health/live'],
    ['GET', '/info'],
    ['GET', '/health/ready/x'],
  ])('%s %s has to wait', async (method, path) => {
    const reply = await ask({ startUpWork: () => ({ ...WORK, remainingSeconds: 30.2 }) }, path, method);
    expect(reply.status).toBe(503);
    expect(reply.headers.get('retry-after')).toBe('31');
    expect(reply.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    expect(await reply.json()).toMatchObject({
      code: 'not_ready',
      detail: expect.stringContaining('rebuilding-index'),
    });
    expect(
      (await ask({ startUpWork: () => ({ ...WORK, remainingSeconds: 1e9 }) }, path, method)).headers.get('retry-after'),
    ).toBe('60');
    expect((await ask({ startUpWork: () => null }, path, method)).headers.get('retry-after')).toBe('5');
  });
});

describe('readiness', () => {
  test('knows the phase, and from its rate how long it will take', async () => {
    const clock = new ManualClock();
    const readiness = new Readiness(clock);
    expect(readiness.work()).toEqual({
      phase: 'opening',
      bytesDone: 0,
      bytesTotal: 0,
      elapsedSeconds: 0,
      remainingSeconds: null,
    });
    await clock.advance(1_000);
    readiness.update({ phase: 'recovering-log', bytesDone: 500, bytesTotal: 1_000 });
    expect(readiness.work()).toEqual({
      phase: 'recovering-log',
      bytesDone: 500,
      bytesTotal: 1_000,
      elapsedSeconds: 1,
      remainingSeconds: null,
    });
    await clock.advance(2_000);
    readiness.update({ phase: 'recovering-log', bytesDone: 600, bytesTotal: 1_000 });
    expect(readiness.work()).toMatchObject({ elapsedSeconds: 3, remainingSeconds: 8 });
    readiness.update({ phase: 'rebuilding-index', bytesDone: 0, bytesTotal: 50 });
    expect(readiness.work()).toMatchObject({ phase: 'rebuilding-index', remainingSeconds: null });
    await clock.advance(1_000);
    readiness.update({ phase: 'rebuilding-index', bytesDone: 50, bytesTotal: 50 });
    expect(readiness.work()).toMatchObject({ remainingSeconds: 0 });
    readiness.ready();
    expect(readiness.work()).toBeNull();
  });
});
