import { encodeText } from '../../core/base/text.ts';
import { describe, expect, it } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { isMiss } from '../../core/base/step.ts';
import { decodeEpoch, decodePrepare, RecordFrame, SYSTEM, TOMBSTONE } from '../../core/log/format/records.ts';
import { decodeText } from '../../core/base/text.ts';
import { ANY, EVENT_BYTES_MAX, NO_STREAM, STREAM_EXISTS } from '../../core/streams/api.ts';
import type { MemoryLog } from './doubles.ts';
import { codeOf, event, events, newId, numbers, outcomeOf, setMetadata, setUp, textOf } from './setup.ts';

function prepares(log: MemoryLog) {
  const frame = new RecordFrame();
  return log.starts.map((position) => {
    while (isMiss(log.readAt(position, frame)));
    return decodePrepare(frame);
  });
}

describe('records of a write', () => {
  it('share transaction and correlation, and mark first and last', async () => {
    const { store, log, index } = setUp();
    await store.append('s', ANY, [event('a', { isJson: true })]);
    const result = await store.append('s', 0, events(3));
    const [one, a, b, c] = prepares(log);
    expect(one).toMatchObject({ flags: 0x0127, transactionOffset: 0, expectedVersion: -1, transactionPosition: 0 });
    expect([a!.flags, b!.flags, c!.flags]).toEqual([0x0023, 0x0021, 0x0025]);
    expect([a, b, c].map((r) => r!.transactionPosition)).toEqual([a!.position, a!.position, a!.position]);
    expect([a, b, c].map((r) => [r!.transactionOffset, r!.expectedVersion])).toEqual([
      [0, 0],
      [1, 1],
      [2, 2],
    ]);
    expect(b!.correlationId).toBe(a!.correlationId);
    expect(a!.correlationId).not.toBe(one!.correlationId);
    expect(result).toEqual({ firstEventNumber: 1, lastEventNumber: 3, position: c!.position, isRepeat: false });
    expect(index.bulks).toEqual([one!.position, c!.position]);
    expect(index.checkpoint).toBe(c!.position);
  });

  it('of an empty one, a tombstone and an epoch are those of the reference', async () => {
    const { store, log } = setUp();
    await store.append('s', ANY, events(2));
    expect(await store.appendInternal('s', 1, [])).toMatchObject({ firstEventNumber: 2, lastEventNumber: 1 });
    await store.deleteStream('s', 1, 'hard');
    const [, , empty, tombstone] = prepares(log);
    expect(empty).toMatchObject({ flags: 0x0026, transactionOffset: -1, expectedVersion: 1, eventType: '' });
    expect(tombstone).toMatchObject({
      flags: 0x002e,
      transactionOffset: 0,
      expectedVersion: TOMBSTONE - 1,
      eventType: '$streamDeleted',
    });
    expect(tombstone!.transactionPosition).toBe(tombstone!.position);
    expect(await outcomeOf(store.appendInternal('t', 4, []))).toBe('conflict -1');
  });

  it('begin an epoch with a system record and its event', async () => {
    const { store, log, index } = setUp();
    const leaderInstanceId = newId();
    expect(await store.writeEpoch({ epochNumber: 0, prevEpochPosition: -1, leaderInstanceId })).toBe(0);
    const second = await store.writeEpoch({ epochNumber: 1, prevEpochPosition: 0, leaderInstanceId });
    const frame = new RecordFrame();
    log.readAt(0, frame);
    expect(frame.type).toBe(SYSTEM);
    expect(decodeText(decodeEpoch(frame).json)).toMatch(
      new RegExp(
        `^{\n  "epochId": "[0-9a-f-]{36}",\n  "prevEpochPosition": -1,\n  "timeStamp": "2023-11-14T22:13:20Z",\n  "leaderInstanceId": "${leaderInstanceId}"\n}$`,
      ),
    );
    log.readAt(second, frame);
    const json = decodeText(decodeEpoch(frame).json);
    expect(JSON.parse(json)).toMatchObject({ epochPosition: second, epochNumber: 1 });
    expect(json).not.toContain('prevEpochPosition');
    const page = await store.readStream('$epoch-information', { direction: 'forward', from: 0, count: 9 });
    expect(numbers(page.events)).toEqual([0, 1]);
    expect(textOf(page.events[1]!)).toBe(json);
    expect(page.events[1]).toMatchObject({ type: '$epoch-information', isJson: true });
    expect(index.bulks.length).toBe(2);
    expect((await store.readAll({ direction: 'forward', from: 'start', count: 9 })).events).toEqual([]);
  });
});

