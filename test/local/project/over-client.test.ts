import { expect, test } from 'vitest';
import { connect } from '../../../local/client/index.ts';
import type { RecordedEvent } from '../../../local/event-store/api.ts';
import { memory, project } from '../../../local/project/index.ts';
import { startTestNode } from '../../../local/testing/index.ts';

test('a projection over a client: what there is, what comes, and a node that holds another log', async () => {
  const node = await startTestNode();
  const client = connect({ url: node.url });
  const totals = memory(() => ({ sum: 0, seen: [] as number[], erased: 0 }));
  const projection = project(client, {
    name: 'totals',
    filter: { category: 'order' },
    store: totals,
    on: {
      Counted: (state, { version, data }: RecordedEvent<{ readonly i: number }>) => {
        state.sum += data.i;
        state.seen.push(version);
      },
    },
    onErased: (state) => void state.erased++,
  });
  const grown = (from: number, count: number) =>
    client.append(
      'order-1',
      Array.from({ length: count }, (_, i) => ({ type: 'Counted', data: { i: from + i } })),
    );
  await grown(0, 600);
  await node.store.redact('order-1', { events: [599], reason: 'a test' });
  const stop = new AbortController();
  const running = projection.run({ signal: stop.signal });
  running.catch(() => stop.abort());
  await grown(600, 1);
  while (!stop.signal.aborted && totals.state.seen.at(-1) !== 600)
    await new Promise((resolve) => setImmediate(resolve));
  stop.abort();
  await running;
  const versions = Array.from({ length: 601 }, (_, i) => i).filter((version) => version !== 599);
  expect(totals.state).toEqual({ sum: versions.reduce((sum, i) => sum + i, 0), seen: versions, erased: 1 });
  await node.reset();
  // Far beyond where the projection was.
  for (let i = 0; i < 3; i++) await grown(0, 600);
  await expect(projection.catchUp()).rejects.toMatchObject({ code: 'checkpoint_unknown' });
  expect(totals.state.seen).toHaveLength(600);
  await client.close();
  await node.stop();
});
