import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { ClusterMember } from '../../../core/cluster/api.ts';
import { silentLog } from '../../../core/ports/log.ts';
import type { RequestParts } from '../../../handlers/http/cluster-feature.ts';
import { PeerForwarder } from '../../../local/cluster/forwarder.ts';
import { PeerClient } from '../../../local/cluster/peer-client.ts';
import { proxySide, TrustedProxies } from '../../../local/http/client-address.ts';
import { toResponse } from '../../../local/http/send-reply.ts';
import { connectionOf, rawHeadersOf, readBody, socketOf } from '../../../local/http/http-request.ts';
import { startServer } from '../../../local/http/server.ts';
import { EVENTS, Members, newId, SECRET } from '../../cluster/forward/kit.ts';

const ends: (() => Promise<unknown> | void)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const client = new PeerClient({ certificates: null, secret: SECRET });
const forwarder = new PeerForwarder(client, 'http');
const at = (port: number): ClusterMember => ({ node: { address: '127.0.0.1', port } }) as ClusterMember;
const REQUEST: RequestParts = {
  method: 'POST',
  target: '/x',
  headers: { 'skua-forwarded': '{}' },
  body: new Uint8Array(3),
};

/** Two members that serve over sockets of their own. */
async function overSockets() {
  const members = new Members();
  const context = () => ({
    ...proxySide(new TrustedProxies([]), socketOf),
    readBody,
    connectionOf,
    rawHeadersOf,
    toResponse,
  });
  const [leader, follower] = [await members.open(context), await members.open(context)];
  await members.leads(leader, follower);
  ends.push(() => members.close());
  const urls: string[] = [];
  for (const { app } of [leader, follower]) {
    const server = await startServer({ hostname: '127.0.0.1', port: 0, fetch: app, log: silentLog });
    ends.push(() => server.stop(1_000));
    urls.push(server.url);
  }
  const port = Number(new URL(urls[0]!).port);
  members.over = { send: (_, request, timeoutMs, signal) => forwarder.send(at(port), request, timeoutMs, signal) };
  return { members, leader, follower, urls: urls as [string, string] };
}

describe('over connections between members', () => {
  test('a request arrives whole, and its answer says what it would say here', async () => {
    const {
      leader,
      urls: [, url],
    } = await overSockets();
    const ids = [newId(), newId()];
    const post = (id: string, headers: Record<string, string> = {}) =>
      fetch(`${url}/streams/${encodeURIComponent('wäge 7')}`, {
        method: 'POST',
        headers: { 'content-type': EVENTS, ...headers },
        body: JSON.stringify([{ eventId: id, eventType: 't', data: { text: 'ö'.repeat(9_000) } }]),
      });
    const first = await post(ids[0]!);
    expect([
      first.status,
      first.statusText,
      first.headers.get('location'),
      first.headers.get('content-length'),
    ]).toEqual([201, 'Created', `${url}/streams/w%C3%A4ge%207/0`, '0']);
    expect((await post(ids[1]!, { 'es-expectedversion': '0' })).status).toBe(201);
    const refused = await post(newId(), { 'es-expectedversion': '7' });
    expect([
      refused.status,
      refused.headers.get('es-currentversion'),
      ((await refused.json()) as { code: string }).code,
    ]).toEqual([400, '1', 'wrong_expected_version']);
    expect(
      [...refused.headers.keys()].filter(
        (name) => name.startsWith('skua') || name === 'connection' || name === 'keep-alive',
      ),
    ).toEqual(['connection', 'keep-alive']);
    expect(await leader.types('wäge 7')).toEqual(ids);
    // A type in UTF-8 has one character a byte in a header, and the same bytes go on.
    const typed = await fetch(`${url}/streams/typed`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'es-eventtype': Buffer.from('größe').toString('latin1'),
        'es-eventid': newId(),
      },
      body: '{}',
    });
    expect(typed.status).toBe(201);
    expect((await leader.store.store.readEvent('typed', 0)).type).toBe('größe');
  });

  test('who is not there, breaks off, or says nothing is told apart', async () => {
    const server = createServer((request, reply) => {
      if (request.url === '/there') reply.end();
      if (request.url === '/breaks') request.socket.destroy();
      if (request.url === '/long') reply.end(Buffer.alloc(1_048_577));
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    const outcome = (target: string, timeoutMs = 60_000, signal: AbortSignal | null = null, to = port) =>
      forwarder.send(at(to), { ...REQUEST, target }, timeoutMs, signal).then(
        () => 'answered',
        ({ code, data }) => [code, data.reason],
      );
    expect(await outcome('/breaks')).toEqual(['member_silent', 'broken']);
    // The connection is there by then, however slow the machine.
    expect(await outcome('/there')).toBe('answered');
    expect(await outcome('/silent', 50)).toEqual(['member_silent', 'time']);
    expect(await outcome('/there')).toBe('answered');
    expect(await outcome('/silent', 60_000, AbortSignal.timeout(50))).toEqual(['member_silent', 'given-up']);
    expect(await outcome('/long')).toEqual(['member_silent', 'length']);
    ends.push(() => {
      server.closeAllConnections();
      server.close();
    });
    const gone = createServer();
    await new Promise<void>((resolve) => {
      gone.listen(0, '127.0.0.1', resolve);
    });
    const { port: free } = gone.address() as AddressInfo;
    await new Promise((resolve) => {
      gone.close(resolve);
    });
    expect(await outcome('/gone', 60_000, null, free)).toEqual(['member_unreachable', 'refused']);
  });
});
