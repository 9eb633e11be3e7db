import { expect, test } from 'vitest';
import { fakeConnectors, fakeIngest } from '../../support/fake-connectors.ts';
import { FakeNode } from '../../support/fake-node.ts';
import { harness } from '../harness.ts';
import { AS, secured } from '../secured.ts';

test('the overview is for operators, in one line', async () => {
  const node = new FakeNode();
  const { get } = secured({ node });
  const reply = await get('/admin/overview', undefined, AS.ops);
  expect([reply.status, reply.json()]).toEqual([200, await node.overview()]);
  expect(reply.text).not.toContain('\n');
  expect([(await get('/admin/overview')).status, (await get('/admin/overview', undefined, AS.plain)).status]).toEqual([
    401, 403,
  ]);
  expect((await get('/admin/overview', 'text/html', AS.ops)).status).toBe(406);
  expect((await harness().get('/admin/overview')).status).toBe(404);
});

test('the history is for operators too', async () => {
  const node = new FakeNode();
  const { get } = secured({ node });
  const reply = await get('/admin/overview/history', undefined, AS.ops);
  expect([reply.status, reply.json()]).toEqual([200, node.history.activity()]);
  const refused = [await get('/admin/overview/history'), await get('/admin/overview/history', undefined, AS.plain)];
  expect(refused.map(({ status }) => status)).toEqual([401, 403]);
  expect((await get('/admin/overview/history', 'text/html', AS.ops)).status).toBe(406);
});

test('the history of metrics is for whom the metrics are, and off with them', async () => {
  const node = new FakeNode();
  const { get } = secured({ node });
  const reply = await get('/metrics/history', undefined, AS.plain);
  expect([reply.status, reply.json()]).toEqual([200, node.history.metrics()]);
  expect((await get('/metrics/history')).status).toBe(401);
  expect((await harness({ node, options: { disableStatsOnHttp: true } }).get('/metrics/history')).status).toBe(404);
  expect((await harness().get('/metrics/history')).status).toBe(404);
});

test('the history of a connector is for operators, where connectors are', async () => {
  const node = new FakeNode();
  const webhooks = { connectors: await fakeConnectors(), ingest: fakeIngest() };
  const { get } = secured({ node, webhooks });
  const path = '/admin/webhooks/history?connector=parcels';
  const reply = await get(path, undefined, AS.ops);
  expect([reply.status, reply.json()]).toEqual([200, node.history.connector('parcels')]);
  expect([(await get(path)).status, (await get(path, undefined, AS.plain)).status]).toEqual([401, 403]);
  expect((await get('/admin/webhooks/history', undefined, AS.ops)).status).toBe(400);
  expect((await harness({ node }).get(path)).status).toBe(404);
});

test('what became of webhook calls is told where connectors are', async () => {
  const node = new FakeNode();
  const webhooks = { connectors: await fakeConnectors(), ingest: fakeIngest() };
  expect((await harness({ node, webhooks }).get('/admin/webhooks')).json()).toEqual(node.webhooks());
  expect((await harness({ node }).get('/admin/webhooks')).status).toBe(404);
  expect((await harness({ webhooks }).get('/admin/webhooks')).status).toBe(404);
});
