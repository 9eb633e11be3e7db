import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { CONNECTOR_BODY_BYTES_MAX } from '../../../handlers/connectors/requests.ts';
import { base64, eventsOf, openWorld, SCRIPT } from '../../webhook/connectors/kit.ts';
import type { Instance, World } from '../../webhook/connectors/kit.ts';
import { AS, LogLines, secured } from '../secured.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const SETTINGS = { instanceTypeName: 'webhook-source', routingScript: base64(SCRIPT) };
const SIGNED = { ...SETTINGS, signature: { scheme: 'GitHub', secret: 'very-secret' } };
const NOW = '2026-11-22T00:00:00Z';

let world: World;
let instance: Instance;
let h: ReturnType<typeof secured>;
let log: LogLines;

beforeEach(async () => {
  world = await openWorld();
  instance = world.instance();
  log = new LogLines();
  h = secured({ log, webhooks: { connectors: instance.connectors, ingest: null } } as never);
});
afterEach(() => world.close());

const send = (method: string, path: string, body: unknown = undefined, headers: Record<string, string> = AS.ops) =>
  h.send(
    method,
    path,
    { ...headers, ...(body !== undefined && JSON_TYPE) },
    body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
  );

async function create(id: string, settings: object = SETTINGS): Promise<void> {
  expect((await send('POST', `/connectors/${id}`, { settings })).status).toBe(200);
}

test('an unsigned connector that may write everywhere is created with a warning, in the answer and in the log', async () => {
  const warned = () =>
    instance.log.lines.filter(({ message }) => message === 'a connector was configured with a warning').length;
  const warnings = [expect.stringMatching(/not signed.*streams/)];
  expect((await send('POST', '/connectors/parcels', { settings: SETTINGS })).json()).toEqual({ warnings });
  expect(warned()).toBe(1);
  expect((await send('PUT', '/connectors/parcels/settings', SETTINGS)).json()).toEqual({ warnings });
  expect(warned()).toBe(2);
  expect((await send('PUT', '/connectors/parcels/settings', { ...SETTINGS, streams: ['orders-*'] })).json()).toEqual(
    {},
  );
  expect(await send('POST', '/connectors/letters', { settings: SIGNED })).toMatchObject({ status: 200, text: '{}' });
  expect(
    (await send('POST', '/connectors/orders', { settings: { ...SETTINGS, streams: ['orders-*', 'returns'] } })).json(),
  ).toEqual({});
  expect((await send('GET', '/connectors/orders/settings')).json().settings).toEqual({
    ...SETTINGS,
    'streams:0': 'orders-*',
    'streams:1': 'returns',
  });
  expect(warned()).toBe(2);
});

test('a trial says where a connector may not write', async () => {
  await create('parcels', { ...SETTINGS, streams: ['returns'] });
  expect((await send('POST', '/connectors/parcels/test', { body: { id: 7 } })).json()).toMatchObject({
    outcome: 'failed',
    stream: 'orders-7',
    error: expect.stringContaining('may not write'),
  });
});

describe('a trial of settings that are not stored', () => {
  const changed = {
    ...SETTINGS,
    routingScript: base64('function route({ body }) { return { stream: `tried-${body.id}` }; }'),
  };

  test('runs their script, and leaves the stored one as it is', async () => {
    await create('parcels');
    expect(
      (await send('POST', '/connectors/parcels/test', { body: { id: 7 }, settings: changed })).json(),
    ).toMatchObject({ outcome: 'routed', stream: 'tried-7' });
    expect((await send('POST', '/connectors/parcels/test', { body: { id: 7 } })).json()).toMatchObject({
      outcome: 'routed',
      stream: 'orders-7',
    });
  });

  test('needs no connector, and no secret', async () => {
    expect(
      (
        await send('POST', '/connectors/unborn/test', {
          body: '{"id": 1}',
          settings: { ...changed, signature: { scheme: 'GitHub', secret: '********' }, streams: ['others'] },
        })
      ).json(),
    ).toMatchObject({ outcome: 'failed', stream: 'tried-1', error: expect.stringContaining('may not write') });
    expect((await send('GET', '/connectors/unborn')).status).toBe(404);
    expect((await send('POST', '/connectors/unborn/test', { body: {} })).status).toBe(404);
  });

  test.each<[string, unknown]>([
    ['unborn', {}],
    ['unborn', { instanceTypeName: 'webhook-source' }],
    ['unborn', { ...SETTINGS, nothing: 1 }],
    ['unborn', 'x'],
    ['unborn', []],
    ['no%20id', SETTINGS],
  ])('is refused for %s with %j', async (id, settings) => {
    expect((await send('POST', `/connectors/${id}/test`, { body: {}, settings })).status).toBe(400);
  });
});

