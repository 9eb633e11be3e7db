import { describe, expect, it } from 'vitest';
import { SkuaError } from '../../../../core/base/errors.ts';
import { StreamsServiceService } from '../../../../handlers/grpc/messages/streams-v2.ts';
import { toJson } from '../../../grpc/codec.ts';
import type { Json } from '../../../grpc/codec.ts';
import { grpcHarness, securedGrpc } from '../../../grpc/harness.ts';
import type { Seen } from '../../../grpc/harness.ts';
import { audited } from '../audited.ts';
import { AS } from '../../secured.ts';
import { base64, idOf } from '../streams/kit.ts';

const SESSION = StreamsServiceService.methods.AppendSession.path;
const RECORDS = StreamsServiceService.methods.AppendRecords.path;

function record(n: number, more: Json = {}): Json {
  return { record_id: idOf(n), schema: { format: 1, name: 'made' }, data: base64('{}'), ...more };
}

/** Status, type and content of the one detail. */
function errorOf({ status, trailers }: Seen): unknown {
  const bin = trailers['grpc-status-details-bin'];
  if (bin === undefined) return [status];
  const told = toJson('google.rpc.Status', Buffer.from(bin, 'base64'));
  expect(told).toMatchObject({ code: status, details: [expect.anything()] });
  const { type_url: typeUrl, value } = told['details'][0];
  const type = typeUrl.replace(/^type\.googleapis\.com\//, '');
  return [status, type, toJson(type, Buffer.from(value, 'base64'))];
}

const OF_STREAMS = 'kurrentdb.protocol.v2.streams.errors.';

describe('AppendSession', () => {
  it('appends one request a stream, all or nothing', async () => {
    const h = grpcHarness();
    await h.fill('b', {}, {});
    const seen = await h.call(SESSION, [
      { stream: 'a', records: [record(1), record(2)], expected_revision: '-1' },
      { stream: 'b', records: [record(3)], expected_revision: '1' },
      { stream: 'c', records: [record(4)] },
    ]);
    expect(seen).toMatchObject({
      status: 0,
      received: [
        { output: [{ stream: 'a', stream_revision: '1' }, { stream: 'b', stream_revision: '2' }, { stream: 'c' }] },
      ],
    });
    const { output, position } = seen.received[0] as any;
    expect(output[2].position).toBe(position);
    expect(Number(output[0].position)).toBeLessThan(Number(output[1].position));
    const conflict = await h.call(SESSION, [
      { stream: 'a', records: [record(5)] },
      { stream: 'b', records: [record(6)], expected_revision: '1' },
    ]);
    expect(errorOf(conflict)).toEqual([
      9,
      `${OF_STREAMS}StreamRevisionConflictErrorDetails`,
      { stream: 'b', expected_revision: '1', actual_revision: '2' },
    ]);
    expect(await h.store.streamInfo('a')).toMatchObject({ lastEventNumber: 1 });
  });

  it('is known when it comes again', async () => {
    const h = grpcHarness();
    const requests = [
      { stream: 'a', records: [record(1)], expected_revision: '-1' },
      { stream: 'b', records: [record(2)] },
    ];
    const first = await h.call(SESSION, requests);
    expect((await h.call(SESSION, requests)).received).toEqual(first.received);
    const nameless = [{ stream: 'a', records: [record(1), record(9, { record_id: '' })] }];
    expect((await h.call(SESSION, nameless)).received).toMatchObject([{ output: [{ stream_revision: '2' }] }]);
  });

  it('names what it refuses', async () => {
    const h = grpcHarness({ options: { appendBytesMax: 100 } });
    await h.fill('soft', {});
    await h.store.deleteStream('soft', -2, 'soft');
    await h.store.deleteStream('hard', -2, 'hard');
    const of = async (...requests: Json[]) => errorOf(await h.call(SESSION, requests));
    expect(await of()).toEqual([9]);
    expect(await of({ stream: 'a', records: [record(1)] }, { stream: 'a', records: [record(2)] })).toEqual([
      10,
      `${OF_STREAMS}StreamAlreadyInAppendSessionErrorDetails`,
      { stream: 'a' },
    ]);
    expect(await of({ stream: 'a', records: [record(1)] }, { stream: 'hard', records: [record(2)] })).toEqual([
      9,
      `${OF_STREAMS}StreamTombstonedErrorDetails`,
      { stream: 'hard' },
    ]);
    expect(await of({ stream: 'soft', records: [record(1)], expected_revision: '-4' })).toEqual([
      9,
      `${OF_STREAMS}StreamDeletedErrorDetails`,
      { stream: 'soft' },
    ]);
    expect(
      await of(
        { stream: 'a', records: [record(1, { data: base64('x'.repeat(60)) })] },
        { stream: 'b', records: [record(2, { data: base64('x'.repeat(60)) })] },
      ),
    ).toEqual([10, `${OF_STREAMS}AppendTransactionSizeExceededErrorDetails`, { size: 120, max_size: 100 }]);
    expect(await of({ stream: 'a', records: [record(1, { data: base64('x'.repeat(4_194_304)) })] })).toMatchObject([
      3,
      `${OF_STREAMS}AppendRecordSizeExceededErrorDetails`,
      { stream: 'a', record_id: idOf(1), max_size: 4_194_304 },
    ]);
    expect(await of({ stream: '', records: [record(1)] })).toMatchObject([
      3,
      'google.rpc.BadRequest',
      { field_violations: [{ field: 'requests[0].stream' }] },
    ]);
    const bad = await of(
      { stream: 'a', records: [], expected_revision: '-3' },
      {
        stream: 'b',
        records: [
          record(1, { record_id: 'x' }),
          record(2, { schema: {} }),
          { data: base64('x') },
          record(3, { properties: { '': { string_value: 'x' } } }),
          record(4, { properties: { n: { number_value: 'NaN' } } }),
          record(5, { record_id: '00000000-0000-0000-0000-000000000000' }),
        ],
      },
    );
    expect((bad as any)[2].field_violations.map(({ field }: { field: string }) => field)).toEqual([
      'requests[0].records',
      'requests[0].expected_revision',
      'requests[1].records[0].record_id',
      'requests[1].records[1].schema.name',
      'requests[1].records[1].schema.format',
      'requests[1].records[2].schema',
      'requests[1].records[3].properties',
      'requests[1].records[4].properties',
      'requests[1].records[5].record_id',
    ]);
    expect(await h.store.streamInfo('a')).toMatchObject({ lastEventNumber: -1 });
  });
});

describe('AppendRecords', () => {
  it('keeps the order of records across streams, and reads like events of the first generation', async () => {
    const h = grpcHarness();
    const properties = {
      text: { string_value: 'ü"' },
      number: { number_value: 1.5 },
      whole: { number_value: 3 },
      yes: { bool_value: true },
      none: { null_value: 0 },
      list: { list_value: { values: [{ number_value: 1 }, { string_value: 'x' }] } },
      inner: { struct_value: { fields: { __proto: { bool_value: false } } } },
    };
    const seen = await h.call(RECORDS, {
      records: [
        record(1, { stream: 'a', properties }),
        record(2, { stream: 'b', schema: { format: 3, name: 'other', id: 'schema-7' }, data: base64('bytes') }),
        record(3, { stream: 'a' }),
      ],
    });
    expect(seen).toMatchObject({
      status: 0,
      received: [{ revisions: [{ stream: 'a', revision: '1' }, { stream: 'b' }] }],
    });
    const all = (await h.store.readAll({ direction: 'forward', from: 'start', count: 9 })).events;
    expect(all.map(({ stream, id }) => [stream, id])).toEqual([
      ['a', idOf(1)],
      ['b', idOf(2)],
      ['a', idOf(3)],
    ]);
    expect(String(all[2]!.position)).toBe((seen.received[0] as any).position);
    expect(JSON.parse(Buffer.from(all[0]!.metadata).toString())).toEqual({
      text: 'ü"',
      number: 1.5,
      whole: 3,
      yes: true,
      none: null,
      list: [1, 'x'],
      inner: { __proto: false },
      '$schema.format': 'Json',
      '$schema.name': 'made',
    });
    expect([all[1]!.type, all[1]!.isJson, Buffer.from(all[1]!.metadata).toString()]).toEqual([
      'other',
      false,
      '{"$schema.format":"Avro","$schema.name":"other","$schema.id":"schema-7"}',
    ]);
    const http = await h.get('/streams/a/0', 'application/vnd.eventstore.atom+json');
    expect(http.json().content).toMatchObject({ eventType: 'made', data: {}, metadata: { whole: 3 } });
  });

  it('takes keys that begin with $, as those of tracing do, and of those that it writes by itself what is the same', async () => {
    const h = grpcHarness();
    const text = (value: string): Json => ({ string_value: value });
    const seen = await h.call(RECORDS, {
      records: [
        record(1, {
          stream: 'a',
          properties: {
            $traceId: text('0af7'),
            $spanId: text('b7ad'),
            $correlationId: text('c'),
            $causationId: text('d'),
            $mine: { number_value: 1 },
          },
        }),
        record(2, {
          stream: 'a',
          schema: { format: 2, name: 'other', id: 'schema-7' },
          properties: {
            '$schema.format': text('Protobuf'),
            '$schema.name': text('other'),
            '$schema.id': text('schema-7'),
          },
        }),
      ],
    });
    expect(seen).toMatchObject({ status: 0 });
    const events = (await h.store.readStream('a', { direction: 'forward', from: 0, count: 9 })).events;
    expect(events.map(({ metadata }) => Buffer.from(metadata).toString())).toEqual([
      '{"$traceId":"0af7","$spanId":"b7ad","$correlationId":"c","$causationId":"d","$mine":1,"$schema.format":"Json","$schema.name":"made"}',
      '{"$schema.format":"Protobuf","$schema.name":"other","$schema.id":"schema-7"}',
    ]);
    for (const properties of [
      { '$schema.format': text('Avro') },
      { '$schema.name': text('another') },
      { '$schema.id': text('x') },
      { '$schema.name': { number_value: 1 } },
      { '': text('x') },
    ]) {
      const field = { field_violations: [{ field: 'records[0].properties' }] };
      expect(errorOf(await h.call(RECORDS, { records: [record(3, { stream: 'a', properties })] }))).toMatchObject([
        3,
        'google.rpc.BadRequest',
        field,
      ]);
      expect(errorOf(await h.call(SESSION, [{ stream: 'a', records: [record(3, { properties })] }]))).toMatchObject([
        3,
        'google.rpc.BadRequest',
        { field_violations: [{ field: 'requests[0].records[0].properties' }] },
      ]);
    }
    expect(await h.store.streamInfo('a')).toMatchObject({ lastEventNumber: 1 });
  });

  it('tells all checks that do not hold, also of streams that it does not write to', async () => {
    const h = grpcHarness();
    await h.fill('live', {}, {});
    await h.store.deleteStream('hard', -2, 'hard');
    const check = (stream: string, state: number): Json => ({
      stream_state: { stream, expected_state: String(state) },
    });
    const tried = (checks: readonly Json[]) =>
      h.call(RECORDS, { records: [record(1, { stream: 'new' })], checks: [...checks] });
    expect(
      errorOf(
        await tried([check('live', 1), check('live', -1), check('hard', -4), check('none', -4), check('hard', -1)]),
      ),
    ).toEqual([
      9,
      `${OF_STREAMS}AppendConsistencyViolationErrorDetails`,
      {
        violations: [
          { check_index: 1, stream_state: { stream: 'live', expected_state: '-1', actual_state: '1' } },
          { check_index: 2, stream_state: { stream: 'hard', expected_state: '-4', actual_state: '-6' } },
          { check_index: 3, stream_state: { stream: 'none', expected_state: '-4', actual_state: '-1' } },
        ],
      },
    ]);
    expect((await tried([check('live', 1), check('hard', -1)])).status).toBe(0);
    expect(errorOf(await h.call(RECORDS, { records: [record(2, { stream: 'hard' })] }))).toEqual([
      9,
      `${OF_STREAMS}StreamTombstonedErrorDetails`,
      { stream: 'hard' },
    ]);
    expect(errorOf(await h.call(RECORDS, { checks: [{}, check('', 0), check('a', -7)] }))).toMatchObject([
      3,
      'google.rpc.BadRequest',
      {
        field_violations: [
          { field: 'records' },
          { field: 'checks[0]' },
          { field: 'checks[1].stream_state.stream' },
          { field: 'checks[2].stream_state.expected_state' },
        ],
      },
    ]);
    expect(errorOf(await h.call(RECORDS, { records: [record(1)] }))).toMatchObject([
      3,
      'google.rpc.BadRequest',
      { field_violations: [{ field: 'records[0].stream' }] },
    ]);
  });

  it('asks who may write, and who may know', async () => {
    const h = securedGrpc();
    const denied = (username?: string) => [
      7,
      'kurrent.rpc.AccessDeniedErrorDetails',
      { operation: 'streams:write', ...(username !== undefined && { username }) },
    ];
    const of = async (request: Json, as: Readonly<Record<string, string>>) =>
      errorOf(await h.call(RECORDS, request, as));
    expect(await of({ records: [record(1, { stream: 'a' })] }, AS.anonymous)).toEqual(denied());
    expect(await of({ records: [record(1, { stream: 'a' }), record(2, { stream: '$b' })] }, AS.plain)).toEqual(
      denied('kim'),
    );
    expect(await of({ records: [record(1, { stream: '$all' })] }, AS.admin)).toEqual(denied('ada'));
    const check = { stream_state: { stream: '$secret', expected_state: '5' } };
    expect(await of({ records: [record(1, { stream: 'a' })], checks: [check] }, AS.plain)).toEqual(denied('kim'));
    expect(await of({ records: [record(1, { stream: 'a' })], checks: [check] }, AS.admin)).toMatchObject([
      9,
      `${OF_STREAMS}AppendConsistencyViolationErrorDetails`,
      {},
    ]);
  });

  it('decodes records only for who may write them, and none of a message that holds more than its bytes can mean', async () => {
    const h = securedGrpc();
    const ended = async (path: string, ...parts: readonly Uint8Array[]) => {
      const call = h.open(path, [], { isOpen: true, metadata: AS.plain }).pushBytes(Buffer.concat(parts)).halfClose();
      return ((await call.ended) as { readonly status: number }).status;
    };
    // A field whose schema ends too early, behind the name of the stream.
    const malformed = Uint8Array.of(26, 2, 18, 9);
    const named = (stream: string) => Buffer.concat([Uint8Array.of(42, stream.length), Buffer.from(stream)]);
    const within = (tag: number, ...parts: readonly Uint8Array[]) =>
      Buffer.concat([Uint8Array.of(tag, Buffer.concat(parts).length), ...parts]);
    const request = (stream: string) =>
      Buffer.concat([Uint8Array.of(10, stream.length), Buffer.from(stream), within(18, malformed)]);
    expect([
      await ended(RECORDS, within(10, named('$sys'), malformed)),
      await ended(RECORDS, within(10, named('s'), malformed)),
    ]).toEqual([7, 2]);
    expect(await ended(SESSION, request('$sys'))).toBe(7);
    expect(await ended(SESSION, request('s'))).not.toBe(7);
    const dense = (tag: number) => Buffer.alloc(1_048_000, Buffer.from([tag, 0]));
    expect([await ended(RECORDS, dense(10)), await ended(SESSION, Buffer.from([10, 1, 115]), dense(18))]).toEqual([
      3, 3,
    ]);
  });

  it('tells the audit of each stream by which rights are changed', async () => {
    const h = audited();
    const metadata = record(1, {
      stream: '$$a',
      schema: { format: 1, name: '$metadata' },
      data: base64('{"$acl":{"$r":"ann"}}'),
    });
    expect((await h.call(RECORDS, { records: [metadata, record(2, { stream: 'a' })] }, AS.admin)).status).toBe(0);
    await h.call(RECORDS, { records: [record(3, { stream: '$settings' })] }, AS.plain);
    expect(h.told()).toEqual([
      ['access-list.change', 'success', 'a'],
      ['access-list.change', 'refused', '$settings'],
    ]);
  });

  it("tells what is not the client's fault by its status alone", async () => {
    const h = grpcHarness();
    const codes = { too_busy: 14, not_ready: 14, commit_outcome_unknown: 4, io_error: 13 } as const;
    for (const [code, status] of Object.entries(codes)) {
      h.store.appendToStreams = () => Promise.reject(new SkuaError(code as keyof typeof codes, 'No.'));
      expect(errorOf(await h.call(RECORDS, { records: [record(1, { stream: 'a' })] }))).toEqual([status]);
    }
  });
});
