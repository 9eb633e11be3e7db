import { expect, test } from 'vitest';
import { STATS_PERIOD_MAX_MS, STATS_PERIOD_MIN_MS } from '../../../../handlers/grpc/monitoring/monitoring.ts';
import { securedGrpc } from '../../../grpc/harness.ts';
import { FakeNode } from '../../../support/fake-node.ts';
import { AS } from '../../secured.ts';

const STATS = '/event_store.client.monitoring.Monitoring/Stats';
const FLAT = {
  'proc-id': '4711',
  'proc-cpu': '1.5',
  'proc-drive-/data-usage': '40%',
  'proc-drive-/data-usedBytes': '4000',
  'proc-drive-/data-totalBytes': '10000',
  'proc-drive-/data-availableBytes': '6000',
  'sys-freeMem': '1024',
  'es-checksum': '100',
};

test('all statistics as text, at once and then once a period, until the client leaves', async () => {
  const node = new FakeNode();
  const h = securedGrpc({ node });
  const call = h.open(STATS, [{ refresh_time_period_in_ms: '1000', use_metadata: true }], { metadata: AS.plain });
  expect(await call.until(1)).toEqual([{ stats: FLAT }]);
  node.tree = { es: { checksum: 200 } };
  await h.clock.advance(999);
  expect(call.received).toHaveLength(1);
  await h.clock.advance(1);
  expect(call.received[1]).toEqual({ stats: { 'es-checksum': '200' } });
  call.cancel();
  await call.ended;
  await h.clock.advance(10_000);
  expect(call.received).toHaveLength(2);
  expect(h.clock.sleeping).toBe(0);
});

test('a client that takes nothing holds one message', async () => {
  const h = securedGrpc({ node: new FakeNode() });
  const call = h.open(STATS, [{ refresh_time_period_in_ms: '1000' }], { metadata: AS.plain, isStalled: true });
  await call.until(1);
  await h.clock.advance(60_000);
  expect([call.received.length, call.overruns]).toEqual([1, 0]);
  call.resume();
  await h.clock.advance(1_000);
  expect(call.received).toHaveLength(2);
  call.cancel();
});

test.each([
  ['1', STATS_PERIOD_MIN_MS],
  ['18446744073709551615', STATS_PERIOD_MAX_MS],
  ['9223372036854775809', STATS_PERIOD_MAX_MS],
  ['9007199254740993', STATS_PERIOD_MAX_MS],
])('a period of %s ms counts as %s', async (asked, periodMs) => {
  const h = securedGrpc({ node: new FakeNode() });
  const call = h.open(STATS, [{ refresh_time_period_in_ms: asked }], { metadata: AS.plain });
  await call.until(1);
  await h.clock.advance(periodMs - 1);
  expect(call.received).toHaveLength(1);
  await h.clock.advance(1);
  expect(call.received).toHaveLength(2);
  call.cancel();
});

test('a period of 0 is refused', async () => {
  expect(await securedGrpc({ node: new FakeNode() }).call(STATS, {}, AS.plain)).toMatchObject({
    status: 3,
    received: [],
  });
});

test('who may see the statistics over HTTP may see them here', async () => {
  const h = securedGrpc({ node: new FakeNode() });
  expect(await h.call(STATS, { refresh_time_period_in_ms: '1000' })).toMatchObject({
    status: 7,
    message: 'Access Denied',
  });
  const open = securedGrpc({ node: new FakeNode(), options: { allowAnonymousEndpointAccess: true } }).open(STATS, [
    { refresh_time_period_in_ms: '1000' },
  ]);
  expect(await open.until(1)).toHaveLength(1);
  open.cancel();
});
