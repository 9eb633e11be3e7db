import { expect, test } from 'vitest';
import { type AskedOrders, startReply } from '../../core/auto-scavenge/orders/orders.ts';
import { createSingleNode } from '../../core/auto-scavenge/single-node/single-node.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { nodeOf, TestClock } from './kit.ts';

const order = { clusterScavengeId: 'K', attempt: 1 };

function ordersOf(orders: Partial<AskedOrders>): AskedOrders {
  const refused = (): never => {
    throw new Error('nobody asks for this');
  };
  return { start: refused, stop: refused, asked: () => {}, last: () => null, ...orders };
}

function nodeWith(orders: Partial<AskedOrders>, isLeader = true) {
  return createSingleNode({
    orders: ordersOf(orders),
    clock: new TestClock(),
    self: () => nodeOf('A'),
    isLeader: () => isLeader,
    leadsSinceMs: 7,
    writerCheckpoint: () => 42,
  });
}

test.each([
  ['another run', new SkuaError('scavenge_in_progress', 'one goes on', { scavengeId: 'a run' }), { kind: 'busy' }],
  ['a backup', new SkuaError('backup_running', 'one goes on', { scavengeId: 'a run' }), { kind: 'busy' }],
  [
    'a newer order',
    new SkuaError('late_order', 'late', { clusterScavengeId: 'a cycle', attempt: 1, seen: 2 }),
    { kind: 'late' },
  ],
  [
    'an order that is late by time',
    new SkuaError('late_order', 'late', { clusterScavengeId: 'a cycle', attempt: 1 }),
    { kind: 'failed' },
  ],
  ['anything else', new Error('the disk is full'), { kind: 'failed' }],
])('a start that %s keeps from beginning is answered as what it is', async (_, error, reply) => {
  expect(await startReply(ordersOf({ start: () => Promise.reject(error) }), order)).toMatchObject(reply);
});

test('the node is its whole cluster, and leads once its store is open; its last run is told by its id', async () => {
  for (const isLeader of [true, false]) {
    expect(nodeWith({}, isLeader).view()).toMatchObject({
      self: nodeOf('A'),
      clusterSize: 1,
      leadsSinceMs: 7,
      members: [{ node: nodeOf('A'), isLeader, isAlive: true, writerCheckpoint: 42 }],
    });
  }
  expect(await nodeWith({}).lastScavenge(nodeOf('A'), null, 1_000)).toEqual({
    kind: 'last',
    scavengeId: null,
    result: 'Unknown',
  });
  expect(
    await nodeWith({
      last: () => ({ scavengeId: 'S', result: 'Success' }) as ReturnType<AskedOrders['last']>,
    }).lastScavenge(nodeOf('A'), order, 1_000),
  ).toEqual({ kind: 'last', scavengeId: 'S', result: 'Success' });
});
