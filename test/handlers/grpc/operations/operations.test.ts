import { describe, expect, test } from 'vitest';
import { AS } from '../../secured.ts';
import { audited } from '../audited.ts';

const AT = '/event_store.client.operations.Operations';
const OK = { status: 0, message: '', trailers: {} };
const DENIED = { status: 7, message: 'Access Denied', trailers: { exception: 'access-denied' }, received: [] };
const NOT_FOUND = { status: 5, message: 'Scavenge id was invalid.', received: [] };

describe('scavenges', () => {
  test('are begun, told of while they run, and stopped', async () => {
    const h = audited();
    const begun = await h.call(`${AT}/StartScavenge`, { options: { thread_count: 3, start_from_chunk: -1 } }, AS.ops);
    const id = h.scavenger.current()!;
    expect(begun).toEqual({ ...OK, received: [{ scavenge_id: id }] });
    expect(h.scavenger.started.map(({ options }) => options)).toEqual([{ threads: 3 }]);
    expect(await h.call(`${AT}/StartScavenge`, { options: {} }, AS.ops)).toEqual({
      ...OK,
      received: [{ scavenge_id: id, scavenge_result: 'InProgress' }],
    });
    expect(await h.call(`${AT}/StopScavenge`, { options: { scavenge_id: 'nope' } }, AS.ops)).toMatchObject(NOT_FOUND);
    expect(await h.call(`${AT}/StopScavenge`, { options: { scavenge_id: id } }, AS.ops)).toEqual({
      ...OK,
      received: [{ scavenge_id: id, scavenge_result: 'Stopped' }],
    });
    expect(h.entries).toMatchObject([
      { action: 'scavenge.start', outcome: 'success', target: id, details: { threadCount: 3 } },
      { action: 'scavenge.start', outcome: 'success', target: id, details: { wasRunning: true } },
      { action: 'scavenge.stop', outcome: 'failed', target: 'nope', code: 'scavenge_not_found' },
      { action: 'scavenge.stop', outcome: 'success', target: id },
    ]);
  });

  test('take no number of threads from who gives none, and are stopped as the current one', async () => {
    const h = audited();
    for (const thread_count of [0, -1]) {
      await h.call(`${AT}/StartScavenge`, { options: { thread_count } }, AS.admin);
      expect(await h.call(`${AT}/StopScavenge`, { options: { scavenge_id: 'current' } }, AS.admin)).toMatchObject(OK);
    }
    expect(h.scavenger.started.map(({ options }) => options)).toEqual([{}, {}]);
    for (const scavenge_id of ['current', ''])
      expect(await h.call(`${AT}/StopScavenge`, { options: { scavenge_id } }, AS.admin)).toMatchObject(NOT_FOUND);
  });

  test('need options', async () => {
    const h = audited();
    for (const method of ['StartScavenge', 'StopScavenge'])
      expect(await h.call(`${AT}/${method}`, {}, AS.admin)).toMatchObject({
        status: 2,
        message: 'Exception was thrown by handler.',
        trailers: {},
      });
    expect(h.scavenger.started).toEqual([]);
  });
});

describe('orders', () => {
  const ORDERS = [
    ['Shutdown', {}, 'shutdown', 'node.shutdown'],
    ['MergeIndexes', {}, 'mergeIndexes', 'index.merge'],
    ['ResignNode', {}, 'resign', 'node.resign'],
    ['SetNodePriority', { priority: -3 }, 'setPriority -3', 'node.priority'],
  ] as const;

  test.each(ORDERS)('%s', async (method, request, told, action) => {
    const h = audited();
    expect(await h.call(`${AT}/${method}`, request, AS.ops)).toEqual({ ...OK, received: [{}] });
    expect(h.node.calls).toEqual([told]);
    expect(h.told()).toEqual([[action, 'success', null]]);
  });

  test.each([
    ...ORDERS.map(([method, request]) => [method, request] as const),
    ['StartScavenge', { options: {} }] as const,
    ['StopScavenge', { options: { scavenge_id: 'current' } }] as const,
  ])('%s is for operators', async (method, request) => {
    const h = audited();
    for (const who of [AS.anonymous, AS.plain, AS.keeper])
      expect(await h.call(`${AT}/${method}`, request, who)).toMatchObject(who === AS.keeper ? { status: 16 } : DENIED);
    expect(h.node.calls).toEqual([]);
    expect(h.scavenger.started).toEqual([]);
    expect(h.entries.map(({ outcome }) => outcome)).toEqual(['refused', 'refused']);
  });
});
