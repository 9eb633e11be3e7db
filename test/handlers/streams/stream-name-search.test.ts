import { describe, expect, test } from 'vitest';
import { AS, secured } from '../secured.ts';
import { harness } from '../harness.ts';

describe('GET /admin/streams', () => {
  test('has names, newest first, and how to go on', async () => {
    const { fill, get } = harness();
    await fill('orders-1', {});
    await fill('orders-2', {}, {});
    await fill('$hidden', {});
    const reply = await get('/admin/streams?count=1');
    expect(reply.json()).toMatchObject({
      streams: [
        {
          stream: 'orders-2',
          lastEventNumber: 1,
          isDeleted: false,
          eventNumber: 1,
          writtenAt: expect.stringMatching(/^2031-/),
        },
      ],
      hidden: 0,
      next: expect.stringMatching(/^\d+-\d+$/),
    });
    const { next } = reply.json();
    expect((await get(`/admin/streams?from=${next}`)).json()).toMatchObject({
      streams: [{ stream: 'orders-2' }, { stream: 'orders-1' }],
      to: 0,
      next: null,
    });
    expect((await get('/admin/streams?system=true&search=HID')).json().streams).toMatchObject([{ stream: '$hidden' }]);
    expect((await get('/admin/streams?recent=created&search=orders&match=prefix')).json().streams).toMatchObject([
      { stream: 'orders-2', eventNumber: 0 },
      { stream: 'orders-1' },
    ]);
  });

  test.each([
    'count=0',
    'count=201',
    'count=-1',
    'count=1e2',
    'count=',
    'recent=sometime',
    'recent=',
    'match=regex',
    'system=1',
    'from=x',
    'from=1',
    'from=-1-0',
    `from=${'9'.repeat(16)}-0`,
    `search=${'x'.repeat(201)}`,
  ])('refuses %s', async (query) => {
    expect((await harness().get(`/admin/streams?${query}`)).json()).toMatchObject({ code: 'bad_request' });
  });

  test('refuses a place that is none of the log', async () => {
    const { fill, get } = harness();
    await fill('orders-1', {});
    expect((await get('/admin/streams?from=3-3')).json()).toMatchObject({ code: 'invalid_position' });
  });

  test('tells operators no names of streams that they may not read', async () => {
    const { fill, get, store } = secured();
    for (const stream of ['open', 'closed'])
      await store.append(stream, -2, [
        {
          id: `60000000-0000-4000-8000-00000000000${stream.length}`,
          type: 'made',
          isJson: true,
          data: new TextEncoder().encode('{}'),
          metadata: new Uint8Array(0),
        },
      ]);
    await store.append('$$closed', -2, [
      {
        id: '60000000-0000-4000-8000-000000000001',
        type: '$metadata',
        isJson: true,
        data: new TextEncoder().encode('{"$acl":{"$r":["nobody"]}}'),
        metadata: new Uint8Array(0),
      },
    ]);
    expect(fill).toBeDefined();
    expect((await get('/admin/streams', undefined, AS.ops)).json()).toMatchObject({
      streams: [{ stream: 'open' }],
      hidden: 1,
    });
    expect((await get('/admin/streams', undefined, AS.admin)).json()).toMatchObject({
      streams: [{ stream: 'closed' }, { stream: 'open' }],
      hidden: 0,
    });
    expect((await get('/admin/streams', undefined, AS.plain)).status).toBe(403);
  });
});
