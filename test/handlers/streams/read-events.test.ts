import { beforeEach, describe, expect, test } from 'vitest';
import { event, setMetadata, setUp } from '../../streams/setup.ts';
import { VARY } from '../../../handlers/http/reply.ts';
import { ATOM, EVENTS, harness, linksOf, numbered, ORIGIN } from '../harness.ts';

const JSON_TYPE = 'application/json';
let h = harness();

beforeEach(async () => {
  h = harness();
  await h.fill('parcels', ...numbered(25));
});

describe('which page has which links', () => {
  const s = '/streams/parcels';
  const always = { self: s, metadata: `${s}/metadata` };
  test.each<[string, boolean, string[], Record<string, string>]>([
    [
      '',
      true,
      ['24@parcels', '5@parcels'],
      {
        first: `${s}/head/backward/20`,
        last: `${s}/0/forward/20`,
        next: `${s}/4/backward/20`,
        previous: `${s}/25/forward/20`,
      },
    ],
    [
      '/head/backward/30',
      true,
      ['24@parcels', '0@parcels'],
      { first: `${s}/head/backward/30`, previous: `${s}/25/forward/30` },
    ],
    [
      '/head/5',
      true,
      ['24@parcels', '20@parcels'],
      {
        first: `${s}/head/backward/5`,
        last: `${s}/0/forward/5`,
        next: `${s}/19/backward/5`,
        previous: `${s}/25/forward/5`,
      },
    ],
    [
      '/4/backward/20',
      false,
      ['4@parcels', '0@parcels'],
      { first: `${s}/head/backward/20`, previous: `${s}/5/forward/20` },
    ],
    ['/4/20', false, ['4@parcels', '0@parcels'], { first: `${s}/head/backward/20`, previous: `${s}/5/forward/20` }],
    [
      '/0/forward/20',
      false,
      ['19@parcels', '0@parcels'],
      { first: `${s}/head/backward/20`, previous: `${s}/20/forward/20` },
    ],
    [
      '/20/forward/20',
      true,
      ['24@parcels', '20@parcels'],
      {
        first: `${s}/head/backward/20`,
        last: `${s}/0/forward/20`,
        next: `${s}/19/backward/20`,
        previous: `${s}/25/forward/20`,
      },
    ],
    [
      '/25/forward/20',
      true,
      [],
      { first: `${s}/head/backward/20`, last: `${s}/0/forward/20`, next: `${s}/24/backward/20` },
    ],
  ])('%s', async (path, isHead, ends, links) => {
    const feed = (await h.get(s + path, ATOM)).json();
    expect(linksOf(feed)).toEqual({ ...always, ...links });
    expect(feed.headOfStream).toBe(isHead);
    expect([feed.entries[0]?.title, feed.entries.at(-1)?.title].filter(Boolean)).toEqual(ends);
    expect(feed.selfUrl).toBe(path.includes('forward') ? null : ORIGIN + s);
    expect(feed.eTag).toBe(path === '' || path.startsWith('/head') ? '24;1747451192' : null);
  });

  test('a page of hidden events is empty and leads on', async () => {
    await h.send(
      'POST',
      '/streams/parcels/metadata',
      { 'content-type': JSON_TYPE, 'es-eventid': h.id() },
      '{"$tb":20}',
    );
    const feed = (await h.get(`${s}/0/forward/5`, ATOM)).json();
    expect(feed.entries).toEqual([]);
    expect(feed.updated).toBe('0001-01-01T00:00:00Z');
    expect(linksOf(feed)['previous']).toBe(`${s}/5/forward/5`);
  });
});

