import { describe, expect, test, vi } from 'vitest';
import { clientOf } from '../../../local/client/connect.ts';
import { connect } from '../../../local/client/index.ts';
import type { ConnectOptions } from '../../../local/client/index.ts';

/** How a client speaks to its servers: a `fetch` of the test's own answers, and time passes when it is waited for. */

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: any;
}

type Answer = (sent: Sent) => Response | Promise<Response>;

function world(answers: readonly Answer[], options: Partial<ConnectOptions> = {}) {
  const sent: Sent[] = [];
  const waits: number[] = [];
  let next = 0;
  const client = clientOf(
    {
      url: 'http://one.test',
      ...options,
      fetch: async (url, init = {}) => {
        const one = {
          url: String(url),
          init,
          headers: init.headers as Record<string, string>,
          body: typeof init.body === 'string' ? JSON.parse(init.body) : undefined,
        };
        sent.push(one);
        return answers[Math.min(next++, answers.length - 1)]!(one);
      },
    } as ConnectOptions,
    {
      sleep: async (ms) => {
        waits.push(ms);
      },
      random: () => 0,
    },
  );
  return { client, sent, waits };
}

const appended: Answer = ({ body }) =>
  Response.json({
    streams: [{ stream: body.stream, version: body.events.length - 1, position: 7 }],
    position: 7,
    isRepeat: false,
  });
const problem =
  (status: number, code: string, more: object = {}, headers: Record<string, string> = {}): Answer =>
  () =>
    new Response(JSON.stringify({ code, title: 't', detail: `the detail of ${code}`, ...more }), { status, headers });
const broken: Answer = () => {
  throw new TypeError('fetch failed');
};
/** Never answers, unless it is ended. */
const silent: Answer = ({ init }) =>
  new Promise((_, reject) => {
    init.signal!.addEventListener('abort', () => reject(init.signal!.reason as Error));
  });
