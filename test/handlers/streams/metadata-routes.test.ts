import { beforeEach, describe, expect, test } from 'vitest';
import { ATOM, EVENTS, harness, ORIGIN } from '../harness.ts';

const JSON_TYPE = 'application/json';
let h = harness();
const set = (stream: string, body: string, headers: Record<string, string> = {}) =>
  h.send('POST', `/streams/${stream}/metadata`, { 'content-type': JSON_TYPE, 'es-eventid': h.id(), ...headers }, body);

beforeEach(async () => {
  h = harness();
  await h.fill('s', {}, {}, {});
});

describe('writing', () => {
  test('goes to the metadata stream', async () => {
    const reply = await set('s', '{"$maxCount":2}', { 'es-eventtype': '$metadata' });
    expect(reply.status).toBe(201);
    expect(reply.headers.get('location')).toBe(`${ORIGIN}/streams/%24%24s/0`);
    expect(h.store.log.at(-1)).toMatchObject({ stream: '$$s', type: '$metadata', isJson: true });
    expect((await h.get('/streams/s', ATOM)).json().entries).toHaveLength(2);
  });

  test('the expected version is that of the metadata stream', async () => {
    expect((await set('s', '{}', { 'es-expectedversion': '-1' })).status).toBe(201);
    expect((await set('s', '{}', { 'es-expectedversion': '2' })).headers.get('es-currentversion')).toBe('0');
  });

  test('a batch is taken as it is', async () => {
    expect(
      (
        await h.send(
          'POST',
          '/streams/s/metadata',
          { 'content-type': EVENTS },
          JSON.stringify([{ eventId: h.id(), eventType: 'x', data: { $tb: 1 } }]),
        )
      ).status,
    ).toBe(201);
    expect(h.store.log.at(-1)).toMatchObject({ stream: '$$s', type: 'x' });
  });

  test.each<[Record<string, string>, number, string]>([
    [{ 'es-eventid': '' }, 400, "Empty eventId provided. (Parameter 'eventId')"],
    [{ 'es-eventtype': 'other' }, 400, 'Bad Request. You should not include an event type for metadata.'],
  ])('%j is refused', async (headers, status, detail) => {
    const reply = await set('s', '{}', headers);
    expect([reply.status, reply.json().detail]).toEqual([status, detail]);
  });

  test('without an id the answer says which header is missing', async () => {
    expect((await set('s', '{}', { 'es-eventid': '' })).json().hint).toMatch('UUID in the header ES-EventId');
  });

  test('metadata streams have none', async () => {
    expect((await set('%24%24s', '{}')).status).toBe(403);
    expect((await h.get('/streams/%24%24s/metadata')).status).toBe(403);
    expect((await h.get('/streams/$$s/metadata/0/forward/2')).status).toBe(403);
  });

  test('of $all', async () => {
    expect((await set('$all', '{"$acl":{"$r":"ops"}}')).headers.get('location')).toBe(
      `${ORIGIN}/streams/%24%24%24all/0`,
    );
    expect((await h.get('/streams/%24all/metadata', JSON_TYPE)).json()).toEqual({ $acl: { $r: 'ops' } });
  });
});

describe('reading', () => {
  test('the latest, in every representation', async () => {
    await set('s', '{"mine":1}');
    await set('s', '{"mine":2}');
    const reply = await h.get('/streams/s/metadata', JSON_TYPE);
    expect([reply.text, reply.headers.get('etag'), reply.headers.get('cache-control')]).toEqual([
      '{\n  "mine": 2\n}',
      '"1;-166502420"',
      'max-age=0, no-cache, must-revalidate, private',
    ]);
    expect((await h.get('/streams/s/metadata', ATOM)).json()).toMatchObject({
      title: '1@$$s',
      summary: '$metadata',
      content: { data: { mine: 2 } },
    });
    expect((await h.get('/streams/s/metadata/1')).headers.get('cache-control')).toBe('max-age=60, private');
    expect((await h.get('/streams/s/metadata/head/backward/5', ATOM)).json()).toMatchObject({
      title: "Event stream '$$s'",
      streamId: '$$s',
    });
    expect((await h.get('/streams/s/metadata/1/5', ATOM)).status).toBe(200);
    expect((await h.get('/streams/s/metadata/0/forward/5', ATOM)).json().entries).toHaveLength(1);
  });

  test('none: {} where the stream exists, 404 where not, 410 where deleted', async () => {
    const none = await h.get('/streams/s/metadata', JSON_TYPE);
    expect([none.status, none.text, none.headers.get('etag'), none.headers.get('content-type')]).toEqual([
      200,
      '{}',
      null,
      'application/json; charset=utf-8',
    ]);
    expect((await h.get('/streams/s/metadata/7')).text).toBe('{}');
    expect((await h.get('/streams/never/metadata')).status).toBe(404);
    await h.send('DELETE', '/streams/s', { 'es-harddelete': 'true' });
    expect((await h.get('/streams/s/metadata')).status).toBe(410);
    expect((await set('s', '{}')).status).toBe(410);
  });

  test('after a soft delete, exactly', async () => {
    await h.send('DELETE', '/streams/s');
    expect((await h.get('/streams/s/metadata', JSON_TYPE)).text).toBe('{\n  "$tb": 9223372036854775807\n}');
  });
});
