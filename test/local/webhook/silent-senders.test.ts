import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { InboundCall, IngestStatus, WebhookIngest } from '../../../core/webhook/api.ts';
import type { WebhookLimits } from '../../../handlers/http/context.ts';
import { addressOf, readBody } from '../../../local/http/http-request.ts';
import type { HttpServer } from '../../../local/http/server.ts';
import { harness } from '../../handlers/harness.ts';
import { call, open, received, serve } from '../tls/clients.ts';

const MIB = 1_048_576;

class Taking implements WebhookIngest {
  readonly bodies: Uint8Array[] = [];
  readonly refusals: number[] = [];
  status: IngestStatus = 202;
  isActive(connectorId: string): boolean {
    return connectorId !== 'nobody';
  }
  async receive({ body }: InboundCall) {
    this.bodies.push(body);
    return this.status;
  }
  async refused(_connectorId: string, status: number): Promise<void> {
    this.refusals.push(status);
  }
}

/** The whole interface behind the real server, with connectors that take everything. */
async function node(limits: Partial<WebhookLimits> = {}) {
  const ingest = new Taking();
  const { app, clock } = harness({ readBody, addressOf, webhooks: { connectors: null, ingest, limits } } as never);
  return { ingest, clock, server: await serve({ fetch: app }) };
}

/** A sender who declares a body and sends some of it, or nothing. Resolves when the node has read it. */
async function sender(server: HttpServer, { length = MIB, body = '', connector = 'parcels' } = {}): Promise<Socket> {
  const socket = await open(server);
  socket.write(
    `POST /webhook/${connector} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
  );
  return socket;
}

const genuine = (server: HttpServer, connector = 'parcels', body = '{"a":1}') =>
  call(
    server,
    { method: 'POST', path: `/webhook/${connector}`, headers: { 'content-type': 'application/json' }, agent: false },
    body,
  );

/**
 * Requests that the server has begun: one that is answered on a connection of its own comes behind all that were sent
 * before.
 */
async function settled(server: HttpServer): Promise<void> {
  for (let i = 0; i < 3; i++) await call(server, { path: '/ping', agent: false });
}

describe('senders who declare bodies and send nothing', () => {
  test('256 of them do not keep a genuine call out', async () => {
    const { server, ingest } = await node();
    await Promise.all(Array.from({ length: 256 }, () => sender(server)));
    await settled(server);
    expect(await genuine(server)).toMatchObject({ status: 202, body: '' });
    expect(ingest.bodies.map((body) => Buffer.from(body).toString())).toEqual(['{"a":1}']);
    expect(ingest.refusals).toEqual([]);
  });

  test('more than a connector may have: those who lag go first, with 408 and the end of their connection', async () => {
    const { server, clock, ingest } = await node({ connectorArrivingMax: 3 });
    const silent: Promise<string>[] = [];
    for (let i = 0; i < 3; i++) {
      silent.push(received(await sender(server)));
      await settled(server);
      await clock.advance(2_000);
    }
    expect((await genuine(server)).status).toBe(202);
    const first = await silent[0]!;
    expect(first).toMatch(/^HTTP\/1\.1 408 /);
    expect(first.toLowerCase()).toContain('connection: close');
    // Another connector's calls find its own room, and nobody else has to go for them.
    expect((await genuine(server, 'letters')).status).toBe(202);
    expect(ingest.refusals).toEqual([408]);
  });

  test('their bytes count as they arrive, and the slow ones make room', async () => {
    const { server, clock, ingest } = await node({ bodyBytesMax: 1_000, arrivingBytesMax: 1_500 });
    const slow = received(await sender(server, { length: 1_000, body: 'x'.repeat(900) }));
    await settled(server);
    await clock.advance(5_000);
    expect((await genuine(server, 'parcels', `"${'y'.repeat(798)}"`)).status).toBe(202);
    expect(await slow).toMatch(/^HTTP\/1\.1 408 /);
    expect(ingest.bodies.map(({ length }) => length)).toEqual([800]);
  });
});
