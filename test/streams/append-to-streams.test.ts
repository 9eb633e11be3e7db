import { describe, expect, it } from 'vitest';
import { SkuaError, type StreamViolation } from '../../core/base/errors.ts';
import {
  decodePrepare,
  FLAG_TRANSACTION_BEGIN,
  FLAG_TRANSACTION_END,
  PREPARE,
  RecordFrame,
} from '../../core/log/format/records.ts';
import { HIT } from '../../core/base/step.ts';
import {
  ANY,
  IS_SOFT_DELETED,
  IS_TOMBSTONED,
  NO_STREAM,
  STREAM_EXISTS,
  STREAMS_PER_WRITE_MAX,
} from '../../core/streams/api.ts';
import type { NewEvent, StreamWrite } from '../../core/streams/api.ts';
import { codeOf, event, events, outcomeOf, setMetadata, setUp } from './setup.ts';
import type { Setup } from './setup.ts';

function write(stream: string, expectedVersion: number, list: readonly NewEvent[] = [event()]): StreamWrite {
  return { stream, expectedVersion, events: list };
}

async function idsOf({ store }: Setup, stream: string): Promise<string[]> {
  return (await store.readStream(stream, { direction: 'forward', from: 0, count: 100 })).events.map(({ id }) => id);
}

async function violationsOf(promise: Promise<unknown>): Promise<readonly StreamViolation[]> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason as SkuaError,
  );
  return (
    error?.code === 'consistency_violation' ? error.data['violations'] : [error?.code]
  ) as readonly StreamViolation[];
}