const line = (n: number) =>
  `${JSON.stringify({
    eventId: `50000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    eventType: 'T',
    eventNumber: n,
    data: String(n),
    metaData: null,
    streamId: 's',
    isRedacted: false,
    positionEventNumber: n,
    positionStreamId: 's',
    updated: '2031-04-02T09:15:30.1234567Z',
    position: `${n * 10}/${n * 10}`,
  })}\n`;
const lines = (from: number, count: number) => Array.from({ length: count }, (_, i) => line(from + i)).join('');
/** Text, and then the connection is gone. */
const cut = (text: string): Answer => {
  let isSent = false;
  return () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          if (isSent) controller.error(new TypeError('terminated'));
          else controller.enqueue(new TextEncoder().encode(text));
          isSent = true;
        },
      }),
    );
};
const text =
  (body: string): Answer =>
  () =>
    new Response(body);

/** As subscriptions come. */
const streamed =
  (answer: Answer): Answer =>
  async (sent) =>
    new Response((await answer(sent)).body, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } });

async function numbers(events: AsyncIterable<{ readonly version: number }>): Promise<number[]> {
  const found: number[] = [];
  for await (const { version } of events) found.push(version);
  return found;
}

const event = { type: 'T', data: 1 };

describe('what failed in passing', () => {
  test('is sent again with the same ids, after pauses that grow, and as long as the server asks for', async () => {
    const { client, sent, waits } = world([
      broken,
      problem(503, 'too_busy'),
      problem(503, 'not_ready', {}, { 'retry-after': '3' }),
      () => new Response('<html>bad gateway</html>', { status: 502 }),
      appended,
    ]);
    expect(await client.append('s', [event, event], { expected: 'none' })).toEqual({
      version: 1,
      firstVersion: 0,
      position: { commit: 7, prepare: 7 },
      isRepeat: false,
    });
    expect(new Set(sent.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(sent).toHaveLength(5);
    expect(waits).toEqual([100, 200, 3_000, 800]);
  });

  test('is told after five attempts, with the code of the last one', async () => {
    const busy = world([problem(503, 'too_busy', {}, { 'retry-after': '9999' })]);
    await expect(busy.client.info('s')).rejects.toMatchObject({ code: 'too_busy', message: 'the detail of too_busy' });
    expect([busy.sent.length, busy.waits]).toEqual([5, [10_000, 10_000, 10_000, 10_000]]);
    const gone = world([broken]);
    await expect(gone.client.info('s')).rejects.toMatchObject({ code: 'unreachable' });
    const stopping = world([problem(503, 'store_closed')]);
    await expect(stopping.client.info('s')).rejects.toMatchObject({ code: 'unreachable' });
  });

  test('is not what stays: a wrong password, a stream that is gone, a wrong address', async () => {
    const refused = async (answer: Answer) => {
      const { client, sent } = world([answer]);
      const error = await client.append('s', event).catch((thrown: unknown) => thrown);
      expect(sent).toHaveLength(1);
      return error;
    };
    expect(await refused(problem(401, 'not_authenticated'))).toMatchObject({ code: 'not_authenticated' });
    expect(await refused(() => new Response(null, { status: 401 }))).toMatchObject({ code: 'not_authenticated' });
    expect(await refused(() => new Response(null, { status: 403 }))).toMatchObject({ code: 'access_denied' });
    expect(await refused(problem(429, 'too_many_failures'))).toMatchObject({ code: 'too_many_failures' });
    expect(await refused(problem(410, 'stream_deleted'))).toMatchObject({ code: 'stream_deleted' });
    expect(await refused(() => new Response('hello', { status: 404 }))).toMatchObject({
      code: 'unexpected_reply',
      data: { status: 404 },
    });
    expect(await refused(problem(404, 'not_found'))).toMatchObject({
      code: 'unexpected_reply',
      message: expect.stringContaining('the detail of not_found'),
    });
    expect(await refused(text('<html>'))).toMatchObject({ code: 'unexpected_reply' });
  });

  test('goes to the next address at once, and stays there', async () => {
    const { client, sent, waits } = world([broken, problem(503, 'no_leader'), appended, appended], {
      url: undefined as never,
      urls: ['http://one.test', 'http://two.test/base/', 'https://three.test'],
    } as object);
    await client.append('s', event);
    await client.append('s', event);
    expect(sent.map(({ url }) => url)).toEqual([
      'http://one.test/streams',
      'http://two.test/base/streams',
      'https://three.test/streams',
      'https://three.test/streams',
    ]);
    expect(waits).toEqual([]);
  });
});

describe('a login', () => {
  test('goes by header, from the options or the address, and other headers with it', async () => {
    const headerOf = async (options: Partial<ConnectOptions>) => {
      const { client, sent } = world([appended], options);
      await client.append('s', event);
      expect(sent[0]!.url).not.toContain('@');
      return sent[0]!.headers['authorization'];
    };
    expect(await headerOf({ credentials: { username: 'ann', password: 'ä:b' } })).toBe('Basic YW5uOsOkOmI=');
    expect(await headerOf({ url: 'http://ann:%C3%A4%3Ab@one.test' })).toBe('Basic YW5uOsOkOmI=');
    expect(await headerOf({ url: 'http://a:b@one.test', headers: { Authorization: 'Bearer x' } })).toBe('Bearer x');
    expect(await headerOf({})).toBeUndefined();
  });

  test('is not sent to where a server redirects to', async () => {
    const { client, sent } = world([
      () => new Response(null, { status: 307, headers: { location: 'http://other.test/streams' } }),
    ]);
    await expect(client.append('s', event)).rejects.toMatchObject({
      code: 'unexpected_reply',
      message: expect.stringContaining('http://other.test/streams'),
    });
    expect([sent.length, sent[0]!.init.redirect]).toEqual([1, 'manual']);
  });
});

describe('a call ends', () => {
  test('with the reason of its signal, at once, also while it waits, and before it begins', async () => {
    const reason = new Error('enough');
    const ending = new AbortController();
    const { client } = world([silent]);
    const calls = [
      client.append('s', event, { signal: ending.signal }),
      client.append(event, { condition: { failIfEventsMatch: { items: [] } }, signal: ending.signal }),
      client.appendToStreams([{ stream: 's', events: [event] }], { signal: ending.signal }),
      client.delete('s', { signal: ending.signal }),
      client.info('s', { signal: ending.signal }),
      client.metadata('s', { signal: ending.signal }),
      client.setMetadata('s', {}, { signal: ending.signal }),
      numbers(client.read('s', { signal: ending.signal })),
      numbers(client.readAll({ signal: ending.signal })),
    ];
    const following = numbers(client.subscribe({ signal: ending.signal }));
    ending.abort(reason);
    for (const call of calls) await expect(call).rejects.toBe(reason);
    expect(await following).toEqual([]);
    await expect(client.info('s', { signal: ending.signal })).rejects.toBe(reason);
  });

  test('when the client is closed, and so do all that come later', async () => {
    const { client, sent } = world([silent]);
    const calls = [
      client.append('s', event),
      numbers(client.read('s')),
      numbers(client.subscribe({ stream: 's' })),
      numbers(client.subscribe()),
    ];
    await Promise.resolve();
    await client.close();
    await client[Symbol.asyncDispose]();
    for (const call of [
      ...calls,
      client.append('s', event),
      client.appendToStreams([]),
      client.delete('s'),
      client.info('s'),
      client.metadata('s'),
      client.setMetadata('s', {}),
      numbers(client.readAll()),
      numbers(client.subscribe()),
    ])
      await expect(call).rejects.toMatchObject({ code: 'store_closed' });
    expect(sent.length).toBeLessThanOrEqual(calls.length);
  });

  test('where the server is silent for too long, even if whoever sends the requests heeds no signal', async () => {
    const { client, sent } = world([() => new Promise(() => {})], { timeoutMs: 5 });
    await expect(client.info('s')).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('silent for 5 ms'),
    });
    expect(sent).toHaveLength(5);
  });
});

describe('a reading', () => {
  test('goes on behind the last event where its reply breaks off, within a line too, as long as it gets on', async () => {
    const { client, sent } = world([
      cut(lines(0, 2) + line(2).slice(0, 30)),
      cut(lines(2, 1)),
      cut(''),
      text(lines(3, 2) + line(5).slice(0, -1)),
      text(lines(5, 1)),
    ]);
    expect(await numbers(client.read('s'))).toEqual([0, 1, 2, 3, 4, 5]);
    expect(sent.map(({ url }) => new URL(url).searchParams.get('from'))).toEqual([null, '2', '3', '3', '5']);
  });

  test('of all streams goes on behind a position, and backward before it', async () => {
    const forward = world([cut(lines(1, 2)), text('')]);
    expect(await numbers(forward.client.readAll({ from: { commit: 5, prepare: 4 } }))).toEqual([1, 2]);
    expect(forward.sent.map(({ url }) => new URL(url).search)).toEqual([
      '?exclude-system-events=true&from=5%2F4&direction=forward&limit=1000',
      '?exclude-system-events=true&after=20%2F20&direction=forward&limit=1000',
    ]);
    const backward = world([cut(line(2)), text('')]);
    await numbers(backward.client.readAll({ direction: 'backward', limit: 7, system: true }));
    expect(backward.sent.map(({ url }) => new URL(url).search)).toEqual([
      '?direction=backward&limit=7',
      '?from=20%2F20&direction=backward&limit=6',
    ]);
  });

  test('asks for fewer events where a function can not answer with as many', async () => {
    const { client, sent } = world([
      problem(413, 'reply_too_large'),
      problem(413, 'reply_too_large'),
      text(lines(0, 250)),
      text(lines(250, 10)),
    ]);
    expect(await numbers(client.read('s'))).toHaveLength(260);
    expect(sent.map(({ url }) => new URL(url).searchParams.get('limit'))).toEqual(['1000', '500', '250', '250']);
    const one = world([problem(413, 'reply_too_large')]);
    await expect(numbers(one.client.read('s'))).rejects.toMatchObject({ code: 'reply_too_large' });
  });

  test('that is left lets go of the connection', async () => {
    let isLeft = false;
    const { client } = world([
      () =>
        new Response(
          new ReadableStream({
            pull: (controller) => controller.enqueue(new TextEncoder().encode(lines(0, 1))),
            cancel: () => {
              isLeft = true;
            },
          }),
        ),
    ]);
    for await (const _ of client.read('s')) break;
    expect(isLeft).toBe(true);
  });

  test('of what is no line of events, or of one without end, is refused', async () => {
    for (const body of ['hello\n', '{}\n', 'null\n']) {
      const { client } = world([text(body)]);
      await expect(numbers(client.read('s'))).rejects.toMatchObject({ code: 'unexpected_reply' });
    }
    const piece = new Uint8Array(1_048_576).fill(65);
    let pieces = 0;
    const { client } = world([
      () =>
        new Response(
          new ReadableStream({
            pull: (controller) => {
              pieces++;
              controller.enqueue(piece);
            },
          }),
        ),
    ]);
    await expect(numbers(client.read('s'))).rejects.toMatchObject({ code: 'unexpected_reply' });
    expect(pieces).toBeLessThan(40);
  });
});

describe('a subscription', () => {
  const message = (n: number) => `id: ${n}\ndata: ${line(n)}\n`;
  const live = (body: string) => streamed(text(body));
  const liveCut = (body: string) => streamed(cut(body));
  const failure = (code: string) => `event: error\ndata: ${JSON.stringify({ code, detail: 'x' })}\n\n`;
  const CAUGHT_UP = (n: number) => `event: caught-up\nid: ${n}\ndata: {}\n\n`;

  async function follow(answers: readonly Answer[], count: number) {
    const { client, sent, waits } = world(answers);
    const ending = new AbortController();
    let caughtUp = 0;
    const seen: number[] = [];
    for await (const { version } of client.subscribe({
      stream: 's',
      signal: ending.signal,
      onCaughtUp: () => {
        caughtUp++;
      },
    }))
      if (seen.push(version) === count) ending.abort();
    return { seen, caughtUp, waits, ids: sent.map(({ headers }) => headers['last-event-id']) };
  }

  test('goes on behind the last id that came whole', async () => {
    const { seen, ids } = await follow(
      [
        liveCut(`retry: 50\n\n${message(0)}${message(1).slice(0, -1)}`),
        liveCut(`:\n\n${message(1)}id: 2\nda`),
        broken,
        live(message(2) + failure('store_closed')),
        live(message(3)),
      ],
      4,
    );
    expect(seen).toEqual([0, 1, 2, 3]);
    expect(ids).toEqual([undefined, '0', '1', '1', '2']);
  });

  test('asks again where a reply ends once it has caught up, and tells of that once', async () => {
    const { seen, caughtUp, waits, ids } = await follow(
      [
        live(`retry: 2000\n\n${message(0)}${CAUGHT_UP(0)}`),
        live(`retry: 2000\n\n${CAUGHT_UP(0)}`),
        live(CAUGHT_UP(7)),
        live(`${message(8)}${CAUGHT_UP(8)}`),
        live(message(9)),
      ],
      3,
    );
    expect([seen, caughtUp]).toEqual([[0, 8, 9], 2]);
    expect(waits).toEqual([2_000, 2_000, 1_000, 1_000]);
    expect(ids).toEqual([undefined, '0', '0', '7', '8']);
  });

  test('ends with what its server says, and with who is not there from the beginning', async () => {
    await expect(follow([live(message(0) + failure('stream_deleted'))], 5)).rejects.toMatchObject({
      code: 'stream_deleted',
    });
    await expect(follow([problem(403, 'access_denied')], 5)).rejects.toMatchObject({ code: 'access_denied' });
    await expect(follow([broken], 5)).rejects.toMatchObject({ code: 'unreachable' });
    const begun = await follow([live(message(0)), ...Array.from({ length: 50 }, () => broken), live(message(1))], 2);
    expect(begun.seen).toEqual([0, 1]);
  });

  test('tells of checkpoints, and goes on behind them', async () => {
    const { client, sent } = world([
      live('event: checkpoint\nid: 70/60\ndata: {}\n\n'),
      live(`id: 80/80\ndata: ${line(8)}\n`),
    ]);
    const ending = new AbortController();
    const found: unknown[] = [];
    for await (const _ of client.subscribe({
      after: { commit: 5, prepare: 5 },
      filter: { on: 'stream', prefixes: ['s', 't,u'] },
      signal: ending.signal,
      onCheckpoint: (position) => found.push(position),
    }))
      ending.abort();
    expect(found).toEqual([{ commit: 70, prepare: 60 }]);
    expect(sent.map(({ headers }) => headers['last-event-id'])).toEqual(['5/5', '70/60']);
    expect(new URL(sent[0]!.url).searchParams.get('data')).toBe('^(?:s|t,u)');
  });

  test('that its server ends each time is asked for after pauses that grow, and not for ever', async () => {
    const busy = `retry: 2000\n\n${failure('too_busy')}`;
    const { seen, waits } = await follow([live(message(0)), ...[1, 2, 3].map(() => live(busy)), live(message(1))], 2);
    expect([seen, waits]).toEqual([
      [0, 1],
      [1_000, 100, 200, 400],
    ]);
    await expect(follow([live(busy)], 1)).rejects.toMatchObject({ code: 'too_busy' });
    // Nor is one for ever whose replies say nothing.
    await expect(follow([live(':\n\n')], 1)).rejects.toMatchObject({ code: 'unreachable' });
  });

  test('ends with what a callback throws', async () => {
    const thrown = new Error('thrown');
    const onCheckpoint = () => {
      throw thrown;
    };
    const { client, sent } = world([live('event: checkpoint\nid: 70/60\ndata: {}\n\n')]);
    await expect(numbers(client.subscribe({ onCheckpoint }))).rejects.toBe(thrown);
    expect(sent).toHaveLength(1);
  });

  test('is none where something else answers', async () => {
    await expect(follow([text('<html>\n\n')], 1)).rejects.toMatchObject({ code: 'unexpected_reply' });
  });
});

test('calls that fail together at one address all go on to the next', async () => {
  const urls = ['http://one.test', 'http://two.test', 'http://three.test'];
  const { client, sent } = world([broken, broken, appended, appended, appended], {
    url: undefined as never,
    urls,
  } as object);
  await Promise.all([client.append('s', event), client.append('s', event)]);
  await client.append('s', event);
  expect(sent.map(({ url }) => new URL(url).hostname)).toEqual([
    'one.test',
    'one.test',
    ...Array.from({ length: 3 }, () => 'two.test'),
  ]);
});

test('ids are UUIDs where the platform makes none, as in a page that came over plain HTTP', async () => {
  const { client, sent } = world([appended]);
  vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) });
  try {
    await client.append('s', [event, event]);
  } finally {
    vi.unstubAllGlobals();
  }
  const ids: string[] = sent[0]!.body.events.map(({ id }: { id: string }) => id);
  expect(new Set(ids).size).toBe(2);
  for (const id of ids) expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
});

test('options that mean nothing are refused', () => {
  for (const options of [
    {},
    { url: 'one.test' },
    { url: 'ftp://one.test' },
    { urls: [] },
    { urls: Array.from({ length: 17 }, () => 'http://one.test') },
    { url: 'http://one.test', urls: ['http://one.test'] },
    { url: 'http://one.test', timeoutMs: 0 },
    { url: 'http://one.test', timeoutMs: Number.NaN },
    undefined,
  ])
    expect(() => connect(options as never)).toThrow(expect.objectContaining({ code: 'bad_option' }));
});
