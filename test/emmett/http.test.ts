import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { getSkuaEventStore, SkuaEventStoreError } from '../../local/emmett/index.ts';
import { startedNode } from '../local/spawn.ts';
import type { Started } from '../local/spawn.ts';
import { asFetch } from './backends.ts';
import type { Send } from './backends.ts';

/** What happens to the n-th request, the first one being 0. */
type Fault = (n: number, send: () => Promise<Response>, url: string) => Promise<Response>;

const ATTEMPTS_MAX = 5;
const events = (count: number) => Array.from({ length: count }, (_, n) => ({ type: 'Weighed', data: { grams: n } }));

const busy = (code: string, status = 503): Response =>
  new Response(JSON.stringify({ code, detail: 'Try again.' }), { status, headers: { 'retry-after': '0' } });

/** A reply whose connection breaks off in the middle of a line. */
async function broken(reply: Response): Promise<Response> {
  const text = await reply.text();
  const cut = new TextEncoder().encode(text.slice(0, text.length - 20));
  let isSent = false;
  return new Response(
    new ReadableStream({
      pull: (controller) => {
        if (isSent) controller.error(new TypeError('terminated'));
        else controller.enqueue(cut);
        isSent = true;
      },
    }),
    { status: reply.status },
  );
}

describe('over HTTP', () => {
  let node: Started;
  let streams = 0;
  const fresh = (): string => `faulty-${++streams}`;
  beforeAll(async () => {
    node = await startedNode(['--mem-db']);
  });
  afterAll(async () => {
    await node?.stop();
  });

  function faulty(fault: Fault): { readonly store: ReturnType<typeof getSkuaEventStore>; readonly requests: string[] } {
    const requests: string[] = [];
    const send: Send = (url, init) => {
      requests.push(`${init.method} ${url.slice(node.url.length)}`);
      return fault(requests.length - 1, () => fetch(url, init), url);
    };
    return { store: getSkuaEventStore({ url: node.url, fetch: asFetch(send) }), requests };
  }

  test.each<[string, Fault]>([
    [
      'whose reply is lost',
      async (n, send) => {
        const reply = await send();
        if (n > 0) return reply;
        throw new TypeError('fetch failed');
      },
    ],
    [
      'whose outcome the server does not know',
      async (n, send) => {
        const reply = await send();
        return n > 0 ? reply : busy('commit_outcome_unknown');
      },
    ],
    ['that finds the server busy', async (n, send) => (n < 2 ? busy('too_busy') : send())],
    [
      'that the platform throttles',
      async (n, send) =>
        n < 2 ? new Response('Rate exceeded', { status: 429, headers: { 'retry-after': '0' } }) : send(),
    ],
  ])('an append %s is repeated, and written once', async (_, fault) => {
    const stream = fresh();
    for (const [expectedStreamVersion, last] of [
      [-1n, 1n],
      [undefined, 3n],
      [3n, 5n],
    ] as const) {
      const { store } = faulty(fault);
      expect(
        (
          await store.appendToStream(stream, events(2), {
            ...(expectedStreamVersion !== undefined && { expectedStreamVersion }),
          })
        ).nextExpectedStreamVersion,
      ).toBe(last);
    }
    expect((await faulty((__, send) => send()).store.readStream(stream)).events).toHaveLength(6);
  });

  test('a conflict, a refusal and a wrong address are not asked again', async () => {
    const stream = fresh();
    const { store, requests } = faulty((_, send) => send());
    await store.appendToStream(stream, events(1));
    await expect(store.appendToStream(stream, events(1), { expectedStreamVersion: 7n })).rejects.toMatchObject({
      errorCode: 412,
      current: '0',
      expected: '7',
    });
    expect(requests).toHaveLength(2);
    const denied = faulty(async () => busy('access_denied', 403));
    await expect(denied.store.readStream(stream)).rejects.toMatchObject({ code: 'access_denied', errorCode: 403 });
    const failures = faulty(async () => busy('too_many_failures', 429));
    await expect(failures.store.streamExists(stream)).rejects.toMatchObject({
      code: 'too_many_failures',
      errorCode: 429,
    });
    const elsewhere = faulty(async () => new Response('<html>Not here</html>', { status: 404 }));
    const error = await elsewhere.store.readStream(stream).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(SkuaEventStoreError);
    expect(error).toMatchObject({
      code: 'unexpected_reply',
      errorCode: 502,
      message: expect.stringContaining('Not here'),
    });
    for (const { requests: each } of [denied, failures, elsewhere]) expect(each).toHaveLength(1);
  });

  test('what does not pass is given up, and says so', async () => {
    const { store, requests } = faulty(async () => busy('commit_contended'));
    for (const work of [
      () => store.appendToStream('x', events(1)),
      () => store.readStream('x'),
      () => store.streamExists('x'),
    ]) {
      requests.length = 0;
      await expect(work()).rejects.toMatchObject({ code: 'commit_contended', errorCode: 503 });
      expect(requests).toHaveLength(ATTEMPTS_MAX);
    }
  });

  test('a read that breaks off goes on behind what it gave', async () => {
    const stream = fresh();
    const { store } = faulty((_, send) => send());
    await store.appendToStream(stream, events(2_300));
    const { store: breaking, requests } = faulty(async (n, send) => (n < 3 ? broken(await send()) : send()));
    const read = await breaking.readStream<{ type: 'Weighed'; data: { grams: number } }>(stream, { from: 100n });
    expect(read.events.map(({ data }) => data.grams)).toEqual(
      events(2_300)
        .slice(100)
        .map(({ data }) => data.grams),
    );
    // Of each broken reply one event was missing.
    expect(requests.slice(0, 3).map((each) => /from=(\d+)/.exec(each)?.[1])).toEqual(['100', '1099', '2098']);
    const { store: bounded } = faulty(async (n, send) => (n < 1 ? broken(await send()) : send()));
    expect(
      (await bounded.readStream(stream, { from: 5n, to: 15n })).events.map(({ metadata }) => metadata.streamPosition),
    ).toEqual(Array.from({ length: 10 }, (_, n) => BigInt(n + 5)));
  });

  test('a reply that would be too large is asked for in parts', async () => {
    const stream = fresh();
    const { store } = faulty((_, send) => send());
    await store.appendToStream(stream, events(10));
    const sizes: number[] = [];
    const { store: small } = faulty(async (_, send, url) => {
      const limit = Number(new URL(url).searchParams.get('limit'));
      sizes.push(limit);
      return limit > 4 ? busy('reply_too_large', 413) : send();
    });
    expect((await small.readStream(stream)).events).toHaveLength(10);
    expect(sizes.slice(-3)).toEqual([4, 4, 4]);
    const { store: none } = faulty(async () => busy('reply_too_large', 413));
    await expect(none.readStream(stream)).rejects.toMatchObject({ code: 'reply_too_large', errorCode: 413 });
  });

  test('what a reader throws is not taken for a failure of the connection', async () => {
    const stream = fresh();
    const { store, requests } = faulty((_, send) => send());
    await store.appendToStream(stream, events(3));
    requests.length = 0;
    await expect(
      store.aggregateStream(stream, {
        initialState: () => 0,
        evolve: () => {
          throw new TypeError('of the application');
        },
      }),
    ).rejects.toThrow('of the application');
    expect(requests).toHaveLength(1);
  });

  test('the path of an address is kept, and credentials are sent apart from it', async () => {
    const seen: [string, string | null][] = [];
    const send: Send = async (url, init) => {
      seen.push([url, new Headers(init.headers).get('authorization')]);
      return busy('stream_not_found', 404);
    };
    await getSkuaEventStore({ url: 'https://kim:p%40ss@store.example.com/live/', fetch: asFetch(send) }).readStream(
      'a/b',
    );
    await getSkuaEventStore({
      url: new URL('https://kim:p@store.example.com'),
      credentials: { username: 'lou', password: 'ü' },
      fetch: asFetch(send),
    }).readStream('a');
    expect(seen.map(([url]) => url.split('?', 1)[0])).toEqual([
      'https://store.example.com/live/streams/a%2Fb',
      'https://store.example.com/streams/a',
    ]);
    expect(
      seen.map(([, authorization]) => Buffer.from(authorization!.slice('Basic '.length), 'base64').toString()),
    ).toEqual(['kim:p@ss', 'lou:ü']);
  });

  test('a request that is not answered in its time is ended, and repeated', async () => {
    const stream = fresh();
    let requests = 0;
    const send: Send = async (url, init) => {
      if (requests++ > 0) return fetch(url, init);
      await new Promise((resolve) => {
        init.signal!.addEventListener('abort', resolve, { once: true });
      });
      throw init.signal!.reason;
    };
    const store = getSkuaEventStore({ url: node.url, timeoutMs: 500, fetch: asFetch(send) });
    await store.appendToStream(stream, events(2));
    expect(requests).toBeGreaterThan(1);
    expect((await store.readStream(stream)).events).toHaveLength(2);
  });

  test('another address is asked where one does not answer', async () => {
    const stream = fresh();
    const store = getSkuaEventStore({ urls: ['http://127.0.0.1:1', node.url] });
    await store.appendToStream(stream, events(2));
    expect((await store.readStream(stream)).events).toHaveLength(2);
  });
});