describe('a write to several streams', () => {
  it('writes all in the order of the request, each run as a transaction of its own', async () => {
    const s = setUp({ misses: 0.3 });
    await s.store.append('b', ANY, events(2));
    const from = s.store.end;
    const [a1, b1, a2, a3] = events(4) as [NewEvent, NewEvent, NewEvent, NewEvent];
    const result = await s.store.appendToStreams([
      write('a', ANY, [a1]),
      write('b', ANY, [b1]),
      write('a', ANY, [a2]),
      write('a', ANY, [a3]),
    ]);
    expect(result.streams.map(({ stream, lastEventNumber }) => [stream, lastEventNumber])).toEqual([
      ['a', 2],
      ['b', 2],
    ]);
    expect(result.position).toBe(result.streams[0]!.position);
    expect(result.isRepeat).toBe(false);
    const records = [];
    const frame = new RecordFrame();
    for (let at = from; s.log.readForward(at, frame) === HIT; at = frame.next) {
      expect(frame.type).toBe(PREPARE);
      const { stream, eventId, flags, transactionOffset, transactionPosition, position, expectedVersion } =
        decodePrepare(frame);
      records.push([
        stream,
        eventId,
        (flags & FLAG_TRANSACTION_BEGIN) !== 0,
        (flags & FLAG_TRANSACTION_END) !== 0,
        transactionOffset,
        transactionPosition === position,
        expectedVersion,
      ]);
    }
    expect(records).toEqual([
      ['a', a1.id, true, true, 0, true, -1],
      ['b', b1.id, true, true, 0, true, 1],
      ['a', a2.id, true, false, 0, true, 0],
      ['a', a3.id, false, true, 1, false, 1],
    ]);
    expect(await idsOf(s, 'a')).toEqual([a1.id, a2.id, a3.id]);
  });

  it('writes nothing where one stream is not as expected', async () => {
    const s = setUp();
    await s.store.append('b', ANY, events(2));
    const end = s.store.end;
    expect(await outcomeOf(s.store.appendToStreams([write('a', NO_STREAM), write('b', 0)]))).toBe('conflict 1');
    expect(await outcomeOf(s.store.appendToStreams([write('a', STREAM_EXISTS), write('b', 1)]))).toBe('conflict -1');
    expect(s.store.end).toBe(end);
    // In the same group as others, which go on.
    const done = await Promise.all([
      outcomeOf(s.store.append('c', ANY, [event()])),
      outcomeOf(s.store.appendToStreams([write('c', 0), write('b', 0)])),
      outcomeOf(s.store.appendToStreams([write('c', 0), write('b', 1)])),
      outcomeOf(s.store.append('b', 2, [event()])),
    ]);
    expect(done).toEqual(['ok', 'conflict 1', 'ok', 'ok']);
    expect((await s.store.streamInfo('c')).lastEventNumber).toBe(1);
    expect((await s.store.streamInfo('b')).lastEventNumber).toBe(3);
    expect((await s.store.streamInfo('a')).lastEventNumber).toBe(-1);
  });

  it('knows a repeat by all of its ids, also after others have written, and a part of one as a conflict', async () => {
    const s = setUp();
    const writes = [write('a', NO_STREAM, events(2)), write('b', ANY, events(1))];
    const first = await s.store.appendToStreams(writes);
    await s.store.append('a', ANY, events(1));
    const end = s.store.end;
    expect(await s.store.appendToStreams(writes)).toEqual({ ...first, isRepeat: true });
    expect(await outcomeOf(s.store.appendToStreams([writes[0]!, write('b', ANY)]))).toBe('conflict 2');
    expect(await outcomeOf(s.store.appendToStreams([write('c', ANY), writes[1]!]))).toBe('conflict 0');
    expect(s.store.end).toBe(end);
    // Both in one group.
    const again = [write('d', ANY), write('e', ANY)];
    const [one, two] = await Promise.all([s.store.appendToStreams(again), s.store.appendToStreams(again)]);
    expect(two).toEqual({ ...one, isRepeat: true });
    // Ids that are not all the client's own prove nothing.
    expect(await s.store.appendToStreams(again, { isRepeatable: false })).toMatchObject({
      isRepeat: false,
      streams: [{ lastEventNumber: 1 }, { lastEventNumber: 1 }],
    });
  });

  it('is a repeat whatever the checks say by then, and known by the numbers that a check expects', async () => {
    const s = setUp({ options: { recentIds: 2 } });
    const writes = [write('a', ANY, events(2)), write('b', ANY, events(1))];
    const checks = [
      { stream: 'a', expectedVersion: NO_STREAM },
      { stream: 'b', expectedVersion: NO_STREAM },
      { stream: 'other', expectedVersion: NO_STREAM },
    ];
    const first = await s.store.appendToStreams(writes, { checks });
    await s.store.append('other', ANY, events(5));
    expect(await s.store.appendToStreams(writes, { checks })).toEqual({ ...first, isRepeat: true });
  });

  it('tells all checks that do not hold, by what the streams are', async () => {
    const s = setUp();
    for (const name of ['live', 'soft', 'hard']) await s.store.append(name, ANY, events(3));
    await s.store.deleteStream('soft', ANY, 'soft');
    await s.store.deleteStream('hard', ANY, 'hard');
    await setMetadata(s.store, 'described', '{"$maxCount":5}');
    const tried = async (stream: string, expectedVersion: number) => {
      const found = await violationsOf(
        s.store.appendToStreams([write('new', ANY)], { checks: [{ stream, expectedVersion }] }),
      );
      return found[0] === undefined ? 'holds' : found[0].actual;
    };
    const table = [];
    for (const stream of ['none', 'described', 'live', 'soft', 'hard'])
      table.push([
        stream,
        await tried(stream, NO_STREAM),
        await tried(stream, STREAM_EXISTS),
        await tried(stream, 2),
        await tried(stream, 1),
        await tried(stream, ANY),
      ]);
    expect(table).toEqual([
      ['none', 'holds', -1, -1, -1, 'holds'],
      ['described', 'holds', 'holds', -1, -1, 'holds'],
      ['live', 2, 'holds', 'holds', 2, 'holds'],
      ['soft', 'holds', IS_SOFT_DELETED, IS_SOFT_DELETED, IS_SOFT_DELETED, 'holds'],
      ['hard', 'holds', IS_TOMBSTONED, IS_TOMBSTONED, IS_TOMBSTONED, 'holds'],
    ]);
    const checks = [
      { stream: 'live', expectedVersion: 1 },
      { stream: 'live', expectedVersion: 2 },
      { stream: 'soft', expectedVersion: 2 },
      { stream: 'hard', expectedVersion: NO_STREAM },
    ];
    expect(await violationsOf(s.store.appendToStreams([write('hard', ANY), write('new', ANY)], { checks }))).toEqual([
      { index: 0, stream: 'live', expected: 1, actual: 2 },
      { index: 2, stream: 'soft', expected: 2, actual: IS_SOFT_DELETED },
      { index: 3, stream: 'hard', expected: NO_STREAM, actual: IS_TOMBSTONED },
    ]);
  });

  it('brings a soft-deleted stream back, and refuses one that is gone', async () => {
    const s = setUp({ misses: 0.3 });
    await s.store.append('s', ANY, events(3));
    await setMetadata(s.store, 's', '{"$tb":9223372036854775807,"owner":"x"}');
    await s.store.append('hard', ANY, events(1));
    await s.store.deleteStream('hard', ANY, 'hard');
    expect(await codeOf(s.store.appendToStreams([write('s', ANY), write('hard', ANY)]))).toBe('stream_deleted');
    const gone = await s.store.appendToStreams([write('t', ANY), write('s', STREAM_EXISTS)]).then(
      () => null,
      (error: unknown) => error as SkuaError,
    );
    expect(gone).toMatchObject({ code: 'stream_deleted', data: { stream: 's', isSoftDeleted: true } });
    expect(await s.store.appendToStreams([write('s', ANY), write('t', ANY), write('s', ANY)])).toMatchObject({
      streams: [
        { stream: 's', lastEventNumber: 4 },
        { stream: 't', lastEventNumber: 0 },
      ],
    });
    expect(await s.store.streamInfo('s')).toMatchObject({
      isSoftDeleted: false,
      metadata: { truncateBefore: 3 },
      metadataVersion: 1,
    });
    expect(
      (await s.store.readStream('s', { direction: 'forward', from: 0, count: 9 })).events.map(({ number }) => number),
    ).toEqual([3, 4]);
    // By what it writes to the metadata itself.
    const json = event('{"$tb":9223372036854775807}', { type: '$metadata', isJson: true });
    await s.store.appendToStreams([write('$$t', ANY, [json]), write('t', ANY)]);
    expect(await s.store.streamInfo('t')).toMatchObject({
      isSoftDeleted: false,
      lastEventNumber: 1,
      metadata: { truncateBefore: 1 },
    });
  });

  it('asks for each stream who may write, and for each check who may know', async () => {
    const s = setUp();
    await setMetadata(s.store, 'a', '{"$acl":{"$w":"ann"}}');
    const asked: unknown[] = [];
    const authorize =
      (name: string, refuse = false) =>
      (metadata: object): SkuaError | null => {
        asked.push([name, metadata]);
        return refuse ? new SkuaError('access_denied', 'No.') : null;
      };
    await s.store.appendToStreams([{ ...write('a', ANY), authorize: authorize('a') }], {
      checks: [{ stream: 'b', expectedVersion: ANY, authorize: authorize('b') }],
    });
    expect(asked).toEqual([
      ['a', { acl: { write: ['ann'] } }],
      ['b', {}],
    ]);
    // Who may not know is told nothing of other checks.
    expect(
      await codeOf(
        s.store.appendToStreams([write('a', ANY)], {
          checks: [
            { stream: 'a', expectedVersion: 77 },
            { stream: 'b', expectedVersion: ANY, authorize: authorize('b', true) },
          ],
        }),
      ),
    ).toBe('access_denied');
    // All that write to one stream are asked.
    expect(
      await codeOf(
        s.store.appendToStreams([
          write('c', ANY),
          { ...write('d', ANY), authorize: authorize('d') },
          write('c', ANY),
          { ...write('c', ANY), authorize: authorize('c', true) },
        ]),
      ),
    ).toBe('access_denied');
    expect((await s.store.streamInfo('d')).lastEventNumber).toBe(-1);
  });

  it('fits into one chunk, or is refused', async () => {
    const s = setUp({ capacity: 4_096 });
    await s.store.append('x', ANY, [event('x'.repeat(2_000))]);
    const half = () => event('y'.repeat(1_500));
    await s.store.appendToStreams([write('a', ANY, [half()]), write('b', ANY, [half()])]);
    const at = (await s.store.readStream('a', { direction: 'forward', from: 0, count: 1 })).events[0]!.position;
    expect(at).toBe(4_096);
    expect(
      await codeOf(
        s.store.appendToStreams([write('a', ANY, [half()]), write('b', ANY, [half()]), write('c', ANY, [half()])]),
      ),
    ).toBe('batch_too_large');
    expect((await s.store.streamInfo('c')).lastEventNumber).toBe(-1);
  });

  it('refuses what is no such write', async () => {
    const { store } = setUp({ options: { appendBytesMax: 10 } });
    expect(await codeOf(store.appendToStreams([]))).toBe('batch_empty');
    expect(await codeOf(store.appendToStreams([write('a', ANY), write('b', ANY, [])]))).toBe('batch_empty');
    expect(await codeOf(store.appendToStreams([write('a', 0), write('b', ANY), write('a', ANY)]))).toBe('bad_request');
    expect(await codeOf(store.appendToStreams([write('$scavengePoints', ANY)]))).toBe('bad_request');
    expect(await codeOf(store.appendToStreams([write('', ANY)]))).toBe('invalid_stream_name');
    expect(await codeOf(store.appendToStreams([write('a', -3)]))).toBe('invalid_expected_version');
    expect(
      await codeOf(store.appendToStreams([write('a', ANY)], { checks: [{ stream: 'b', expectedVersion: -9 }] })),
    ).toBe('invalid_expected_version');
    expect(
      await codeOf(
        store.appendToStreams([write('a', ANY, [event('x'.repeat(6))]), write('b', ANY, [event('x'.repeat(6))])]),
      ),
    ).toBe('batch_too_large');
    expect(await codeOf(store.appendToStreams([write('$$a', ANY, [event('no json')])]))).toBe('invalid_metadata');
    expect(
      await codeOf(
        store.appendToStreams(Array.from({ length: STREAMS_PER_WRITE_MAX + 1 }, (_, i) => write(`s${i}`, ANY))),
      ),
    ).toBe('bad_request');
  });

  it('takes as many streams as it may, beyond those whose states are kept', async () => {
    const { store } = setUp({ misses: 0.3, options: { streamStatesMax: 1 } });
    const all = Array.from({ length: STREAMS_PER_WRITE_MAX }, (_, i) => write(`s${i}`, ANY));
    for (const { stream } of all.slice(0, 300)) await store.append(stream, ANY, events(1));
    const { streams } = await store.appendToStreams(all);
    expect(streams.map(({ lastEventNumber }) => lastEventNumber)).toEqual(all.map((_, i) => (i < 300 ? 1 : 0)));
  });

  it('leaves nothing behind when it is refused', async () => {
    const s = setUp();
    await s.store.append('a', ANY, events(1));
    const leaving = new AbortController();
    const waiting = s.store.waitForStream('a', leaving.signal);
    expect(await outcomeOf(s.store.appendToStreams([write('a', 7)]))).toBe('conflict 0');
    await Promise.all([
      s.store.append('b', ANY, events(1)),
      codeOf(s.store.appendToStreams([write('a', 7), write('b', ANY)])),
    ]);
    leaving.abort();
    expect(await waiting).toBe(false);
    expect(await outcomeOf(s.store.append('a', 0, events(1)))).toBe('ok');
  });
});
