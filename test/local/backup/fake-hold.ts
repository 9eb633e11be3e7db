import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Snapshot } from '../../../core/store/source/source.ts';

/** The hold routes of a node over files in memory, as far as a client sees them, with faults. */

export const HOLD_ID = '11111111-2222-4333-8444-555555555555';

export interface FakeHold {
  readonly url: string;
  /** Requests as they came: `GET /admin/backup/files/a?from=0&length=3`. */
  readonly calls: string[];
  /** Looks at a request first; true when it has answered it, or will not. */
  fault: (request: IncomingMessage, response: ServerResponse) => boolean;
  isHeld: boolean;
  close(): Promise<void>;
}

export async function fakeHold(files: Readonly<Record<string, string>>): Promise<FakeHold> {
  const calls: string[] = [];
  const snapshot: Snapshot = {
    nodeId: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
    takenMs: 1,
    chunkSizeBytes: 65_536,
    checkpoints: { writer: 9, chaser: 9, epoch: -1, proposal: -1 },
    files: Object.entries(files).map(([path, text]) => ({
      path,
      kind: path.startsWith('index/') ? 'existence-filter' : 'chunk',
      sizeBytes: text.length,
    })),
  };
  const server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url!.replace(`hold=${HOLD_ID}`, 'hold')}`);
    if (!fake.fault(request, response)) answer(request, response);
  });
  const json = (response: ServerResponse, status: number, value: unknown) => {
    response
      .writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' })
      .end(JSON.stringify(value));
  };
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url!, 'http://node');
    if (request.method === 'POST' && url.pathname === '/admin/backup/hold') {
      fake.isHeld = true;
      return json(response, 200, { holdId: HOLD_ID });
    }
    if (!fake.isHeld) return json(response, 404, { code: 'hold_not_found', detail: 'There is no such hold.' });
    if (request.method === 'DELETE') {
      fake.isHeld = false;
      return response.writeHead(204).end();
    }
    if (request.method === 'POST') return json(response, 200, {});
    if (url.pathname === '/admin/backup/files') return json(response, 200, snapshot);
    const text = files[decodeURIComponent(url.pathname.slice('/admin/backup/files/'.length))];
    if (text === undefined) return json(response, 404, { code: 'not_found', detail: 'There is no such file.' });
    const from = Number(url.searchParams.get('from'));
    return response.writeHead(200).end(text.slice(from, from + Number(url.searchParams.get('length'))));
  };
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const fake: FakeHold = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    fault: () => false,
    isHeld: false,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return fake;
}
