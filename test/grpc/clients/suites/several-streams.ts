import { KurrentDBInstrumentation } from '@kurrent/opentelemetry';
import { expect, test } from 'vitest';
import { all, failure } from '../nodes.ts';
import { numbered } from './suite.ts';
import type { Suite } from './suite.ts';

class Tracing extends KurrentDBInstrumentation {
  /** What it does to the client once a program loads it. */
  patches() {
    return this.init();
  }
}

/** Several streams in one commit, which the newer client knows, and who it says it is. */
export function severalStreamsTests({ lib, isSecure, node, client, stream }: Suite): void {
  const revisions = (
    responses: readonly { readonly streamName: string; readonly revision: bigint }[],
  ): Record<string, bigint> => Object.fromEntries(responses.map(({ streamName, revision }) => [streamName, revision]));

  test('several streams in one session: all or none of them', async () => {
    const [one, two] = [stream(), stream()];
    const events = () => [
      lib.jsonEvent({ type: 'made', data: { n: 1 }, metadata: { by: 'kim' } }),
      lib.binaryEvent({ type: 'raw', data: new Uint8Array([1, 2]) }),
    ];
    const result = await client().multiStreamAppend([
      { streamName: one, events: events(), expectedState: lib.NO_STREAM },
      { streamName: two, events: events(), expectedState: lib.ANY },
    ]);
    expect(revisions(result.responses)).toEqual({ [one]: 1n, [two]: 1n });
    expect(result.position).toBeGreaterThan(0n);
    const [json, raw] = await all(client().readStream(two));
    expect(json!.event).toMatchObject({ type: 'made', isJson: true, data: { n: 1 } });
    expect(json!.event!.metadata).toMatchObject({ by: 'kim' });
    expect([...(raw!.event!.data as Uint8Array)]).toEqual([1, 2]);

    const error = await failure(
      client().multiStreamAppend([
        { streamName: two, events: events(), expectedState: 1n },
        { streamName: one, events: events(), expectedState: lib.NO_STREAM },
      ]),
    );
    expect([error.constructor.name, error['streamName'], error['expectedState'], error['actualState']]).toEqual([
      'WrongExpectedVersionError',
      one,
      lib.NO_STREAM,
      1n,
    ]);
    for (const name of [one, two]) expect(await all(client().readStream(name))).toHaveLength(2);
    await client().tombstoneStream(one);
    expect(
      (await failure(client().multiStreamAppend([{ streamName: one, events: events(), expectedState: lib.ANY }])))
        .constructor.name,
    ).toBe('StreamTombstonedError');
  });

  test('records of several streams lie in the log as they were sent, and what they depend on is checked', async () => {
    const [one, two, guard] = [stream(), stream(), stream()];
    await client().appendToStream(guard, numbered(lib, 3));
    const record = (streamName: string, n: number) => ({
      streamName,
      record: lib.jsonEvent({ type: 'made', data: { n } }),
    });
    const check = (streamName: string, expectedState: 'any' | 'no_stream' | 'stream_exists' | bigint) =>
      ({ type: lib.STREAM_STATE, streamName, expectedState }) as never;
    const result = await client().appendRecords(
      [record(one, 0), record(two, 1), record(one, 2)],
      [check(one, lib.NO_STREAM), check(guard, 2n)],
    );
    expect(revisions(result.responses)).toEqual({ [one]: 1n, [two]: 0n });
    const written = await all(client().readAll({ filter: lib.streamNameFilter({ regex: `^(${one}|${two})$` }) }));
    expect(written.map(({ event }) => (event!.data as { readonly n: number }).n)).toEqual([0, 1, 2]);

    const error = await failure(
      client().appendRecords(
        [record(one, 3)],
        [check(guard, 2n), check(guard, 7n), check(stream(), lib.STREAM_EXISTS)],
      ),
    );
    expect(error.constructor.name).toBe('AppendConsistencyViolationError');
    expect(error['violations']).toMatchObject([
      { checkIndex: 1, streamName: guard, expectedState: 7n, actualState: 2n },
      { checkIndex: 2, expectedState: lib.STREAM_EXISTS, actualState: lib.NO_STREAM },
    ]);
    expect(await all(client().readStream(one))).toHaveLength(2);
  });

  test("the client's own package for tracing, which adds its keys to all that is appended", async () => {
    const [one, two] = [stream(), stream()];
    const patches = new Tracing({ enabled: false }).patches();
    patches.patch!(lib);
    try {
      const event = () => lib.jsonEvent({ type: 'made', data: {}, metadata: { $correlationId: 'c', by: 'kim' } });
      await client().multiStreamAppend([{ streamName: one, events: [event()], expectedState: lib.NO_STREAM }]);
      await client().appendRecords([{ streamName: two, record: event() }]);
      await client().appendToStream(two, event());
    } finally {
      patches.unpatch!(lib);
    }
    const traced = {
      $traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      $spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
      $correlationId: 'c',
      by: 'kim',
    };
    for (const name of [one, two])
      for (const { event } of await all(client().readStream(name))) expect(event!.metadata).toMatchObject(traced);
    expect(await all(client().readStream(two))).toHaveLength(2);
  });

  test('a record that is too large is refused by its name', async () => {
    const name = stream();
    const huge = lib.binaryEvent({ type: 'huge', data: new Uint8Array(5_000_000) });
    const error = await failure(client().appendRecords([{ streamName: name, record: huge }]));
    expect([error.constructor.name, error['stream'] ?? name]).toEqual([
      expect.stringMatching(/^(AppendRecordSizeExceeded|TransactionMaxSizeExceeded)Error$/),
      name,
    ]);
    expect(error['maxSize']).toBeGreaterThan(100_000);
  });

  if (isSecure)
    test('credentials that are asked for before each call', async () => {
      const name = stream();
      const provided = node().client(lib, { credentials: '' });
      let asked = 0;
      provided.setCredentialsProvider(() => {
        asked++;
        return { username: 'admin', password: 'changeit' };
      });
      expect(provided.credentialsProvider).toBeDefined();
      await provided.appendToStream(name, numbered(lib, 2));
      expect(await all(provided.readStream(name))).toHaveLength(2);
      expect(asked).toBeGreaterThanOrEqual(2);
      provided.setCredentialsProvider(() => ({ username: 'admin', password: 'wrong' }));
      expect((await failure(provided.appendToStream(name, numbered(lib, 1)))).constructor.name).toBe(
        'AccessDeniedError',
      );
    });
}
