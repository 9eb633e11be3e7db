import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { linesIn, olderOf, tokenOf } from '../../local/commands/found-events.ts';
import { readOptions } from '../../local/commands/read-options.ts';
import { runRead } from '../../local/commands/run-read.ts';
import { runBy } from './run.ts';
import { startedNode } from './spawn.ts';
import type { Started } from './spawn.ts';
import { FakeIo } from './support.ts';

/** `skua read` and `skua streams` at a real node. */

let node: Started;
beforeAll(async () => {
  node = await startedNode(['--insecure', '--mem-db']);
  await append('order-1', 'order-placed', 1, { $tags: ['ann'], $correlationId: 'c1' });
  await append('order-2', 'order-placed', 2, { $tags: ['ann', 'vip'] });
  await append('parcel-1', 'parcel-sent', 3, { $correlationId: 'c1' });
  await append('order-1', 'order-paid', 4, { $tags: ['vip'] });
});
afterAll(() => node.stop());

async function append(stream: string, eventType: string, n: number, metadata: object) {
  const eventId = `00000000-0000-4000-8000-00000000000${n}`;
  const { status } = await fetch(`${node.url}/streams/${stream}`, {
    method: 'POST',
    headers: { 'content-type': 'application/vnd.eventstore.events+json' },
    body: JSON.stringify([{ eventId, eventType, data: { n }, metadata }]),
  });
  expect(status).toBe(201);
}

const io = () => new FakeIo({ env: { SKUA_NODE: node.url } });
const run = (line: string) => runBy(io(), line.split(' '));
/** `number@stream` of each line. */
const places = async (line: string) =>
  (await run(line)).out
    .split('\n')
    .slice(0, -1)
    .map((text) => / {2}(\d+@\S+) {2}/.exec(text)![1]);
const lineAt = (out: string, i: number) => JSON.parse(out.split('\n')[i]!);

/** Two events of `--follow --json`, of a node that answers so. */
async function following(answers: readonly (() => Response)[]) {
  const asked: (string | null)[] = [];
  const { fetch: real } = globalThis;
  globalThis.fetch = async (_: unknown, init?: RequestInit) => {
    asked.push(new Headers(init!.headers).get('last-event-id'));
    return answers[asked.length - 1]!();
  };
  const given = io();
  try {
    const options = { ...defaults(), category: 'order', follow: true, json: true, limit: 2 };
    expect(await runRead({ options, given: new Set(), positionals: [] }, given, 0)).toBe(0);
  } finally {
    globalThis.fetch = real;
  }
  return { asked, out: given.out, err: given.err };
}

