import { beforeEach, expect, test } from 'vitest';
import type { DemoConnector } from '../../local/demo/connector.ts';
import type { DemoDelivery, DemoStream } from '../../local/demo/demo-payloads.ts';
import { POSTED_AT_ONCE, runDemo } from '../../local/demo/play-demo.ts';
import type { StreamClient } from '../../local/demo/play-demo.ts';

interface Written {
  readonly deliveryId: string;
  readonly eventType: string;
  readonly data: string;
}

/**
 * A node that writes what is posted in another order than it came, and keeps every caller waiting until it has as many
 * as may come at once.
 */
class FakeNode {
  readonly secret = null;
  readonly written: Written[] = [];
  readonly waiting: (() => void)[] = [];
  mostWaiting = 0;
  expected = 0;

  async start(): Promise<void> {}
  async stop(): Promise<void> {}

  async post({ deliveryId, eventType, body }: DemoDelivery): Promise<number> {
    const written = new Promise<void>((resolve) => {
      this.waiting.push(() => {
        this.written.push({ deliveryId, eventType, data: body });
        resolve();
      });
    });
    this.mostWaiting = Math.max(this.mostWaiting, this.waiting.length);
    if (this.waiting.length === Math.min(POSTED_AT_ONCE, this.expected - this.written.length))
      for (const write of this.waiting.splice(0).reverse()) write();
    await written;
    return 201;
  }

  async fateOf(): Promise<null> {
    return null;
  }
  async read(stream: string): Promise<Written[]> {
    return this.written.filter(({ eventType }) => eventType.startsWith(`${stream}.`));
  }
}

const STREAMS: readonly DemoStream[] = ['one', 'two', 'three'].map((stream) => ({
  stream,
  deliveries: Array.from({ length: POSTED_AT_ONCE }, (_, i) => ({
    deliveryId: `${stream}-${i}`,
    name: 'push',
    body: `{"n":${i}}`,
    eventType: `${stream}.${i}`,
  })),
}));

let node: FakeNode;
beforeEach(() => {
  node = new FakeNode();
  node.expected = STREAMS.length * POSTED_AT_ONCE;
});

const played = () =>
  runDemo({ client: node as unknown as StreamClient, connector: node as unknown as DemoConnector }, STREAMS, {
    nowMs: () => 0,
    onPosted: () => {},
  });

test('several webhooks are under way at a time, and no more than the limit; in which order they are written does not matter', async () => {
  const report = await played();
  expect(report.isSame).toBe(true);
  expect(report.streams.map(({ sent, refused, written }) => [sent, refused, written])).toEqual(
    STREAMS.map(() => [POSTED_AT_ONCE, 0, POSTED_AT_ONCE]),
  );
  expect(node.mostWaiting).toBe(POSTED_AT_ONCE);
});

test.each([
  ['twice', (events: Written[]) => [...events, events[0]!]],
  ['not at all', (events: Written[]) => events.slice(1)],
  ['with other bytes', ([first, ...others]: Written[]) => [{ ...first!, data: '{"n": 0}' }, ...others]],
])('an event that is there %s is told', async (_, change) => {
  const { read } = node;
  node.read = async (stream) => change(await read.call(node, stream));
  expect((await played()).streams.map(({ isSame }) => isSame)).toEqual([false, false, false]);
});
