import { describe, expect, test, vi } from 'vitest';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { startNode } from '../../../local/node/node.ts';
import { OWN_PROCESS } from '../../../local/node/node-world.ts';
import { testLog } from '../../../local/testing/test-log.ts';
import { load } from '../config/support.ts';
import { withCommitTimeout } from '../../../local/store/commit-timeout.ts';
import { appendOf, APPEND, BATCH, chunkOf, DELETE, idOf, proposed, stream } from '../../handlers/grpc/streams/kit.ts';
import { grpcHarness } from '../../grpc/harness.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ModelStore } from '../../support/model-store.ts';
import { SeededIds } from '../../support/seeded-ids.ts';

/** A node whose store has an outcome for nobody until `release`. */
function slowNode(timeoutMs: number) {
  const clock = new ManualClock();
  const model = new ModelStore(clock, new SeededIds());
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const held =
    <A extends unknown[], T>(write: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      const written = await write(...args);
      await released;
      return written;
    };
  model.append = held(model.append.bind(model));
  model.deleteStream = held(model.deleteStream.bind(model));
  const h = grpcHarness({ store: withCommitTimeout(model, timeoutMs, clock), clock });
  return { h, clock, model, release };
}

const EVENTS = { 'content-type': 'application/vnd.eventstore.events+json' };
const events = (n: number) => JSON.stringify([{ eventId: idOf(n), eventType: 'made', data: {} }]);

describe('a write that is not committed in time', () => {
  test('is answered that nobody knows, by each protocol as its clients expect it, and goes on', async () => {
    const { h, clock, model, release } = slowNode(1_000);
    const calls = [
      h.call(APPEND, appendOf('a', { any: {} }, proposed(1))),
      h.call(BATCH, [chunkOf(2, [proposed(2)], { options: { ...stream('b'), any: {} }, is_final: true })]),
      h.call(DELETE, { options: { ...stream('c'), no_stream: {} } }),
    ];
    const http = h.send('POST', '/streams/d', EVENTS, events(3));
    await clock.advance(999);
    await clock.advance(1);
    const [append, batch] = await Promise.all(calls);
    expect(append).toMatchObject({
      status: 10,
      message: expect.stringMatching(/^Operation timed out: the write was not committed within 1000 ms/),
    });
    expect(batch!.received).toMatchObject([{ error: { code: 'DEADLINE_EXCEEDED', message: 'Timeout' } }]);
    const reply = await http;
    expect([reply.status, reply.json().code]).toEqual([503, 'commit_outcome_unknown']);
    expect(await model.streamInfo('d')).toMatchObject({ lastEventNumber: 0 });
    release();
    expect((await h.send('POST', '/streams/d', EVENTS, events(3))).status).toBe(201);
    expect(await model.streamInfo('d')).toMatchObject({ lastEventNumber: 0 });
  });

  test('is one that was there for the whole time: what is answered sooner is answered as ever, and nothing is looked at then', async () => {
    const { h, clock, release } = slowNode(1);
    release();
    expect((await h.call(APPEND, appendOf('a', { any: {} }, proposed(1)))).status).toBe(0);
    expect(await h.call(APPEND, appendOf('a', { no_stream: {} }, proposed(2)))).toMatchObject({
      status: 0,
      received: [{ wrong_expected_version: {} }],
    });
    await clock.advance(250);
    expect(clock.sleeping).toBe(0);
  });
});

test('a node that was given CommitTimeoutMs says so of a write that its log does not end', async () => {
  const handle = await new MemoryStorage().create('any');
  const node = await startNode({
    config: load(['--mem-db', '--insecure', '--node-port=0', '--commit-timeout-ms=1']),
    env: {},
    log: testLog('error', undefined),
    world: { ...OWN_PROCESS, keepsProcess: false },
  });
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const sync = vi.spyOn(Object.getPrototypeOf(handle) as typeof handle, 'sync').mockReturnValue(released);
  try {
    const reply = await fetch(`${node.url}/streams/s`, {
      method: 'POST',
      headers: EVENTS,
      body: events(1),
      signal: AbortSignal.timeout(30_000),
    });
    expect([reply.status, await reply.json()]).toEqual([
      503,
      expect.objectContaining({ code: 'commit_outcome_unknown' }),
    ]);
  } finally {
    release();
    sync.mockRestore();
    await node.stop();
  }
});
