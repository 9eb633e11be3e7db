import { afterEach, expect, test } from 'vitest';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { ANY } from '../../../core/streams/api.ts';
import { encodeText } from '../../../core/base/text.ts';
import { Deadline } from '../../../infra/aws/functions/deadline.ts';
import { settledStore } from '../../../infra/aws/functions/open-store.ts';
import type { FunctionStore } from '../../../infra/aws/functions/open-store.ts';
import { openWebhooks } from '../../../infra/aws/functions/function-webhooks.ts';
import { readSettings } from '../../../infra/aws/functions/function-settings.ts';
import { startNode } from '../../../local/node/node.ts';
import type { RunningNode } from '../../../local/node/node.ts';
import { basic } from '../../handlers/secured.ts';
import { worldOf } from '../../shared-log/tick-kit.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { TEST_NOW_MS } from '../../support/test-store.ts';
import { base64 } from '../../webhook/connectors/kit.ts';
import { callOf } from '../../webhook/ingest/kit.ts';
import { NodeLines } from '../backup/node-kit.ts';
import { load } from '../config/support.ts';

/** Access lists hold for connectors of a whole node, and of a function as it is put together. */

const SCRIPT = 'function route({ body }) { return { stream: body.stream }; }';
const SETTINGS = { instanceTypeName: 'webhook-source', routingScript: base64(SCRIPT), waitForWrite: 'true' };
const OPS = { authorization: basic('ops', 'changeit') };
const ADMIN = { authorization: basic('admin', 'changeit') };

let node: RunningNode | null = null;
afterEach(async () => {
  await node?.stop();
  node = null;
});

async function start(
  ...words: readonly string[]
): Promise<(method: string, path: string, headers?: Record<string, string>, body?: unknown) => Promise<Response>> {
  const running = (node = await startNode({
    config: load([
      '--node-port',
      '0',
      '--mem-db',
      '--chunk-size',
      '131072',
      '--stream-existence-filter-size',
      '10000',
      ...words,
    ]),
    log: new NodeLines(),
    env: {},
  }));
  return (method, path, headers = {}, body = undefined) =>
    fetch(running.url + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
}

test('a node: an operator gets nothing written by a connector where the list keeps it out, and reads why', async () => {
  const ask = await start('--disable-tls');
  const metadata = (writer: string) =>
    ask(
      'POST',
      '/streams/payroll/metadata',
      { ...ADMIN, 'es-eventtype': '$metadata', 'es-eventid': crypto.randomUUID() },
      { $acl: { $w: writer } },
    );
  expect((await metadata('ada')).status).toBe(201);
  expect((await ask('POST', '/connectors/parcels', OPS, { settings: SETTINGS })).status).toBe(200);
  expect((await ask('POST', '/connectors/parcels/start', OPS)).status).toBe(200);
  const send = async (stream: string) => (await ask('POST', '/webhook/parcels', {}, { stream })).status;
  expect([await send('payroll'), await send('open')]).toEqual([500, 201]);
  expect(
    await (await ask('POST', '/connectors/parcels/test', OPS, { body: { stream: 'payroll' } })).json(),
  ).toMatchObject({ outcome: 'failed' });
  expect((await metadata('connector:parcels')).status).toBe(201);
  expect(await send('payroll')).toBe(201);
  let rejections: readonly object[] = [];
  while (rejections.length === 0)
    ({ rejections } = (await (await ask('GET', '/connectors/parcels/rejections', OPS)).json()) as {
      rejections: readonly object[];
    });
  expect(rejections).toMatchObject([{ status: 500, reason: expect.stringContaining('connector:parcels') }]);
});

test('a node without users asks no lists', async () => {
  const ask = await start('--insecure');
  expect(
    (
      await ask(
        'POST',
        '/streams/payroll/metadata',
        { 'es-eventtype': '$metadata', 'es-eventid': crypto.randomUUID() },
        { $acl: { $w: 'ada' } },
      )
    ).status,
  ).toBe(201);
  await ask('POST', '/connectors/parcels', {}, { settings: SETTINGS });
  await ask('POST', '/connectors/parcels/start');
  expect((await ask('POST', '/webhook/parcels', {}, { stream: 'payroll' })).status).toBe(201);
});

test.each([
  [{}, 500],
  [{ SERVER_INSECURE: 'true' }, 202],
] as const)('a function, with %j', async (env, status) => {
  const clock = new ManualClock(TEST_NOW_MS, 'microtask');
  const world = worldOf(new MemoryObjects({ clock }), clock, 2);
  const instance = await openObjectStore(world);
  const { store, settled } = settledStore(instance.store);
  const deadline = new Deadline();
  deadline.begin(() => 20_000);
  const settings = readSettings({ SERVER_STORAGE: 's3://bucket/prefix', ...env }, { hasUsers: false });
  const { connectors, ingest } = (await openWebhooks(
    { settings, world, instance, store, settled } satisfies FunctionStore,
    deadline,
  ))!;
  await connectors!.create('parcels', null, new Map(Object.entries({ ...SETTINGS, waitForWrite: 'false' })));
  await connectors!.start('parcels');
  await store.append('$$payroll', ANY, [
    {
      id: '60000000-0000-4000-8000-000000000001',
      type: '$metadata',
      isJson: true,
      data: encodeText('{"$acl":{"$w":"ada"}}'),
      metadata: new Uint8Array(0),
    },
  ]);
  expect(await ingest!.receive(callOf({ stream: 'payroll' }, clock), () => new AbortController().signal)).toBe(status);
  expect(await ingest!.receive(callOf({ stream: 'open' }, clock), () => new AbortController().signal)).toBe(202);
  await settled();
  await instance.close();
});
