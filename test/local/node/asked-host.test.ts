import * as http2 from 'node:http2';
import * as net from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, test } from 'vitest';
import { toBytes, toJson, typeOf, unframed } from '../../grpc/codec.ts';
import { startedNode } from '../spawn.ts';

const HAS_IPV6 = Object.values(networkInterfaces()).some(
  (all) => all?.some(({ address }) => address === '::1') === true,
);
const READ = '/event_store.client.gossip.Gossip/Read';

interface Node {
  readonly url: string;
  readonly port: number;
}

/** A node on all addresses, while the test goes on. */
async function withNode(address: string, words: readonly string[], work: (node: Node) => Promise<void>): Promise<void> {
  const node = await startedNode(['--mem-db', '--node-ip', address, ...words]);
  try {
    await work({ url: node.url, port: Number(new URL(node.url).port) });
  } finally {
    await node.stop();
  }
}

/**
 * What gossip over HTTP names as the host, thrice in one answer; `headers` as they are sent, without any `Host` of
 * ours.
 */
function overHttp({ port }: Node, headers: readonly string[], at = '127.0.0.1', version = '1.1'): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = net.connect(port, at, () =>
      socket.write(
        ['GET /gossip HTTP/' + version, 'Accept: application/json', 'Connection: close', ...headers, '', ''].join(
          '\r\n',
        ),
      ),
    );
    socket.on('data', (part: Buffer) => {
      text += part.toString();
    });
    socket.on('error', reject);
    socket.on('close', () => {
      if (!text.startsWith('HTTP/1.1 200 ')) {
        resolve(text.split('\r\n', 1)[0]!);
        return;
      }
      const body = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
      const {
        members: [member],
        serverIp,
        serverPort,
      } = JSON.parse(body) as { members: [Record<string, unknown>]; serverIp: string; serverPort: number };
      expect([
        member['httpEndPointIp'],
        member['externalTcpIp'],
        member['internalTcpIp'],
        serverPort,
        member['httpEndPointPort'],
      ]).toEqual([serverIp, serverIp, serverIp, port, port]);
      resolve(serverIp);
    });
  });
}

/** The same over gRPC. */
async function overGrpc(
  { port }: Node,
  authority: string,
  headers: Record<string, string> = {},
  at = '127.0.0.1',
): Promise<string> {
  const session = http2.connect(`http://${at.includes(':') ? `[${at}]` : at}:${port}`);
  session.on('error', () => {});
  try {
    const stream = session.request({
      ':method': 'POST',
      ':path': READ,
      ':authority': authority,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
    const parts: Buffer[] = [];
    stream.end(Buffer.concat([Buffer.alloc(5), toBytes('event_store.client.Empty', {})]));
    for await (const part of stream) parts.push(part as Buffer);
    const [message] = unframed(Buffer.concat(parts));
    const {
      members: [{ http_end_point: endPoint }],
    } = toJson(typeOf('event_store.client.gossip.ClusterInfo'), message!) as {
      members: [{ http_end_point: { address: string; port: number } }];
    };
    expect(endPoint.port).toBe(port);
    return endPoint.address;
  } finally {
    session.destroy();
  }
}

/** Hosts that are none, or stand for all of a machine. */
const NO_NAMES = [
  '0.0.0.0',
  '[::]',
  '0',
  '0x0',
  '[::ffff:0.0.0.0]',
  'a"b',
  '<script>',
  'a/../b',
  `${'h'.repeat(300)}`,
  '[fe80::1%25eth0]',
];

describe.each(HAS_IPV6 ? ['0.0.0.0', '::', '0:0:0:0:0:0:0:0'] : ['0.0.0.0'])(
  'gossip of a node on %s without a name',
  (address) => {
    test('names the host that the client asked for, else the address by which it came', () =>
      withNode(address, [], async (node) => {
        const { port } = node;
        for (const [host, named] of [
          ['localhost', 'localhost'],
          ['127.0.0.1', '127.0.0.1'],
          ['events.example.test', 'events.example.test'],
          ['[::1]', '::1'],
        ] as const) {
          expect(await overHttp(node, [`Host: ${host}:${port}`]), host).toBe(named);
          expect(await overGrpc(node, `${host}:${port}`), host).toBe(named);
        }
        expect(await overHttp(node, [], '127.0.0.1', '1.0')).toBe('127.0.0.1');
        for (const host of ['0.0.0.0', '[::]']) {
          expect(await overHttp(node, [`Host: ${host}:${port}`]), host).toBe('127.0.0.1');
          expect(await overGrpc(node, `${host}:${port}`), host).toBe('127.0.0.1');
          if (address !== '0.0.0.0') expect(await overGrpc(node, `${host}:${port}`, {}, '::1'), host).toBe('::1');
        }
        for (const host of NO_NAMES) {
          // Those that can't be read are refused before, as pages under names of others could send them.
          expect(['127.0.0.1', 'HTTP/1.1 421 Misdirected Request', 'HTTP/1.1 400 Bad Request'], host).toContain(
            await overHttp(node, [`Host: ${host}`]),
          );
          expect(['127.0.0.1', 'refused'], host).toContain(await overGrpc(node, host).catch(() => 'refused'));
        }
      }));
  },
);

test('forwarding headers name the host where they count, and nobody else', async () => {
  const forwarded = 'db.example.test';
  await withNode('0.0.0.0', [], async (node) => {
    expect(await overHttp(node, ['Host: 127.0.0.1', `X-Forwarded-Host: ${forwarded}`])).toBe(forwarded);
    expect(await overGrpc(node, '127.0.0.1', { 'x-forwarded-host': forwarded })).toBe(forwarded);
    expect(await overHttp(node, ['Host: 127.0.0.1', 'X-Forwarded-Host: 0.0.0.0'])).toBe('127.0.0.1');
  });
  await withNode('0.0.0.0', ['--trusted-proxies', '10.1.2.3'], async (node) => {
    expect(await overHttp(node, ['Host: localhost', `X-Forwarded-Host: ${forwarded}`])).toBe('localhost');
    expect(await overGrpc(node, 'localhost', { 'x-forwarded-host': forwarded })).toBe('localhost');
  });
});

test('a node that has a name, or one address, goes by that', async () => {
  await withNode('0.0.0.0', ['--node-host-advertise-as', 'node1.example.test'], async (node) => {
    expect(await overHttp(node, ['Host: localhost'])).toBe('node1.example.test');
    expect(await overGrpc(node, 'localhost')).toBe('node1.example.test');
  });
  await withNode('127.0.0.1', [], async (node) => {
    expect(await overHttp(node, ['Host: localhost'])).toBe('127.0.0.1');
    expect(await overGrpc(node, 'localhost')).toBe('127.0.0.1');
  });
});
