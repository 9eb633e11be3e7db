import assert from 'node:assert';
import { existsSync, readdirSync } from 'node:fs';
import * as http from 'node:http';
import * as https from 'node:https';
import type * as Client from '@eventstore/db-client';
import type { TestNode, TestNodeOptions } from '../../local/testing/index.ts';

/**
 * Everything that the types of `skua/testing` promise, whatever runs it: the sources here, the packed package in
 * projects of its own. It knows nothing of what runs it, and compares loosely: in one of the projects objects come from
 * another context than that of the tests.
 */

export type Testing = typeof import('../../local/testing/index.ts');

export interface SuiteParts {
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  readonly testing: Testing;
  /** A client that others have written. */
  readonly client: typeof Client;
}

const JSON_TYPE = { accept: 'application/json' };
const EVENT_TYPE = { 'content-type': 'application/vnd.eventstore.events+json' };

export function suite({ test, testing, client }: SuiteParts): void {
  const { startTestNode, isSkuaError, SkuaError, REMOVED_MAX } = testing;

  /** A test with a node that is stopped whatever comes of it. */
  const withNode = (name: string, options: TestNodeOptions, run: (node: TestNode) => Promise<void>) =>
    test(name, async () => {
      const node = await startTestNode(options);
      try {
        await run(node);
      } finally {
        await node.stop();
      }
    });

  const refused = async (code: string, work: () => Promise<unknown>, message = /./) => {
    const error = await work().then(
      () => null,
      (thrown: unknown) => thrown,
    );
    assert.ok(isSkuaError(error), `rejected with ${String(error)} instead of ${code}`);
    assert.equal(error.code, code);
    assert.ok(error instanceof SkuaError);
    assert.match(error.message, message);
    return error;
  };

  /** It waits however busy the machine is. */
  const connect = (node: TestNode) =>
    client.EventStoreDBClient.connectionString(
      `${node.connectionString}&defaultDeadline=600000&keepAliveTimeout=600000`,
    );

  const types = async (node: TestNode, stream: string) => {
    const found: string[] = [];
    for await (const { type } of node.store.read(stream)) found.push(type);
    return found;
  };
  const isEmpty = (node: TestNode, stream: string) => refused('stream_not_found', () => types(node, stream));

  withNode('without options anybody may do everything, over HTTP and by its store', {}, async (node) => {
    assert.match(node.url, /^http:\/\/127\.0\.0\.1:\d+$/);
    const address = `${node.url.slice('http://'.length)}?tls=false`;
    assert.equal(node.connectionString, `esdb://${address}`);
    assert.equal(node.kurrentConnectionString, `kurrentdb://${address}`);
    assert.equal(node.certificate, null);
    assert.equal(node.folder, null);
    const body = JSON.stringify([{ eventId: crypto.randomUUID(), eventType: 'placed', data: { total: 12 } }]);
    assert.equal(
      (await fetch(`${node.url}/streams/order-1`, { method: 'POST', headers: EVENT_TYPE, body })).status,
      201,
    );
    assert.deepEqual(await types(node, 'order-1'), ['placed']);
    await node.store.append('order-1', { type: 'paid', data: { by: 'card' } }, { expected: 0 });
    assert.deepEqual(await (await fetch(`${node.url}/streams/order-1/1`, { headers: JSON_TYPE })).json(), {
      by: 'card',
    });
    // What only administrators may do where there are users.
    assert.equal((await fetch(`${node.url}/admin/scavenge/current`)).status, 200);
  });

  test('nodes at the same time have nothing in common', async () => {
    const nodes = await Promise.all(
      Array.from({ length: 5 }, (_, i) => startTestNode({ seed: { own: [{ type: `of-${i}` }] } })),
    );
    try {
      assert.equal(new Set(nodes.map(({ url }) => url)).size, nodes.length);
      for (const [i, node] of nodes.entries()) assert.deepEqual(await types(node, 'own'), [`of-${i}`]);
      await nodes[0]!.advanceTime({ days: 1 });
      assert.ok(nodes[0]!.now().getTime() - nodes[1]!.now().getTime() > 86_000_000);
      await nodes[0]!.stop();
      assert.equal((await fetch(`${nodes[1]!.url}/health/live`)).status, 204);
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  });

  // Users

  withNode('with users there are admin and ops, and nobody else gets in', { users: true }, async (node) => {
    assert.equal((await fetch(`${node.url}/users`)).status, 401);
    assert.equal((await fetch(`${node.url}/users`, { headers: login('admin', 'changeit') })).status, 200);
    assert.equal((await fetch(`${node.url}/users`, { headers: login('admin', 'changed') })).status, 401);
    assert.deepEqual((await user(node, 'ops', 'changeit')).groups, ['$ops']);
    assert.ok(node.connectionString.startsWith('esdb://admin:changeit@127.0.0.1:'));
  });

  const people: TestNodeOptions['users'] = [
    { name: 'ada', password: 'pä ss', groups: ['clerks', 'readers'], fullName: 'Ada L.' },
    { name: 'admin', password: 'other@1' },
    { name: 'bob', password: 'b' },
  ];
  withNode(
    'users of the options log in with their passwords and have their groups, and access lists count',
    { users: people },
    async (node) => {
      const { fullName, groups } = await user(node, 'ada', 'other@1');
      assert.deepEqual([fullName, groups], ['Ada L.', ['clerks', 'readers']]);
      assert.equal((await fetch(`${node.url}/users/admin`, { headers: login('admin', 'changeit') })).status, 401);
      assert.ok(node.connectionString.startsWith('esdb://admin:other%401@'));
      await node.store.append('secret', { type: 'told', data: {} });
      await node.store.setMetadata('secret', { access: { read: ['clerks'] } });
      const status = async (name: string, password: string) =>
        (await fetch(`${node.url}/streams/secret`, { headers: { ...JSON_TYPE, ...login(name, password) } })).status;
      assert.deepEqual(
        [await status('ada', 'pä ss'), await status('bob', 'b'), await status('ada', 'pass')],
        [200, 403, 401],
      );
    },
  );

  // TLS

  test('with tls connections are encrypted, with one certificate for all nodes', async () => {
    const nodes = await Promise.all([
      startTestNode({ tls: true }),
      startTestNode({ tls: true, users: [{ name: 'ada', password: 'secret' }] }),
    ]);
    try {
      const [first, second] = nodes;
      assert.match(first.url, /^https:\/\/127\.0\.0\.1:\d+$/);
      assert.match(first.certificate!, /^-----BEGIN CERTIFICATE-----/);
      assert.equal(first.certificate, second.certificate);
      const get = (node: TestNode, headers: Record<string, string>) =>
        new Promise<number>((resolve, reject) => {
          https
            .get(`${node.url}/users/$current`, { ca: node.certificate!, headers, agent: false }, (reply) => {
              reply.resume().on('end', () => resolve(reply.statusCode!));
            })
            .on('error', reject);
        });
      assert.deepEqual(
        [await get(first, {}), await get(first, login('admin', 'changeit')), await get(second, login('ada', 'secret'))],
        [401, 200, 200],
      );
      // An address would make the client warn: TLS asks by name.
      assert.ok(first.connectionString.startsWith('esdb://admin:changeit@localhost:'));
      assert.ok(first.kurrentConnectionString.startsWith('kurrentdb://admin:changeit@localhost:'));
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  });

  // Clients of gRPC

  for (const [name, options] of Object.entries<TestNodeOptions>({
    'without users': {},
    'with users': { tls: true, users: [{ name: 'admin', password: 'p@ss/?w' }] },
    'with TLS': { tls: true },
  })) {
    withNode(`a client of gRPC connects by the connection string: ${name}`, options, async (node) => {
      const connected = connect(node);
      try {
        await connected.appendToStream('order-1', client.jsonEvent({ type: 'placed', data: { total: 12 } }));
        const read: unknown[] = [];
        for await (const { event } of connected.readStream('order-1')) read.push(event?.data);
        assert.deepEqual(read, [{ total: 12 }]);
        assert.deepEqual(await types(node, 'order-1'), ['placed']);
      } finally {
        await connected.dispose();
      }
    });
  }

  // Seed

  const ID = '0a1b2c3d-0000-4000-8000-000000000001';
  const seed = {
    'order-1': [
      { type: 'placed', data: { total: 12 }, metadata: { by: 'ada' }, id: ID },
      { type: 'signed', data: new Uint8Array([1, 2, 255]) },
    ],
    'order-2': [{ type: 'placed' }],
    none: [],
  };
  withNode(
    'the seed is there when the node is handed out, in its order, and again after a reset',
    { seed },
    async (node) => {
      for (let round = 0; round < 2; round++) {
        const found: unknown[][] = [];
        for await (const { stream, version, type, data, metadata } of node.store.readAll())
          found.push([stream, version, type, data instanceof Uint8Array ? [...data] : data, metadata]);
        assert.deepEqual(found, [
          ['order-1', 0, 'placed', { total: 12 }, { by: 'ada' }],
          ['order-1', 1, 'signed', [1, 2, 255], undefined],
          ['order-2', 0, 'placed', undefined, undefined],
        ]);
        for await (const { id } of node.store.read('order-1', { limit: 1 })) assert.equal(id, ID);
        await node.store.append('order-1', { type: 'more' });
        await node.reset();
      }
    },
  );

  test('a seed may be a function, which gets the node, and is waited for', async () => {
    const urls: string[] = [];
    const node = await startTestNode({
      seed: async ({ store, url }) => {
        urls.push(url);
        await fetch(`${url}/streams/by-http`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'es-eventtype': 'posted' },
          body: '{}',
        });
        await store.append('by-store', { type: 'stored' });
      },
    });
    try {
      assert.deepEqual([...(await types(node, 'by-http')), ...(await types(node, 'by-store'))], ['posted', 'stored']);
      await node.reset();
      assert.deepEqual([...(await types(node, 'by-http')), ...(await types(node, 'by-store'))], ['posted', 'stored']);
      assert.deepEqual(urls, [node.url, node.url]);
    } finally {
      await node.stop();
    }
  });

  test('a seed that fails fails the start, and nothing is left of the node', async () => {
    let url = '';
    let folder = '';
    await assert.rejects(
      startTestNode({
        storage: 'folder',
        seed: (node) => {
          url = node.url;
          folder = node.folder!;
          assert.ok(existsSync(folder));
          throw new Error('no seed today');
        },
      }),
      /no seed today/,
    );
    assert.ok(!existsSync(folder));
    await assert.rejects(fetch(url));
    const error = await refused(
      'bad_option',
      () => startTestNode({ seed: { good: [{ type: 'a' }], bad: [{ type: '' }] } }),
      /bad/,
    );
    assert.deepEqual(error.data, { stream: 'bad', refusedWith: 'invalid_event' });
    await refused('bad_option', () => startTestNode({ seed: { a: { type: 't' } as never } }), /list of events/);
  });

  // Where the events are

  withNode(
    'in a folder the files are those of a node, and go with it',
    { storage: 'folder', seed: { kept: [{ type: 'a' }, { type: 'b' }] } },
    async (node) => {
      const folder = node.folder!;
      assert.ok(readdirSync(`${folder}/db`).includes('chunk-000000.000000'));
      await node.store.delete('kept', { hard: true });
      assert.deepEqual(
        (await node.scavenge()).removed.filter(({ stream }) => stream === 'kept').map(({ type }) => type),
        ['a', 'b'],
      );
      await node.store.append('gone', { type: 'c' });
      await node.reset();
      assert.deepEqual(await types(node, 'kept'), ['a', 'b']);
      await isEmpty(node, 'gone');
      await node.stop();
      assert.ok(!existsSync(folder));
    },
  );

  // Options of the node

  withNode(
    'further options are those of the node',
    { options: { MaxAppendSize: '4KiB', 'log-level': 'Warn', DisableAdminUi: true } },
    async (node) => {
      const post = (text: string) =>
        fetch(`${node.url}/streams/a`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'es-eventtype': 'x' },
          body: JSON.stringify({ text }),
        });
      assert.deepEqual(
        [(await post('x')).status, (await post('x'.repeat(5_000))).status, (await fetch(`${node.url}/ui`)).status],
        [201, 413, 404],
      );
    },
  );

  test('options that make no sense are refused, and say what to do', async () => {
    const bad = (options: unknown, message: RegExp) =>
      refused('bad_option', () => startTestNode(options as TestNodeOptions), message);
    await bad({ user: true }, /Unknown option user .*users, tls, seed, storage, options, onLog/);
    await bad({ tls: 'yes' }, /true or false/);
    await bad({ storage: '/data' }, /memory.*folder/);
    await bad({ onLog: true }, /function/);
    await bad({ seed: 7 }, /seed is/);
    await bad({ users: 'ada' }, /list of users/);
    await bad({ users: [{ name: 'ada' }] }, /name and a password/);
    await bad({ users: [{ name: 'ada', password: 'a', role: 'x' }] }, /Unknown member role/);
    await bad(
      {
        users: [
          { name: 'ada', password: 'a' },
          { name: 'ada', password: 'b' },
        ],
      },
      /two users ada/,
    );
    await bad({ users: [{ name: 'ops', password: 'a', groups: [] }] }, /always exists/);
    await bad({ options: { NodePort: 2113 } }, /NodePort.*leave it out/);
    await bad({ options: { insecure: true } }, /insecure.*leave it out/);
    await bad({ options: { NoSuchThing: 1 } }, /Unknown option/);
    await bad({ options: { MaxAppendSize: 'large' } }, /max-append-size/);
    await bad({ options: 7 }, /'options' is/);
    await bad(null, /object/);
    await refused('invalid_user', () => startTestNode({ users: [{ name: 'ada', password: ' ' }] }), /password/);
  });

  // The log

  test('what the node logs goes to onLog, and nowhere else', async () => {
    const written: string[] = [];
    const outputs = [process.stdout, process.stderr];
    const writes = outputs.map((output) => output.write);
    const lines: { level: string; message: string; fields: unknown }[] = [];
    try {
      for (const output of outputs) output.write = ((text: string) => written.push(text) > 0) as typeof output.write;
      const node = await startTestNode({
        onLog: (line) => {
          lines.push(line);
          throw new Error('a bad listener');
        },
        options: { LogHttpRequests: true },
      });
      await fetch(`${node.url}/health/live`);
      await node.stop();
      await (await startTestNode()).stop();
    } finally {
      for (const [i, output] of outputs.entries()) output.write = writes[i]!;
    }
    const line = lines.find(({ message }) => message === 'HTTP request')!;
    assert.equal(line.level, 'info');
    assert.match(JSON.stringify(line.fields), /health\/live/);
    assert.deepEqual(
      written.filter((text) => /health|index is up/.test(text)),
      [],
    );
  });

  // Time

  withNode(
    'time moves on for what is stored: events expire, and new ones have the new time',
    { users: true, seed: { sessions: [{ type: 'begun' }, { type: 'begun' }] } },
    async (node) => {
      await node.store.setMetadata('sessions', { maxAgeSeconds: 3_600 });
      const get = async () =>
        (
          (await (
            await fetch(`${node.url}/streams/sessions`, { headers: { ...JSON_TYPE, ...login('admin', 'changeit') } })
          ).json()) as { entries: unknown[] }
        ).entries.length;
      const beforeMs = Date.now();
      assert.ok(Math.abs(node.now().getTime() - beforeMs) < 60_000);
      await node.advanceTime({ minutes: 50 });
      assert.deepEqual([await get(), (await types(node, 'sessions')).length], [2, 2]);
      await node.advanceTime(600_000 + 60_000);
      assert.deepEqual([await get(), (await types(node, 'sessions')).length], [0, 0]);
      const moved = 3_660_000;
      assert.ok(node.now().getTime() - beforeMs >= moved);
      await node.store.append('sessions', { type: 'later' });
      for await (const { createdAt } of node.store.read('sessions')) assert.ok(createdAt.getTime() - beforeMs >= moved);
      assert.equal(await get(), 1);
      // Logins are of the machine's time.
      await node.advanceTime({ days: 3_650, hours: 1, seconds: 2, milliseconds: 3 });
      assert.equal(await get(), 0);
      await node.reset();
      assert.ok(node.now().getTime() - beforeMs > 3_650 * 86_400_000);
    },
  );

  withNode('a time that makes no sense moves nothing', {}, async (node) => {
    for (const by of [
      -1,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      '1 day',
      null,
      { days: -1 },
      { days: '1' },
      { day: 1 },
      { hours: Number.NaN },
    ])
      await refused('bad_option', () => node.advanceTime(by as never), /Time moves on|Unknown unit/);
    assert.ok(node.now().getTime() - Date.now() < 60_000);
    await node.advanceTime(0);
    await node.advanceTime({});
  });

  withNode(
    'a group of consumers delivers again what was not acknowledged in time',
    { seed: { jobs: [{ type: 'job', data: { n: 1 } }] } },
    async (node) => {
      const connected = connect(node);
      try {
        await connected.createPersistentSubscriptionToStream(
          'jobs',
          'workers',
          client.persistentSubscriptionToStreamSettingsFromDefaults({
            startFrom: client.START,
            messageTimeout: 3_600_000,
          }),
        );
        const subscription = connected.subscribeToPersistentSubscriptionToStream('jobs', 'workers');
        const deliveries: number[] = [];
        for await (const delivery of subscription) {
          deliveries.push(delivery.retryCount);
          if (deliveries.length === 2) {
            await subscription.ack(delivery);
            break;
          }
          await node.advanceTime({ hours: 1, seconds: 1 });
        }
        assert.deepEqual(deliveries, [0, 1]);
      } finally {
        await connected.dispose();
      }
    },
  );

  // Scavenges

  withNode(
    'a scavenge runs to its end, and tells what it has removed',
    {
      seed: {
        'order-1': [{ type: 'a' }, { type: 'b' }],
        'order-2': [{ type: 'c' }],
        'order-3': [{ type: 'd' }, { type: 'e' }],
      },
    },
    async (node) => {
      assert.deepEqual((await node.scavenge()).removedCount, 0);
      const ids: string[] = [];
      for await (const { id } of node.store.read('order-1')) ids.push(id);
      await node.store.delete('order-1', { hard: true });
      await node.store.delete('order-2', { hard: true });
      await node.store.setMetadata('order-3', { maxAgeSeconds: 60 });
      await node.advanceTime({ minutes: 2 });
      const outcome = await node.scavenge();
      const own = outcome.removed.filter(({ stream }) => !stream.startsWith('$'));
      // The last event of a stream that is not deleted stays, as ever.
      assert.deepEqual(
        own.map(({ stream, version, type }) => [stream, version, type]),
        [
          ['order-1', 0, 'a'],
          ['order-1', 1, 'b'],
          ['order-2', 0, 'c'],
          ['order-3', 0, 'd'],
        ],
      );
      assert.deepEqual(
        own.slice(0, 2).map(({ id }) => id),
        ids,
      );
      assert.equal(outcome.removedCount, outcome.removed.length);
      assert.equal(typeof outcome.bytesFreed, 'number');
      assert.match(outcome.id, /^[0-9a-f-]{36}$/);
      assert.equal((await node.store.info(`$scavenges-${outcome.id}`)).state, 'live');
      assert.equal((await node.store.proveErased({ events: ids })).isErased, true);
    },
  );

  withNode('at most REMOVED_MAX events are told, and all are counted', {}, async (node) => {
    const count = REMOVED_MAX + 1_000;
    for (let done = 0; done < count; done += 1_000)
      await node.store.append(
        'many',
        Array.from({ length: 1_000 }, () => ({ type: 't' })),
      );
    await node.store.delete('many', { hard: true });
    const { removed, removedCount } = await node.scavenge();
    assert.equal(removed.length, REMOVED_MAX);
    assert.equal(removedCount, count);
  });

  // Reset

  withNode(
    'a reset leaves address, connections and store, and nothing else',
    { users: [{ name: 'ada', password: 'a' }] },
    async (node) => {
      const { store, url } = node;
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      try {
        const first = await get(agent, `${url}/users/ada`, login('admin', 'changeit'));
        await store.append('order-1', { type: 'placed' });
        const changed = await fetch(`${url}/users/ada/command/reset-password`, {
          method: 'POST',
          headers: { ...login('admin', 'changeit'), 'content-type': 'application/json' },
          body: '{"newPassword":"b"}',
        });
        assert.equal(changed.status, 200);
        const body = JSON.stringify({ loginName: 'bob', fullName: 'Bob', groups: [], password: 'b' });
        assert.equal(
          (
            await fetch(`${url}/users`, {
              method: 'POST',
              headers: { ...login('admin', 'changeit'), 'content-type': 'application/json' },
              body,
            })
          ).status,
          201,
        );
        await node.reset();
        assert.equal(node.url, url);
        assert.equal(node.store, store);
        await isEmpty(node, 'order-1');
        const second = await get(agent, `${url}/users/ada`, login('ada', 'a'));
        assert.deepEqual([first.status, second.status, second.localPort], [200, 200, first.localPort]);
        assert.equal((await fetch(`${url}/users/ada`, { headers: login('ada', 'b') })).status, 401);
        assert.equal((await fetch(`${url}/users/bob`, { headers: login('admin', 'changeit') })).status, 404);
      } finally {
        agent.destroy();
      }
    },
  );

  withNode('a client of gRPC that is connected works on after a reset', { tls: true }, async (node) => {
    const connected = connect(node);
    try {
      for (let round = 0; round < 3; round++) {
        const { nextExpectedRevision } = await connected.appendToStream(
          'order-1',
          client.jsonEvent({ type: 'placed', data: {} }),
          { expectedRevision: client.NO_STREAM },
        );
        assert.equal(nextExpectedRevision, 0n);
        await node.reset();
      }
    } finally {
      await connected.dispose();
    }
  });

  withNode(
    'subscriptions end with an error when their store is gone',
    { seed: { a: [{ type: 'x' }] } },
    async (node) => {
      const connected = connect(node);
      try {
        const ended = new Promise<unknown>((resolve, reject) => {
          connected
            .subscribeToStream('a')
            .on('caughtUp', () => {})
            .on('data', () => caughtUp.resolve())
            .on('error', resolve)
            .on('end', () => reject(new Error('ended without an error')));
        });
        const caughtUp = Promise.withResolvers<void>();
        await caughtUp.promise;
        const delivered = Promise.withResolvers<void>();
        const own = refused('store_closed', async () => {
          for await (const _ of node.store.subscribe({ stream: 'a' })) delivered.resolve();
        });
        await delivered.promise;
        await node.reset();
        await own;
        assert.ok(await ended);
      } finally {
        await connected.dispose();
      }
    },
  );

  withNode('many resets, one after the other and asked for at once', { seed: { a: [{ type: 'x' }] } }, async (node) => {
    for (let i = 0; i < 5; i++) {
      await node.store.append('a', { type: 'y' });
      await node.reset();
      assert.deepEqual(await types(node, 'a'), ['x']);
    }
    const [, { removedCount }] = await Promise.all([node.reset(), node.scavenge(), node.reset()]);
    assert.equal(removedCount, 0);
    // Nothing of the stores before is told twice.
    const text = await (await fetch(`${node.url}/metrics`)).text();
    const names = text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.slice(0, line.lastIndexOf(' ')));
    assert.equal(new Set(names).size, names.length);
    assert.equal((await fetch(`${node.url}/health/ready`)).status, 200);
  });

  withNode(
    'to close its store is to let go of it until the next reset',
    { seed: { a: [{ type: 'x' }] } },
    async (node) => {
      await node.store.close();
      await refused('store_closed', () => types(node, 'a'));
      assert.equal((await fetch(`${node.url}/streams/a`, { headers: JSON_TYPE })).status, 200);
      assert.equal((await node.scavenge()).removedCount, 0);
      await node.reset();
      assert.deepEqual(await types(node, 'a'), ['x']);
    },
  );

  // The end

  test('after stop nothing listens, and methods say so', async () => {
    const node = await startTestNode({ seed: { a: [{ type: 'x' }] } });
    await (await fetch(`${node.url}/streams/a`, { headers: JSON_TYPE })).text();
    const polled = fetch(`${node.url}/streams/a/head/backward/20`, {
      headers: { ...JSON_TYPE, 'es-longpoll': '30' },
    }).then(
      ({ status }) => status,
      () => 'cut off',
    );
    await Promise.all([node.stop(), node.stop()]);
    await node.stop();
    await polled;
    await assert.rejects(fetch(`${node.url}/streams/a`));
    for (const work of [
      () => node.reset(),
      () => node.scavenge(),
      () => node.advanceTime(1),
      () => node.store.append('a', { type: 'y' }),
    ])
      await refused('store_closed', work);
  });

  test('await using stops the node at the end of the block', async () => {
    let url: string;
    {
      await using node = await startTestNode();
      url = node.url;
      assert.equal((await fetch(`${url}/health/live`)).status, 204);
    }
    await assert.rejects(fetch(url));
  });

  test('a node that is asked over HTTP to end is stopped', async () => {
    const node = await startTestNode();
    assert.equal((await fetch(`${node.url}/admin/shutdown`, { method: 'POST' })).status, 200);
    await node.stop();
    await assert.rejects(fetch(node.url));
  });
}

export function login(name: string, password: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}` };
}

async function user(
  node: TestNode,
  name: string,
  adminPassword: string,
): Promise<{ fullName: string; groups: string[] }> {
  const reply = await fetch(`${node.url}/users/${name}`, {
    headers: { ...JSON_TYPE, ...login('admin', adminPassword) },
  });
  assert.equal(reply.status, 200);
  return ((await reply.json()) as { data: { fullName: string; groups: string[] } }).data;
}

function get(
  agent: http.Agent,
  url: string,
  headers: Record<string, string>,
): Promise<{ status: number; localPort: number }> {
  return new Promise((resolve, reject) => {
    http
      .get(url, { agent, headers: { ...JSON_TYPE, ...headers } }, (reply) => {
        const { localPort } = reply.socket;
        reply.resume().on('end', () => resolve({ status: reply.statusCode!, localPort: localPort! }));
      })
      .on('error', reject);
  });
}
