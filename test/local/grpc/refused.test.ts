import * as http2 from 'node:http2';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startNode } from '../../../local/node/node.ts';
import type { RunningNode } from '../../../local/node/node.ts';
import { basic } from '../../handlers/secured.ts';
import { NodeLines } from '../backup/node-kit.ts';
import { load } from '../config/support.ts';

let node: RunningNode;
let session: http2.ClientHttp2Session;

beforeAll(async () => {
  node = await startNode({
    config: load([
      '--node-port',
      '0',
      '--mem-db',
      '--disable-tls',
      '--password-format',
      'compatible',
      '--stream-existence-filter-size',
      '10000',
    ]),
    log: new NodeLines(),
    env: {},
  });
  session = http2.connect(node.url);
});
afterAll(async () => {
  session.destroy();
  await node.stop();
});

/**
 * The beginning of a message of 1 MB whose rest never comes; what the call ended with, and that its stream was closed.
 */
function begin(
  path: string,
  headers: Record<string, string>,
): Promise<readonly [http: unknown, grpc: unknown, exception: unknown]> {
  return new Promise((resolve, reject) => {
    const stream = session.request(
      {
        ':method': 'POST',
        ':path': `/event_store.client.streams.Streams/${path}`,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...headers,
      },
      { endStream: false },
    );
    let seen: http2.IncomingHttpHeaders = {};
    stream.on('response', (head) => {
      seen = head;
    });
    stream.on('error', reject);
    stream.on('close', () => resolve([seen[':status'], seen['grpc-status'], seen['exception']]));
    stream.resume();
    stream.write(Buffer.concat([Buffer.of(0, 0, 15, 66, 64), Buffer.alloc(100_000)]));
  });
}

test.each(['Append', 'BatchAppend', 'Read', 'Delete'])(
  '%s with the beginning of a message is over at once without a login, and with a wrong one',
  async (method) => {
    expect(await begin(method, {})).toEqual([200, '7', 'access-denied']);
    expect(await begin(method, { authorization: basic('kim', `guess for ${method}`) })).toEqual([200, '16', undefined]);
  },
);
