import { describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../../core/ports/audit.ts';
import { FakeNode } from '../../support/fake-node.ts';
import { harness } from '../harness.ts';
import { AS, secured } from '../secured.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

describe('GET /admin/log', () => {
  test('asks for the newest lines of every level where nothing is said', async () => {
    const node = new FakeNode();
    const { get } = harness({ node });
    expect((await get('/admin/log')).json()).toEqual(node.log({ count: 200, level: 'debug', since: null }));
    expect((await get('/admin/log?count=5&level=warn&since=1')).json()).toMatchObject({ missed: 1 });
    expect(node.calls).toEqual(['log 200 debug null', 'log 200 debug null', 'log 5 warn 1']);
  });

  test.each([
    'count=0',
    'count=1001',
    'count=x',
    'count=',
    'since=-1',
    'since=1.5',
    'since=9007199254740993',
    'level=',
    'level=off',
    'level=INFO',
    'level=__proto__',
  ])('refuses %s', async (query) => {
    const node = new FakeNode();
    expect((await harness({ node }).get(`/admin/log?${query}`)).json()).toMatchObject({ code: 'bad_request' });
    expect(node.calls).toEqual([]);
  });

  test('is for operators, and absent without a node', async () => {
    const { get } = secured({ node: new FakeNode() });
    expect([
      (await get('/admin/log')).status,
      (await get('/admin/log', undefined, AS.plain)).status,
      (await get('/admin/log', undefined, AS.ops)).status,
    ]).toEqual([401, 403, 200]);
    expect((await harness().get('/admin/log')).status).toBe(404);
  });
});

describe('PUT /admin/log/level', () => {
  test('sets it, and the audit is told', async () => {
    const node = new FakeNode();
    const entries: AuditEntry[] = [];
    const { send } = secured({
      node,
      audit: {
        record: (entry) => {
          entries.push(entry);
        },
      },
    });
    const reply = await send('PUT', '/admin/log/level', { ...AS.ops, ...JSON_TYPE }, '{"level":"debug"}');
    expect([reply.status, reply.json(), node.calls]).toEqual([200, { level: 'debug' }, ['setLogLevel debug']]);
    expect((await send('PUT', '/admin/log/level', { ...AS.plain, ...JSON_TYPE }, '{"level":"error"}')).status).toBe(
      403,
    );
    expect(
      entries
        .filter(({ action }) => action === 'log.level')
        .map(({ outcome, user, target }) => [outcome, user, target]),
    ).toEqual([
      ['success', 'olga', 'debug'],
      ['refused', 'kim', null],
    ]);
    expect(node.calls).toHaveLength(1);
  });

  test.each([
    '{}',
    '[]',
    'null',
    '"debug"',
    '{"level":"off"}',
    '{"level":"Debug"}',
    '{"level":1}',
    '{"level":null}',
    '{"level":["debug"]}',
  ])('refuses %s', async (body) => {
    const node = new FakeNode();
    expect((await harness({ node }).send('PUT', '/admin/log/level', JSON_TYPE, body)).json()).toMatchObject({
      code: 'bad_request',
    });
    expect(node.calls).toEqual([]);
  });

  test('reads little, and JSON only', async () => {
    const { send } = harness({ node: new FakeNode() });
    expect((await send('PUT', '/admin/log/level', JSON_TYPE, ' '.repeat(1_025))).status).toBe(413);
    expect((await send('PUT', '/admin/log/level', {}, '{"level":"debug"}')).status).toBe(415);
    expect((await send('PUT', '/admin/log/level', JSON_TYPE, '{')).json()).toMatchObject({ code: 'bad_json' });
  });
});