describe('skua read', () => {
  test.each<[string, string[]]>([
    ['read --category order', ['0@order-1', '0@order-2', '1@order-1']],
    ['read --category order --type order-paid --type parcel-sent', ['1@order-1']],
    ['read --type order-paid --type parcel-sent', ['0@parcel-1', '1@order-1']],
    ['read --tag ann --tag vip', ['0@order-2']],
    ['read --correlation c1 --backward', ['0@parcel-1', '0@order-1']],
    ['read $all --category order --limit 2', ['0@order-1', '0@order-2']],
    ['read --category order --backward --limit 2', ['1@order-1', '0@order-2']],
    ['read order-1', ['0@order-1', '1@order-1']],
    ['read order-1 --backward', ['1@order-1', '0@order-1']],
    ['read order-1 --backward --from 0', ['0@order-1']],
    ['read order-1 --from 1', ['1@order-1']],
    ['read order-1 --follow --limit 2', ['0@order-1', '1@order-1']],
  ])('%s', async (line, expected) => {
    expect(await places(line)).toEqual(expected);
  });

  test('shows place, time, type and data, and begins at a position, forward and backward', async () => {
    const { code, out } = await run('read --category order --json');
    expect(code).toBe(0);
    expect(lineAt(out, 1)).toMatchObject({ streamId: 'order-2', eventType: 'order-placed' });
    const { position, updated } = lineAt(out, 1);
    expect((await run('read --category order')).out).toContain(
      `${position}  ${updated}  0@order-2  order-placed  { "n": 2 }\n`,
    );
    expect(await places(`read --category order --from ${position}`)).toEqual(['0@order-2', '1@order-1']);
    expect(await places(`read --category order --from ${position} --backward`)).toEqual(['0@order-1']);
  });

  test('reads page by page, newest first', async () => {
    const events = Array.from({ length: 250 }, () => ({ eventId: crypto.randomUUID(), eventType: 'many', data: {} }));
    await fetch(`${node.url}/streams/bulk-1`, {
      method: 'POST',
      headers: { 'content-type': 'application/vnd.eventstore.events+json' },
      body: JSON.stringify(events),
    });
    const expected = Array.from({ length: 250 }, (_, i) => `${249 - i}@bulk-1`);
    expect(await places('read --type many --backward')).toEqual(expected);
    expect(await places('read bulk-1 --backward')).toEqual(expected);
  });

  test('goes on with what comes until Ctrl+C', async () => {
    const given = io();
    const ended = runBy(given, 'read --category live --follow'.split(' '));
    await append('live-1', 'came', 5, {});
    await given.written(/0@live-1/);
    await append('other-1', 'came', 6, {});
    await append('live-2', 'came', 7, {});
    await given.written(/0@live-2/);
    given.process.emit('SIGINT', 'SIGINT');
    expect(await ended).toMatchObject({ code: 0, err: '' });
    expect(given.out.match(/\d@\S+/g)).toEqual(['0@live-1', '0@live-2']);
  });

  test('follows on behind what it has seen when the node ends a subscription', async () => {
    const answers = ['id: 7/7\ndata: {"a":1}\n\nid: 9/9\ndata: {"cut', 'id: 9/9\ndata: {"b":2}\n\n'];
    expect(await following(answers.map((text) => () => new Response(text)))).toEqual({
      asked: [null, '7/7'],
      out: '{"a":1}\n{"b":2}\n',
      err: 'The connection to the node broke off within a line. It is asked again until Ctrl+C.\n',
    });
  });

  test('follows on when the node that it follows is started again', async () => {
    const ends = { code: 'store_closed', detail: 'x' };
    const starts = { code: 'not_ready', detail: 'The node starts.' };
    const gone = () => {
      throw new TypeError('fetch failed');
    };
    const { asked, out, err } = await following([
      () => new Response(`id: 7/7\ndata: {"a":1}\n\nevent: error\ndata: ${JSON.stringify(ends)}\n\n`),
      gone,
      gone,
      () => Response.json(starts, { status: 503, headers: { 'content-type': 'application/problem+json' } }),
      () => new Response('id: 9/9\ndata: {"b":2}\n\n'),
    ]);
    expect([asked, out]).toEqual([[null, '7/7', '7/7', '7/7', '7/7'], '{"a":1}\n{"b":2}\n']);
    expect(err).toMatch(/^No node answers at .* It is asked again until Ctrl\+C\.\n$/);
    await expect(following([gone])).rejects.toMatchObject({ code: 'node_unreachable' });
    const deleted = `event: error\ndata: ${JSON.stringify({ code: 'stream_deleted', detail: 'x' })}\n\n`;
    await expect(following([() => new Response(deleted)])).rejects.toMatchObject({ code: 'stream_deleted' });
  });

  test('says what to say', async () => {
    const wrong = ['read', 'read order-1 --tag a', 'read order-1 --backward --follow', 'read order-1 --from end'];
    for (const line of wrong) expect((await run(line)).code, line).toBe(2);
    expect((await run('read --category order --backward --from 7')).err).toContain('a position of $all such as');
    expect(await run('read none-1')).toMatchObject({ code: 1 });
    expect(await run('read --category a-b')).toMatchObject({ code: 1 });
    expect(await run('read --category none')).toMatchObject({ code: 0, out: '', err: 'No events match.\n' });
  });

  test('a reply that breaks off within a line is no end', async () => {
    const seen: string[] = [];
    const reading = (async () => {
      for await (const text of linesIn(new Response('{"n":1}\n{"n":'))) seen.push(text);
    })();
    await expect(reading).rejects.toMatchObject({ code: 'unreachable' });
    expect(seen).toEqual(['{"n":1}']);
  });

  test('pages begin at a position in hexadecimal, and lead on by the header of the node', () => {
    expect(tokenOf('32/26')).toBe('0000000000000020000000000000001A');
    const link = '<http://x/streams/a/17/backward/20?category=b>; rel="next"';
    expect(olderOf(new Response('', { headers: { link } }))).toBe('17');
    expect(olderOf(new Response(''))).toBe(null);
  });
});

function defaults() {
  const values = Object.entries(readOptions).map(([name, { fallback }]) => [name, fallback]);
  return { ...Object.fromEntries(values), node: node.url };
}

describe('skua streams', () => {
  test('shows each stream once, with its newest match', async () => {
    const { code, out, err } = await run('streams --category order');
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(
      /^stream +newest match +type +written\norder-1 +1 +order-paid +\S+Z\norder-2 +0 +order-placed +\S+Z\n$/,
    );
    expect((await run('streams --type order-placed --tag ann --json')).out.split('\n').map(nameIn)).toEqual([
      'order-2',
      'order-1',
      null,
    ]);
  });

  test('ends where it was told to, and says so', async () => {
    const first = await run('streams --category order --limit 1');
    expect(first.out).toContain('order-1');
    expect(first.err).toBe(
      '1 event looked at, from the newest back; there may be more streams: raise --limit or --look.\n',
    );
    expect((await run('streams --category order --look 1')).err).toBe(first.err);
    expect((await run('streams --category none')).err).toBe('No streams have such events.\n');
    expect((await run('streams')).code).toBe(2);
  });
});

const nameIn = (text: string) => (text === '' ? null : JSON.parse(text).stream);
