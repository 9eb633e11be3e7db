import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { SYSTEM } from '../../../core/base/principal.ts';
import { COMMITS_HELD_MAX } from '../../../handlers/cluster/routes.ts';
import { CLUSTER_SECRET, fakeCluster, gossipOf, instanceOf, LOG_ID } from '../../support/fake-cluster.ts';
import { harness } from '../harness.ts';
import { AS, secured } from '../secured.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

function setUp() {
  const cluster = fakeCluster();
  const h = harness({ cluster });
  const commits = (query: Record<string, string | number> = {}, signal?: AbortSignal) => {
    const all = { log: LOG_ID, from: 8, instance: instanceOf(2), waitMs: 0, ...query };
    return h.raw(
      'GET',
      `/cluster/commits?${Object.entries(all)
        .map(([name, value]) => `${name}=${value}`)
        .join('&')}`,
      {},
      null,
      signal,
    );
  };
  return { ...h, ...cluster, commits };
}

describe('gossip and lead', () => {
  test('what was sent is taken in, what is known is answered', async () => {
    const { send, membership } = setUp();
    const reply = await send('POST', '/cluster/gossip', JSON_TYPE, JSON.stringify(gossipOf(2)));
    expect([reply.status, reply.json()]).toEqual([200, gossipOf(1)]);
    expect(membership.gossips).toEqual([gossipOf(2)]);
    const led = await send('POST', '/cluster/lead', JSON_TYPE, JSON.stringify({ logId: LOG_ID, epochNumber: 3 }));
    expect([led.status, led.json().number, membership.leads]).toEqual([200, 4, [{ logId: LOG_ID, epochNumber: 3 }]]);
  });

  test('what can not be told apart from rubbish is refused, and so is what the member refuses', async () => {
    const { send, membership } = setUp();
    for (const body of [
      '',
      '[]',
      '{}',
      JSON.stringify(gossipOf(2, { entries: [] })),
      JSON.stringify(gossipOf(2, { logId: 'x' })),
    ]) {
      expect((await send('POST', '/cluster/gossip', JSON_TYPE, body)).status, body).toBe(400);
    }
    expect(
      (await send('POST', '/cluster/gossip', JSON_TYPE, `${JSON.stringify(gossipOf(2))}${' '.repeat(262_144)}`)).status,
    ).toBe(413);
    const writes = { 'content-type': 'application/octet-stream', 'content-length': '10000000000' };
    expect((await send('POST', '/cluster/append', writes, '')).status).toBe(413);
    expect((await send('POST', '/cluster/gossip', {}, JSON.stringify(gossipOf(2)))).status).toBe(415);
    expect(
      (await send('POST', '/cluster/lead', JSON_TYPE, JSON.stringify({ logId: LOG_ID, epochNumber: -2 }))).status,
    ).toBe(400);
    expect([membership.gossips, membership.leads]).toEqual([[], []]);
    for (const [code, status] of [
      ['other_log', 409],
      ['address_in_use', 409],
      ['epoch_lost', 409],
      ['copy_behind', 503],
      ['storage_unreachable', 503],
    ] as const) {
      membership.error = new SkuaError(code, 'Because.');
      const reply = await send('POST', '/cluster/lead', JSON_TYPE, JSON.stringify({ logId: LOG_ID, epochNumber: 3 }));
      expect([reply.status, reply.json().code]).toEqual([status, code]);
    }
  });
});

describe('commits', () => {
  const bytesOf = async (reply: Response) => [...new Uint8Array(await reply.arrayBuffer())];

  test('are sent as they are; none is 204, and what is not at hand 410', async () => {
    const { commits, membership } = setUp();
    const asked: unknown[] = [];
    membership.feed = async (request) => {
      asked.push(request);
      return { kind: 'commits', bytes: Uint8Array.of(1, 2, 3) };
    };
    const reply = await commits({ waitMs: 500 });
    expect([
      reply.status,
      reply.headers.get('content-type'),
      reply.headers.get('content-length'),
      await bytesOf(reply),
    ]).toEqual([200, 'application/octet-stream', '3', [1, 2, 3]]);
    expect(asked).toEqual([{ logId: LOG_ID, from: 8, instanceId: instanceOf(2), waitMs: 500 }]);
    membership.feed = async () => ({ kind: 'commits', bytes: new Uint8Array(0) });
    expect((await commits()).status).toBe(204);
    membership.feed = async () => ({ kind: 'gone' });
    expect((await commits()).status).toBe(410);
  });

  test('so many answers are held at a time; who goes away gives the place back', async () => {
    const { commits, membership } = setUp();
    membership.feed = (_, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ kind: 'commits', bytes: new Uint8Array(0) }));
      });
    const going = new AbortController();
    const held = Array.from({ length: COMMITS_HELD_MAX }, () => commits({ waitMs: 1_000 }, going.signal));
    expect((await commits()).status).toBe(503);
    going.abort();
    await Promise.all(held);
    membership.error = new SkuaError('other_log', 'Because.');
    for (let i = 0; i <= COMMITS_HELD_MAX; i++) expect((await commits()).status).toBe(409);
  });

  test.each<Record<string, string | number>>([
    { log: 'x' },
    { from: 0 },
    { from: -1 },
    { from: '1e3' },
    { from: '99999999999999999' },
    { instance: '' },
    { waitMs: 'x' },
  ])('%j is refused', async (query) => {
    expect((await setUp().commits(query)).status).toBe(400);
  });
});

