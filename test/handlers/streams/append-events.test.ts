import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { ErrorCode } from '../../../core/base/errors.ts';
import { ATOM, EVENTS, harness, ORIGIN } from '../harness.ts';

const ID = '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11';
const SINGLE = { 'content-type': 'application/json', 'es-eventtype': 'made', 'es-eventid': ID };
const BATCH = { 'content-type': EVENTS };
const one = JSON.stringify([{ eventId: ID, eventType: 'made', data: { n: 1 } }]);

function storedData(h: ReturnType<typeof harness>, index = 0): string {
  return new TextDecoder().decode(h.store.log[index]!.data);
}

describe('single events', () => {
  test('application/json is stored byte for byte, even when it is not JSON', async () => {
    const h = harness();
    const body = new Uint8Array([0x7b, 0xff, 0xfe, 0x20]);
    const reply = await h.send('POST', '/streams/parcels', SINGLE, body);
    expect(reply).toMatchObject({ status: 201, reason: 'Created', text: '' });
    expect(reply.headers.get('location')).toBe(`${ORIGIN}/streams/parcels/0`);
    expect(reply.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(reply.headers.get('content-length')).toBe('0');
    expect(h.store.log[0]).toMatchObject({ stream: 'parcels', id: ID, type: 'made', isJson: true, data: body });
  });

  test('application/octet-stream is not JSON; an empty body is an empty event', async () => {
    const h = harness();
    expect(
      (await h.send('POST', '/streams/s', { ...SINGLE, 'content-type': 'application/octet-stream' }, '{}')).status,
    ).toBe(201);
    expect((await h.send('POST', '/streams/s', { ...SINGLE, 'es-eventid': h.id() })).status).toBe(201);
    expect(h.store.log.map((e) => [e.isJson, e.data.length])).toEqual([
      [false, 2],
      [true, 0],
    ]);
  });

  test('the newer header names win over the older', async () => {
    const h = harness();
    await h.send(
      'POST',
      '/streams/s',
      { ...SINGLE, 'Kurrent-EventType': 'newer', 'Kurrent-EventId': ID.replace('6', '7') },
      '1',
    );
    expect(h.store.log[0]).toMatchObject({ type: 'newer', id: ID.replace('6', '7') });
  });

  test('without an id the client is sent to an address it can repeat', async () => {
    const h = harness();
    const first = await h.send(
      'POST',
      '/streams/a%20b',
      { 'content-type': 'application/json', 'es-eventtype': 'made' },
      '{}',
    );
    expect(first).toMatchObject({
      status: 307,
      reason: 'Temporary Redirect',
      text: expect.stringMatching(
        /^Forwarding to idempotent URI\nNothing was written: .* ES-EventId.* Location.*\n$/,
      ) as string,
    });
    const location = first.headers.get('location')!;
    expect(location).toMatch(
      /^http:\/\/127\.0\.0\.1:2113\/streams\/a%20b\/incoming\/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(h.store.log).toEqual([]);
    for (let i = 0; i < 2; i++) {
      const reply = await h.send(
        'POST',
        location.replace(ORIGIN, ''),
        { 'content-type': 'application/json', 'es-eventtype': 'made' },
        '{}',
      );
      expect(reply.headers.get('location')).toBe(`${ORIGIN}/streams/a%20b/0`);
    }
    expect(h.store.log).toHaveLength(1);
    expect(h.store.log[0]).toMatchObject({ stream: 'a b', id: location.slice(-36) });
  });
});

describe('batches', () => {
  test.each([
    ['an object', '{"a":1.50,"b":12345678901234567890}', '{\n  "a": 1.5,\n  "b": 12345678901234567890\n}', true],
    ['an array', '[]', '[]', true],
    ['a string with an object', '"{\\"a\\":1}"', '{\n  "a": 1\n}', true],
    ['a string with text', '"{not json"', '{not json', false],
    ['a string with a number', '"5"', '5', false],
    ['an empty string', '""', '', false],
    ['a number', '5', '', false],
    ['a boolean', 'true', '', false],
    ['null', 'null', '', false],
  ])('data: %s', async (_name, data, stored, isJson) => {
    const h = harness();
    expect(
      (
        await h.send(
          'POST',
          '/streams/s',
          BATCH,
          `[{"eventId":"${ID}","eventType":"made","data":${data}, "metadata":${data}}]`,
        )
      ).status,
    ).toBe(201);
    expect(storedData(h)).toBe(stored);
    expect(h.store.log[0]!.isJson).toBe(isJson);
    expect(new TextDecoder().decode(h.store.log[0]!.metadata)).toBe(stored);
  });

  test('no data and unknown members', async () => {
    const h = harness();
    await h.send('POST', '/streams/s', BATCH, `[{"x":{"y":[1]},"EventID":"${ID}","eventTYPE":"made"}]`);
    expect(h.store.log[0]).toMatchObject({ id: ID, type: 'made', isJson: false, data: new Uint8Array(0) });
  });

  test('several events, both families of the media type, a charset', async () => {
    const h = harness();
    const body = JSON.stringify([1, 2].map((n) => ({ eventId: h.id(), eventType: `t${n}` })));
    expect(
      (
        await h.send(
          'POST',
          '/streams/s',
          { 'content-type': 'application/vnd.kurrent.events+json; charset="UTF-8"' },
          body,
        )
      ).headers.get('location'),
    ).toBe(`${ORIGIN}/streams/s/0`);
    expect((await h.fill('s', {})).headers.get('location')).toBe(`${ORIGIN}/streams/s/2`);
    expect(h.store.log.map((e) => e.type)).toEqual(['t1', 't2', 'made']);
  });

  const invalid = 'Write request body invalid.';
  const noId = "Empty eventId provided. (Parameter 'eventId')";
  const noType = "Empty eventType provided. (Parameter 'eventType')";
  test.each([
    ['{"eventId":"x"}', invalid],
    ['[]', invalid],
    ['', invalid],
    ['[', invalid],
    ['[{]', invalid],
    ['5', invalid],
    [`${one} x`, invalid],
    ['[1]', invalid],
    ['[{"eventId":"nope","eventType":"t"}]', invalid],
    ['[{"eventId":5,"eventType":"t"}]', invalid],
    [`[{"eventId":"${ID}","eventType":"t","data":{"a":}}]`, invalid],
    [`[{"eventId":"${ID}","eventType":"t","data":${'['.repeat(70)}${']'.repeat(70)}}]`, invalid],
    ['[{"eventType":"t"}]', noId],
    ['[{"eventId":null,"eventType":"t"}]', noId],
    ['[{"eventId":"00000000-0000-0000-0000-000000000000","eventType":"t"}]', noId],
    [`[{"eventId":"${ID}"}]`, noType],
    [`[{"eventId":"${ID}","eventType":""}]`, noType],
  ])('refuses %s', async (body, detail) => {
    const h = harness();
    const reply = await h.send('POST', '/streams/s', BATCH, body);
    expect(reply.status).toBe(400);
    expect(reply.json().detail).toBe(detail);
    expect(h.store.log).toEqual([]);
  });

  test.each([
    ['Größe-世', [...new TextEncoder().encode('Größe-世')]],
    ['é', [0xe9]],
  ])('an event type in a header, %s, arrives as text', async (type, bytes) => {
    const h = harness();
    const header = String.fromCharCode(...bytes);
    expect(
      (
        await h.send(
          'POST',
          '/streams/s',
          { 'content-type': 'application/json', 'es-eventtype': header, 'es-eventid': ID },
          '{}',
        )
      ).status,
    ).toBe(201);
    expect(h.store.log[0]!.type).toBe(type);
  });

  test('the hint says where', async () => {
    expect((await harness().send('POST', '/streams/s', BATCH, '[{"eventId" 5}]')).json()).toEqual({
      code: 'bad_json',
      title: 'Bad Request',
      detail: invalid,
      hint: "At character 12: ':' was expected.",
    });
  });
});

describe('checks before the body', () => {
  const json = { 'content-type': 'application/json' };
  test.each<[string, string, Record<string, string>, number, string]>([
    [
      'no type',
      '/streams/s',
      json,
      400,
      'Must include an event type with the request either in body or as ES-EventType header.',
    ],
    ['bad id', '/streams/s', { ...SINGLE, 'es-eventid': 'x' }, 400, 'ES-EventId header in wrong format.'],
    [
      'nil id',
      '/streams/s',
      { ...SINGLE, 'kurrent-eventid': '00000000-0000-0000-0000-000000000000' },
      400,
      'Kurrent-EventId header in wrong format.',
    ],
    [
      'version',
      '/streams/s',
      { ...SINGLE, 'es-expectedversion': 'x' },
      400,
      'ES-ExpectedVersion header in wrong format.',
    ],
    [
      'version -3',
      '/streams/s',
      { ...SINGLE, 'es-expectedversion': '-3' },
      400,
      'ES-ExpectedVersion header in wrong format.',
    ],
    [
      'version -5',
      '/streams/s',
      { ...SINGLE, 'es-expectedversion': '-5' },
      400,
      'ES-ExpectedVersion header in wrong format.',
    ],
    [
      'version of 65 bits',
      '/streams/s',
      { ...SINGLE, 'es-expectedversion': '9223372036854775808' },
      400,
      'ES-ExpectedVersion header in wrong format.',
    ],
    ['leader', '/streams/s', { ...SINGLE, 'es-requireleader': 'yes' }, 400, 'ES-RequireLeader header in wrong format.'],
    ['master', '/streams/s', { ...SINGLE, 'es-requiremaster': 'yes' }, 400, 'ES-RequireMaster header in wrong format.'],
    [
      'event+json',
      '/streams/s',
      { 'content-type': 'application/vnd.eventstore.event+json' },
      400,
      'Write request body invalid.',
    ],
    ['atom+json', '/streams/s', { 'content-type': ATOM }, 400, 'Write request body invalid.'],
    ['incoming guid', '/streams/s/incoming/x', SINGLE, 400, 'Invalid request. Unable to parse guid'],
    ['percent', '/streams/%zz', SINGLE, 400, "The path has malformed percent-encoding: '%zz'. Encode names as UTF-8."],
  ])('%s', async (_name, path, headers, status, detail) => {
    const reply = await harness().send('POST', path, headers, '{}');
    expect([reply.status, reply.json().detail]).toEqual([status, detail]);
    expect(reply.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  });

  test.each([
    'text/xml',
    'application/xml',
    'application/vnd.eventstore.events+xml',
    'text/plain',
    'application/json; charset=latin1',
    'x',
  ])('%s is 415', async (type) => {
    const reply = await harness().send('POST', '/streams/s', { ...SINGLE, 'content-type': type }, '{}');
    expect([reply.status, reply.reason]).toEqual([415, 'Invalid or missing Content-Type']);
  });

  test('no content type is 415, and batches are at /incoming', async () => {
    expect((await harness().send('POST', '/streams/s')).status).toBe(415);
    expect((await harness().send('POST', `/streams/s/incoming/${ID}`, BATCH, one)).status).toBe(415);
  });

  test('an empty header counts as absent, and the highest version is a plain conflict', async () => {
    const h = harness();
    expect(
      (await h.send('POST', '/streams/s', { ...BATCH, 'es-expectedversion': '', 'es-requireleader': 'TRUE' }, one))
        .status,
    ).toBe(201);
    expect(
      (await h.send('POST', '/streams/s', { ...BATCH, 'es-expectedversion': '9223372036854775807' }, one)).headers.get(
        'es-currentversion',
      ),
    ).toBe('0');
  });
});

describe('outcomes', () => {
  test('a repeat has the first location', async () => {
    const h = harness();
    for (let i = 0; i < 2; i++)
      expect(
        (await h.send('POST', '/streams/s', { ...BATCH, 'es-expectedversion': '-1' }, one)).headers.get('location'),
      ).toBe(`${ORIGIN}/streams/s/0`);
    expect(h.store.log).toHaveLength(1);
  });

  test('a version conflict names the version in both families', async () => {
    const reply = await harness().send('POST', '/streams/s', { ...BATCH, 'kurrent-expectedversion': '7' }, one);
    expect(reply).toMatchObject({ status: 400, reason: 'Wrong expected EventNumber' });
    expect([reply.headers.get('es-currentversion'), reply.headers.get('kurrent-currentversion')]).toEqual(['-1', '-1']);
    expect(reply.json()).toMatchObject({ code: 'wrong_expected_version', title: 'Wrong expected EventNumber' });
  });

  test('a deleted stream is 410, $all can not be written', async () => {
    const h = harness();
    await h.fill('s', {});
    await h.send('DELETE', '/streams/s', { 'es-harddelete': 'true' });
    expect(await h.send('POST', '/streams/s', BATCH, one)).toMatchObject({ status: 410, reason: 'Stream deleted' });
    expect(await h.send('POST', '/streams/$all', BATCH, one)).toMatchObject({ status: 403 });
    expect(await h.send('POST', '/streams/%24all', BATCH, one)).toMatchObject({ status: 403 });
    expect(await h.send('DELETE', '/streams/$all')).toMatchObject({ status: 403 });
  });

  test.each<[ErrorCode, number, string, string | null]>([
    ['too_busy', 503, 'Server Is Too Busy', '1'],
    ['writer_stopped', 503, 'Server Is Not Ready', null],
    ['store_closed', 503, 'Server Is Not Ready', '5'],
    ['disk_full', 507, 'Insufficient Storage', null],
    ['event_too_large', 413, 'Too large events received. Limit is 4mb', null],
    ['batch_too_large', 413, 'Content Too Large', null],
    ['invalid_stream_name', 400, 'Bad Request', null],
    ['log_corrupt', 500, 'Internal Server Error', null],
  ])('%s', async (code, status, reason, retryAfter) => {
    const h = harness();
    h.store.append = () => Promise.reject(new SkuaError(code, 'What happened.'));
    const reply = await h.send('POST', '/streams/s', BATCH, one);
    expect(reply).toMatchObject({ status, reason });
    expect(reply.headers.get('retry-after')).toBe(retryAfter);
    expect(reply.json().code).toBe(code);
    expect(reply.text.includes('What happened')).toBe(status !== 500);
  });

  test('an error that nobody foresaw is logged and not shown', async () => {
    const logged: unknown[] = [];
    const h = harness({
      log: { debug() {}, info() {}, warn() {}, error: (_, fields) => logged.push(fields?.['error']) },
    });
    h.store.append = () => Promise.reject(new TypeError('secret'));
    const reply = await h.send('POST', '/streams/s', BATCH, one);
    expect(reply.status).toBe(500);
    expect(reply.text).not.toContain('secret');
    expect(logged).toEqual([expect.any(TypeError)]);
  });
});

describe('the size of bodies', () => {
  test('a declared length over the limit is refused without reading', async () => {
    const h = harness({ options: { bodyBytesMax: 10 } });
    const body = new ReadableStream(
      {
        pull() {
          throw new Error('read');
        },
      },
      { highWaterMark: 0 },
    );
    const reply = await h.send('POST', '/streams/s', { ...SINGLE, 'content-length': '11' }, body);
    expect(reply).toMatchObject({ status: 413 });
    expect(reply.json().code).toBe('body_too_large');
  });

  test('an undeclared one is counted, and reading ends at the limit', async () => {
    const h = harness({ options: { bodyBytesMax: 10 } });
    let pulled = 0;
    const body = new ReadableStream(
      {
        pull(controller) {
          controller.enqueue(new Uint8Array(4));
          pulled++;
        },
      },
      { highWaterMark: 0 },
    );
    expect((await h.send('POST', '/streams/s', SINGLE, body)).status).toBe(413);
    expect(pulled).toBeLessThan(6);
    const fits = new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array(6));
        controller.enqueue(new Uint8Array(4));
        controller.close();
      },
    });
    expect((await h.send('POST', '/streams/s', SINGLE, fits)).status).toBe(201);
    expect(h.store.log[0]!.data).toHaveLength(10);
  });

  test("the adapter's own way of reading is used", async () => {
    const h = harness({ readBody: (_request, max) => Promise.resolve(new TextEncoder().encode(String(max))) });
    await h.send('POST', '/streams/s', SINGLE, 'ignored');
    expect(storedData(h)).toBe('30000000');
  });
});