describe('caching', () => {
  const again = 'max-age=0, no-cache, must-revalidate, private';
  const briefly = 'max-age=60, private';
  test.each([
    ['', again, '"24;1747451192"'],
    ['/head/backward/5', again, '"24;1747451192"'],
    ['/24/backward/5', briefly, null],
    ['/25/backward/5', again, '"24;1747451192"'],
    ['/0/forward/25', briefly, null],
    ['/0/forward/26', again, '"24;1747451192"'],
    ['/30/forward/1', again, '"24;1747451192"'],
    ['/3', briefly, null],
    ['/head', again, '"24;1747451192"'],
  ])('%s', async (path, cacheControl, etag) => {
    const reply = await h.get(`/streams/parcels${path}`, ATOM);
    expect([reply.headers.get('cache-control'), reply.headers.get('etag'), reply.headers.get('vary')]).toEqual([
      cacheControl,
      etag,
      VARY,
    ]);
  });

  test('$cacheControl and the option that switches caching off', async () => {
    await h.send(
      'POST',
      '/streams/parcels/metadata',
      { 'content-type': JSON_TYPE, 'es-eventid': h.id() },
      '{"$cacheControl":7}',
    );
    for (const path of ['', '/head', '/30/forward/1'])
      expect((await h.get(`/streams/parcels${path}`)).headers.get('cache-control')).toBe('max-age=7, private');
    const off = harness({ options: { disableHttpCaching: true } });
    await off.fill('parcels', {});
    expect((await off.get('/streams/parcels/0')).headers.get('cache-control')).toBe(again);
  });

  test.each<[string, string, string, number]>([
    ['', ATOM, '"24;1747451192"', 304],
    ['', ATOM, '24;1747451192', 304],
    ['/20/forward/20', ATOM, '"24;1747451192"', 304],
    ['', ATOM, 'W/"24;1747451192"', 304],
    ['', ATOM, '*', 304],
    ['', ATOM, '"x", W/"y" ,"24;1747451192"', 304],
    ['', ATOM, 'x,24;1747451192', 304],
    ['', ATOM, 'W/"24;1747451192-gzip", "23;1747451192"', 304],
    ['', ATOM, '"23;1747451192"', 200],
    ['', ATOM, '"23;1747451192", W/"x"', 200],
    ['', ATOM, '"x,24;1747451192,y"', 200],
    ['', ATOM, '"a*", "*"', 200],
    ['', ATOM, '', 200],
    ['', ATOM, '""', 200],
    ['', JSON_TYPE, '"24;1747451192"', 200],
    ['', JSON_TYPE, '"24;-166502420"', 304],
    ['/head', ATOM, '"24;1747451192"', 200],
    ['/0/forward/5', ATOM, '"24;1747451192"', 200],
  ])('%s as %s with If-None-Match %s is %i', async (path, accept, tag, status) => {
    const reply = await h.get(`/streams/parcels${path}`, accept, { 'if-none-match': tag });
    expect(reply.status).toBe(status);
    if (status === 304)
      expect([
        reply.text,
        reply.headers.get('etag'),
        reply.headers.get('vary'),
        reply.headers.get('content-type'),
      ]).toEqual(['', null, null, 'text/plain; charset=utf-8']);
  });
});

describe('errors', () => {
  test.each<[string, number, string]>([
    ['/streams/parcels/abc/forward/2', 400, "'abc' is not valid event number"],
    ['/streams/parcels/head/forward/2', 400, "'head' is not valid event number"],
    ['/streams/parcels/-1', 400, "'-1' is not valid event number"],
    ['/streams/parcels/9223372036854775808', 400, "'9223372036854775808' is not valid event number"],
    ['/streams/parcels/0/forward/0', 400, "'0' is not valid count. Should be positive integer"],
    ['/streams/parcels/0/forward/x', 400, "'x' is not valid count. Should be positive integer"],
    ['/streams/parcels/0/forward/4097', 400, 'Read size too big, should be less than 4096 items'],
  ])('%s', async (path, status, detail) => {
    const reply = await h.get(path, ATOM);
    expect([reply.status, reply.json().detail]).toEqual([status, detail]);
  });

  test.each(['GET /streams/orders/new', 'GET /streams/a/b/c', 'POST /streams/a/b', 'DELETE /streams/a/b'])(
    '%s: the slash may belong to the name',
    async (request) => {
      const [method, path] = request.split(' ') as [string, string];
      const { status, json } = await h.send(method, path, {}, method === 'POST' ? '{}' : undefined);
      expect([status, json().hint]).toEqual([
        method === 'GET' ? 400 : 405,
        'A slash in the name of a stream is written %2F.',
      ]);
    },
  );

  test('absent, soft-deleted and hard-deleted', async () => {
    expect(await h.get('/streams/never', ATOM)).toMatchObject({ status: 404, reason: 'Not Found' });
    expect(await h.get('/streams/parcels/999')).toMatchObject({ status: 404 });
    expect(await h.get('/streams/parcels/9007199254740993')).toMatchObject({ status: 404 });
    expect(await h.send('DELETE', '/streams/parcels')).toMatchObject({
      status: 204,
      reason: 'Stream deleted',
      text: '',
    });
    expect(await h.get('/streams/parcels', ATOM)).toMatchObject({ status: 404 });
    await h.fill('parcels', {});
    expect((await h.get('/streams/parcels', ATOM)).json().entries.map((e: { title: string }) => e.title)).toEqual([
      '25@parcels',
    ]);
    expect(await h.send('DELETE', '/streams/parcels', { 'es-expectedversion': '3' })).toMatchObject({
      status: 400,
      reason: 'Wrong expected EventNumber',
    });
    expect(
      await h.send('DELETE', '/streams/parcels', { 'kurrent-harddelete': 'TRUE', 'es-expectedversion': '25' }),
    ).toMatchObject({ status: 204 });
    expect(await h.get('/streams/parcels', ATOM)).toMatchObject({ status: 410, reason: 'Deleted' });
    expect(await h.send('DELETE', '/streams/parcels')).toMatchObject({ status: 410, reason: 'Stream deleted' });
    expect(await h.send('DELETE', '/streams/x', { 'es-harddelete': '1' })).toMatchObject({ status: 400 });
    expect(await h.send('DELETE', '/streams/%24%24parcels')).toMatchObject({ status: 403 });
  });
});

