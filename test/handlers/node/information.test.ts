import { describe, expect, test } from 'vitest';
import { FakeNode, FAKE_INSTANCE_ID, fakeOption } from '../../support/fake-node.ts';
import { loadExchanges } from '../../support/exchanges.ts';
import { fixturePath } from '../../support/fixtures.ts';
import { harness } from '../harness.ts';

const exchanges = loadExchanges(fixturePath('http-exchanges.json'));
const recorded = (path: string) => exchanges.find(({ request }) => request.path === path)!.response;
/** `Vary` names more than in the recording, and no origin is let in. */
const CORS = ['access-control-allow-methods', 'cache-control', 'content-type'];

function setUp() {
  const node = new FakeNode();
  return { node, ...harness({ node }) };
}

describe('/info', () => {
  test('is as recorded, with the member of the newer generation before', async () => {
    const { get } = setUp();
    const reply = await get('/info', 'application/json');
    expect(reply.status).toBe(200);
    const { esVersion: _, ...rest } = JSON.parse(recorded('/info').body!) as Record<string, unknown>;
    // Without users there is no management of users.
    expect(reply.json()).toEqual({
      dbVersion: '0.1.0',
      esVersion: '0.1.0',
      ...rest,
      features: { projections: false, userManagement: false, atomPub: true },
    });
    expect(Object.keys(reply.json())).toEqual(['dbVersion', 'esVersion', 'state', 'features', 'authentication']);
    expect(reply.headers.get('access-control-allow-origin')).toBeNull();
    for (const name of CORS) expect(reply.headers.get(name), name).toBe(recorded('/info').headers[name] ?? null);
    expect(reply.text).toContain('{\n  "dbVersion": "0.1.0",\n');
  });

  test('names the state in lower case, how callers are authenticated, and what is switched off', async () => {
    const { node, get } = setUp();
    node.state = 'ResigningLeader';
    node.authenticationType = 'insecure';
    expect((await get('/info')).json()).toMatchObject({
      state: 'resigningleader',
      authentication: { type: 'insecure', properties: null },
    });
    const withoutAtom = harness({ node, options: { disableAtomPub: true } });
    expect((await withoutAtom.get('/info')).json()).toMatchObject({ features: { atomPub: false } });
  });

  test.each([
    ['/info', 'application/xml'],
    ['/info', 'text/xml'],
    ['/gossip', 'text/xml'],
    ['/ping', 'application/xml'],
    ['/info/options', 'text/xml'],
    ['/sys/subsystems', 'text/xml'],
    ['/stats', 'text/xml'],
  ])('%s is not there as %s', async (path, accept) => {
    expect((await setUp().get(path, accept)).status).toBe(406);
  });

  test('options have the members of both generations', async () => {
    const { node, get } = setUp();
    node.options = [
      fakeOption('ChunkSize', '1024', 'integer', 'Command Line'),
      {
        ...fakeOption('LogLevel', 'Debug', 'string'),
        possibleValues: ['Debug', 'Error'],
        deprecationMessage: 'No more.',
      },
    ];
    const reply = await get('/info/options');
    expect(reply.json()).toEqual([
      {
        name: 'ChunkSize',
        description: 'The ChunkSize.',
        group: 'Database Options',
        value: '1024',
        possibleValues: null,
        configurationSource: 'Command Line',
        deprecationMessage: null,
        schema: { type: 'integer' },
        defaultValue: '1024',
        isSecret: false,
        isReloadable: false,
        commandLine: '--chunksize',
        environment: 'SERVER_CHUNKSIZE',
      },
      {
        name: 'LogLevel',
        description: 'The LogLevel.',
        group: 'Database Options',
        value: 'Debug',
        possibleValues: ['Debug', 'Error'],
        configurationSource: '<DEFAULT>',
        deprecationMessage: 'No more.',
        schema: { type: 'string' },
        defaultValue: 'Debug',
        isSecret: false,
        isReloadable: false,
        commandLine: '--loglevel',
        environment: 'SERVER_LOGLEVEL',
      },
    ]);
  });

  test('is absent where there is no node', async () => {
    const { get } = harness();
    for (const path of [
      '/info',
      '/info/options',
      '/gossip',
      '/stats',
      '/stats/proc',
      '/stats/tcp',
      '/metrics',
      '/sys/subsystems',
    ])
      expect((await get(path)).status, path).toBe(404);
  });
});

describe('/gossip', () => {
  test('has the members and headers that were recorded, in their order', async () => {
    const { get, clock } = setUp();
    const reply = await get('/gossip', 'application/json');
    expect(reply.status).toBe(200);
    const shape = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(shape)
        : typeof value === 'object' && value !== null
          ? Object.entries(value).map(([name, each]) => [name, shape(each)])
          : typeof value;
    expect(shape(reply.json())).toEqual(shape(JSON.parse(recorded('/gossip').body!)));
    expect(reply.headers.get('access-control-allow-origin')).toBeNull();
    for (const name of CORS) expect(reply.headers.get(name), name).toBe(recorded('/gossip').headers[name] ?? null);
    expect(clock.nowMs()).toBe(Date.UTC(2031, 3, 2, 9, 15, 30));
    expect(reply.json()).toMatchObject({
      members: [
        {
          instanceId: FAKE_INSTANCE_ID,
          timeStamp: '2031-04-02T09:15:30Z',
          state: 'Leader',
          isAlive: true,
          httpEndPointIp: '127.0.0.1',
          httpEndPointPort: 2113,
          writerCheckpoint: 1000,
          esVersion: '0.1.0',
        },
      ],
      serverIp: '127.0.0.1',
      serverPort: 2113,
    });
  });

  test('is there as text, and can be switched off', async () => {
    const text = await setUp().get('/gossip', 'text/plain');
    expect(text.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(text.text).toContain(`${FAKE_INSTANCE_ID} Leader 127.0.0.1:2113`);
    expect(
      (await harness({ node: new FakeNode(), options: { disableGossipOnHttp: true } }).get('/gossip')).status,
    ).toBe(404);
  });
});

describe('the small ones', () => {
  test('/ping', async () => {
    const { get, send } = setUp();
    expect((await get('/ping')).text).toBe(
      '{\n  "text": "Ping request successfully handled",\n  "msgTypeId": 123,\n  "label": "Http"\n}',
    );
    expect((await get('/ping', 'text/plain')).text).toBe('Ping request successfully handled');
    expect((await send('POST', '/ping')).status).toBe(405);
    expect((await send('OPTIONS', '/ping')).headers.get('access-control-allow-methods')).toBe('GET, OPTIONS');
  });

  test('/sys/subsystems', async () => {
    expect((await setUp().get('/sys/subsystems')).json()).toEqual([]);
  });

  test('/ names what there is', async () => {
    const { links } = (await setUp().get('/')).json();
    expect(Object.keys(links)).toEqual(
      expect.arrayContaining(['live', 'ready', 'info', 'stats', 'metrics', 'gossip', 'openapi']),
    );
    const less = (
      await harness({ node: new FakeNode(), options: { disableStatsOnHttp: true, disableGossipOnHttp: true } }).get('/')
    ).json();
    for (const name of ['stats', 'metrics', 'gossip']) expect(less.links).not.toHaveProperty(name);
  });
});
