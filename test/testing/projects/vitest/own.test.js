import { startTestNode } from 'skua/testing';
import { expect, test, vi } from 'vitest';

test('matchers of Vitest see plain values and errors with a code', async () => {
  await using node = await startTestNode({ seed: { 'order-1': [{ type: 'placed', data: { total: 12 } }] } });
  expect(await Array.fromAsync(node.store.read('order-1'))).toMatchObject([
    { stream: 'order-1', version: 0, type: 'placed', data: { total: 12 } },
  ]);
  expect(await node.scavenge()).toStrictEqual({
    id: expect.any(String),
    bytesFreed: expect.any(Number),
    elapsedMs: expect.any(Number),
    goneBy: null,
    removed: [],
    removedCount: 0,
  });
  await expect(node.store.append('order-1', { type: 'placed' }, { expected: 7 })).rejects.toMatchObject({
    code: 'wrong_expected_version',
    data: { expected: 7, actual: 0 },
  });
});

test('fake timers of Vitest stop no node', async () => {
  vi.useFakeTimers();
  try {
    const node = await startTestNode({ seed: { a: [{ type: 'x' }] }, users: true });
    await node.advanceTime({ days: 2 });
    await node.scavenge();
    await node.reset();
    expect(await Array.fromAsync(node.store.read('a'))).toHaveLength(1);
    await node.stop();
  } finally {
    vi.useRealTimers();
  }
});

test('a node that is not stopped does not keep Vitest from ending', async () => {
  const node = await startTestNode();
  expect((await fetch(`${node.url}/health/live`)).status).toBe(204);
});
