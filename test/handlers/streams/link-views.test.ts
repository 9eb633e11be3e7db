import { describe, expect, test } from 'vitest';
import { encodeText } from '../../../core/base/text.ts';
import { ANY, type EventStore } from '../../../core/streams/api.ts';
import { FakeSecurity } from '../../support/fake-security.ts';
import { event, setMetadata, setUp } from '../../streams/setup.ts';
import { ATOM, EVENTS, harness, linksOf } from '../harness.ts';
import { AS } from '../secured.ts';

const SSE = 'text/event-stream';
const LINES = 'application/x-ndjson';
const UNRESOLVED = { 'es-resolvelinktos': 'false' };

async function filled(s = setUp(), context: Parameters<typeof harness>[0] = {}) {
  const h = harness({ store: s.store, clock: s.clock, ...context });
  const write = (stream: string, type = 'made', correlation = 'x') =>
    s.store.append(stream, ANY, [
      event('{}', { type, isJson: true, metadata: encodeText(JSON.stringify({ $correlationId: correlation })) }),
    ]);
  for (const stream of ['a-1', 'b-1', 'a-2', 'a', 'a-1']) await write(stream);
  return { ...h, store: s.store as EventStore, write };
}

const titles = (feed: { entries: { title: string }[] }): string[] => feed.entries.map(({ title }) => title);
const names = (text: string): string[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
    .map(({ eventNumber, streamId }) => `${eventNumber}@${streamId}`);

async function positions(store: EventStore, stream: RegExp): Promise<number[]> {
  const { events } = await store.readAll({ direction: 'forward', from: 'start', count: 99 });
  return events.filter((each) => stream.test(each.stream)).map(({ position }) => position);
}

describe('a view of links over HTTP', () => {
  test('is a feed whose links lead to every event once, both ways', async () => {
    const { get, store } = await filled();
    const numbers = await positions(store, /^a-/);
    for (const size of [1, 2, 9]) {
      const seen: string[] = [];
      let path: string | undefined = `/streams/$ce-a/head/backward/${size}`;
      let oldest = '';
      for (let page = 0; path !== undefined; page++) {
        expect(page).toBeLessThan(9);
        const feed = (await get(path, ATOM)).json();
        seen.push(...titles(feed));
        oldest = path;
        path = linksOf(feed)['next'];
        // A page leads to numbers that are there.
        if (path !== undefined) expect(numbers).toContain(Number(path.split('/')[3]));
      }
      expect(seen).toEqual(['1@a-1', '0@a-2', '0@a-1']);
      const back: string[] = [];
      for (path = oldest; ;) {
        const feed = (await get(path!, ATOM)).json();
        back.push(...titles(feed).toReversed());
        path = linksOf(feed)['previous'];
        if (path === undefined || feed.entries.length === 0) break;
      }
      // The newest event of the page that was begun with is not in what comes before it.
      expect(back).toEqual(seen.toReversed());
    }
    const first = linksOf((await get('/streams/$ce-a', ATOM)).json());
    expect(Object.keys(first)).toEqual(['self', 'first', 'previous', 'metadata']);
    expect(names((await get('/streams/$ce-a/0/forward/2', LINES)).text)).toEqual(['0@a-1', '0@a-2']);
    expect(names((await get(`/streams/$ce-a?from=${numbers[1]}`, LINES)).text)).toEqual(['0@a-2', '1@a-1']);
  });

  test('shows links where they are not resolved', async () => {
    const { get, store } = await filled();
    const numbers = await positions(store, /^a-/);
    const lines = (await get('/streams/$ce-a', LINES, UNRESOLVED)).text.split('\n').slice(0, -1);
    expect(lines.map((line) => JSON.parse(line)).map(({ eventType, eventNumber }) => [eventType, eventNumber])).toEqual(
      numbers.map((number) => ['$>', number]),
    );
    const one = await get(`/streams/$ce-a/${numbers[1]}`, 'application/json');
    expect([one.status, one.json()]).toEqual([200, {}]);
    const head = await get('/streams/$ce-a/head', ATOM, UNRESOLVED);
    expect(head.json()).toMatchObject({ title: `${numbers.at(-1)}@$ce-a`, summary: '$>' });
    expect((await get(`/streams/$ce-a/${numbers[1]! + 1}`, 'application/json')).status).toBe(404);
    expect((await get('/streams/$ce-none', ATOM)).status).toBe(404);
    expect((await get('/streams/$bc-x', LINES)).text.split('\n')).toHaveLength(6);
  });

  test('what retention hides is hidden, and an ETag knows of it', async () => {
    const s = setUp();
    const { get, write } = await filled(s);
    await setMetadata(s.store, 'a-1', '{"$maxAge":10}');
    await s.clock.advance(6_000);
    await write('a-2');
    const first = await get('/streams/$ce-a', ATOM);
    expect(titles(first.json())).toEqual(['1@a-2', '1@a-1', '0@a-2', '0@a-1']);
    const asked = { 'if-none-match': first.headers.get('etag')! };
    expect((await get('/streams/$ce-a', ATOM, asked)).status).toBe(304);
    await s.clock.advance(6_000);
    const later = await get('/streams/$ce-a', ATOM, asked);
    expect([later.status, titles(later.json())]).toEqual([200, ['1@a-2', '0@a-2']]);
  });

  test('a long poll waits for what the view shows', async () => {
    const { get, write, store } = await filled();
    const last = (await positions(store, /^a-/)).at(-1)!;
    const held = get(`/streams/$ce-a/${last + 1}/forward/9`, ATOM, { 'es-longpoll': '5' });
    await write('b-1');
    await write('a');
    await write('a-2');
    expect(titles((await held).json())).toEqual(['1@a-2']);
    const missing = get('/streams/$ce-new/0/forward/9', ATOM, { 'es-longpoll': '5' });
    await write('b-1');
    await write('new-1');
    expect(titles((await missing).json())).toEqual(['0@new-1']);
  });

  test('a subscription gives numbers as ids, and goes on behind one', async () => {
    const { raw, write, store } = await filled();
    const numbers = await positions(store, /^a-/);
    const ending = new AbortController();
    const headers = { accept: SSE, 'last-event-id': String(numbers[0]) };
    const response = await raw('GET', '/streams/$ce-a', headers, null, ending.signal);
    const source = response.body!.getReader();
    let text = '';
    const until = async (what: string) => {
      while (!text.includes(what)) text += new TextDecoder().decode((await source.read()).value);
    };
    await until('caught-up');
    await write('b-1');
    await write('a-9');
    await until('"a-9"');
    const ids = [...text.matchAll(/^id: (\d+)\ndata: \{"/gm)].map(([, id]) => Number(id));
    expect(ids).toEqual([...numbers.slice(1), (await positions(store, /^a-9/))[0]]);
    ending.abort();
    await source.cancel();
  });

  test('is not written, deleted, or given metadata', async () => {
    const { send, id } = await filled();
    const body = JSON.stringify([{ eventId: id(), eventType: 'made', data: {} }]);
    const replies = [
      await send('POST', '/streams/$ce-a', { 'content-type': EVENTS }, body),
      await send('POST', '/streams/$ce-a/metadata', { 'content-type': EVENTS }, body),
      await send('DELETE', '/streams/$ce-a'),
      await send('DELETE', '/streams/$ce-a', { 'es-harddelete': 'true' }),
    ];
    for (const reply of replies) expect([reply.status, reply.text]).toEqual([400, expect.stringContaining('view')]);
  });

  test('shows to each what he may read, and is there for those who may read something', async () => {
    const s = setUp();
    const security = new FakeSecurity(s.store);
    security.add('kim', 'kim:pass', []);
    security.add('ada', 'ada-pass', ['$admins']);
    const { get } = await filled(s, { security });
    await setMetadata(s.store, 'a-1', '{"$acl":{"$r":"olga"}}');
    await setMetadata(s.store, 'b-1', '{"$acl":{"$r":"olga"}}');
    const seen = async (headers: Readonly<Record<string, string>>, path: string) => {
      const reply = await get(path, LINES, { ...headers });
      return reply.status === 200 ? names(reply.text) : reply.status;
    };
    const [first] = await positions(s.store, /^a-/);
    for (const path of ['/streams/$ce-a', '/streams/$ce-a/0/forward/9']) {
      expect(await seen(AS.plain, path)).toEqual(['0@a-2']);
      expect(await seen(AS.admin, path)).toEqual(['0@a-1', '0@a-2', '1@a-1']);
      expect(await seen(AS.anonymous, path)).toBe(401);
    }
    expect(await seen(AS.plain, '/streams/$ce-b')).toBe(404);
    // That there is something he may not read is not told either, from wherever he reads.
    for (const path of ['/streams/$ce-b/head/backward/9', '/streams/$ce-b/99999/backward/9'])
      expect(await seen(AS.plain, path)).toBe(404);
    expect((await get(`/streams/$ce-a/${first}`, 'application/json', { ...AS.plain })).status).toBe(404);
    expect((await get('/streams/$ce-a/head', ATOM, { ...AS.plain })).json().title).toBe('0@a-2');
  });
});