describe('negotiation', () => {
  test.each<[string | undefined, string, number | string]>([
    [undefined, '', 'application/json'],
    ['*/*', '', 'application/json'],
    ['application/*', '', 'application/json'],
    [ATOM, '', ATOM],
    ['application/vnd.kurrent.atom+json', '', 'application/vnd.kurrent.atom+json'],
    ['text/html,application/xml;q=0.9,*/*;q=0.8', '', 'application/json'],
    [`application/json;q=0.5, ${ATOM};q=0.9`, '', ATOM],
    [`${ATOM};q=0, application/json`, '', 'application/json'],
    ['APPLICATION/JSON', '', 'application/json'],
    ['application/atom+xml', '', 406],
    ['text/xml', '', 406],
    ['text/html', '', 406],
    ['application/json;q=0', '', 406],
    ['application/vnd.eventstore.event+json', '', 406],
    [ATOM, '?format=json', 'application/json'],
    ['application/atom+xml', '?format=atomxj', ATOM],
    [undefined, '?format=xml', 406],
    [undefined, '?format=atom', 406],
    [undefined, '?format=nope', 400],
    ['application/x-ndjson', '', 'application/x-ndjson'],
  ])('Accept %s %s: %s', async (accept, query, expected) => {
    const reply = await h.get(`/streams/parcels${query}`, accept);
    if (typeof expected === 'string')
      expect([reply.status, reply.headers.get('content-type')]).toEqual([200, `${expected}; charset=utf-8`]);
    else expect(reply.status).toBe(expected);
  });

  test('406 has its own reason; the author follows the family', async () => {
    expect((await h.get('/streams/parcels', 'text/xml')).reason).toBe(
      'Requested URI is not available in requested format',
    );
    expect((await h.get('/streams/parcels', 'application/vnd.kurrent.atom+json')).json()).toMatchObject({
      author: { name: 'Kurrent' },
      entries: [{ author: { name: 'Kurrent' } }, ...numbered(19).map(() => ({}))],
    });
  });

  test('the description only for those who ask for it', async () => {
    const type = 'application/vnd.eventstore.streamdesc+json';
    const reply = await h.get('/streams/never', type);
    expect([reply.status, reply.reason, reply.headers.get('content-type')]).toEqual([
      200,
      'Description Document',
      `${type}; charset=utf-8`,
    ]);
    expect(reply.json()).toMatchObject({
      title: "Description document for 'never'",
      _links: { self: { href: '/streams/never', supportedContentTypes: [type] }, streamSubscription: null },
    });
  });

  test.each(['gzip', 'deflate'] as const)('%s when it is the only encoding, and among several', async (encoding) => {
    const plain = (await h.get('/streams/parcels', ATOM)).text;
    const response = await h.raw('GET', '/streams/parcels', { accept: ATOM, 'accept-encoding': encoding });
    expect(response.headers.get('content-encoding')).toBe(encoding);
    expect(await new Response(response.body!.pipeThrough(new DecompressionStream(encoding) as never)).text()).toBe(
      plain,
    );
    const several = await h.raw('GET', '/streams/parcels', {
      accept: ATOM,
      'accept-encoding': encoding === 'gzip' ? 'gzip, deflate, br, zstd' : 'deflate',
    });
    expect([several.headers.get('content-encoding'), several.headers.get('vary')]).toEqual([
      encoding,
      expect.stringContaining('Accept-Encoding'),
    ]);
  });
});