describe('rejections', () => {
  const note = (value: unknown) =>
    h.store.append('$webhook-parcels-rejections', -2, [
      {
        id: h.id(),
        type: '$webhook-rejection',
        isJson: true,
        data: new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value)),
        metadata: new Uint8Array(0),
      },
    ]);

  test('are shown to operators, newest first, whatever stands in their stream', async () => {
    await create('parcels');
    expect((await send('GET', '/connectors/parcels/rejections')).json()).toEqual({
      connectorId: 'parcels',
      rejections: [],
    });
    await note({ time: NOW, status: 401, reason: 'The signature is wrong.', headers: ['x-signature'], suppressed: 3 });
    await note('no JSON');
    await note({ time: 1, status: 'x', reason: {}, headers: 'x', deliveryId: 'd-1', secret: 'hidden' });
    expect((await send('GET', '/connectors/parcels/rejections')).json().rejections).toEqual([
      { eventNumber: 2, time: null, status: null, reason: '', headers: [], deliveryId: 'd-1' },
      { eventNumber: 1, time: null, status: null, reason: '', headers: [] },
      {
        eventNumber: 0,
        time: NOW,
        status: 401,
        reason: 'The signature is wrong.',
        headers: ['x-signature'],
        suppressed: 3,
      },
    ]);
    expect((await send('GET', '/connectors/parcels/rejections?count=1')).json().rejections).toHaveLength(1);
    expect((await send('GET', '/connectors/parcels/rejections', undefined, AS.plain)).status).toBe(403);
  });

  test.each(['0', '101', 'x', '-1', ''])('are refused for count=%s', async (count) => {
    await create('parcels');
    expect((await send('GET', `/connectors/parcels/rejections?count=${count}`)).status).toBe(400);
  });

  test('are those of a connector that there is', async () => {
    expect((await send('GET', '/connectors/nobody/rejections')).status).toBe(404);
  });
});

