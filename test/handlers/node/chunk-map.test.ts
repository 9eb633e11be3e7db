import { describe, expect, test } from 'vitest';
import { FakeNode } from '../../support/fake-node.ts';
import { harness } from '../harness.ts';

describe('GET /admin/chunks', () => {
  test('has all files in one line, and none where the caller knows them', async () => {
    const node = new FakeNode();
    const { get } = harness({ node });
    const reply = await get('/admin/chunks');
    expect([reply.status, reply.headers.get('content-type'), reply.json()]).toEqual([
      200,
      'application/json; charset=utf-8',
      node.chunks,
    ]);
    expect(reply.text).not.toContain('\n');
    const { version, chunkSize, logEnd } = node.chunks;
    expect((await get(`/admin/chunks?since=${version}`)).json()).toEqual({ version, chunkSize, logEnd, chunks: null });
    for (const since of ['', 'aabbccdd-2', '%00', '%zz', '..%2f..', '💥'])
      expect((await get(`/admin/chunks?since=${since}`)).json()).toEqual(node.chunks);
  });

  test('refuses a version that is none, another format, and another method', async () => {
    const { get, send } = harness({ node: new FakeNode() });
    expect((await get(`/admin/chunks?since=${'x'.repeat(65)}`)).json()).toMatchObject({ code: 'bad_request' });
    expect((await get('/admin/chunks', 'application/xml')).status).toBe(406);
    expect((await send('POST', '/admin/chunks')).status).toBe(405);
  });

  test('is absent without a node, and where administration is switched off', async () => {
    expect((await harness().get('/admin/chunks')).status).toBe(404);
    expect(
      (await harness({ node: new FakeNode(), options: { disableAdminUi: true } }).get('/admin/chunks')).status,
    ).toBe(404);
  });
});
