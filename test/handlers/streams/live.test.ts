import { describe, expect, test } from 'vitest';
import { ByteBudget } from '../../../core/base/byte-budget.ts';
import { ANY } from '../../../core/streams/api.ts';
import { LIVE_BLOCK_BYTES } from '../../../handlers/streams/subscribe-events.ts';
import { event, setUp } from '../../streams/setup.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ATOM, harness, numbered } from '../harness.ts';
import { AS, secured } from '../secured.ts';

const SSE = 'text/event-stream';
const LINES = 'application/x-ndjson';
const MIB = 1_048_576;
const settle = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

interface SentEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data?: any;
  readonly comment?: true;
}

/** Reads server-sent events from a reply one at a time. */
function reader(response: Response) {
  const source = response.body!.getReader();
  let text = '';
  return {
    cancel: () => source.cancel(),
    async next(): Promise<SentEvent | null> {
      while (!text.includes('\n\n')) {
        const { done, value } = await source.read();
        if (done) return null;
        text += new TextDecoder().decode(value as Uint8Array);
      }
      const end = text.indexOf('\n\n');
      const fields = text.slice(0, end).split('\n');
      text = text.slice(end + 2);
      if (fields[0]!.startsWith(':')) return { comment: true };
      const pairs = fields.map((field) => [field.slice(0, field.indexOf(': ')), field.slice(field.indexOf(': ') + 2)]);
      const event = Object.fromEntries(pairs) as Record<string, string>;
      return { ...event, data: JSON.parse(event['data']!) };
    },
  };
}

describe('NDJSON', () => {
  const lines = (text: string): any[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));

  test('the whole stream, over many pages', async () => {
    const h = harness();
    await h.fill('s', ...numbered(600));
    const reply = await h.get('/streams/s', LINES);
    expect(reply.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
    const events = lines(reply.text);
    expect(events.map((e) => e.eventNumber)).toEqual(numbered(600).map((e) => e.n));
    expect(events[7]).toMatchObject({
      eventType: 'made',
      streamId: 's',
      data: '{\n  "n": 7\n}',
      isJson: true,
      metaData: null,
      positionEventNumber: 7,
      positionStreamId: 's',
      updated: '2031-04-02T09:15:30Z',
    });
    expect(events[7].position).toBe(`${h.store.log[7]!.position}/${h.store.log[7]!.position}`);
  });

  test.each<[string, number[]]>([
    ['?from=598', [598, 599]],
    ['?limit=2', [0, 1]],
    ['?from=300&limit=1', [300]],
    ['?from=700', []],
  ])('%s', async (query, numbers) => {
    const h = harness();
    await h.fill('s', ...numbered(600));
    expect(lines((await h.get(`/streams/s${query}`, LINES)).text).map((e) => e.eventNumber)).toEqual(numbers);
  });

  test('pages in the order in which they are read; $all; the filter', async () => {
    const h = harness();
    await h.fill('s', ...numbered(5));
    await h.fill('t', {});
    expect(lines((await h.get('/streams/s/0/forward/2', LINES)).text).map((e) => e.eventNumber)).toEqual([0, 1]);
    expect(lines((await h.get('/streams/s/head/backward/2', LINES)).text).map((e) => e.eventNumber)).toEqual([4, 3]);
    const all = lines((await h.get('/streams/$all', LINES)).text);
    expect(all).toHaveLength(6);
    expect(lines((await h.get(`/streams/$all?from=${all[4].position}&limit=9`, LINES)).text)).toEqual(all.slice(4));
    expect(lines((await h.get('/streams/$all/filtered?context=streamid&type=prefix&data=t', LINES)).text)).toEqual(
      all.slice(5),
    );
  });

  test.each([
    ['/streams/never', 404],
    ['/streams/s?from=x', 400],
    ['/streams/s?limit=0', 400],
    ['/streams/$all?from=x', 400],
  ])('%s is %i', async (path, status) => {
    const h = harness();
    await h.fill('s', {});
    expect((await h.get(path, LINES)).status).toBe(status);
  });

  test('reads no further than it is read', async () => {
    const h = harness();
    await h.fill('s', ...numbered(4000));
    let pages = 0;
    const read = h.store.readStream.bind(h.store);
    h.store.readStream = (...args) => {
      pages++;
      return read(...args);
    };
    const response = await h.raw('GET', '/streams/s', { accept: LINES });
    const source = response.body!.getReader();
    await source.read();
    await settle();
    const before = pages;
    expect(before).toBeLessThan(6);
    await source.cancel();
    await settle();
    expect(pages).toBe(before);
  });
});

