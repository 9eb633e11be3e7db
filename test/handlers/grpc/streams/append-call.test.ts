import { describe, expect, it } from 'vitest';
import { grpcHarness, securedGrpc } from '../../../grpc/harness.ts';
import { AS } from '../../secured.ts';
import { APPEND, appendOf, base64, DELETE, idOf, JSON_TYPE, proposed, stream, TOMBSTONE } from './kit.ts';

const UNHANDLED = { status: 2, message: 'Exception was thrown by handler.', trailers: {} };

describe('Append', () => {
  it('writes what HTTP reads, byte for byte, and finds what HTTP has written', async () => {
    const h = grpcHarness();
    const odd = '{ "a" : 1.0 }';
    const seen = await h.call(
      APPEND,
      appendOf(
        's',
        { any: {} },
        proposed(1, odd, { custom_metadata: base64('{"m":1}') }),
        proposed(2, 'bytes', { metadata: { type: 'made', 'content-type': 'text/plain' } }),
      ),
    );
    expect(seen.received).toMatchObject([{ success: { current_revision: '1' } }]);
    const read = await h.get('/streams/s/0', 'application/vnd.eventstore.atom+json');
    expect(read.json().content).toMatchObject({
      eventId: idOf(1),
      eventType: 'made',
      data: { a: 1 },
      metadata: { m: 1 },
    });
    const [first, second] = (await h.store.readStream('s', { direction: 'forward', from: 0, count: 2 })).events;
    expect([first, second].map((event) => [Buffer.from(event!.data).toString(), event!.isJson])).toEqual([
      [odd, true],
      ['bytes', false],
    ]);
    const http = await h.send(
      'POST',
      '/streams/s',
      { 'content-type': 'application/json', 'es-eventtype': 'made', 'es-eventid': idOf(3) },
      '{"by":"http"}',
    );
    expect(http.status).toBe(201);
    expect(
      (await h.call(APPEND, appendOf('s', { revision: '1' }, proposed(3, '{"by":"http"}')))).received,
    ).toMatchObject([{ success: { current_revision: '2' } }]);
    expect((await h.call(APPEND, appendOf('s', { revision: '1' }, proposed(4)))).received[0]).toEqual({
      wrong_expected_version: {
        current_revision_20_6_0: '2',
        expected_revision_20_6_0: '1',
        current_revision: '2',
        expected_revision: '1',
      },
    });
  });

  it('tells a conflict in the old fields and the new ones, for each expectation', async () => {
    const h = grpcHarness();
    await h.fill('s', {});
    const conflict = async (name: string, expected: object) =>
      (await h.call(APPEND, appendOf(name, { ...expected }, proposed(900)))).received[0];
    const none = '18446744073709551615';
    expect(await conflict('s', { no_stream: {} })).toEqual({
      wrong_expected_version: {
        current_revision_20_6_0: '0',
        expected_revision_20_6_0: none,
        current_revision: '0',
        expected_no_stream: {},
      },
    });
    expect(await conflict('s', { revision: none })).toEqual({
      wrong_expected_version: {
        current_revision_20_6_0: '0',
        expected_revision_20_6_0: none,
        current_revision: '0',
        expected_revision: none,
      },
    });
    expect(await conflict('t', { stream_exists: {} })).toEqual({
      wrong_expected_version: {
        no_stream_20_6_0: {},
        stream_exists_20_6_0: {},
        current_no_stream: {},
        expected_stream_exists: {},
      },
    });
    expect(await conflict('t', { revision: '7' })).toEqual({
      wrong_expected_version: {
        no_stream_20_6_0: {},
        expected_revision_20_6_0: '7',
        current_no_stream: {},
        expected_revision: '7',
      },
    });
  });

  it('without events checks the expectation', async () => {
    const h = grpcHarness();
    await h.fill('s', {}, {});
    expect((await h.call(APPEND, appendOf('s', { any: {} }))).received).toMatchObject([
      { success: { current_revision: '1' } },
    ]);
    expect((await h.call(APPEND, appendOf('t', { any: {} }))).received).toMatchObject([{ success: { no_stream: {} } }]);
    expect((await h.call(APPEND, appendOf('s', { revision: '0' }))).received).toMatchObject([
      { wrong_expected_version: { current_revision: '1' } },
    ]);
  });

  it('ends calls that are none, and names what is missing', async () => {
    const h = grpcHarness();
    const options = appendOf('s', { any: {} })[0]!;
    for (const requests of [
      [],
      [{ proposed_message: proposed(1) }],
      [options, options, { proposed_message: proposed(1) }],
      [{}],
      [options, {}],
      [{ options: { any: {} } }],
      [{ options: { ...stream('s'), revision: '9223372036854775808' } }],
    ]) {
      expect(await h.call(APPEND, requests)).toMatchObject(UNHANDLED);
    }
    for (const id of [undefined, {}, { string: 'abc' }, { string: '00000000-0000-0000-0000-000000000000' }]) {
      expect(
        await h.call(APPEND, appendOf('s', { any: {} }, { metadata: JSON_TYPE, ...(id !== undefined && { id }) })),
      ).toMatchObject(UNHANDLED);
    }
    expect(
      await h.call(APPEND, appendOf('s', { any: {} }, proposed(1, '', { metadata: { 'content-type': 'x' } }))),
    ).toEqual({
      status: 3,
      message: "Required Metadata Property 'type' is missing",
      trailers: {
        exception: 'missing-required-metadata-property',
        'required-metadata-properties': 'type,content-type',
      },
      received: [],
    });
    expect(
      await h.call(APPEND, appendOf('s', { any: {} }, proposed(1, '', { metadata: { type: 'x' } }))),
    ).toMatchObject({ message: "Required Metadata Property 'content-type' is missing" });
    expect(await h.call(APPEND, appendOf('s', {}, proposed(1)))).toMatchObject({
      status: 3,
      message:
        "'None' is not a valid EventStore.Client.Streams.AppendReq+Types+Options+ExpectedStreamRevisionOneofCase",
    });
    expect(await h.store.streamInfo('s')).toMatchObject({ lastEventNumber: -1 });
  });

  it('takes ids in all their forms', async () => {
    const h = grpcHarness();
    const structured = {
      structured: { most_significant_bits: '-8920354452203484312', least_significant_bits: '-5954756635373705787' },
    };
    await h.call(
      APPEND,
      appendOf(
        's',
        { any: {} },
        proposed(1, '{}', { id: { string: '00000000000040008000000000000777' } }),
        proposed(2, '{}', { id: structured }),
      ),
    );
    const { events } = await h.store.readStream('s', { direction: 'forward', from: 0, count: 2 });
    expect(events[0]!.id).toBe(idOf(777));
    expect(events[1]!.id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(BigInt.asIntN(64, BigInt(`0x${events[1]!.id.replaceAll('-', '').slice(0, 16)}`))).toBe(
      -8920354452203484312n,
    );
  });

  it('looks at sizes before the stream, and counts data alone', async () => {
    const h = grpcHarness({ options: { appendBytesMax: 100 } });
    await h.store.deleteStream('gone', -2, 'hard');
    const tooLarge = {
      status: 3,
      message: 'Maximum Append Size of 100 Exceeded.',
      trailers: { exception: 'maximum-append-size-exceeded', 'maximum-append-size': '100' },
    };
    expect(
      await h.call(
        APPEND,
        appendOf('gone', { revision: '99' }, proposed(1, 'x'.repeat(50)), proposed(2, 'x'.repeat(51))),
      ),
    ).toMatchObject(tooLarge);
    expect(
      (
        await h.call(
          APPEND,
          appendOf(
            's',
            { any: {} },
            proposed(1, 'x'.repeat(50)),
            proposed(2, 'x'.repeat(50), { custom_metadata: base64('y'.repeat(500)) }),
          ),
        )
      ).status,
    ).toBe(0);
    expect(await h.call(APPEND, appendOf('gone', { no_stream: {} }, proposed(3)))).toMatchObject({
      status: 9,
      message: "Event stream 'gone' is deleted.",
      trailers: { exception: 'stream-deleted', 'stream-name': 'gone' },
    });
    const all = grpcHarness({ options: { bodyBytesMax: 300 } });
    expect(
      await all.call(APPEND, appendOf('s', { any: {} }, proposed(1, '', { custom_metadata: base64('y'.repeat(300)) }))),
    ).toMatchObject({ trailers: { 'maximum-append-size': '300' } });
  });

  it('takes 1 MiB unless told otherwise, as HTTP does not', async () => {
    const h = grpcHarness();
    const half = 'x'.repeat(524_288);
    expect((await h.call(APPEND, appendOf('s', { any: {} }, proposed(1, half), proposed(2, half)))).status).toBe(0);
    expect(
      await h.call(APPEND, appendOf('s', { any: {} }, proposed(3, half), proposed(4, half), proposed(5, 'x'))),
    ).toMatchObject({ status: 3, trailers: { 'maximum-append-size': '1048576' } });
    const events = [6, 7, 8].map((n) => ({ eventId: idOf(n), eventType: 'made', data: half }));
    expect(
      (
        await h.send(
          'POST',
          '/streams/s',
          { 'content-type': 'application/vnd.eventstore.events+json' },
          JSON.stringify(events),
        )
      ).status,
    ).toBe(201);
    expect(await h.store.streamInfo('s')).toMatchObject({ lastEventNumber: 4 });
  });

  it('asks who may write before anything else is looked at', async () => {
    const h = securedGrpc({ options: { appendBytesMax: 10 } });
    const denied = { status: 7, message: 'Access Denied', trailers: { exception: 'access-denied' } };
    expect(await h.call(APPEND, appendOf('s', { any: {} }, proposed(1)), AS.anonymous)).toMatchObject(denied);
    expect(await h.call(APPEND, appendOf('$sys', { any: {} }, proposed(1, 'x'.repeat(11))), AS.plain)).toMatchObject(
      denied,
    );
    for (const name of ['', '$all'])
      expect(await h.call(APPEND, appendOf(name, { any: {} }, proposed(1)), AS.admin)).toMatchObject(denied);
    expect(await h.call(APPEND, appendOf('s', { any: {} }, proposed(1)), AS.wrong)).toMatchObject({
      status: 16,
      message: 'Unauthenticated',
      trailers: {},
    });
    expect(await grpcHarness().call(APPEND, appendOf('$all', { any: {} }, proposed(1)))).toMatchObject(denied);
  });
});

describe.each([
  ['Delete', DELETE],
  ['Tombstone', TOMBSTONE],
] as const)('%s', (kind, path) => {
  const call = (h: ReturnType<typeof grpcHarness>, name: string, expected: object) =>
    h.call(path, { options: { ...stream(name), ...expected } });
  const conflict = (name: string, expected: number, actual: number) => ({
    status: 9,
    message: `Delete failed due to WrongExpectedVersion. Stream: ${name}, Expected version: ${expected}, Actual version: ${actual}`,
    trailers: {
      exception: 'wrong-expected-version',
      'stream-name': name,
      'expected-version': String(expected),
      'actual-version': String(actual),
    },
  });

  it('follows the expectation and says where it stands', async () => {
    const h = grpcHarness();
    await h.fill('s', {}, {});
    expect(await call(h, 's', { revision: '0' })).toMatchObject(conflict('s', 0, 1));
    expect(await call(h, 'none', { stream_exists: {} })).toMatchObject(conflict('none', -4, -1));
    const done = await call(h, 's', { revision: '1' });
    expect(done).toMatchObject({ status: 0, received: [{ position: {} }] });
    const { commit_position: commit, prepare_position: prepare } = (done.received[0] as any).position;
    expect(commit).toBe(prepare);
    expect(await h.store.streamInfo('s')).toMatchObject(
      kind === 'Delete' ? { isSoftDeleted: true } : { isTombstoned: true },
    );
    expect(await call(h, 's', { stream_exists: {} })).toMatchObject({
      status: 9,
      trailers: { exception: 'stream-deleted' },
    });
  });

  it('refuses what is no stream, and requests without a choice', async () => {
    const h = grpcHarness();
    for (const name of ['', '$all', '$$s'])
      expect(await call(h, name, { any: {} })).toMatchObject({ status: 7, trailers: { exception: 'access-denied' } });
    expect(await call(h, 's', {})).toMatchObject({
      status: 3,
      message: `'None' is not a valid EventStore.Client.Streams.${kind}Req+Types+Options+ExpectedStreamRevisionOneofCase`,
    });
    expect(await h.call(path, {})).toMatchObject(UNHANDLED);
    expect(await h.call(path, [])).toMatchObject({ status: 13, message: 'Incomplete message.' });
  });
});