describe('a single event', () => {
  const id = '00000000-0000-4000-8000-0000000000aa';
  beforeEach(async () => {
    await h.send(
      'POST',
      '/streams/s',
      { 'content-type': EVENTS },
      JSON.stringify([{ eventId: id, eventType: 'made', data: { a: [1] }, metadata: { m: 1 } }]),
    );
    await h.send(
      'POST',
      '/streams/s',
      { 'content-type': 'application/octet-stream', 'es-eventtype': 'raw', 'es-eventid': h.id() },
      new Uint8Array([0, 255, 34]),
    );
    await h.send(
      'POST',
      '/streams/s',
      { 'content-type': JSON_TYPE, 'es-eventtype': 'broken', 'es-eventid': h.id() },
      '{nope',
    );
  });

  test.each<[string, string, string]>([
    ['0', JSON_TYPE, '{\n  "a": [\n    1\n  ]\n}'],
    ['1', JSON_TYPE, '"\\u0000\ufffd\\""'],
    ['2', JSON_TYPE, '"{nope"'],
    [
      '0',
      'application/vnd.eventstore.event+json',
      `{\n  "eventStreamId": "s",\n  "eventNumber": 0,\n  "eventType": "made",\n  "eventId": "${id}",\n  "data": {\n    "a": [\n      1\n    ]\n  },\n  "metadata": {\n    "m": 1\n  }\n}`,
    ],
  ])('%s as %s', async (number, accept, text) => {
    expect((await h.get(`/streams/s/${number}`, accept)).text).toBe(text);
  });

  test('as its bytes', async () => {
    const response = await h.raw('GET', '/streams/s/1', { accept: 'application/octet-stream' });
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(new Uint8Array([0, 255, 34]));
    expect((await h.get('/streams/s/9', 'application/octet-stream')).status).toBe(404);
  });

  test('as an entry, with content only for JSON', async () => {
    expect((await h.get('/streams/s/0', ATOM)).json()).toMatchObject({
      title: '0@s',
      summary: 'made',
      content: { data: { a: [1] }, metadata: { m: 1 } },
    });
    expect((await h.get('/streams/s/1', ATOM)).json().content).toBeNull();
    expect((await h.get('/streams/s/2', ATOM)).json().content).toMatchObject({ data: '{nope', metadata: '' });
  });

  test.each<[string, number, object]>([
    ['none', 0, { data: undefined, content: null }],
    ['content', 0, { content: { eventStreamId: 's', eventNumber: 0, data: { a: [1] }, metadata: { m: 1 } } }],
    [
      'Rich',
      0,
      { data: null, metaData: null, isJson: true, isMetaData: false, positionEventNumber: 0, positionStreamId: 's' },
    ],
    [
      'body',
      0,
      { data: '{\n  "a": [\n    1\n  ]\n}', metaData: '{\n  "m": 1\n}', linkMetaData: null, isMetaData: true },
    ],
    ['body', 1, { data: null, isJson: false }],
    ['body', 2, { data: '{nope' }],
    ['pretty', 2, { data: '{nope', isJson: true }],
    ['tryharder', 1, { data: '\u0000\ufffd"', isJson: false }],
  ])('embed=%s of event %i', async (level, number, entry) => {
    const feed = (await h.get(`/streams/s/${number}/backward/1?embed=${level}`, ATOM)).json();
    expect(feed.entries[0]).toMatchObject(JSON.parse(JSON.stringify(entry)));
  });

  test('embed=tryharder of empty data', async () => {
    await h.send('POST', '/streams/e', {
      'content-type': 'application/octet-stream',
      'es-eventtype': 'x',
      'es-eventid': h.id(),
    });
    expect((await h.get('/streams/e?embed=tryharder', ATOM)).json().entries[0]).toMatchObject({
      data: '',
      isJson: true,
    });
    expect((await h.get('/streams/e?embed=pretty', ATOM)).json().entries[0]).toMatchObject({
      data: null,
      isJson: false,
    });
  });
});