describe('a life', () => {
  test('over HTTP', async () => {
    expect(
      (await send('POST', '/connectors/parcels', { name: 'Parcels', settings: SIGNED })).headers.get('content-type'),
    ).toBe('application/json; charset=utf-8');
    const settings = { ...SETTINGS, 'signature:scheme': 'GitHub', 'signature:secret': '********' };
    expect((await send('GET', '/connectors/parcels/settings')).json()).toEqual({ settings, settingsUpdateTime: NOW });
    expect((await send('GET', '/connectors/parcels/configuration')).json()).toEqual({
      configuration: { ...SETTINGS, signature: { scheme: 'GitHub', secret: '********' } },
      configurationUpdateTime: NOW,
    });
    expect(await send('POST', '/connectors/parcels/start')).toMatchObject({ status: 200, text: '{}' });
    expect(await send('PUT', '/connectors/parcels/rename', { name: 'Letters' })).toMatchObject({
      status: 200,
      text: '{}',
    });
    const item = {
      connectorId: 'parcels',
      instanceTypeName: 'webhook-source',
      name: 'Letters',
      state: 'CONNECTOR_STATE_RUNNING',
      stateUpdateTime: NOW,
      settingsUpdateTime: NOW,
      createTime: NOW,
      updateTime: NOW,
    };
    expect((await send('GET', '/connectors')).json()).toEqual({ items: [item], totalSize: 1 });
    expect((await send('GET', '/connectors?includeSettings=true&includeConfiguration=true')).json().items[0]).toEqual({
      ...item,
      settings,
      configuration: expect.objectContaining({ signature: { scheme: 'GitHub', secret: '********' } }),
    });
    for (const [method, path] of [
      ['POST', 'stop'],
      ['POST', 'reset'],
      ['POST', 'stop'],
    ] as const)
      expect(await send(method, `/connectors/parcels/${path}`)).toMatchObject({ status: 200, text: '{}' });
    expect(await send('DELETE', '/connectors/parcels')).toMatchObject({ status: 200, text: '{}' });
    expect((await send('GET', '/connectors')).json()).toEqual({ items: [], totalSize: 0 });
    expect((await send('GET', '/connectors?showDeleted=true')).json().items[0]).toMatchObject({
      connectorId: 'parcels',
      deleteTime: NOW,
    });
  });

  test.each(['settings', 'configuration'])(
    'PUT of %s replaces all, flat or nested, and keeps masked secrets',
    async (path) => {
      await create('parcels', { ...SIGNED, waitForWrite: true });
      expect(
        (
          await send('PUT', `/connectors/parcels/${path}`, {
            ...SIGNED,
            signature: { scheme: 'Slack', secret: '********' },
            allowedHeaders: ['X-A'],
            'deduplication:maxCount': 5,
          })
        ).status,
      ).toBe(200);
      expect((await send('GET', '/connectors/parcels/settings')).json().settings).toEqual({
        ...SETTINGS,
        'signature:scheme': 'Slack',
        'signature:secret': '********',
        'allowedHeaders:0': 'X-A',
        'deduplication:maxCount': '5',
      });
      await send('POST', '/connectors/parcels/start');
      expect(await instance.connectors.activeOf('parcels')).toMatchObject({ revision: 1, secrets: ['very-secret'] });
    },
  );

  test('what GET gives can be PUT back, as it is or changed, and POSTed under another id', async () => {
    expect(
      (await send('POST', '/connectors/p', { settings: { ...SIGNED, skippedStatus: 202, streams: ['orders-*'] } }))
        .status,
    ).toBe(200);
    const shown = (await send('GET', '/connectors/p')).json();
    const settings = {
      ...SETTINGS,
      skippedStatus: '202',
      'signature:scheme': 'GitHub',
      'signature:secret': '********',
      'streams:0': 'orders-*',
    };
    expect(shown).toEqual({
      connectorId: 'p',
      instanceTypeName: 'webhook-source',
      name: 'p',
      state: 'CONNECTOR_STATE_STOPPED',
      stateUpdateTime: NOW,
      settings,
      settingsUpdateTime: NOW,
      createTime: NOW,
      updateTime: NOW,
    });
    expect(await send('PUT', '/connectors/p', shown)).toMatchObject({ status: 200, text: '{}' });
    expect((await send('GET', '/connectors/p')).json()).toEqual(shown);
    for (const path of ['settings', 'configuration']) {
      const document = (await send('GET', `/connectors/p/${path}`)).json();
      for (const target of ['settings', 'configuration'])
        expect(await send('PUT', `/connectors/p/${target}`, document)).toMatchObject({ status: 200, text: '{}' });
      // The item itself is taken there, too.
      expect((await send('PUT', `/connectors/p/${path}`, shown)).status).toBe(200);
    }
    expect((await send('GET', '/connectors/p')).json()).toEqual(shown);
    await send('POST', '/connectors/p/start');
    expect(await instance.connectors.activeOf('p')).toMatchObject({
      revision: 7,
      secrets: ['very-secret'],
      settings: { skippedStatus: 202 },
    });

    expect(
      (await send('PUT', '/connectors/p', { ...shown, name: 'Parcels', settings: { ...settings, skippedStatus: 204 } }))
        .status,
    ).toBe(200);
    expect((await send('GET', '/connectors/p')).json()).toMatchObject({
      name: 'Parcels',
      state: 'CONNECTOR_STATE_RUNNING',
      settings: { skippedStatus: '204' },
    });
    expect((await eventsOf(world.store, '$connectors/p')).slice(-2).map(({ type }) => type)).toEqual([
      '$conn-mngt-connector-reconfigured',
      '$conn-mngt-connector-renamed',
    ]);
    // Without a name it stays.
    expect((await send('PUT', '/connectors/p', { settings: { ...settings, signature: undefined } })).status).toBe(200);
    expect((await send('GET', '/connectors/p')).json().name).toBe('Parcels');

    expect((await send('POST', '/connectors/q', { ...shown, name: null })).json()).toMatchObject({
      code: 3,
      details: [
        { fieldViolations: [{ field: 'signature:secret', description: expect.stringContaining('there is none') }] },
      ],
    });
    expect(
      (
        await send('POST', '/connectors/q', {
          ...shown,
          name: 'Parcels',
          settings: { ...settings, 'signature:secret': 'another' },
        })
      ).status,
    ).toBe(200);
    const missing = await send('PUT', '/connectors/nobody', shown);
    expect([missing.status, (await send('GET', '/connectors/nobody')).status]).toEqual([404, 404]);
  });

  test('an id may be a single letter, and what is wrong with one is said', async () => {
    for (const id of ['a', '7', '-', 'A_b-9', 'x'.repeat(50)])
      expect((await send('POST', `/connectors/${id}`, { settings: SIGNED })).status).toBe(200);
    expect((await send('POST', '/connectors/a%20b', { settings: SIGNED })).json()).toMatchObject({
      code: 3,
      message: expect.stringContaining('alphanumeric'),
      details: [{ fieldViolations: [{ field: 'connectorId' }] }],
    });
    expect((await send('POST', `/connectors/${'x'.repeat(51)}`, { settings: SIGNED })).json()).toMatchObject({
      code: 3,
      message: expect.stringContaining('between 1 and 50'),
    });
  });

  test('a connector that was recorded under another id goes on, and can be managed', async () => {
    const id = 'orders.eu/1';
    await create('parcels', SIGNED);
    const [first] = (await world.raw.readStream('$connectors/parcels', { direction: 'forward', from: 0, count: 1 }))
      .events;
    await world.raw.append(`$connectors/${id}`, -2, [
      {
        id: '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11',
        type: first!.type,
        isJson: true,
        data: new TextEncoder().encode(
          JSON.stringify({ connectorId: id, name: id, settings: { ...SETTINGS, 'streams:0': 'a' }, timestamp: NOW }),
        ),
        metadata: new Uint8Array(0),
      },
    ]);
    await world.raw.append('$connectors-ctrl/registry-snapshots', -2, [
      {
        id: '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b12',
        type: '$conn-ctrl-registry-snapshot',
        isJson: true,
        data: new TextEncoder().encode(JSON.stringify({ connectorIds: ['parcels', id] })),
        metadata: new Uint8Array(0),
      },
    ]);
    const path = `/connectors/${encodeURIComponent(id)}`;
    expect((await send('POST', `${path}/start`)).status).toBe(200);
    expect(await world.instance().connectors.activeOf(id)).toMatchObject({ connectorId: id });
    const shown = (await send('GET', path)).json();
    expect(shown).toMatchObject({ connectorId: id, name: id, state: 'CONNECTOR_STATE_RUNNING' });
    expect((await send('PUT', path, shown)).status).toBe(200);
    for (const command of ['stop', 'start', 'stop'])
      expect((await send('POST', `${path}/${command}`)).status).toBe(200);
    expect((await send('DELETE', path)).status).toBe(200);
    expect((await send('GET', path)).status).toBe(404);
    expect((await send('POST', path, { settings: SETTINGS })).status).toBe(400);
  });

  test('a configuration that is not empty goes before settings', async () => {
    await send('POST', '/connectors/parcels', { Settings: { ...SETTINGS, waitForWrite: 'true' }, configuration: {} });
    await send('POST', '/connectors/letters', {
      settings: { nothing: 'x' },
      Configuration: { ...SETTINGS, waitForWrite: false },
    });
    const settings = await Promise.all(
      ['parcels', 'letters'].map(
        async (id) => (await send('GET', `/connectors/${id}/settings`)).json().settings.waitForWrite,
      ),
    );
    expect(settings).toEqual(['true', 'false']);
  });

  test('a connector that failed says why', async () => {
    await create('parcels', SIGNED);
    await instance.connectors.start('parcels');
    const wrong = world.instance(['other']).connectors;
    await wrong.open();
    h = secured({ log, webhooks: { connectors: wrong, ingest: null } } as never);
    expect((await send('GET', '/connectors')).json().items[0]).toMatchObject({
      state: 'CONNECTOR_STATE_STOPPED',
      errorDetails: { code: 9, message: expect.stringContaining('token') },
    });
  });
});

