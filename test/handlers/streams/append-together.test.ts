import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import type { LineDocument } from '../../../handlers/documents/streams.ts';
import type { AppendedDocument } from '../../../handlers/documents/together.ts';
import { openIndexed, set } from '../../attributes/world.ts';
import { harness } from '../harness.ts';
import { AS, secured } from '../secured.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const LINES = { accept: 'application/x-ndjson' };
const id = (n: number) => `30000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

async function world() {
  const open = await openIndexed({ storage: new MemoryStorage(), seed: 1 });
  await set(open.store, { tags: true });
  await open.attributes!.idle();
  const h = harness({ store: open.store });
  const post = (body: unknown) =>
    h.send('POST', '/streams', JSON_TYPE, typeof body === 'string' ? body : JSON.stringify(body));
  const lines = async (path: string, headers: Record<string, string> = LINES) =>
    (await h.send('GET', path, headers)).text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as LineDocument);
  return { open, h, post, lines };
}

describe('appends of programs', () => {
  it('keep any JSON value as it was written, bytes as bytes, and nothing as nothing', async () => {
    const { open, post, lines } = await world();
    const written = await post(
      `{"stream":"s","expected":"none","events":[
        {"type":"A","id":"${id(1)}","data": {"big":12345678901234567890, "one": 1.0 ,"2":0,"1":0},"metadata":[true]},
        {"type":"B","data":"text"},{"type":"C","data":null},{"type":"D"},
        {"type":"E","dataBase64":"AP8=","metadataBase64":"/g=="}]}`,
    );
    expect([written.status, written.json()]).toMatchObject([
      200,
      { streams: [{ stream: 's', version: 4 }], isRepeat: false },
    ]);
    expect(
      (await lines('/streams/s')).map(({ data, metaData, isJson, dataBase64, metaDataBase64 }) => [
        data,
        metaData,
        isJson,
        dataBase64,
        metaDataBase64,
      ]),
    ).toEqual([
      ['{"big":12345678901234567890, "one": 1.0 ,"2":0,"1":0}', '[true]', true, undefined, undefined],
      ['"text"', null, true, undefined, undefined],
      ['null', null, true, undefined, undefined],
      [null, null, false, undefined, undefined],
      [null, '\ufffd', false, 'AP8=', '/g=='],
    ]);
    await open.close();
  });

  it('hold what is expected of one stream, and say what is there; a repeat is known', async () => {
    const { open, post } = await world();
    const body = { stream: 's', expected: 'none', events: [{ type: 'A', id: id(1) }] };
    const first = (await post(body)).json() as AppendedDocument;
    expect((await post(body)).json()).toEqual({ ...first, isRepeat: true });
    const refused = await post({ ...body, expected: 7, events: [{ type: 'A', id: id(2) }] });
    expect([refused.status, refused.json()]).toMatchObject([
      400,
      { code: 'wrong_expected_version', data: { stream: 's', expected: 7, actual: 0 } },
    ]);
    expect((await post({ ...body, expected: 0, events: [{ type: 'A' }] })).json().streams[0].version).toBe(1);
    await open.close();
  });

  it('to several streams are all or nothing, and name all streams that are not as expected', async () => {
    const { open, post, lines } = await world();
    const appends = ['a', 'b'].map((stream, i) => ({ stream, expected: 'none', events: [{ type: 'T', id: id(i) }] }));
    const first = (await post({ appends })).json() as AppendedDocument;
    expect(first.streams.map(({ stream, version }) => [stream, version])).toEqual([
      ['a', 0],
      ['b', 0],
    ]);
    expect((await post({ appends })).json()).toEqual({ ...first, isRepeat: true });
    const refused = await post({
      appends: [
        { stream: 'a', expected: 5, events: [{ type: 'T' }] },
        { stream: 'b', expected: 'none', events: [{ type: 'T' }] },
        { stream: 'c', events: [{ type: 'T' }] },
      ],
    });
    expect([refused.status, refused.json()]).toMatchObject([
      409,
      {
        code: 'consistency_violation',
        data: {
          violations: [
            { stream: 'a', expected: 5, actual: 0 },
            { stream: 'b', expected: -1, actual: 0 },
          ],
        },
      },
    ]);
    expect(await lines('/streams/$all?exclude-system-events=true')).toHaveLength(2);
    await open.close();
  });

  it('on a condition are refused with the event that matches', async () => {
    const { open, post } = await world();
    const appends = [{ stream: 'seats', events: [{ type: 'Taken', metadata: { $tags: ['seat:1'] } }] }];
    const condition = { failIfEventsMatch: { items: [{ types: ['Taken'], tags: ['seat:1'] }] } };
    const { position } = (await post({ appends, condition })).json() as AppendedDocument;
    const refused = await post({ appends, condition });
    expect([refused.status, refused.json()]).toMatchObject([
      409,
      { code: 'condition_failed', data: { stream: 'seats', number: 0, position } },
    ]);
    expect((await post({ appends, condition: { ...condition, after: position } })).status).toBe(200);
    await open.close();
  });

  it.each([
    '[]',
    '{}',
    '{"stream":"s"}',
    '{"stream":"s","events":[]}',
    '{"stream":"","events":[{"type":"T"}]}',
    '{"stream":"s","events":{"type":"T"}}',
    '{"stream":"s","events":[7]}',
    '{"stream":"s","events":[{"type":""}]}',
    '{"stream":"s","events":[{"type":"T","id":"7"}]}',
    '{"stream":"s","events":[{"type":"T","data":1,"dataBase64":"AA=="}]}',
    '{"stream":"s","events":[{"type":"T","dataBase64":"*"}]}',
    ...['null', 'true', '1234', '["AA=="]'].flatMap((value) =>
      ['dataBase64', 'metadataBase64'].map((name) => `{"stream":"s","events":[{"type":"T","${name}":${value}}]}`),
    ),
    '{"stream":"s","events":[{"type":"T","date":1}]}',
    '{"stream":"s","expected":-2,"events":[{"type":"T"}]}',
    '{"stream":"s","expected":"some","events":[{"type":"T"}]}',
    '{"stream":"s","events":[{"type":"T"}],"condition":{"failIfEventsMatch":{}}}',
    '{"stream":"s","events":[{"type":"T"}],"appends":[]}',
    '{"appends":[]}',
    '{"appends":[{"stream":"$$s","events":[{"type":"$metadata","data":{}}]}]}',
    '{"appends":[{"stream":"s","events":[{"type":"T"}]}],"condition":7}',
    '{"stream":"s","events":[{"type":"T"}]',
  ])('refuse %s', async (body) => {
    const { open, post } = await world();
    expect([body, (await post(body)).status]).toEqual([body, 400]);
    await open.close();
  });

  it.each(['/streams', '/dcb/append'])('are refused beyond 8 MiB: %s', async (path) => {
    const h = harness();
    const send = async (length: number) => (await h.send('POST', path, JSON_TYPE, ' '.repeat(length))).json().code;
    expect([await send(8_388_608), await send(8_388_609)]).toEqual(['bad_json', 'body_too_large']);
  });

  it('go by the lists of all streams that they name, a condition by that of $all, and nothing is appended to $all', async () => {
    const { open } = await world();
    const h = secured({ store: open.store as never });
    const post = async (caller: keyof typeof AS, body: unknown) =>
      (await h.send('POST', '/streams', { ...JSON_TYPE, ...AS[caller] }, JSON.stringify(body))).status;
    const one = (stream: string) => ({ stream, events: [{ type: 'T' }] });
    expect(await post('plain', { appends: [one('a'), one('b')] })).toBe(200);
    expect(await post('plain', { appends: [one('a'), one('$b')] })).toBe(403);
    expect(await post('plain', one('$b'))).toBe(403);
    expect(await post('admin', one('$all'))).toBe(400);
    const condition = { failIfEventsMatch: { items: [] } };
    expect(await post('plain', { appends: [one('a')], condition })).toBe(403);
    expect(await post('anonymous', { appends: [one('a')] })).toBe(401);
    await open.close();
  });
});

describe('what programs read', () => {
  it('goes backward, from any place, also by a filter and a query at once', async () => {
    const { open, post, lines } = await world();
    for (let i = 0; i < 5; i++) await post({ stream: `s-${i % 2}`, events: [{ type: `T${i}`, data: i }] });
    const typesOf = async (path: string) => (await lines(path)).map(({ eventType }) => eventType);
    expect(await typesOf('/streams/s-0?direction=backward')).toEqual(['T4', 'T2', 'T0']);
    expect(await typesOf('/streams/s-0?direction=backward&from=1&limit=1')).toEqual(['T2']);
    expect(await typesOf('/streams/s-0?from=end')).toEqual(['T4']);
    const all = await lines('/streams/$all?exclude-system-events=true');
    expect(all.map(({ eventType }) => eventType)).toEqual(['T0', 'T1', 'T2', 'T3', 'T4']);
    expect(
      await typesOf(`/streams/$all?exclude-system-events=true&direction=backward&from=${all[2]!.position}`),
    ).toEqual(['T1', 'T0']);
    expect(await typesOf(`/streams/$all?exclude-system-events=true&limit=2&after=${all[0]!.position}`)).toEqual([
      'T1',
      'T2',
    ]);
    expect(await typesOf(`/streams/$all?eventType=T3&eventType=T4&limit=1&after=${all[0]!.position}`)).toEqual(['T3']);
    expect(await typesOf('/streams/$all?direction=backward&limit=2')).toEqual(['T4', 'T3']);
    expect(
      await typesOf('/streams/$all/filtered?context=streamid&type=prefix&data=s-0&eventType=T2&eventType=T3'),
    ).toEqual(['T2']);
    await open.close();
  });

  it('says of an event that was reached by a link where it lies itself', async () => {
    const { open, post, lines } = await world();
    const { position } = (await post({ stream: 's', events: [{ type: 'T', data: 1 }] })).json() as AppendedDocument;
    const link = (
      await post({
        stream: 'links',
        events: [{ type: '$>', dataBase64: Buffer.from('0@s').toString('base64') }],
      })
    ).json() as AppendedDocument;
    const [line] = await lines('/streams/links', { ...LINES, 'es-resolvelinktos': 'true' });
    expect(line).toMatchObject({
      streamId: 's',
      positionStreamId: 'links',
      position: `${link.position}/${link.position}`,
      eventPosition: `${position}/${position}`,
    });
    await open.close();
  });

  it('is, of a stream, its state and its last version', async () => {
    const { open, h, post } = await world();
    const info = async () => (await h.get('/streams/s/info', 'application/json')).json();
    expect(await info()).toEqual({ stream: 's', state: 'none', version: null });
    await post({ stream: 's', events: [{ type: 'T' }, { type: 'T' }] });
    expect(await info()).toEqual({ stream: 's', state: 'live', version: 1 });
    const deleted = await h.send('DELETE', '/streams/s', {});
    expect([deleted.status, Number(deleted.headers.get('es-position'))]).toEqual([204, expect.any(Number)]);
    expect(await info()).toEqual({ stream: 's', state: 'deleted', version: 1 });
    await h.send('DELETE', '/streams/s', { 'es-harddelete': 'true' });
    expect(await info()).toEqual({ stream: 's', state: 'tombstoned', version: null });
    await open.close();
  });
});