describe('links', () => {
  const link = (target: string) =>
    h.send(
      'POST',
      '/streams/links',
      { 'content-type': 'application/octet-stream', 'es-eventtype': '$>', 'es-eventid': h.id() },
      target,
    );
  beforeEach(async () => {
    await h.clock.advance(1000);
    await link('3@parcels');
    await link('0@gone with @ sign');
    await link('no link');
  });

  test('a resolved link shows its target with its own time and type', async () => {
    const feed = (await h.get('/streams/links/0/forward/1?embed=body', ATOM)).json();
    expect(feed.updated).toBe('2031-04-02T09:15:30Z');
    expect(feed.entries[0]).toMatchObject({
      title: '3@parcels',
      summary: '$>',
      updated: '2031-04-02T09:15:31Z',
      eventNumber: 3,
      streamId: 'parcels',
      positionEventNumber: 0,
      positionStreamId: 'links',
      linkMetaData: '',
      isLinkMetaData: false,
      id: `${ORIGIN}/streams/parcels/3`,
    });
    expect((await h.get('/streams/links/0', ATOM)).json()).toMatchObject({ title: '3@parcels', content: null });
    expect((await h.get('/streams/links/0', JSON_TYPE)).json()).toEqual({ n: 3 });
  });

  test('the header switches resolution off', async () => {
    const feed = (await h.get('/streams/links/0/forward/1?embed=body', ATOM, { 'es-resolvelinktos': 'False' })).json();
    expect(feed.entries[0]).toMatchObject({ title: '0@links', eventType: '$>', data: null, linkMetaData: null });
    expect((await h.get('/streams/links', ATOM, { 'es-resolvelinktos': '0' })).json().detail).toBe(
      'ES-ResolveLinkTos header in wrong format.',
    );
  });

  test('a link whose target is gone keeps its place and embeds nothing; one that is none is an event', async () => {
    const [noLink, gone] = (await h.get('/streams/links?embed=rich', ATOM)).json().entries;
    expect(gone).toMatchObject({
      title: '0@gone with @ sign',
      id: `${ORIGIN}/streams/gone%20with%20%40%20sign/0`,
      summary: '$>',
      content: null,
    });
    expect(gone).not.toHaveProperty('eventId');
    expect(noLink).toMatchObject({ title: '2@links', eventType: '$>' });
    expect((await h.get('/streams/links/1', JSON_TYPE)).status).toBe(404);
  });
});

describe('names and addresses', () => {
  test.each([
    ['a b', 'a%20b'],
    ['a/b', 'a%2Fb'],
    ["!*'()", '%21%2A%27%28%29'],
    ['ñ日🎉', '%C3%B1%E6%97%A5%F0%9F%8E%89'],
    ['-._~', '-._~'],
    ['$x', '%24x'],
    ['%', '%25'],
  ])('%s', async (name, escaped) => {
    expect((await h.fill(name, {})).headers.get('location')).toBe(`${ORIGIN}/streams/${escaped}/0`);
    const feed = (await h.get(`/streams/${encodeURIComponent(name)}`, ATOM)).json();
    expect(feed).toMatchObject({ id: `${ORIGIN}/streams/${escaped}`, streamId: name, title: `Event stream '${name}'` });
  });

  test.each<[Record<string, string>, string]>([
    [{ 'x-forwarded-proto': 'https', 'x-forwarded-host': 'events.example.test' }, 'https://events.example.test'],
    [{ 'x-forwarded-host': 'events.example.test:8443, inner' }, 'http://events.example.test:8443'],
    [{ 'x-forwarded-port': '9000' }, 'http://127.0.0.1:9000'],
    [{ 'x-forwarded-proto': 'https', 'x-forwarded-host': 'e.test', 'x-forwarded-port': '443' }, 'https://e.test'],
    [{ 'x-forwarded-host': 'e.test:1', 'x-forwarded-port': '2' }, 'http://e.test:1'],
    [{ 'x-forwarded-prefix': '/db/' }, `${ORIGIN}/db`],
    [{ 'x-forwarded-prefix': 'db' }, `${ORIGIN}/db`],
    [{ 'x-forwarded-prefix': `/${'a'.repeat(99)}` }, `${ORIGIN}/${'a'.repeat(99)}`],
    [{ 'x-forwarded-prefix': `/${'a'.repeat(100)}` }, ORIGIN],
    [{ 'x-forwarded-host': `${'a'.repeat(252)}:80` }, `http://${'a'.repeat(252)}:80`],
    [{ 'x-forwarded-host': `${'a'.repeat(253)}:80` }, ORIGIN],
    [{ 'x-forwarded-host': 'a"b', 'x-forwarded-proto': 'gopher', 'x-forwarded-prefix': '/<x>' }, ORIGIN],
  ])('forwarded %j', async (headers, base) => {
    expect((await h.get('/streams/parcels', ATOM, headers)).json().id).toBe(`${base}/streams/parcels`);
  });
});

