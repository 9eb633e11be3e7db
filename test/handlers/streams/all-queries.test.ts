import { describe, expect, test } from 'vitest';
import { encodeText } from '../../../core/base/text.ts';
import { ANY } from '../../../core/streams/api.ts';
import { event, setMetadata, setUp } from '../../streams/setup.ts';
import { ATOM, EVENTS, harness, linksOf, ORIGIN } from '../harness.ts';
import { AS, secured } from '../secured.ts';

const SSE = 'text/event-stream';
const LINES = 'application/x-ndjson';
const START = '0'.repeat(32);

/** A store with events of two categories, types, correlations and tags. */
async function filled(h = harness({ store: setUp().store })) {
  const { store } = h.context as unknown as { store: ReturnType<typeof setUp>['store'] };
  const write = (stream: string, type: string, correlation: string, ...tags: string[]) =>
    store.append(stream, ANY, [
      event('{}', {
        type,
        isJson: true,
        metadata: encodeText(JSON.stringify({ $correlationId: correlation, $tags: tags })),
      }),
    ]);
  await write('a-1', 'made', 'x', 'p', 'q');
  await write('b-1', 'made', 'y', 'p');
  await write('a-2', 'sold', 'x', 'q');
  await write('a', 'lost & found', 'y');
  await write('ab-1', 'sold', 'y', 'ü');
  return { ...h, store, write };
}

