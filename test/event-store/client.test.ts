import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientOf } from '../../local/client/connect.ts';
import { isSkuaError } from '../../local/client/index.ts';
import type { Client } from '../../local/client/index.ts';
import { eventStoreTests } from './contract.ts';
import { aNode, functions, quick } from './worlds.ts';
import type { Server } from './worlds.ts';

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => (isSkuaError(error) ? error.code : String(error)),
  );

describe.each([
  ['a node', aNode],
  ['functions', functions],
])('a client of %s', (_name, start) => {
  let server: Server;
  let store: Client;
  beforeAll(async () => {
    server = await start();
    store = clientOf({ url: server.url, credentials: server.credentials, fetch: server.fetch }, quick);
  });
  afterAll(async () => {
    await store.close();
    await server.stop();
  });

  eventStoreTests(() => ({ store, codeOf, redact: (stream, version) => server.redact(stream, version) }));

  test('the same server decides for programs that speak as the suite of dcb.events does', async () => {
    const { username, password } = server.credentials;
    const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}`, 'content-type': 'application/json' };
    const append = async (): Promise<unknown> => {
      const body = JSON.stringify({
        events: { type: 'Seated', tags: [], data: '{"seat":1}' },
        condition: { failIfEventsMatch: { items: [{ types: ['Seated'] }] } },
      });
      const reply = await (server.fetch ?? fetch)(`${server.url}/dcb/append`, { method: 'POST', headers, body });
      return reply.status === 503 ? append() : reply.json();
    };
    expect(await append()).toMatchObject({ appendConditionFailed: false });
    expect(await append()).toMatchObject({ appendConditionFailed: true });
    const query = encodeURIComponent(JSON.stringify({ items: [{ types: ['Seated'] }] }));
    const read = await (server.fetch ?? fetch)(`${server.url}/dcb/read?query=${query}`, { headers });
    expect(await read.json()).toMatchObject([{ type: 'Seated', data: '{"seat":1}', stream: 'dcb' }]);
  });
});
