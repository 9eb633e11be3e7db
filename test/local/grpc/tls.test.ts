import * as https from 'node:https';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  addressOf,
  certificateOf,
  connectionOf,
  peerOf,
  rawHeadersOf,
  readBody,
  replyShareOf,
} from '../../../local/http/http-request.ts';
import { loadCertificates } from '../../../local/tls/load-certificates.ts';
import { issueNode, issueRoot } from '../../support/certificates.ts';
import type { Issued } from '../../support/certificates.ts';
import { Files } from '../tls/files.ts';
import { called, ClientCall, connect, echo, framed, serveGrpc } from './clients.ts';

let root: Issued;
let node: Issued;

beforeAll(async () => {
  root = await issueRoot();
  node = await issueNode(root);
});

async function certificates(of: Issued = node) {
  const files = await Files.of({ 'node.crt': of.cert, 'node.key': of.key, 'roots/ca.crt': root.cert });
  return loadCertificates(files.options({ certificateReservedNodeCommonName: null }), Date.now());
}

describe('with TLS', () => {
  test('the client chooses: HTTP/2 where it offers that, else HTTP/1.1', async () => {
    const server = await serveGrpc(echo, {
      tls: { certificates: await certificates() },
      fetch: async (request) =>
        new Response(
          `${request.method} ${new URL(request.url).protocol} ${Buffer.from(await readBody(request, 100)).toString()}`,
        ),
    });
    const session = connect(server, { ca: root.cert });
    expect((await called(session, ['a', 'b'])).texts).toEqual(['a', 'b']);
    expect(session.alpnProtocol).toBe('h2');
    const text = await new Promise((resolve, reject) => {
      const request = https.request(
        { host: '127.0.0.1', port: server.port, ca: root.cert, method: 'POST', agent: false },
        (reply) => reply.on('data', (part: Buffer) => resolve(`${reply.httpVersion} ${part.toString()}`)),
      );
      request.on('error', reject);
      request.end('one');
    });
    expect(text).toBe('1.1 POST https: one');
    const plain = session.request({ ':method': 'PUT', ':path': '/a' });
    plain.end('two');
    const parts: Buffer[] = [];
    for await (const part of plain) parts.push(part as Buffer);
    expect(Buffer.concat(parts).toString()).toBe('PUT https: two');
  });

  test('a client that answers pings keeps its connection', async () => {
    const server = await serveGrpc(
      echo,
      { tls: { certificates: await certificates() } },
      { keepAliveIntervalMs: 40, keepAliveTimeoutMs: 600_000 },
    );
    const session = connect(server, { ca: root.cert });
    const call = new ClientCall(session);
    let pings = 0;
    await new Promise<void>((resolve) => {
      session.on('ping', () => {
        if (++pings === 4) resolve();
      });
    });
    call.stream.end(framed('a'));
    await call.ended;
    expect([call.texts, call.status]).toEqual([['a'], 0]);
  });

  test('who calls, and from where, is known of a call as of a request', async () => {
    const seen: unknown[] = [];
    const tell = (request: Request) => {
      seen.push([
        peerOf(request)?.name,
        addressOf(request),
        certificateOf(request),
        request.headers.get('x-a'),
        request.headers.get('authorization'),
        request.headers.get('host'),
        new URL(request.url).host,
        rawHeadersOf(request).includes('x-a'),
      ]);
      return connectionOf(request)!;
    };
    const connections = new Set<object>();
    const server = await serveGrpc(
      async (call) => {
        connections.add(tell(call.request));
        const share = replyShareOf(call.request);
        share.add(1_000);
        await call.send(framed('a'));
      },
      {
        tls: { certificates: await certificates() },
        fetch: (request) => {
          connections.add(tell(request));
          return new Response('');
        },
      },
    );
    const session = connect(server, { ca: root.cert, cert: node.cert, key: node.key });
    const metadata = { 'x-a': ['1', '2'], authorization: 'Basic abc' };
    await called(session, ['a'], metadata);
    const plain = session.request({ ':method': 'GET', ':path': '/a', ...metadata });
    await new Promise((resolve) => {
      plain.resume().on('close', resolve);
    });
    const host = `127.0.0.1:${server.port}`;
    const known = [
      'system',
      '127.0.0.1',
      node.parsed.subject.replace(/^.*CN=/, ''),
      '1, 2',
      'Basic abc',
      host,
      host,
      true,
    ];
    expect(seen).toEqual([known, known]);
    expect(connections.size).toBe(1);
  });
});