describe('server-sent events', () => {
  test('history, the caught-up mark, live events', async () => {
    const h = harness();
    await h.fill('s', ...numbered(2));
    const response = await h.raw('GET', '/streams/s', { accept: SSE });
    expect([response.status, response.headers.get('content-type'), response.headers.get('cache-control')]).toEqual([
      200,
      SSE,
      'no-cache, private',
    ]);
    const events = reader(response);
    expect(await events.next()).toMatchObject({
      id: '0',
      data: { eventNumber: 0, data: '{\n  "n": 0\n}', position: '0/0' },
    });
    expect(await events.next()).toMatchObject({ id: '1' });
    expect(await events.next()).toEqual({ event: 'caught-up', id: '1', data: {} });
    await h.fill('other', {});
    await h.fill('s', { n: 2 });
    expect(await events.next()).toMatchObject({ id: '2' });
    await events.cancel();
  });

  test.each<[string, Record<string, string>, string]>([
    ['/streams/s', { 'last-event-id': '2' }, '3'],
    ['/streams/s', { 'last-event-id': '-1' }, '0'],
    ['/streams/s?from=2', {}, '2'],
    ['/streams/s?from=0', {}, '0'],
    ['/streams/s?from=0', { 'last-event-id': '1' }, '2'],
    ['/streams/s', { 'last-event-id': '' }, '0'],
  ])('%s %j resumes at %s', async (path, headers, first) => {
    const h = harness();
    await h.fill('s', ...numbered(5));
    const events = reader(await h.raw('GET', path, { accept: SSE, ...headers }));
    expect((await events.next())!.id).toBe(first);
    await events.cancel();
  });

  test('from=end gives only what comes', async () => {
    const h = harness();
    await h.fill('s', {});
    const events = reader(await h.raw('GET', '/streams/s?from=end', { accept: SSE }));
    expect(await events.next()).toMatchObject({ event: 'caught-up' });
    await h.fill('s', {});
    expect(await events.next()).toMatchObject({ id: '1' });
    await events.cancel();
  });

  test('$all resumes by position, with a filter too', async () => {
    const h = harness();
    await h.fill('s', ...numbered(3));
    await h.fill('t', {});
    const events = reader(await h.raw('GET', '/streams/$all', { accept: SSE }));
    await events.next();
    const { id } = (await events.next())!;
    await events.cancel();
    expect(id).toBe(`${h.store.log[1]!.position}/${h.store.log[1]!.position}`);
    const resumed = reader(await h.raw('GET', '/streams/%24all', { accept: SSE, 'last-event-id': id! }));
    expect((await resumed.next())!.data.positionEventNumber).toBe(2);
    await resumed.cancel();
    const filtered = reader(
      await h.raw('GET', '/streams/$all/filtered?context=streamid&type=prefix&data=t', { accept: SSE }),
    );
    expect((await filtered.next())!.data.streamId).toBe('t');
    await filtered.cancel();
  });

  test('from names the first event wanted, as it does for lines and pages', async () => {
    const h = harness();
    await h.fill('s', ...numbered(6));
    const firstLine = async (path: string) =>
      JSON.parse((await h.get(path, LINES)).text.split('\n')[0]!).positionEventNumber as number;
    const firstLive = async (path: string) => {
      const events = reader(await h.raw('GET', path, { accept: SSE }));
      const { data } = (await events.next())!;
      await events.cancel();
      return data.positionEventNumber as number;
    };
    const { position } = h.store.log[3]!;
    const hex = position.toString(16).padStart(16, '0').repeat(2);
    for (const path of [
      '/streams/s?from=3',
      `/streams/$all?from=${position}/${position}`,
      `/streams/$all?from=${hex}`,
      `/streams/$all/filtered?context=streamid&type=prefix&data=s&from=${hex}`,
    ]) {
      expect([path, await firstLine(path), await firstLive(path)]).toEqual([path, 3, 3]);
    }
    for (const accept of [LINES, SSE]) expect((await h.get('/streams/s?from=-1', accept)).status).toBe(400);
  });

  test('a checkpoint has an id and is no event; neither is the mark of a place without any', async () => {
    const h = harness();
    h.store.followAll = async function* () {
      const checkpoints = [{ behind: 0, after: { commit: 700, prepare: 650 } }];
      yield { events: [], checkpoints, isCaughtUp: true, after: null, isAwaited: false };
    };
    const events = reader(
      await h.raw('GET', '/streams/$all/filtered?context=streamid&type=prefix&data=t', { accept: SSE }),
    );
    expect(await events.next()).toEqual({ event: 'checkpoint', id: '700/650', data: {} });
    expect(await events.next()).toEqual({ event: 'caught-up', data: {} });
  });

  test('a comment every 15 seconds, only while nothing else is sent', async () => {
    const h = harness();
    const events = reader(await h.raw('GET', '/streams/s', { accept: SSE }));
    expect(await events.next()).toMatchObject({ event: 'caught-up' });
    let next = events.next();
    await h.clock.advance(14_999);
    await h.fill('s', {});
    expect(await next).toMatchObject({ id: '0' });
    next = events.next();
    await h.clock.advance(15_000);
    expect(await next).toEqual({ comment: true });
    next = events.next();
    await h.clock.advance(15_000);
    expect(await next).toEqual({ comment: true });
    await events.cancel();
    await settle();
    expect(h.clock.sleeping).toBe(0);
  });

  test('a hard delete ends it with a problem; afterwards the stream is 410', async () => {
    const h = harness();
    await h.fill('s', {});
    const events = reader(await h.raw('GET', '/streams/s?from=end', { accept: SSE }));
    await events.next();
    await h.send('DELETE', '/streams/s', { 'es-harddelete': 'true' });
    expect(await events.next()).toMatchObject({ id: '9223372036854775807', data: { eventType: '$streamDeleted' } });
    expect(await events.next()).toMatchObject({ event: 'error', data: { code: 'stream_deleted' } });
    expect(await events.next()).toBeNull();
    expect((await h.get('/streams/s', SSE)).status).toBe(410);
    await settle();
    expect(h.clock.sleeping).toBe(0);
  });

  test('a client that leaves ends the subscription', async () => {
    const h = harness();
    const leaving = new AbortController();
    const response = await h.raw('GET', '/streams/s', { accept: SSE }, null, leaving.signal);
    const events = reader(response);
    await events.next();
    leaving.abort();
    expect(await events.next()).toBeNull();
    await settle();
    expect(h.clock.sleeping).toBe(0);
  });

  test.each(['/streams/s?from=x', '/streams/s?from=-1', '/streams/s?from=-2', '/streams/$all?from=5'])(
    '%s is 400',
    async (path) => {
      expect((await harness().get(path, SSE)).status).toBe(400);
    },
  );

  test('a checkpoint stands where it was found among the events of a page', async () => {
    const h = harness();
    await h.fill('s', ...numbered(2));
    const follow = h.store.followAll.bind(h.store);
    h.store.followAll = async function* (options) {
      const checkpoints = [0, 1, 2].map((behind) => ({ behind, after: { commit: behind, prepare: behind } }));
      for await (const page of follow(options)) yield page.events.length === 0 ? page : { ...page, checkpoints };
    };
    const events = reader(await h.raw('GET', '/streams/$all', { accept: SSE }));
    const ids: (string | undefined)[] = [];
    for (let i = 0; i < 5; i++) ids.push((await events.next())!.id);
    expect(ids).toEqual(['0/0', expect.any(String), '1/1', expect.any(String), '2/2']);
    await events.cancel();
  });

  test('of a reader that takes nothing one block of text is held, and none of its events', async () => {
    const { store } = setUp();
    await store.append(
      's',
      ANY,
      Array.from({ length: 400 }, () => event('x'.repeat(1_000))),
    );
    const budget = new ByteBudget(
      { of: 'replies', totalBytes: MIB, reserveBytes: 0, smallBytes: 262_144, waitersMax: 1, waitMs: 1 },
      new ManualClock(0),
    );
    const share = budget.share();
    const h = harness({ store, replyShareOf: () => share });
    const pages: { readonly events: readonly unknown[]; readonly count: number }[] = [];
    const follow = store.followStream.bind(store);
    Object.assign(store, {
      async *followStream(...args: Parameters<typeof follow>) {
        for await (const page of follow(...args)) {
          pages.push({ events: page.events, count: page.events.length });
          yield page;
        }
      },
    });
    const source = (await h.raw('GET', '/streams/s', { accept: SSE })).body!.getReader();
    let count = 0;
    for (let read = 1; count < 400; read++) {
      const { value } = await source.read();
      await settle();
      expect([pages.length, pages.at(-1)!.events.length]).toEqual([read, 0]);
      count += pages.at(-1)!.count;
      expect(pages.at(-1)!.count * 1_000).toBeLessThanOrEqual(LIVE_BLOCK_BYTES);
      expect(share.heldBytes).toBe(value!.length);
    }
    await source.read();
    const next = source.read();
    await settle();
    expect(share.heldBytes).toBe(0);
    await source.cancel();
    await next;
  });
});