describe('roles', () => {
  const ROUTES = [
    ['GET', ''],
    ['POST', '/parcels'],
    ['GET', '/parcels'],
    ['PUT', '/parcels'],
    ['DELETE', '/parcels'],
    ['GET', '/parcels/settings'],
    ['PUT', '/parcels/settings'],
    ['GET', '/parcels/configuration'],
    ['PUT', '/parcels/configuration'],
    ['PUT', '/parcels/rename'],
    ['POST', '/parcels/start'],
    ['POST', '/parcels/start/5'],
    ['POST', '/parcels/stop'],
    ['POST', '/parcels/reset'],
    ['POST', '/parcels/reset/5'],
    ['POST', '/parcels/test'],
  ] as const;

  // Who may call each of them is in `access-table.ts`.
  test('refusals have the form of those of connectors', async () => {
    const anonymous = await send('GET', '/connectors', undefined, AS.anonymous);
    expect(anonymous).toMatchObject({ status: 401 });
    expect(anonymous.json()).toMatchObject({
      code: 16,
      details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', domain: 'authorization' }],
    });
    expect((await send('GET', '/connectors', undefined, AS.plain)).json()).toMatchObject({
      code: 7,
      details: [{ reason: 'PERMISSION_DENIED', domain: 'authorization' }],
    });
  });

  test.each(ROUTES)('without connectors %s /connectors%s is unknown', async (method, path) => {
    for (const context of [{ webhooks: null }, {}]) {
      h = secured(context as never);
      expect(
        (await send(method, `/connectors${path}`, method === 'GET' || method === 'DELETE' ? undefined : {})).status,
      ).toBe(404);
    }
  });
});