describe('what is refused', () => {
  it.each(['', '$$', '.', '..', '$all', '$mem-x', 'a\u0000', 'a\u007f', 'x'.repeat(1025), '\ud800'])(
    'the name %j',
    async (name) => {
      const { store } = setUp();
      expect(await codeOf(store.append(name, ANY, [event()]))).toBe('invalid_stream_name');
      expect(await codeOf(store.deleteStream(name, ANY, 'soft'))).toBe('invalid_stream_name');
    },
  );

  it('metadata of metadata, and deleting metadata', async () => {
    const { store } = setUp();
    expect(await codeOf(store.append('$$$$s', ANY, [event()]))).toBe('access_denied');
    expect(await codeOf(store.append('$$$settings', ANY, [event('{}', { isJson: true })]))).toBe('ok');
    expect(await codeOf(store.deleteStream('$$s', ANY, 'soft'))).toBe('access_denied');
    expect(await codeOf(store.deleteStream('$$s', ANY, 'hard'))).toBe('access_denied');
  });

  it('bad events and versions', async () => {
    const { store, log } = setUp({ capacity: 65_536 });
    expect(await codeOf(store.append('s', ANY, [event('', { type: '' })]))).toBe('invalid_event');
    expect(await codeOf(store.append('s', ANY, [event('', { type: '\udfff' })]))).toBe('invalid_event');
    expect(await codeOf(store.append('s', ANY, [event('', { id: 'x' })]))).toBe('invalid_event');
    expect(await codeOf(store.append('s', ANY, [event('', { id: '00000000-0000-0000-0000-000000000000' })]))).toBe(
      'invalid_event',
    );
    expect(
      await codeOf(
        store.append('s', ANY, [event('', { data: new Uint8Array(EVENT_BYTES_MAX), metadata: new Uint8Array(1) })]),
      ),
    ).toBe('event_too_large');
    const tagged = (tags: unknown) => event('', { metadata: encodeText(JSON.stringify({ $tags: tags })) });
    const most = Array.from({ length: 64 }, () => 'x'.repeat(256));
    for (const tags of [[...most, 'y'], ['x'.repeat(257)], ['ü'.repeat(129)]]) {
      expect(await codeOf(store.append('s', ANY, [event(), tagged(tags)]))).toBe('bad_tags');
      const writes = [{ stream: 's', expectedVersion: ANY, events: [tagged(tags)] }];
      expect(await codeOf(store.appendToStreams(writes))).toBe('bad_tags');
    }
    expect(await codeOf(store.append('s', ANY, [event('', { data: new Uint8Array(70_000) })]))).toBe('batch_too_large');
    for (const version of [-3, -5, 1.5, NaN, 2 ** 60])
      expect(await codeOf(store.append('s', version, [event()]))).toBe('invalid_expected_version');
    expect(log.end).toBe(0);
    // What is no list, or no metadata of an event, is none of ours.
    for (const metadata of [JSON.stringify({ $tags: most, $correlationId: 1 }), '{"$tags":"x"}', `"$tags" ${most}`])
      expect(await codeOf(store.append('s', ANY, [event('', { metadata: encodeText(metadata) })]))).toBe('ok');
  });

  it('more than may wait', async () => {
    const { store } = setUp({ options: { appendsQueuedMax: 3 } });
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => codeOf(store.append('s', ANY, [event()]))));
    expect(outcomes).toEqual(['ok', 'ok', 'ok', 'too_busy', 'too_busy']);
    // Those whose condition is looked up wait as well, and are no more afterwards.
    const decide = () =>
      codeOf(
        store.appendToStreams([{ stream: 's', expectedVersion: ANY, events: [event()] }], {
          condition: { failIfEventsMatch: { items: [] } },
        }),
      );
    const plain = () => codeOf(store.append('s', ANY, [event()]));
    const failed = 'condition_failed';
    for (let turn = 0; turn < 2; turn++)
      expect(await Promise.all([decide(), decide(), decide(), plain()])).toEqual([failed, failed, failed, 'too_busy']);
    const small = setUp({ options: { appendQueueBytesMax: 2_000 } });
    const large = () => codeOf(small.store.append('s', ANY, [event('x'.repeat(1_500))]));
    expect(await Promise.all([large(), large()])).toEqual(['ok', 'too_busy']);
    expect(await large()).toBe('ok');
  });
});