const items = (value: unknown): string => `items=${encodeURIComponent(JSON.stringify(value))}`;
const titles = (feed: { entries: { title: string }[] }): string[] => feed.entries.map(({ title }) => title);
const names = (text: string): string[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
    .map(({ eventNumber, streamId }) => `${eventNumber}@${streamId}`);

describe('events of all streams by what they are', () => {
  test('a backward page of lines says in its header where older events are', async () => {
    const { get } = await filled();
    const found: string[] = [];
    for (let path = '/streams/$all/head/backward/1?category=a&correlation=x'; path !== '';) {
      const page = await get(path, LINES);
      found.push(...names(page.text));
      path = new RegExp(`^<${ORIGIN}(.*)>; rel="next"$`).exec(page.headers.get('link') ?? '')?.[1] ?? '';
    }
    expect(found).toEqual(['0@a-2', '0@a-1']);
    const one = await get('/streams/a-1/head/backward/1', LINES);
    expect(one.headers.get('link')).toBeNull();
    const filtered = '/streams/$all/filtered/head/backward/1?context=StreamId&type=Prefix&data=a';
    expect((await get(filtered, LINES)).headers.get('link')).toBeNull();
  });

  test.each<[string, string[]]>([
    ['category=a', ['0@a-1', '0@a-2', '0@a']],
    ['eventType=sold', ['0@a-2', '0@ab-1']],
    ['eventType=sold&eventType=lost%20%26%20found', ['0@a-2', '0@a', '0@ab-1']],
    ['category=a&eventType=sold', ['0@a-2']],
    ['correlation=y', ['0@b-1', '0@a', '0@ab-1']],
    ['tag=p', ['0@a-1', '0@b-1']],
    ['tag=p&tag=q', ['0@a-1']],
    ['tag=%C3%BC', ['0@ab-1']],
    ['category=a&correlation=x&tag=q&limit=1', ['0@a-1']],
    ['category=none', []],
    [items([{ types: ['made'], tags: ['q'] }, { types: ['lost & found'] }]), ['0@a-1', '0@a']],
    [items([{ tags: ['p'] }]), ['0@a-1', '0@b-1']],
  ])('%s', async (query, expected) => {
    const { get } = await filled();
    const lines = await get(`/streams/$all?${query}`, LINES);
    expect([lines.status, names(lines.text)]).toEqual([200, expected]);
    if (query.includes('limit')) return;
    expect(titles((await get(`/streams/$all?${query}`, ATOM)).json())).toEqual(expected.toReversed());
    expect(names((await get(`/streams/$all/${START}/forward/9?${query}`, LINES)).text)).toEqual(expected);
    expect(names((await get(`/streams/$all/head/backward/9?${query}`, LINES)).text)).toEqual(expected.toReversed());
  });

  test.each([
    `${items([{ tags: ['p'] }])}&category=a`,
    'items=p',
    items({}),
    items([[]]),
    items([{ tags: [''] }]),
    'category=',
    'category=a-b',
    'category=a&category=b',
    'correlation=x&correlation=y',
    'correlation=',
    'tag=',
    `tag=${'x'.repeat(257)}`,
    Array.from({ length: 65 }, (_, i) => `eventType=${i}`).join('&'),
  ])('%s is refused', async (query) => {
    const { get } = await filled();
    for (const accept of [ATOM, LINES, SSE])
      expect((await get(`/streams/$all?${query}`, accept)).status, accept).toBe(400);
  });

  test('links of a page keep the query, and lead to every event once, both ways', async () => {
    const { get } = await filled();
    const seen: string[] = [];
    const query = 'category=a&eventType=made&eventType=sold&eventType=lost+%26+found';
    let path: string | undefined = `/streams/%24all/head/backward/1?${query}`;
    let oldest = '';
    for (let page = 0; path !== undefined; page++) {
      expect(page).toBeLessThan(9);
      const reply = await get(path, ATOM);
      const feed = reply.json();
      expect(feed.links.map(({ uri }: { uri: string }) => uri.split('?')[1])).toEqual(
        feed.links.map(({ relation }: { relation: string }) => (relation === 'metadata' ? undefined : query)),
      );
      expect(feed.id).toBe(`${ORIGIN}/streams/%24all?${query}`);
      seen.push(...titles(feed));
      oldest = path;
      path = linksOf(feed)['next'];
    }
    expect(seen).toEqual(['0@a', '0@a-2', '0@a-1']);
    const back: string[] = [];
    for (path = oldest; ;) {
      const feed = (await get(path!, ATOM)).json();
      back.push(...titles(feed).toReversed());
      path = linksOf(feed)['previous'];
      if (path === undefined || feed.entries.length === 0) break;
    }
    expect(back).toEqual(seen.toReversed());
  });

  test('what retention hides is hidden, and an ETag knows of it', async () => {
    const s = setUp();
    const { get, write } = await filled(harness({ store: s.store, clock: s.clock }));
    await write('a-1', 'made', 'z');
    await setMetadata(s.store, 'a-1', '{"$maxAge":10}');
    const path = '/streams/$all?category=a';
    const first = await get(path, ATOM);
    expect(titles(first.json())).toEqual(['1@a-1', '0@a', '0@a-2', '0@a-1']);
    const etag = first.headers.get('etag')!;
    expect((await get(path, ATOM, { 'if-none-match': etag })).status).toBe(304);
    await s.clock.advance(11_000);
    const later = await get(path, ATOM, { 'if-none-match': etag });
    expect([later.status, titles(later.json())]).toEqual([200, ['0@a', '0@a-2']]);
    expect(titles((await get('/streams/$all', ATOM)).json())).toContain('0@a-1');
  });

  test('a long poll waits for what is asked for', async () => {
    const { get, write, context } = await filled();
    const { end } = context.store;
    const hex = end.toString(16).padStart(16, '0');
    const held = get(`/streams/$all/${hex}${hex}/forward/9?tag=new`, ATOM, { 'es-longpoll': '5' });
    await write('b-1', 'made', 'x', 'old');
    await write('b-1', 'made', 'x', 'new');
    expect(titles((await held).json())).toEqual(['2@b-1']);
  });

  test('appends with more tags than there may be are refused', async () => {
    const { send, id } = await filled();
    const post = (tags: string[]) =>
      send(
        'POST',
        '/streams/a-1',
        { 'content-type': EVENTS },
        JSON.stringify([{ eventId: id(), eventType: 'made', data: {}, metadata: { $tags: tags } }]),
      );
    expect((await post(['x'.repeat(257)])).status).toBe(400);
    expect((await post(Array.from({ length: 65 }, () => 'x'))).status).toBe(400);
    expect((await post(['x'.repeat(256)])).status).toBe(201);
  });
});

describe('who may read them', () => {
  test('each by the list of its own stream; $all itself by that of $all', async () => {
    const h = secured();
    const made = (stream: string) => h.store.append(stream, ANY, [event('{}', { isJson: true })]);
    for (const stream of ['a-1', 'a-2', 'a-3']) await made(stream);
    await h.store.append('$$a-2', ANY, [event('{"$acl":{"$r":"olga"}}', { type: '$metadata', isJson: true })]);
    const seen = async (headers: Readonly<Record<string, string>>, path: string) => {
      const reply = await h.get(path, LINES, { ...headers });
      return reply.status === 200 ? names(reply.text) : reply.status;
    };
    for (const path of [
      '/streams/$all?category=a',
      `/streams/$all/${START}/forward/9?category=a`,
      '/streams/$all?eventType=thing',
    ]) {
      expect(await seen(AS.plain, path)).toEqual(['0@a-1', '0@a-3']);
      expect(await seen(AS.ops, path)).toEqual(['0@a-1', '0@a-2', '0@a-3']);
      expect(await seen(AS.admin, path)).toEqual(['0@a-1', '0@a-2', '0@a-3']);
      expect(await seen(AS.anonymous, path)).toBe(401);
      expect(await seen(AS.plain, path.split('?')[0]!)).toBe(403);
    }
    // Metadata go by the list of metadata of their stream, and those of user streams anybody reads.
    expect(await seen(AS.plain, '/streams/$all?eventType=$metadata')).toEqual(['0@$$a-2']);
    expect(await seen(AS.plain, '/streams/$all/filtered?context=streamid&type=prefix&data=a&category=a')).toBe(403);
  });

  test('of a subscription too, and only as long as the list says so', async () => {
    const h = secured();
    const made = (stream: string) => h.store.append(stream, ANY, [event('{}', { isJson: true })]);
    await made('a-1');
    await made('b-1');
    const ending = new AbortController();
    const response = await h.raw('GET', '/streams/$all?category=a', { ...AS.plain, accept: SSE }, null, ending.signal);
    expect(response.status).toBe(200);
    const source = response.body!.getReader();
    let text = '';
    const until = async (what: string) => {
      while (!text.includes(what)) text += new TextDecoder().decode((await source.read()).value);
    };
    await until('caught-up');
    expect([text.includes('"a-1"'), text.includes('"b-1"')]).toEqual([true, false]);
    await h.store.append('$$a-2', ANY, [event('{"$acl":{"$r":"olga"}}', { type: '$metadata', isJson: true })]);
    await made('a-2');
    await made('a-3');
    await until('"a-3"');
    expect(text).not.toContain('"a-2"');
    ending.abort();
    await source.cancel();
  });
});