describe('long poll', () => {
  const poll = { 'es-longpoll': '10' };
  const pending = async (promise: Promise<unknown>): Promise<boolean> => {
    await settle();
    return await Promise.race([promise.then(() => false), settle().then(() => true)]);
  };

  test('is held until an event comes', async () => {
    const h = harness();
    await h.fill('s', {});
    const reply = h.get('/streams/s/1/forward/5', ATOM, poll);
    expect(await pending(reply)).toBe(true);
    await h.fill('other', {});
    expect(await pending(reply)).toBe(true);
    await h.fill('s', {});
    expect((await reply).json().entries).toHaveLength(1);
    expect(h.clock.sleeping).toBe(0);
  });

  test('of $all lets others have a turn where more is said to have come, and nothing has', async () => {
    const h = harness();
    await h.fill('s', {});
    const readAll = h.store.readAll.bind(h.store);
    let reads = 0;
    let isOver = false;
    // A poll that reads without end would not let this test end either.
    Object.assign(h.store, {
      readAll: (options: Parameters<typeof readAll>[0]) => {
        reads++;
        return readAll(options);
      },
      waitForLog: async () => !isOver && reads < 1_000,
    });
    const end = h.store.end.toString(16).padStart(16, '0');
    const reply = h.get(`/streams/$all/${end}${end}/forward/5`, ATOM, poll);
    await settle();
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThan(1_000);
    isOver = true;
    expect((await reply).json().entries).toEqual([]);
  });

  test('or until the time is up', async () => {
    const h = harness();
    await h.fill('s', {});
    const reply = h.get('/streams/s/1/forward/5', ATOM, poll);
    await h.clock.advance(9_999);
    expect(await pending(reply)).toBe(true);
    await h.clock.advance(1);
    expect((await reply).json().entries).toEqual([]);
  });

  test('a stream that does not exist is waited for', async () => {
    const h = harness();
    const reply = h.get('/streams/s/0/forward/5', ATOM, poll);
    expect(await pending(reply)).toBe(true);
    await h.fill('s', {});
    expect((await reply).json().entries).toHaveLength(1);
    const never = h.get('/streams/never/0/forward/5', ATOM, poll);
    await h.clock.advance(10_000);
    expect((await never).status).toBe(404);
  });

  test('an event below the start ends the wait with an empty page', async () => {
    const h = harness();
    await h.fill('s', {});
    const reply = h.get('/streams/s/50/forward/5', ATOM, poll);
    await settle();
    await h.fill('s', {});
    expect((await reply).json().entries).toEqual([]);
  });

  test('$all waits for an event that the read returns', async () => {
    const h = harness();
    await h.fill('s', {});
    const at = h.store.end.toString(16).padStart(16, '0').repeat(2);
    const reply = h.get(`/streams/$all/filtered/${at}/forward/5?context=streamid&type=prefix&data=t`, ATOM, poll);
    await settle();
    await h.fill('s', {});
    expect(await pending(reply)).toBe(true);
    await h.fill('t', {});
    expect((await reply).json().entries).toHaveLength(1);
  });

  test('plays no part in other reads', async () => {
    const h = harness();
    await h.fill('s', {});
    for (const path of ['/streams/s', '/streams/s/0/forward/1', '/streams/s/5/backward/2', '/streams/$all'])
      expect((await h.get(path, ATOM, poll)).status).toBe(200);
    expect((await h.get('/streams/s/0', undefined, poll)).status).toBe(200);
    expect(h.clock.sleeping).toBe(0);
  });

  test.each(['0', '-1', 'x', '1.5'])('%s seconds are 400', async (seconds) => {
    const h = harness();
    await h.fill('s', {});
    expect((await h.get('/streams/s/0/forward/1', ATOM, { 'es-longpoll': seconds })).json().detail).toBe(
      'ES-LongPoll header in wrong format.',
    );
  });
});

test('a user who is changed gets no more of a subscription, nor of a held read', async () => {
  let isChanged = false;
  const h = secured();
  Object.assign(h.security.authenticator, { hasChanged: async () => isChanged });
  const write = (n: number) =>
    h.send(
      'POST',
      '/streams/s',
      { ...AS.admin, 'content-type': 'application/json', 'es-eventid': h.id(), 'es-eventtype': 'made' },
      JSON.stringify({ n }),
    );
  await write(0);
  const live = reader(await h.raw('GET', '/streams/s', { ...AS.plain, accept: SSE }));
  expect(await live.next()).toMatchObject({ id: '0' });
  expect(await live.next()).toMatchObject({ event: 'caught-up' });
  const held = h.send('GET', '/streams/s/1/forward/5', { ...AS.plain, accept: ATOM, 'es-longpoll': '5' });
  await settle();
  isChanged = true;
  await write(1);
  expect(await live.next()).toMatchObject({ event: 'error', data: { code: 'not_authenticated' } });
  expect(await live.next()).toBe(null);
  expect((await held).status).toBe(401);
});