describe('who is a member', () => {
  const asMember = (secret: string) => ({ authorization: `Cluster ${secret}` });
  const gossip = (h: Pick<ReturnType<typeof secured>, 'send'>, headers: Record<string, string>) =>
    h.send('POST', '/cluster/gossip', { ...JSON_TYPE, ...headers }, JSON.stringify(gossipOf(2)));

  test('who has the secret, and nobody else whatever his groups', async () => {
    const h = secured({ cluster: fakeCluster() });
    expect((await gossip(h, asMember(CLUSTER_SECRET))).status).toBe(200);
    for (const caller of [{}, asMember('guessed'), asMember(''), asMember('x'.repeat(9_000))]) {
      const reply = await gossip(h, caller);
      expect([
        reply.status,
        reply.json().code,
        reply.headers.get('www-authenticate'),
        reply.headers.get('connection'),
      ]).toEqual([401, 'not_a_member', 'Basic realm="Skua", charset="UTF-8"', 'close']);
    }
    expect([
      (await gossip(h, AS.wrong)).status,
      (await gossip(h, AS.plain)).status,
      (await gossip(h, AS.admin)).status,
    ]).toEqual([401, 403, 403]);
    // It is the system user everywhere.
    expect((await h.get('/users', undefined, asMember(CLUSTER_SECRET))).status).toBe(200);
  });

  test('with TLS a certificate counts, and so does the secret where there is one', async () => {
    const h = secured({ cluster: { ...fakeCluster(), isSecret: null } });
    expect((await gossip(h, asMember(CLUSTER_SECRET))).status).toBe(401);
    const proved = secured({ cluster: { ...fakeCluster(), isSecret: null }, peerOf: () => SYSTEM });
    expect((await gossip(proved, {})).status).toBe(200);
    const both = secured({ cluster: fakeCluster(), peerOf: () => SYSTEM });
    for (const headers of [{}, asMember(CLUSTER_SECRET), asMember('of before')] as Record<string, string>[])
      expect((await gossip(both, headers)).status).toBe(200);
  });

  test('a user whom a trusted proxy calls system is none', async () => {
    const h = secured({
      cluster: fakeCluster(),
      isTrustedProxy: () => true,
      options: { trustedAuthHeader: 'ES-TrustedAuth' },
    });
    expect((await gossip(h, { 'es-trustedauth': 'system; system, $admins' })).status).toBe(403);
  });

  test("what a member passes on is its caller's, and never the member's; nobody else may say so", async () => {
    const who = async (headers: Record<string, string>, context: Parameters<typeof secured>[0]) => {
      const reply = await secured(context).get('/users/$current', undefined, headers);
      return reply.status === 200 ? reply.json().data.loginName : reply.json().code;
    };
    const forwarded = {
      'skua-forwarded': JSON.stringify({
        epoch: 3,
        base: 'http://node2.test',
        address: null,
        isLocal: false,
        caller: null,
        certificate: null,
      }),
    };
    const withTls = { cluster: { ...fakeCluster(), isSecret: null }, peerOf: () => SYSTEM };
    const withSecret = { cluster: fakeCluster() };
    const secret = { 'skua-member': CLUSTER_SECRET };
    for (const [context, proof] of [
      [withTls, {}],
      [withSecret, secret],
    ] as const) {
      expect(await who({ ...forwarded, ...proof }, context)).toBe('not_authenticated');
      expect(await who({ ...forwarded, ...proof, ...AS.plain }, context)).toBe('kim');
      expect(await who({ ...forwarded, ...proof, ...AS.wrong }, context)).toBe('not_authenticated');
    }
    expect(await who({ ...forwarded, ...AS.admin }, withSecret)).toBe('not_a_member');
    expect(await who({ ...forwarded, ...AS.admin, 'skua-member': 'guessed' }, withSecret)).toBe('not_a_member');
    expect(await who({ 'skua-forwarded': '{}', ...secret, ...AS.admin }, withSecret)).toBe('not_a_member');
    expect(await who({ ...forwarded, ...secret, authorization: `Cluster ${CLUSTER_SECRET}` }, withSecret)).toBe(
      'not_authenticated',
    );
    // Where there is no cluster the header means nothing.
    expect(await who({ ...forwarded, ...AS.plain }, {})).toBe('kim');
  });

  test('without a cluster there are no such paths', async () => {
    const h = secured();
    for (const path of ['/cluster/gossip', '/cluster/commits', '/cluster/append', '/cluster/lead'])
      expect((await h.send('POST', path, AS.admin)).status).toBe(404);
  });
});