describe('chunks', () => {
  it('are completed where a write does not fit, which is never split', async () => {
    const { store, log } = setUp({ capacity: 4_096 });
    const results = await Promise.all(
      Array.from({ length: 20 }, () => store.append('s', ANY, [event('x'.repeat(200)), event('y'.repeat(200))])),
    );
    expect(log.completed).toBeGreaterThan(2);
    expect(results.map((r) => r.firstEventNumber)).toEqual(Array.from({ length: 20 }, (_, i) => 2 * i));
    for (const record of prepares(log))
      expect(Math.floor(record.transactionPosition / 4_096)).toBe(Math.floor(record.position / 4_096));
    const page = await store.readStream('s', { direction: 'forward', from: 0, count: 100 });
    expect(page.events.length).toBe(40);
    expect((await store.readAll({ direction: 'forward', from: 'start', count: 100 })).events.length).toBe(40);
  });

  it('end behind a write that asks for it', async () => {
    const { store, log } = setUp({ capacity: 8_192 });
    const [a, b] = await Promise.all([
      store.appendInternal('$scavengePoints', ANY, [event('{}')], { completeChunkAfter: true }),
      store.append('s', ANY, [event()]),
    ]);
    expect(log.completed).toBe(1);
    expect(a.position).toBe(0);
    expect(b.position).toBe(8_192);
  });
});

describe('groups', () => {
  it('hold all who come while the process looks at its sockets once, though a write takes no time', async () => {
    const { store, log } = setUp();
    // As callbacks of sockets are, these are called one after the other in one turn of the loop, and what each has
    // begun goes on before the next.
    await Promise.all(
      Array.from(
        { length: 8 },
        (_, i) =>
          new Promise<void>((resolve) => {
            setImmediate(() => {
              store.append(`s${i}`, ANY, [event()]).then(() => resolve());
            });
          }),
      ),
    );
    expect(log.groups.length).toBe(1);
  });

  it('hold all who wait for their answer before they write again', async () => {
    const { store, log } = setUp();
    await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        for (let n = 0; n < 5; n++) await store.append(`s${i}`, ANY, [event()]);
      }),
    );
    expect(log.groups.length).toBe(5);
  });
});

describe('failures', () => {
  it('of the disk reject the whole group, and the next one works', async () => {
    const { store, log } = setUp();
    await store.append('s', NO_STREAM, [event()]);
    const end = log.end;
    log.failNext = new SkuaError('disk_full', 'full');
    const ids = events(1);
    const outcomes = await Promise.all([
      outcomeOf(store.append('s', 0, ids)),
      outcomeOf(store.append('s', 0, events(1))),
      outcomeOf(store.deleteStream('s', ANY, 'hard')),
      outcomeOf(store.append('t', ANY, events(2))),
    ]);
    expect(outcomes).toEqual(['disk_full', 'disk_full', 'disk_full', 'disk_full']);
    expect(log.end).toBe(end);
    expect(await store.streamInfo('s')).toMatchObject({ lastEventNumber: 0, isTombstoned: false });
    expect(await store.streamInfo('t')).toMatchObject({ lastEventNumber: -1 });
    // The ids of the failed write are not remembered: it is no repeat.
    expect(await store.append('s', ANY, ids)).toMatchObject({ firstEventNumber: 1, isRepeat: false });
  });

  it('of completing a chunk reject the write that needs it', async () => {
    const { store, log } = setUp({ capacity: 1_024 });
    await store.append('s', ANY, [event('x'.repeat(500))]);
    log.failNext = new SkuaError('io_error', 'broken');
    expect(await codeOf(store.append('s', ANY, [event('x'.repeat(500))]))).toBe('io_error');
    expect(await store.append('s', ANY, [event('x'.repeat(500))])).toMatchObject({
      firstEventNumber: 1,
      position: 1_024,
    });
  });

  it('of a sync end all writing but no reading', async () => {
    const { store, log } = setUp();
    await store.append('s', ANY, [event()]);
    log.failNext = new SkuaError('writer_stopped', 'stopped');
    expect(await codeOf(store.append('s', ANY, [event()]))).toBe('writer_stopped');
    expect(await codeOf(store.append('s', ANY, [event()]))).toBe('writer_stopped');
    expect((await store.readEvent('s', 'last')).number).toBe(0);
  });

  it('of nothing: closing finishes what is in flight and rejects the rest', async () => {
    const { store, log } = setUp({ options: { groupRequestsMax: 1 } });
    const gate = Promise.withResolvers<void>();
    log.beforeAppend = () => gate.promise;
    const first = codeOf(store.append('s', ANY, [event()]));
    const second = codeOf(store.append('s', ANY, [event()]));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    const closing = store.close();
    gate.resolve();
    await closing;
    expect([await first, await second, await codeOf(store.append('s', ANY, [event()]))]).toEqual([
      'ok',
      'store_closed',
      'store_closed',
    ]);
  });
});