/** Status, gRPC code, and kind of the detail. */
type Row = readonly [
  what: string,
  method: string,
  path: string,
  body: unknown,
  status: number,
  code: number,
  detail: string | null,
];

const ROWS: readonly Row[] = [
  ['a long id', 'POST', `/connectors/${'a'.repeat(51)}`, { settings: SETTINGS }, 400, 3, 'BadRequest'],
  ['an id with a dot', 'POST', '/connectors/a.b', { settings: SETTINGS }, 400, 3, 'BadRequest'],
  ['an id with a slash', 'POST', '/connectors/a%2Fbcde', { settings: SETTINGS }, 400, 3, 'BadRequest'],
  ['a malformed escape', 'POST', '/connectors/%zzabc', { settings: SETTINGS }, 400, 3, 'BadRequest'],
  ['a bad name', 'POST', '/connectors/other', { name: 'ab', settings: SETTINGS }, 400, 3, 'BadRequest'],
  ['a name that is no text', 'POST', '/connectors/other', { name: 5, settings: SETTINGS }, 400, 3, 'BadRequest'],
  ['no settings', 'POST', '/connectors/other', {}, 400, 3, 'BadRequest'],
  ['settings that are no object', 'POST', '/connectors/other', { settings: [] }, 400, 3, 'BadRequest'],
  ['a configuration that is no object', 'POST', '/connectors/other', { configuration: 'x' }, 400, 3, 'BadRequest'],
  [
    'an unknown setting',
    'POST',
    '/connectors/other',
    { settings: { ...SETTINGS, waitForWrites: 'x' } },
    400,
    3,
    'BadRequest',
  ],
  [
    'another type',
    'POST',
    '/connectors/other',
    { settings: { ...SETTINGS, instanceTypeName: 'http-sink' } },
    400,
    3,
    'BadRequest',
  ],
  [
    'a script without route',
    'POST',
    '/connectors/other',
    { settings: { ...SETTINGS, routingScript: base64('1') } },
    400,
    3,
    'BadRequest',
  ],
  [
    'a mask at the creation',
    'POST',
    '/connectors/other',
    { settings: { ...SIGNED, signature: { scheme: 'GitHub', secret: '********' } } },
    400,
    3,
    'BadRequest',
  ],
  ['a body that is no JSON', 'POST', '/connectors/other', '{"settings":', 400, 3, 'BadRequest'],
  ['a body that is no object', 'POST', '/connectors/other', '[]', 400, 3, 'BadRequest'],
  ['no body', 'POST', '/connectors/other', '', 400, 3, 'BadRequest'],
  ['an id in use', 'POST', '/connectors/parcels', { settings: SETTINGS }, 409, 6, 'ResourceInfo'],
  ['a bad new name', 'PUT', '/connectors/parcels/rename', { name: 'ab' }, 400, 3, 'BadRequest'],
  ['no new name', 'PUT', '/connectors/parcels/rename', {}, 400, 3, 'BadRequest'],
  ['a bad name with settings', 'PUT', '/connectors/parcels', { name: 'ab', settings: SETTINGS }, 400, 3, 'BadRequest'],
  ['a name alone', 'PUT', '/connectors/parcels', { name: 'Letters' }, 400, 3, 'BadRequest'],
  [
    'settings inside and outside',
    'PUT',
    '/connectors/parcels/settings',
    { settings: SETTINGS, routingScript: 'x' },
    400,
    3,
    'BadRequest',
  ],
  [
    'a mask where no secret is',
    'PUT',
    '/connectors/parcels',
    { settings: { ...SIGNED, signature: { scheme: 'GitHub', secret: 'x', secrets: ['********'] } } },
    400,
    3,
    'BadRequest',
  ],
  [
    'another skipped status',
    'PUT',
    '/connectors/parcels',
    { settings: { ...SETTINGS, skippedStatus: 418 } },
    400,
    3,
    'BadRequest',
  ],
  [
    'new settings that are bad',
    'PUT',
    '/connectors/parcels/settings',
    { ...SETTINGS, confirmationTimeout: 'x' },
    400,
    3,
    'BadRequest',
  ],
  ['new settings that are no object', 'PUT', '/connectors/parcels/configuration', '"x"', 400, 3, 'BadRequest'],
  [
    'stopped, to be started at a position',
    'POST',
    '/connectors/parcels/start/5',
    undefined,
    400,
    9,
    'PreconditionFailure',
  ],
  [
    'stopped, to be reset to a position',
    'POST',
    '/connectors/parcels/reset/5',
    undefined,
    400,
    9,
    'PreconditionFailure',
  ],
  ['a position that is none', 'POST', '/connectors/parcels/start/-5', undefined, 400, 3, 'BadRequest'],
  ['running, to be started', 'POST', '/connectors/letters/start', undefined, 400, 9, 'PreconditionFailure'],
  ['running, to be reset', 'POST', '/connectors/letters/reset', undefined, 400, 9, 'PreconditionFailure'],
  ['running, to be deleted', 'DELETE', '/connectors/letters', undefined, 400, 9, 'PreconditionFailure'],
  ['unknown, its settings', 'GET', '/connectors/nobody/settings', undefined, 404, 5, 'ResourceInfo'],
  ['unknown, its configuration', 'GET', '/connectors/nobody/configuration', undefined, 404, 5, 'ResourceInfo'],
  ['unknown, new settings', 'PUT', '/connectors/nobody/settings', SETTINGS, 404, 5, 'ResourceInfo'],
  ['unknown, a new name', 'PUT', '/connectors/nobody/rename', { name: 'Name' }, 404, 5, 'ResourceInfo'],
  ['unknown, to be started', 'POST', '/connectors/nobody/start', undefined, 404, 5, 'ResourceInfo'],
  ['unknown, to be started at a position', 'POST', '/connectors/nobody/start/5', undefined, 404, 5, 'ResourceInfo'],
  ['unknown, to be stopped', 'POST', '/connectors/nobody/stop', undefined, 404, 5, 'ResourceInfo'],
  ['unknown, to be reset', 'POST', '/connectors/nobody/reset', undefined, 404, 5, 'ResourceInfo'],
  ['unknown, to be deleted', 'DELETE', '/connectors/nobody', undefined, 404, 5, 'ResourceInfo'],
  ['unknown, to be tested', 'POST', '/connectors/nobody/test', { body: 1 }, 404, 5, 'ResourceInfo'],
  ['deleted, its settings', 'GET', '/connectors/deleted/settings', undefined, 404, 5, 'ResourceInfo'],
  ['deleted, to be started', 'POST', '/connectors/deleted/start', undefined, 404, 5, 'ResourceInfo'],
  ['a test without a body', 'POST', '/connectors/parcels/test', {}, 400, 3, 'BadRequest'],
  [
    'a test with a body nested too deep',
    'POST',
    '/connectors/parcels/test',
    `{"body":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
    400,
    3,
    'BadRequest',
  ],
  [
    'a test with headers that are no texts',
    'POST',
    '/connectors/parcels/test',
    { body: 1, headers: { a: 1 } },
    400,
    3,
    'BadRequest',
  ],
  [
    'a test with a query that is no object',
    'POST',
    '/connectors/parcels/test',
    { body: 1, query: ['a'] },
    400,
    3,
    'BadRequest',
  ],
  ['page 0', 'GET', '/connectors?page=0', undefined, 400, 3, 'BadRequest'],
  ['101 a page', 'GET', '/connectors?paging.pageSize=101', undefined, 400, 3, 'BadRequest'],
  ['an unknown state', 'GET', '/connectors?state=x', undefined, 400, 3, 'BadRequest'],
  ['a state without a name', 'GET', '/connectors?state=5', undefined, 400, 3, 'BadRequest'],
  ['perhaps deleted', 'GET', '/connectors?showDeleted=perhaps', undefined, 400, 3, 'BadRequest'],
  ['an unknown format', 'GET', '/connectors?format=xyz', undefined, 400, 3, 'BadRequest'],
  ['XML', 'GET', '/connectors?format=xml', undefined, 406, 3, 'BadRequest'],
  ['an unknown path', 'POST', '/connectors/parcels/pause', undefined, 404, 5, null],
  ['another method', 'PATCH', '/connectors/parcels', undefined, 405, 12, null],
  ['a body over the limit', 'POST', '/connectors/other', `"${'x'.repeat(CONNECTOR_BODY_BYTES_MAX)}"`, 413, 8, null],
];

describe('failures', () => {
  beforeEach(async () => {
    await create('parcels', SIGNED);
    await create('letters');
    await instance.connectors.start('letters');
    await create('deleted');
    await instance.connectors.delete('deleted');
  });

  test.each(ROWS)('%s: %s %s', async (_what, method, path, body, status, code, detail) => {
    const { end } = world.store;
    const reply = await send(method, path, body);
    const { code: found, message, details } = reply.json();
    expect([reply.status, found, details[0]?.['@type'] ?? null, reply.headers.get('content-type')]).toEqual([
      status,
      code,
      detail === null ? null : `type.googleapis.com/google.rpc.${detail}`,
      'application/json; charset=utf-8',
    ]);
    expect(message).not.toBe('');
    expect(world.store.end).toBe(end);
    expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('what is wrong with settings is told by field, and in the message as JSON', async () => {
    const { message, details } = (
      await send('POST', '/connectors/other', {
        settings: { ...SETTINGS, waitForWrite: 'x', confirmationTimeout: 'y' },
      })
    ).json();
    expect(details[0].fieldViolations.map(({ field }: { field: string }) => field)).toEqual([
      'waitForWrite',
      'confirmationTimeout',
    ]);
    expect(Object.keys(JSON.parse(message) as object)).toEqual(['waitForWrite', 'confirmationTimeout']);
  });

  test('who it is about is told', async () => {
    expect((await send('POST', '/connectors/parcels', { settings: SETTINGS })).json().details[0]).toMatchObject({
      resourceType: 'Connector',
      resourceName: 'parcels',
    });
    expect((await send('DELETE', '/connectors/letters')).json().details[0].violations[0]).toMatchObject({
      type: 'CONNECTOR_STATE',
      subject: 'letters',
    });
  });

  test.each([[undefined], ['text/plain'], ['application/json; charset=latin1'], ['application/x-www-form-urlencoded']])(
    'content type %s is 415',
    async (type) => {
      for (const [method, path] of [
        ['POST', '/connectors/other'],
        ['PUT', '/connectors/parcels/settings'],
        ['PUT', '/connectors/parcels/rename'],
        ['POST', '/connectors/parcels/test'],
      ] as const) {
        const reply = await h.raw(
          method,
          path,
          { ...AS.ops, ...(type !== undefined && { 'content-type': type }) },
          new TextEncoder().encode('{}'),
        );
        expect([reply.status, ((await reply.json()) as { code: number }).code]).toEqual([415, 3]);
      }
    },
  );

  test('a body that is no UTF-8 is 400', async () => {
    const reply = await h.raw(
      'POST',
      '/connectors/other',
      { ...AS.ops, ...JSON_TYPE },
      new Uint8Array([0x22, 0xff, 0x22]),
    );
    expect(reply.status).toBe(400);
  });

  test('a secret without a data-protection token is 400, and says what to set', async () => {
    h = secured({ webhooks: { connectors: world.instance([]).connectors, ingest: null } } as never);
    const reply = await send('POST', '/connectors/other', { settings: SIGNED });
    expect([reply.status, reply.json().code, reply.json().message]).toEqual([
      400,
      9,
      expect.stringContaining('Connectors:DataProtection:Token'),
    ]);
    expect(reply.json().details[0].violations[0]).toMatchObject({ type: 'SECRET_REFUSED', subject: 'other' });
    expect((await send('POST', '/connectors/other', { settings: SETTINGS })).status).toBe(200);
  });

  test.each([
    ['disk_full', 507, 8],
    ['writer_stopped', 503, 14],
    ['too_busy', 503, 14],
    ['io_error', 500, 13],
  ] as const)('%s of the store is %i', async (code, status, rpc) => {
    world.beforeWrite = () => {
      throw new SkuaError(code, 'private reason');
    };
    const reply = await send('POST', '/connectors/parcels/start');
    expect([reply.status, reply.json().code, reply.text.includes('private')]).toEqual([status, rpc, status !== 500]);
    expect(log.lines.filter(({ level }) => level === 'error')).toHaveLength(status === 500 ? 1 : 0);
  });

  test('no answer and no event tells a secret', async () => {
    const replies = await Promise.all([
      send('POST', '/connectors/other', {
        settings: { ...SIGNED, signature: { scheme: 'StandardWebhooks', secret: 'very-secret' } },
      }),
      send('POST', '/connectors/parcels', { settings: SIGNED }),
      send('GET', '/connectors?includeSettings=true&includeConfiguration=true&showDeleted=true'),
      send('POST', '/connectors/other', `{"settings":{"signature:secret":"very-secret"`),
      send('PUT', '/connectors/parcels/settings', { signature: { secret: 'very-secret', very: 1 } }),
    ]);
    for (const { text } of replies) expect(text).not.toContain('very-secret');
    expect(JSON.stringify(await eventsOf(world.store, '$connectors/parcels'))).not.toContain('very-secret');
    expect(JSON.stringify(log.lines)).not.toContain('very-secret');
  });
});

describe('lists', () => {
  beforeEach(async () => {
    for (let i = 0; i < 105; i++) {
      await create(`c-${String(i).padStart(3, '0')}`);
      world.clock.setNow(world.clock.nowMs() + 1);
    }
    await instance.connectors.start('c-001');
    await instance.connectors.start('c-002');
    await instance.connectors.delete('c-003');
  });

  const IDS: readonly (readonly [string, readonly string[] | number])[] = [
    ['', 100],
    ['?page=2', 4],
    ['?page=2&pageSize=100&showDeleted=true', 5],
    ['?paging.page=3&paging.pageSize=2', ['c-005', 'c-006']],
    ['?page=9', 0],
    ['?pageSize=1', ['c-000']],
    ['?state=CONNECTOR_STATE_RUNNING', ['c-001', 'c-002']],
    ['?state=2', ['c-001', 'c-002']],
    ['?state=connector_state_running&connectorId=c-002&connectorId=c-004', ['c-002']],
    ['?connectorId=c-004&connectorId=c-001', ['c-001', 'c-004']],
    ['?state=1&state=2', ['c-001', 'c-002']],
    ['?state=CONNECTOR_STATE_UNKNOWN', 0],
    ['?instanceTypeName=http-sink', 0],
    ['?instanceTypeName=webhook-source&pageSize=1', ['c-000']],
    ['?connectorId=c-003', 0],
    ['?connectorId=c-003&showDeleted=TRUE', ['c-003']],
  ];

  test('pages and filters', async () => {
    for (const [query, expected] of IDS) {
      const { items, totalSize } = (await send('GET', `/connectors${query}`)).json() as {
        items: { connectorId: string }[];
        totalSize: number;
      };
      expect([
        query,
        typeof expected === 'number' ? items.length : items.map(({ connectorId }) => connectorId),
      ]).toEqual([query, expected]);
      expect(totalSize).toBe(items.length);
    }
  });
});

describe('testing a script', () => {
  test.each<[unknown, object]>([
    [{ body: { id: 7 } }, { outcome: 'routed', stream: 'orders-7', schema: 'placed', error: null, durationMs: 1 }],
    [
      { body: '{"id":7}', headers: { 'X-A': 'b' }, query: { q: '1' } },
      { outcome: 'routed', stream: 'orders-7' },
    ],
    [{ body: '{' }, { outcome: 'invalid-json', stream: null }],
    [{ body: null }, { outcome: 'failed' }],
    [{ body: [] }, { outcome: 'routed', stream: 'orders-0' }],
  ])('%j', async (input, expected) => {
    await create('parcels');
    const { end } = world.store;
    const reply = await send('POST', '/connectors/parcels/test', input);
    expect([reply.status, reply.json()]).toEqual([200, expect.objectContaining(expected)]);
    expect(reply.json()).not.toHaveProperty('warnings');
    expect(world.store.end).toBe(end);
  });

  test('a payload that is no string is tried as it is written', async () => {
    await create('parcels');
    const reply = await send(
      'POST',
      '/connectors/parcels/test',
      '{"Body": {"id": 9007199254740993, "n": 1.0}, "settings": null}',
    );
    expect(reply.json()).toMatchObject({ outcome: 'routed', warnings: [expect.stringContaining('request.text')] });
    const { requestJson, bodyLength } = instance.sandbox.calls.at(-1)!;
    expect(requestJson.slice(8, 8 + bodyLength!)).toBe('{"id": 9007199254740993, "n": 1.0}');
  });

  test('what is perhaps not meant stands beside what came of it', async () => {
    await create('parcels');
    const reply = await send('POST', '/connectors/parcels/test', {
      body: {},
      settings: {
        ...SETTINGS,
        routingScript: Buffer.from('const route = () => ({ stream: "s", type: "t" });').toString('base64'),
      },
    });
    expect(reply.json()).toMatchObject({
      outcome: 'routed',
      schema: null,
      warnings: [expect.stringContaining('as schema')],
    });
  });
});
