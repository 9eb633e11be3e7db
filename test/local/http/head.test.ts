import * as http from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../../../core/ports/log.ts';
import { ReplyCompression } from '../../../local/http/response-compression.ts';
import { toResponse } from '../../../local/http/send-reply.ts';
import { startServer } from '../../../local/http/server.ts';
import type { HttpServer } from '../../../local/http/server.ts';
import { ATOM, EVENTS, harness, numbered } from '../../handlers/harness.ts';
import { FakeNode } from '../../support/fake-node.ts';

/** HEAD is answered wherever GET is (RFC 9110 section 9.3.2), through a real server. */

let h: ReturnType<typeof harness>;
let server: HttpServer;
const encoder = new ReplyCompression();
beforeAll(async () => {
  h = harness({ node: new FakeNode(), encoder, toResponse, options: { compressionMinBytes: 1_024 } } as never);
  for (const [stream, count] of [
    ['parcels', 3],
    ['long-%C3%A4', 100],
  ] as const) {
    await h.raw(
      'POST',
      `/streams/${stream}`,
      { 'content-type': EVENTS },
      JSON.stringify(numbered(count).map((data) => ({ eventId: h.id(), eventType: 'made', data }))),
    );
  }
  await h.raw('DELETE', '/streams/long-%C3%A4%20gone', { 'es-harddelete': 'true' });
  server = await startServer({ hostname: '127.0.0.1', port: 0, fetch: h.app, log: silentLog });
});
afterAll(() => server.stop(1_000));

interface Answer {
  readonly status: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly bytes: number;
}

function ask(method: string, path: string, headers: http.OutgoingHttpHeaders = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { port: server.port, host: '127.0.0.1', method, path, headers, agent: false },
      (reply) => {
        const { date: _, connection: _c, 'keep-alive': _k, ...others } = reply.headers;
        const answer = (bytes: number) =>
          resolve({ status: `${reply.statusCode} ${reply.statusMessage}`, headers: others, bytes });
        let bytes = 0;
        reply.on('data', (part: Buffer) => {
          bytes += part.length;
          // An event stream has no end.
          if (method === 'GET' && others['content-type'] === 'text/event-stream') {
            request.destroy();
            answer(bytes);
          }
        });
        reply.on('end', () => answer(bytes));
        reply.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end();
  });
}

const GZIP = { 'accept-encoding': 'gzip, br' };

describe('HEAD answers as GET, without the body', () => {
  test.each<[string, http.OutgoingHttpHeaders?]>([
    ['/streams/parcels', { accept: ATOM }],
    ['/streams/parcels?embed=body'],
    ['/streams/parcels/0'],
    ['/streams/parcels/0', { accept: 'application/octet-stream' }],
    ['/streams/parcels/head/backward/2'],
    ['/streams/parcels/0/forward/2'],
    ['/streams/parcels/metadata'],
    ['/streams/$all'],
    ['/streams/%24all/filtered?context=eventtype&type=prefix&data=made'],
    ['/streams/nobody'],
    ['/streams/parcels/99'],
    ['/streams/long-%C3%A4%20gone'],
    ['/streams/parcels/x'],
    ['/streams/parcels/'],
    ['/streams/parcels', { accept: 'text/xml' }],
    ['/streams/parcels', { 'es-requireleader': 'x' }],
    ['/streams/long-%C3%A4?embed=body', GZIP],
    ['/streams/long-%C3%A4/0/forward/1', GZIP],
    ['/streams/parcels', { 'accept-encoding': 'gzip' }],
    ['/streams/parcels', { accept: 'application/x-ndjson' }],
    ['/streams/parcels', { accept: 'application/x-ndjson', ...GZIP }],
    ['/streams/parcels', { accept: 'text/event-stream' }],
    ['/streams/$all', { accept: 'text/event-stream', ...GZIP }],
    ['/'],
    ['/ping'],
    ['/info'],
    ['/info/options'],
    ['/stats'],
    ['/stats/proc'],
    ['/stats/tcp'],
    ['/metrics'],
    ['/gossip'],
    ['/health/live'],
    ['/health/ready'],
    ['/openapi.json'],
    ['/openapi.json', GZIP],
    ['/admin/scavenge/current'],
    ['/admin/scavenge/last'],
    ['/admin/scavenge/progress'],
    ['/admin/login'],
    ['/nothing'],
    ['/projections'],
  ])('%s %j', async (path, headers = {}) => {
    const [get, head] = [await ask('GET', path, headers), await ask('HEAD', path, headers)];
    // What has no length is sent in pieces, and a reply without a body says nothing of that.
    const { 'transfer-encoding': pieces, ...known } = get.headers;
    expect(head).toEqual({ status: get.status, headers: known, bytes: 0 });
    if (pieces === undefined && !/^(?:204|304)/.test(get.status))
      expect(head.headers['content-length']).toBe(String(get.bytes));
    expect(encoder.open).toBe(0);
  });

  test('304 for who has the page', async () => {
    const {
      headers: { etag },
    } = await ask('HEAD', '/streams/parcels');
    expect(etag).toBeDefined();
    const [get, head] = [
      await ask('GET', '/streams/parcels', { 'if-none-match': etag! }),
      await ask('HEAD', '/streams/parcels', { 'if-none-match': etag! }),
    ];
    expect(head).toEqual(get);
    expect(head.status).toBe('304 Not Modified');
  });

  test('nothing is changed by it, whatever the method of the path', async () => {
    const before = (await ask('GET', '/streams/parcels?embed=body')).headers['etag'];
    for (const path of [
      '/admin/shutdown',
      '/admin/scavenge',
      '/streams/parcels/incoming/6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11',
    ])
      expect((await ask('HEAD', path)).status).toMatch(/^405/);
    expect((await ask('GET', '/streams/parcels?embed=body')).headers['etag']).toBe(before);
  });
});
