const assert = require('node:assert/strict');
const { mock, test } = require('node:test');
const { startTestNode } = require('skua/testing');

test('require gives what import gives', async () => {
  assert.equal(startTestNode, (await import('skua/testing')).startTestNode);
});

test('mocked timers stop no node', async () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate', 'Date'] });
  try {
    const node = await startTestNode({ seed: { a: [{ type: 'x' }] } });
    await node.advanceTime({ days: 2 });
    await node.scavenge();
    await node.reset();
    await node.stop();
  } finally {
    mock.timers.reset();
  }
});

test('a node that is not stopped does not keep the runner from ending', async () => {
  const node = await startTestNode();
  assert.equal((await fetch(`${node.url}/health/live`)).status, 204);
});