test('links count in what a page may have: one of long addresses ends early, and leads on to all the rest', async () => {
  const MAX = 200_000;
  const { store, clock } = setUp();
  const h = harness({ store, clock, options: { readPageBytesMax: MAX } });
  const name = '日'.repeat(1_000);
  await h.fill(name, ...Array.from({ length: 60 }, () => ({})));
  await h.fill('links', ...Array.from({ length: 60 }, () => ({})));
  const headers = { 'x-forwarded-host': 'h'.repeat(255), 'x-forwarded-prefix': 'p'.repeat(100) };
  for (const [stream, count] of [
    [encodeURIComponent(name), 60],
    ['%24all', 120],
  ] as const) {
    let path: string | undefined = `/streams/${stream}/head/backward/200`;
    let entries = 0;
    for (let pages = 0; path !== undefined; pages++) {
      expect(pages).toBeLessThan(20);
      const reply: Awaited<ReturnType<typeof h.get>> = await h.get(path, ATOM, headers);
      // The links of the page itself are eight more.
      expect(reply.text.length).toBeLessThan(MAX + 100_000);
      const { entries: shown, links } = reply.json();
      entries += shown.length;
      path = links
        .find(({ relation }: { relation: string }) => relation === 'next')
        ?.uri.replace(/^http:\/\/h+\/p+/, '');
      if (pages === 0) expect(shown.length).toBeLessThan(count);
    }
    expect(entries).toBe(count);
  }
});

describe('expired events between live ones, where a clock was set back', () => {
  const HOUR = 3_600_000;

  async function withGap(limit: number) {
    const { store, clock } = setUp({ options: { expiredScanEventsMax: limit } });
    const now = clock.nowMs();
    const ages = [0, 0, ...Array.from({ length: 90 }, () => 3), 0];
    for (const age of ages) {
      clock.setNow(now - age * HOUR);
      await store.append('gap', -2, [event('{}', { isJson: true })]);
    }
    clock.setNow(now);
    await setMetadata(store, 'gap', '{"$maxAge":3600}');
    return harness({ store, clock });
  }

  test('a forward page of expired numbers begins with the first event that is alive, and links lead on behind it, each event once', async () => {
    const served = await withGap(16_384);
    const feed: any = (await served.get('/streams/gap/2/forward/7', ATOM)).json();
    expect(feed.entries.map((entry: { title: string }) => entry.title)).toEqual(['92@gap']);
    expect(linksOf(feed)['previous']).toMatch(/\/streams\/gap\/93\/forward\/7$/);
    expect(feed.headOfStream).toBe(true);
  });

  test.each([8, 16_384])('links lead on to all that is alive, with a scan of %i events a page', async (limit) => {
    for (const [start, relation] of [
      ['/streams/gap/head/backward/5', 'next'],
      ['/streams/gap/0/forward/5', 'previous'],
    ] as const) {
      const served = await withGap(limit);
      const titles: string[] = [];
      let pages = 0;
      for (let path: string | undefined = start; path !== undefined && pages < 100; pages++) {
        const feed: any = (await served.get(path, ATOM)).json();
        const found = feed.entries.map((entry: { title: string }) => entry.title);
        titles.push(...(relation === 'next' ? found : found.toReversed()));
        path = linksOf(feed)[relation];
      }
      expect(titles).toEqual(relation === 'next' ? ['92@gap', '1@gap', '0@gap'] : ['0@gap', '1@gap', '92@gap']);
      expect(pages).toBeLessThan(25);
    }
    const lines = await (await withGap(limit)).get('/streams/gap?from=0', 'application/x-ndjson');
    expect(
      lines.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).number ?? JSON.parse(line).eventNumber),
    ).toEqual([0, 1, 92]);
  });
});
