import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { Principal } from '../../../core/base/principal.ts';
import { FakeNode } from '../../support/fake-node.ts';
import { FakeSecurity } from '../../support/fake-security.ts';
import { ModelStore } from '../../support/model-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { harness } from '../harness.ts';

/** Directing the node. */

const ROUTES = [
  '/admin/shutdown',
  '/admin/reloadconfig',
  '/admin/mergeindexes',
  '/admin/node/priority/5',
  '/admin/node/resign',
];

function withNode() {
  const node = new FakeNode();
  return { node, ...harness({ node }) };
}

describe('shutdown', () => {
  test('is answered, and begins', async () => {
    const { node, send } = withNode();
    expect(await send('POST', '/admin/shutdown')).toMatchObject({ status: 200, reason: 'OK', text: '' });
    expect(node.calls).toEqual(['shutdown']);
  });
});

describe('reload', () => {
  const certificate = {
    kind: 'node',
    subject: 'CN=node1.example.test',
    serial: '0A1B',
    thumbprint: 'AB:CD',
    notAfter: '2031-07-02T00:00:00.000Z',
    daysLeft: 90,
  } as const;

  test('waits, and says what changed', async () => {
    const { node, send } = withNode();
    const ended = Promise.withResolvers<void>();
    const result = {
      options: [{ name: 'LogLevel', from: 'Information', to: 'Debug' }],
      ignoredOptions: ['ChunkSize'],
      certificatesChanged: true,
      certificates: [certificate],
    };
    node.reload = async () => {
      await ended.promise;
      return result;
    };
    let isAnswered = false;
    const answer = send('POST', '/admin/reloadconfig').then((reply) => {
      isAnswered = true;
      return reply;
    });
    await send('GET', '/health/live');
    expect(isAnswered).toBe(false);
    ended.resolve();
    const reply = await answer;
    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(reply.json()).toEqual(result);
  });

  test('as text', async () => {
    const { node, send } = withNode();
    node.reloadResult = {
      options: [{ name: 'LogLevel', from: 'Information', to: 'Debug' }],
      ignoredOptions: ['ChunkSize', 'Db'],
      certificatesChanged: false,
      certificates: [certificate],
    };
    const reply = await send('POST', '/admin/reloadconfig', { accept: 'text/plain' });
    expect(reply.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(reply.text).toBe(
      'Reloaded\nLogLevel: Information -> Debug\nAfter a restart: ChunkSize, Db\nCertificates unchanged\nnode: CN=node1.example.test, serial 0A1B, 90 days left',
    );
    node.reloadResult = { options: [], ignoredOptions: [], certificatesChanged: false, certificates: [] };
    expect((await send('POST', '/admin/reloadconfig', { accept: 'text/plain' })).text).toBe('Reloaded');
  });

  test('that fails is 409, with the file and the reason', async () => {
    const { node, send } = withNode();
    const data = { file: '/etc/skua/node.key', reason: 'does not belong to the certificate', secret: 'x' };
    node.reloadError = new SkuaError(
      'reload_failed',
      'The configuration stays as it was: /etc/skua/node.key does not belong to the certificate.',
      data,
    );
    const reply = await send('POST', '/admin/reloadconfig');
    expect([reply.status, reply.headers.get('content-type')]).toEqual([409, 'application/problem+json; charset=utf-8']);
    expect(reply.json()).toEqual({
      code: 'reload_failed',
      title: 'Conflict',
      detail: 'The configuration stays as it was: /etc/skua/node.key does not belong to the certificate.',
      file: '/etc/skua/node.key',
      reason: 'does not belong to the certificate',
    });
  });

  test('asked for in a format that there is none of, does nothing', async () => {
    const { node, send } = withNode();
    expect((await send('POST', '/admin/reloadconfig', { accept: 'application/xml' })).status).toBe(406);
    expect(node.calls).toEqual([]);
  });
});

describe('merging of indexes', () => {
  test('answers with the id of the work', async () => {
    const { node, send } = withNode();
    const reply = await send('POST', '/admin/mergeindexes');
    expect([reply.status, reply.json()]).toEqual([200, { mergeIndexesId: node.mergeIndexesId }]);
    expect((await send('POST', '/admin/mergeindexes', { accept: 'text/plain' })).text).toBe(
      `MergeIndexesId: ${node.mergeIndexesId}`,
    );
    expect(node.calls).toEqual(['mergeIndexes', 'mergeIndexes']);
  });

  test('is refused by a store that closes', async () => {
    const { node, send } = withNode();
    node.mergeIndexes = () => {
      throw new SkuaError('store_closed', 'The store is closing.');
    };
    const reply = await send('POST', '/admin/mergeindexes');
    expect([reply.status, reply.json().code, reply.headers.get('retry-after')]).toEqual([503, 'store_closed', '5']);
  });
});

describe('priority', () => {
  test.each([
    ['5', 5],
    ['-3', -3],
    ['0', 0],
    ['-0', 0],
    ['+7', 7],
    ['2147483647', 2_147_483_647],
    ['-2147483648', -2_147_483_648],
    ['%35', 5],
  ])('%s is set', async (text, value) => {
    const { node, send } = withNode();
    expect(await send('POST', `/admin/node/priority/${text}`)).toMatchObject({ status: 200, reason: 'OK', text: '' });
    expect(node.calls).toEqual([`setPriority ${value}`]);
    expect(node.member().nodePriority).toBe(value);
  });

  test.each(['x', '1.5', '2147483648', '-2147483649', '99999999999999999999', '1e3', '%20', '0x1', '%zz'])(
    '%s is refused',
    async (text) => {
      const { node, send } = withNode();
      const reply = await send('POST', `/admin/node/priority/${text}`);
      expect(reply.status).toBe(400);
      if (!text.startsWith('%z'))
        expect(reply.json()).toMatchObject({ code: 'bad_request', detail: 'nodePriority must be an integer.' });
      expect(node.calls).toEqual([]);
    },
  );
});

test('resigning on a single node has no effect, and says so', async () => {
  const { node, send } = withNode();
  const reply = await send('POST', '/admin/node/resign');
  expect([reply.status, reply.json()]).toEqual([200, { message: node.resign() }]);
  expect((await send('POST', '/admin/node/resign', { accept: 'text/plain' })).text).toBe(node.resign());
});

describe('all of them', () => {
  test.each(ROUTES)('%s takes POST only, and any body', async (path) => {
    const { send } = withNode();
    for (const method of ['GET', 'PUT', 'DELETE'])
      expect([method, (await send(method, path)).status]).toEqual([method, 405]);
    expect((await send('OPTIONS', path)).headers.get('access-control-allow-methods')).toBe('POST, OPTIONS');
    expect((await send('POST', path, { 'content-type': 'application/x-www-form-urlencoded' }, 'a=b')).status).toBe(200);
  });

  test.each(ROUTES)('%s is for operators', async (path) => {
    const clock = new ManualClock(0);
    const store = new ModelStore(clock, new SeededIds());
    const security = new FakeSecurity(store);
    security.add('kim', 'k', []);
    security.add('lee', 'l', ['$ops']);
    security.add('admin', 'a', ['$admins']);
    const node = new FakeNode();
    const { send } = harness({ node, security, store });
    const as = async (credentials: string | null) =>
      (await send('POST', path, credentials === null ? {} : { authorization: `Basic ${btoa(credentials)}` })).status;
    expect([await as(null), await as('kim:x'), await as('kim:k')]).toEqual([401, 401, 403]);
    expect(node.calls).toEqual([]);
    expect([await as('lee:l'), await as('admin:a')]).toEqual([200, 200]);
    expect(node.calls).toHaveLength(2);
  });

  test.each(ROUTES)('%s is not there without a node, or when it is switched off', async (path) => {
    expect((await harness().send('POST', path)).status).toBe(404);
    const node = new FakeNode();
    expect((await harness({ node, options: { disableAdminUi: true } }).send('POST', path)).status).toBe(404);
    expect(node.calls).toEqual([]);
  });
});

test('/admin/login says who the caller is', async () => {
  const store = new ModelStore(new ManualClock(0), new SeededIds());
  const security = new FakeSecurity(store);
  security.add('lee', 'l', ['$ops', 'pickers']);
  const { send } = harness({ security, store });
  const caller: Principal = { name: 'lee', roles: ['$ops', 'pickers'] };
  const reply = await send('GET', '/admin/login', { authorization: `Basic ${btoa('lee:l')}` });
  expect(reply.json()).toMatchObject({ data: { loginName: caller.name, groups: caller.roles }, success: true });
  expect((await send('GET', '/admin/login')).status).toBe(401);
});