describe('soft delete and return', () => {
  it('continues the numbers and moves $tb', async () => {
    const { store, log } = setUp({ misses: 0.2 });
    await store.append('s', ANY, events(3));
    await setMetadata(store, 's', '{"$maxCount":2}');
    await store.deleteStream('s', STREAM_EXISTS, 'soft');
    const before = prepares(log).at(-1)!;
    expect(before).toMatchObject({ stream: '$$s', flags: 0x0127, eventType: '$metadata', expectedVersion: 0 });
    expect(decodeText(before.data)).toBe('{"$tb":9223372036854775807}');
    expect(await codeOf(store.readStream('s', { direction: 'forward', from: 0, count: 1 }))).toBe('stream_not_found');
    expect(await codeOf(store.readEvent('s', 2))).toBe('stream_not_found');
    expect(textOf(await store.readEvent('$$s', 'last'))).toBe('{"$tb":9223372036854775807}');
    expect(await store.streamInfo('s')).toMatchObject({ lastEventNumber: 2, isSoftDeleted: true, metadataVersion: 1 });
    const back = await store.append('s', NO_STREAM, events(2));
    expect(back).toMatchObject({ firstEventNumber: 3, lastEventNumber: 4 });
    const records = prepares(log);
    expect(records.at(-1)).toMatchObject({ stream: '$$s', flags: 0x0127, expectedVersion: 1 });
    expect(decodeText(records.at(-1)!.data)).toBe('{"$tb":3}');
    expect(records.at(-2)!.position).toBe(back.position);
    const page = await store.readStream('s', { direction: 'forward', from: 0, count: 9 });
    expect(numbers(page.events)).toEqual([3, 4]);
    expect(page.metadata).toEqual({ truncateBefore: 3 });
    expect(await store.streamInfo('s')).toMatchObject({ isSoftDeleted: false, metadataVersion: 2 });
  });

  it('by metadata: what was deleted stays away, unless they say where the stream begins', async () => {
    for (const [text, shown, written] of [
      ['{"$maxCount":5}', [], '{"$maxCount":5,"$tb":3}'],
      ['{}', [], '{"$tb":3}'],
      ['{"own":1}', [], '{"$tb":3,"own":1}'],
      ['{"$tb":1}', [1, 2], null],
    ] as const) {
      const first = setUp({ misses: 0.2 });
      await first.store.append('s', ANY, events(3));
      await first.store.deleteStream('s', ANY, 'soft');
      const set = await setMetadata(first.store, 's', text);
      for (const { store } of [first, setUp({ from: first })]) {
        expect(set).toMatchObject({ firstEventNumber: 1, lastEventNumber: 1 });
        expect(numbers((await store.readStream('s', { direction: 'forward', from: 0, count: 9 })).events)).toEqual(
          shown,
        );
        expect(textOf(await store.readEvent('$$s', 'last'))).toBe(written ?? text);
        expect(await store.streamInfo('s')).toMatchObject({
          lastEventNumber: 2,
          isSoftDeleted: false,
          metadataVersion: written === null ? 1 : 2,
        });
      }
    }
  });

  it('by metadata in a write to several streams', async () => {
    const { store } = setUp();
    await store.append('s', ANY, events(3));
    await store.deleteStream('s', ANY, 'soft');
    const metadata = event('{"$maxCount":5}', { type: '$metadata', isJson: true });
    const { streams } = await store.appendToStreams([
      { stream: '$$s', expectedVersion: ANY, events: [metadata] },
      { stream: 's', expectedVersion: ANY, events: events(1) },
    ]);
    expect(streams).toMatchObject([
      { stream: '$$s', lastEventNumber: 1 },
      { stream: 's', lastEventNumber: 3 },
    ]);
    expect(numbers((await store.readStream('s', { direction: 'forward', from: 0, count: 9 })).events)).toEqual([3]);
  });

  it('keeps other members, also within one group and after a restart', async () => {
    const first = setUp();
    await Promise.all([
      first.store.append('s', ANY, events(2)),
      setMetadata(first.store, 's', '{"own": 1.0, "$tb": 9223372036854775807, "$maxAge": 60}'),
      first.store.append('s', NO_STREAM, events(1)),
    ]);
    expect(first.log.groups.length).toBe(1);
    expect(textOf(await first.store.readEvent('$$s', 'last'))).toBe('{"$maxAge":60,"$tb":2,"own":1.0}');
    await setMetadata(first.store, 's', '{"own":[], "$tb": 9223372036854775807}');
    const { store } = setUp({ from: first });
    await store.append('s', 2, events(1));
    expect(textOf(await store.readEvent('$$s', 'last'))).toBe('{"$tb":3,"own":[]}');
  });
});
