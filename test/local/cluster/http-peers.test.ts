import { expect, onTestFinished, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { createApp } from '../../../handlers/app.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { PeerClient } from '../../../local/cluster/peer-client.ts';
import { HttpPeers } from '../../../local/cluster/http-peers.ts';
import { connectionOf, peerOf, readBody } from '../../../local/http/http-request.ts';
import { contextOf } from '../../support/app-context.ts';
import { CLUSTER_SECRET, EPOCH, fakeCluster, gossipOf, instanceOf, LOG_ID } from '../../support/fake-cluster.ts';
import { FakeScavenger } from '../../support/fake-scavenger.ts';
import { FakeSecurity } from '../../support/fake-security.ts';
import { ModelStore } from '../../support/model-store.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { serve } from '../tls/clients.ts';

/** A member behind a real server, with security and without TLS. */
async function setUp(secret: string | null = CLUSTER_SECRET) {
  const cluster = fakeCluster();
  const store = new ModelStore(systemClock, new SeededIds());
  const security = new FakeSecurity({ streamInfo: (stream) => store.streamInfo(stream) });
  const app = createApp(
    contextOf({
      store,
      scavenger: new FakeScavenger(),
      clock: systemClock,
      ids: new SeededIds(),
      log: silentLog,
      meter: silentMeter,
      security,
      node: null,
      cluster,
      readBody,
      peerOf,
      connectionOf,
    }),
  );
  const server = await serve({ fetch: app });
  const client = new PeerClient({ certificates: null, secret });
  onTestFinished(() => client.close());
  return { ...cluster, peers: new HttpPeers(client), to: { address: '127.0.0.1', port: server.port } };
}

const COMMITS = { logId: LOG_ID, from: 8, instanceId: instanceOf(2), waitMs: 20 };

test('members understand each other', async () => {
  const { peers, to, membership } = await setUp();
  expect(await peers.gossip(to, gossipOf(2), 20_000)).toEqual(gossipOf(1));
  expect(membership.gossips).toEqual([gossipOf(2)]);
  expect(await peers.lead(to, { logId: LOG_ID, epochNumber: 3 }, 20_000)).toEqual({ ...EPOCH, number: 4 });
  const { signal } = new AbortController();
  expect(await peers.commits(to, COMMITS, signal)).toEqual({ kind: 'commits', bytes: new Uint8Array(0) });
  const bytes = Uint8Array.from({ length: 20_000 }, (_, i) => i & 255);
  membership.feed = async (request) => {
    expect(request).toEqual(COMMITS);
    return { kind: 'commits', bytes };
  };
  expect(await peers.commits(to, COMMITS, signal)).toEqual({ kind: 'commits', bytes });
  membership.feed = async () => ({ kind: 'gone' });
  expect(await peers.commits(to, COMMITS, signal)).toEqual({ kind: 'gone' });
});

test('a refusal says which', async () => {
  const { peers, to, membership } = await setUp();
  membership.error = new SkuaError('epoch_lost', 'Because.');
  await expect(peers.lead(to, { logId: LOG_ID, epochNumber: 3 }, 20_000)).rejects.toMatchObject({
    code: 'member_refused',
    data: { status: 409, code: 'epoch_lost' },
  });
  await expect(peers.commits(to, COMMITS, new AbortController().signal)).rejects.toMatchObject({
    code: 'member_refused',
    data: { status: 409, code: 'epoch_lost' },
  });
  const stranger = await setUp('guessed');
  await expect(stranger.peers.gossip(stranger.to, gossipOf(2), 20_000)).rejects.toMatchObject({
    code: 'member_refused',
    data: { status: 401, code: 'not_a_member' },
  });
  expect(stranger.membership.gossips).toEqual([]);
});

test('an answer that is none is a refusal, too', async () => {
  const { membership, peers, to } = await setUp();
  membership.onGossip = async () => ({ ...gossipOf(1), entries: [] });
  await expect(peers.gossip(to, gossipOf(2), 20_000)).rejects.toMatchObject({
    code: 'member_refused',
    data: { status: 200 },
  });
  const page = await serve({ fetch: () => new Response('<html>') });
  await expect(peers.gossip({ address: '127.0.0.1', port: page.port }, gossipOf(2), 20_000)).rejects.toMatchObject({
    code: 'member_refused',
  });
});

test('a poll that is not wanted any more ends at both ends', async () => {
  const { membership, peers, to } = await setUp();
  const asked = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  membership.feed = (_, signal) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        ended.resolve();
        resolve({ kind: 'gone' });
      });
      asked.resolve();
    });
  const ending = new AbortController();
  const poll = peers.commits(to, { ...COMMITS, waitMs: 20_000 }, ending.signal).catch((error: unknown) => error);
  await asked.promise;
  ending.abort();
  expect(await poll).toMatchObject({ code: 'member_silent', data: { reason: 'given-up' } });
  await ended.promise;
});
