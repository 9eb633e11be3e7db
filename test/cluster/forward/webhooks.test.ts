import { afterEach, describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { InboundCall, IngestStatus, WebhookIngest } from '../../../core/webhook/api.ts';
import { FakeAutoScavenge } from '../../support/fake-auto-scavenge.ts';
import { fakeConnectors } from '../../support/fake-connectors.ts';
import { instanceOf, Members } from './kit.ts';

let members: Members;

afterEach(() => members.close());

/** A leader and a follower whose ingests keep the calls that reach them. */
async function two(receive: (call: InboundCall) => Promise<IngestStatus> = async () => 201) {
  members = new Members();
  const calls: { readonly at: number; readonly call: InboundCall }[] = [];
  const hasLooked = { value: false };
  const refused: { readonly at: number; readonly status: number }[] = [];
  const ingestOf = (at: number): WebhookIngest => ({
    // The follower hears of the connector when it looks.
    isActive: (connectorId) => (at === 0 || hasLooked.value) && connectorId === 'parcels',
    receive: (call) => {
      calls.push({ at, call });
      return receive(call);
    },
    refused: async (_, status) => {
      refused.push({ at, status });
    },
  });
  const connectors = await fakeConnectors();
  const autoScavenge = [new FakeAutoScavenge(), new FakeAutoScavenge()];
  const open = () =>
    members.open((_, index) => ({
      webhooks: { connectors, ingest: ingestOf(index), limits: { bodyBytesMax: 100, bodyReadMs: 1_000 } },
      autoScavenge: autoScavenge[index]!,
      addressOf: () => `192.0.2.${index}`,
    }));
  const [leader, follower] = [await open(), await open()];
  const refresh = follower.store.log.refresh.bind(follower.store.log);
  follower.store.log.refresh = async () => {
    await refresh();
    hasLooked.value = true;
  };
  await members.leads(leader, follower);
  return { leader, follower, calls, refused, autoScavenge };
}

const JSON_TYPE = { 'content-type': 'application/json', 'x-hub-signature-256': 'sha256=00' };

describe('calls of senders at a follower', () => {
  test('are judged by the leader: every byte of the body, all headers, path and query', async () => {
    const { follower, calls } = await two();
    const body = '{ "n": 1.50,\n "t": "ö" }';
    const reply = await follower.send('POST', '/webhook/parcels?a=1', JSON_TYPE, body);
    expect([reply.status, reply.text]).toEqual([201, '']);
    const [{ at, call }] = calls as [(typeof calls)[number]];
    expect([at, new TextDecoder().decode(call.body), call.path, [...call.query]]).toEqual([
      0,
      body,
      '/webhook/parcels',
      [['a', '1']],
    ]);
    expect(call.headers.get('x-hub-signature-256')).toBe('sha256=00');
  });

  test('for what is no connector are refused there', async () => {
    const { follower, calls } = await two();
    expect((await follower.send('POST', '/webhook/letters', JSON_TYPE, '{}')).status).toBe(404);
    expect((await follower.send('POST', '/webhook/parcels', { 'content-type': 'text/plain' }, 'x')).status).toBe(415);
    expect(calls).toEqual([]);
    // Of the first nothing was read; the second was refused unread by the leader.
    expect(members.forwarded.map(({ request }) => [request.target, request.body.length])).toEqual([
      ['/webhook/parcels', 0],
    ]);
  });

  test('are bounded by the member that they arrive at', async () => {
    const { follower, refused } = await two();
    const reply = await follower.send('POST', '/webhook/parcels', JSON_TYPE, `{"long":"${'x'.repeat(100)}"}`);
    expect([reply.status, reply.headers.get('connection')]).toEqual([413, 'close']);
    expect(refused).toEqual([{ at: 1, status: 413 }]);
    expect(members.forwarded).toEqual([]);
  });

  test('go to the next leader where the event was refused a place behind a newer epoch', async () => {
    const { leader, follower, calls } = await two(async ({ authorize }) => {
      if (calls.length > 1) return 201;
      const other = members.all[2]!;
      await other.store.log.refresh();
      await other.store.log.lead(instanceOf(2), 0);
      await leader.store.log.refresh();
      follower.lead.knows(other.lead.self);
      await follower.store.log.refresh();
      return authorize?.({}, () => null) === null ? 201 : 503;
    });
    await members.open((_, index) => ({
      webhooks: {
        connectors: {} as never,
        ingest: {
          isActive: () => true,
          receive: async (call) => {
            calls.push({ at: index, call });
            return 201;
          },
        },
      },
    }));
    expect((await follower.send('POST', '/webhook/parcels', JSON_TYPE, '{}')).status).toBe(201);
    expect(calls.map(({ at }) => at)).toEqual([0, 2]);
  });
});

describe('commands of connectors and of auto-scavenge at a follower', () => {
  test("are the leader's, reads are not", async () => {
    const { follower, autoScavenge } = await two();
    expect(
      (
        await follower.send(
          'PUT',
          '/connectors/parcels/rename',
          { 'content-type': 'application/json' },
          '{"name":"Letters"}',
        )
      ).status,
    ).toBe(200);
    expect((await follower.send('GET', '/connectors/parcels')).status).toBe(200);
    expect((await follower.send('POST', '/auto-scavenge/pause')).status).toBe(200);
    expect((await follower.send('GET', '/auto-scavenge/status')).status).toBe(200);
    expect((await follower.send('GET', '/auto-scavenge/enabled')).status).toBe(200);
    expect(members.forwarded.map(({ request }) => `${request.method} ${request.target}`)).toEqual([
      'PUT /connectors/parcels/rename',
      'POST /auto-scavenge/pause',
      'GET /auto-scavenge/status',
    ]);
    // Who leads no more says so, and what is not here any more is asked elsewhere.
    autoScavenge[0]!.error = new SkuaError('not_leader', 'Not here.', { leader: null });
    autoScavenge[1]!.error = new SkuaError('not_leader', 'Not here.', { leader: null });
    const reply = follower.send('POST', '/auto-scavenge/pause');
    for (let i = 0; i < 60; i++) await members.cluster.clock.advance(200);
    expect([(await reply).status, JSON.parse((await reply).text).code]).toEqual([503, 'no_leader']);
  });
});
