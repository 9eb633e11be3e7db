const { startTestNode } = require('skua/testing');

jest.setTimeout(600_000);

test('matchers of Jest see plain values and errors with a code', async () => {
  const node = await startTestNode({ seed: { 'order-1': [{ type: 'placed', data: { total: 12 } }] } });
  const found = [];
  for await (const { stream, type, data } of node.store.read('order-1')) found.push({ stream, type, data });
  expect(found).toEqual([{ stream: 'order-1', type: 'placed', data: { total: 12 } }]);
  expect(await node.scavenge()).toMatchObject({ removed: [], removedCount: 0 });
  await expect(node.store.append('order-1', { type: 'placed' }, { expected: 7 })).rejects.toMatchObject({ code: 'wrong_expected_version', data: { expected: 7, actual: 0 } });
  await expect(startTestNode({ nonsense: true })).rejects.toThrow('Unknown option nonsense');
  await node.stop();
});

test('fake timers of Jest stop no node', async () => {
  jest.useFakeTimers();
  try {
    const node = await startTestNode({ seed: { a: [{ type: 'x' }] }, users: true });
    await node.advanceTime({ days: 2 });
    await node.scavenge();
    await node.reset();
    expect((await fetch(`${node.url}/streams/a`)).status).toBe(401);
    await node.stop();
  } finally {
    jest.useRealTimers();
  }
});

test('a node that is not stopped does not keep Jest from ending', async () => {
  const node = await startTestNode();
  expect((await fetch(`${node.url}/health/live`)).status).toBe(204);
});
